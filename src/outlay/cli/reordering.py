"""outlay draw of a layout in an order that its engine need not run: a schedule by name, or the best that is found."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from ..bill import Bill, Loaded, case_of, load
from ..errors import Fault, InputError
from ..layout.case import Case
from ..schedule.laws import SCHEDULES
from ..schedule.orders import names, order_in_rounds
from ..schedule.passes import Order
from ..schedule.times import TICK
from ..search.fitting import limits
from ..search.orders.plan import SOUGHT
from ..search.orders.sought import Sought, peak_of, problem_for, room, seek
from ..search.orders.standing import Way, standing, unlike, way_of, ways
from ..search.rows import OF_A_SCHEDULE, OF_A_SPLIT
from ..show.text import both, duration
from ..simulated import Simulated, run, times_of
from .flags import Given
from .passes import Asked, Plan
from .question import read_question
from .seeking import SECONDS, Line, read_cap
from .values import Faults, count, seconds

ITSELF = ("schedule", "vpp", "memory_cap", "time_limit")  # decided here, not by the question of the layout


def reordered(given: Given) -> bool:
    """Whether a layout is to be drawn in an order that no bill has."""
    name = given.text("schedule")
    return name == SOUGHT or (name in names() and name not in SCHEDULES)


def of_another_order(given: Given) -> Asked | Bill:
    """The pipeline, with the times of its stages; the bill where the layout breaks a rule that is not of the order."""
    faults = Faults()
    question = faults.attempt(read_question, Given({k: v for k, v in given.values.items() if k not in ITSELF}))
    vpp = None if given.text("vpp") is None else count(given.text("vpp") or "", "--vpp", faults)
    name = given.text("schedule") or SOUGHT
    reason = "" if name == SOUGHT else unlike(name)
    if reason:
        rule = f"an order whose passes are those of the layout's stages; of {name}, {reason}"
        faults.add(Fault("DRW002", f"{name} is not drawn of a MODEL", rule, f"--schedule {name}", "leave MODEL out"))
    cap, limit = read_cap(given, faults), SECONDS
    if given.text("time_limit") is not None:
        limit = seconds(given.text("time_limit") or "", "--time-limit", faults) or SECONDS
    faults.stop()
    bill: Bill = question.bill()
    broken = tuple(each for each in bill.violations if each.code not in (*OF_A_SCHEDULE, *OF_A_SPLIT))
    if broken:
        return replace(bill, violations=broken)
    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    if name == SOUGHT:
        return _sought(case, _ways(case, vpp), cap, limit)
    way = way_of(name, replace(case.layout, vpp=vpp or 1))
    if vpp and vpp != way.chunks:
        rule = f"on a layout {name} has {way.chunks} chunks a rank"
        fix = f"--vpp {way.chunks}"
        raise InputError(Fault("SCH003", f"{name} cannot take this number of chunks", rule, f"--vpp {vpp}", fix))
    return _named(name, _loaded(case, way))


def _loaded(case: Case, way: Way) -> Loaded:
    placed = standing(case, way)
    if placed is None:
        rule = "every chunk holds a layer, and the cut obeys the engine's rules"
        got = f"{case.model.layers} layers, pp {case.layout.pp}, {way.chunks} chunks a rank"
        raise InputError(Fault("LAY010", "the layers cannot be cut so", rule, got, "another --pp or --vpp"))
    return load(placed)


def _ways(case: Case, vpp: int | None) -> list[Loaded]:
    """The chunks of a rank as they may stand; those alone that the layers can be cut into."""
    if vpp is not None:
        return [_loaded(case, way) for way in ([Way(2, True), Way(2)] if vpp == 2 else [Way(vpp)])]
    found = [placed for way in ways(case.layout) if (placed := standing(case, way)) is not None]
    return [load(each) for each in found] or [_loaded(case, Way(1))]


def _named(name: str, loaded: Loaded) -> Asked:
    at, even = loaded.case.layout, loaded.case.engine.even_rounds

    @cache
    def make(some: int) -> Order:
        return order_in_rounds(name, int(at.pp), some, int(at.vpp), even)

    ran = run(loaded, make)
    plan = _plan(name, loaded, make)
    return _asked(plan, loaded, ran, str(plan), ())


def _plan(name: str, loaded: Loaded, make: Callable[[int], Order]) -> Plan:
    at, micro_batches = loaded.case.layout, int(loaded.case.micro_batches)
    return Plan(name, int(at.pp), int(at.vpp), micro_batches, int(at.pp * at.vpp), make)


def _sought(case: Case, every: list[Loaded], cap: float | None, limit: float) -> Asked:
    """The shortest order of all ways, each sought for its share of the time."""
    until, found, wrong = time.monotonic() + limit, list[tuple[Loaded, Sought]](), list[Fault]()
    line = Line() if sys.stderr.isatty() else None
    for turn, loaded in enumerate(every):
        at = loaded.case.layout
        try:
            problem = problem_for(loaded, Way(int(at.vpp), bool(at.folded)), room(loaded) if cap is None else cap)
        except InputError as error:
            wrong += error.faults
            continue
        left = max(0.0, until - time.monotonic()) / (len(every) - turn)
        found.append((loaded, seek(loaded, problem, left, line.heard if line else None)))
        if found[-1][1].stopped:
            break
    if line:
        line.close()
    if not found:
        raise InputError(*dict.fromkeys(wrong))
    loaded, answer = min(found, key=lambda each: each[1].run.seconds)
    plan = _plan(SOUGHT, loaded, lambda _: answer.order)
    least = min(each.bound for _, each in found)
    title = f"{plan}, {answer.held:g} held at the most"
    return replace(_asked(plan, loaded, answer.run, title, _said(answer, least)), sought=_record(answer, loaded, cap))


def _asked(plan: Plan, loaded: Loaded, ran: Simulated, title: str, said: tuple[str, ...]) -> Asked:
    """The pipeline to draw, and what a step with it takes and holds."""
    case = loaded.case
    peak = peak_of(loaded, ran)
    bounds = limits(case)
    fits = "fits" if peak <= bounds.fits else "is tight" if peak <= bounds.tight else "does not fit"
    step = f"pass by pass a step takes {duration(ran.seconds)}, the optimizer and what is exchanged with it"
    held = f"the rank that holds most has {both(peak)} at its largest moment, which {fits}"
    each = case.cluster.ranks // plan.pp
    row = f"a row is one of {plan.pp} pipeline ranks, {each:,} accelerators each"
    whole = f"{case.model.name} on {case.cluster.name}: {title}"
    return Asked(plan, times_of(case).in_ticks(TICK), TICK, whole, (*said, step, held, row), each)


def _said(answer: Sought, least: float) -> tuple[str, ...]:
    taken = answer.run.seconds
    if answer.bound <= least and answer.proved:
        head = f"proved: no order is shorter in which a rank holds {answer.held:g} micro-batches at the most"
    else:
        head = (
            f"a rank holds {answer.held:g} micro-batches at the most; none of these is below {duration(least)} a step"
        )
    passes = answer.run.timeline.makespan * TICK
    beside = ", ".join(
        f"{name} {duration(taken - passes + spent)}"
        for name, spent in sorted(answer.named, key=lambda pair: pair[1])[:4]
    )
    return head, f"named schedules that hold no more: {beside}" if beside else "no named schedule holds so little"


def _record(answer: Sought, loaded: Loaded, cap: float | None) -> dict[str, object]:
    passes = answer.run.timeline.makespan * TICK
    at = loaded.case.layout
    return {
        "memory_cap": answer.held if cap is None else cap,
        "chunks": int(at.vpp),
        "placement": Way(int(at.vpp), bool(at.folded)).place,
        "makespan": passes,
        "bound": passes - (answer.run.seconds - answer.bound),
        "proved": answer.proved,
        "named": dict(answer.named),
        "stopped": answer.stopped,
    }

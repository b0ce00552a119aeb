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
from ..schedule.orders import names
from ..schedule.passes import Order
from ..schedule.synthesis.best import Said
from ..schedule.times import TICK
from ..search.fitting import allocatable, limits
from ..search.orders.plan import SOUGHT
from ..search.orders.sought import Sought, peak_of, problem_for, room, seek, seek_in_room
from ..search.orders.standing import Way, standing, unlike, way_of, ways
from ..search.rows import OF_A_SCHEDULE, OF_A_SPLIT
from ..show.text import both, counted, duration
from ..simulated import Simulated, order_of, run, times_of
from .flags import Given
from .passes import Asked, Plan
from .question import read_question
from .seeking import Line, read_cap, read_limit
from .values import Faults, count

ITSELF = ("schedule", "vpp", "memory_cap", "time_limit")  # decided here, not by the question of the layout


def reordered(given: Given) -> bool:
    """Whether a layout is to be drawn in an order that no bill has."""
    name = (given.text("schedule") or "").lower()
    return name == SOUGHT or (name in names() and name not in SCHEDULES)


def of_another_order(given: Given) -> Asked | Bill:
    """The pipeline, with the times of its stages; the bill where the layout breaks a rule that is not of the order."""
    faults = Faults()
    question = faults.attempt(read_question, Given({k: v for k, v in given.values.items() if k not in ITSELF}))
    vpp = None if given.text("vpp") is None else count(given.text("vpp") or "", "--vpp", faults)
    name = str(given.text("schedule")).lower()
    reason = "" if name == SOUGHT else unlike(name)
    if reason:
        rule = f"an order whose passes are those of the layout's stages; of {name}, {reason}"
        faults.add(Fault("DRW002", f"{name} is not drawn of a MODEL", rule, f"--schedule {name}", "leave MODEL out"))
    cap, limit = read_cap(given, faults), read_limit(given, faults)
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
    given = tuple(case.layout.split or ())
    if given and (placed is None or placed.layout.split != given):
        rule = "a split gives the layers of every chunk along the model, or of each stage, shared equally by its chunks"
        got = f"{len(given)} numbers, pp {case.layout.pp}, {way.words}"
        raise InputError(Fault("LAY009", "the split does not fit the chunks of the order", rule, got, "no --split"))
    if placed is None:
        rule = "every chunk holds a layer, and the cut obeys the engine's rules"
        got = f"{case.model.layers} layers, pp {case.layout.pp}, {way.chunks} chunks a rank"
        raise InputError(Fault("LAY010", "the layers cannot be cut so", rule, got, "another --pp or --vpp"))
    return load(placed)


def _ways(case: Case, vpp: int | None) -> list[Loaded]:
    """The chunks of a rank as they may stand; those alone that the layers can be cut into."""
    if vpp is not None:
        return [_loaded(case, way) for way in ([Way(2, True), Way(2)] if vpp == 2 else [Way(vpp)])]
    found, faults = list[Loaded](), list[Fault]()
    for way in ways(case.layout):
        try:
            found.append(_loaded(case, way))
        except InputError as error:
            faults += error.faults
    if not found:
        raise InputError(*dict.fromkeys(faults))
    return found


def _named(name: str, loaded: Loaded) -> Asked:
    make = cache(lambda some: order_of(loaded.case, some, name))
    ran = run(loaded, make)
    plan = _plan(name, loaded, make)
    return _asked(plan, loaded, ran, str(plan), ())


def _plan(name: str, loaded: Loaded, make: Callable[[int], Order]) -> Plan:
    at, micro_batches = loaded.case.layout, int(loaded.case.micro_batches)
    return Plan(name, int(at.pp), int(at.vpp), micro_batches, int(at.pp * at.vpp), make)


def _sought(case: Case, every: list[Loaded], cap: float | None, limit: float) -> Asked:
    """The shortest order of all ways that fits, each sought for its share of the time; else the shortest."""
    until, found, left_out = time.monotonic() + limit, list[tuple[Loaded, Sought]](), list[tuple[Way, Fault]]()
    line = Line() if sys.stderr.isatty() else None
    for turn, loaded in enumerate(every):
        share = max(0.0, until - time.monotonic()) / (len(every) - turn)
        try:
            found.append((loaded, _seek(loaded, cap, share, line.heard if line else None)))
        except InputError as error:
            left_out.append((_way(loaded), error.faults[0]))
            continue
        if found[-1][1].stopped:
            left_out += [(_way(other), STOPPED) for other in every[turn + 1 :]]
            break
    if line:
        line.close()
    if not found:
        raise InputError(*dict.fromkeys(fault for _, fault in left_out))
    fits = limits(case).fits
    loaded, answer = min(found, key=lambda each: (each[1].peak_bytes > fits, each[1].run.seconds))
    plan = _plan(SOUGHT, loaded, lambda _: answer.order)
    title = f"{plan}, {answer.held:g} held at the most"
    said = (*_said(answer, _way(loaded), found), *(f"{way.words}: not sought, {why.what}" for way, why in left_out))
    return replace(_asked(plan, loaded, answer.run, title, said), sought=_record(answer, _way(loaded)))


STOPPED = Fault("SCH052", "since it was stopped", "", "", "")  # why a way was not sought, as others have it


def _way(loaded: Loaded) -> Way:
    return Way(int(loaded.case.layout.vpp), bool(loaded.case.layout.folded))


def _seek(loaded: Loaded, cap: float | None, limit: float, said: Said | None) -> Sought:
    """One way. Raises InputError: SCH052 too many passes, SCH053 a cap, SCH054 memory that no order keeps to."""
    way, case = _way(loaded), loaded.case
    try:
        if cap is not None:
            return seek(loaded, problem_for(loaded, way, min(cap, int(case.micro_batches))), limit, said)
        if room(loaded) < 1:
            got = f"{both(allocatable(case))} a rank, {way.words}"
            rule = "a rank holds the activations of one micro-batch at least, beside its state"
            fix = "more --pp or --tp, or --recompute full"
            raise InputError(Fault("SCH054", "no rank has room for one micro-batch", rule, got, fix))
        return seek_in_room(loaded, way, limit, said)
    except InputError as error:
        fewer = "a smaller --batch, or a larger --mbs"
        raise InputError(
            *(replace(each, fix=fewer) if each.code == "SCH052" else each for each in error.faults)
        ) from None


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


def _said(answer: Sought, way: Way, found: list[tuple[Loaded, Sought]]) -> tuple[str, ...]:
    """How good the order is, and beside which schedules."""
    passes, least = answer.run.timeline.makespan * TICK, min(each.bound for _, each in found)
    most = f"{counted(answer.held, 'micro-batch')} at the most"
    if answer.proved:
        head = f"{way.words}: proved, no order is shorter in which a rank holds {most}"
    else:
        head = f"{way.words}: a rank holds {most}; no order of these is below {duration(answer.bound)} a step"
    if least < answer.bound:
        head += f", none of other chunks below {duration(least)}"
    beside = ", ".join(
        f"{name} {duration(answer.run.seconds - passes + spent)}"
        for name, spent in sorted(answer.named, key=lambda pair: pair[1])[:4]
    )
    return head, f"named schedules that hold no more: {beside}" if beside else "no named schedule holds so little"


def _record(answer: Sought, way: Way) -> dict[str, object]:
    passes = answer.run.timeline.makespan * TICK
    return {
        "memory_cap": answer.held,
        "chunks": way.chunks,
        "placement": way.place,
        "makespan": passes,
        "bound": passes - (answer.run.seconds - answer.bound),
        "proved": answer.proved,
        "named": dict(answer.named),
        "stopped": answer.stopped,
    }

"""The best order under a memory cap: what `outlay draw --schedule best` asks for, and what is said of the answer."""

import sys
import time
from dataclasses import dataclass

from ..errors import Fault, InputError, quoted
from ..schedule.synthesis.best import Found, best, problem_of
from ..schedule.synthesis.exact import available
from ..schedule.synthesis.problem import Problem, least
from ..schedule.times import Times
from ..show.text import duration, figure, percent
from ..validate.progress import AFTER, EVERY
from .flags import Given
from .passes import Asked, Plan, durations, read_sizes
from .values import Faults, number, seconds

SECONDS = 20.0  # that a search takes at the most, unless said
MOST_CHUNKS = 16  # a rank
PLACES = {"loop": "a loop", "snake": "a V"}


@dataclass(frozen=True)
class Placed:
    """One placement of stages to be tried: the search, its times in ticks, and how many of them a tick stands for."""

    problem: Problem
    place: str
    times: Times
    scale: int  # of its ticks, in the ticks that all placements share

    @property
    def words(self) -> str:
        """In words: two chunks a rank on a V."""
        chunks = self.problem.chunks
        return "one chunk a rank" if chunks == 1 else f"{chunks} chunks a rank in {PLACES[self.place]}"


def read_best(given: Given) -> Asked:
    """Seek the best order. Raises every fault of the question."""
    faults = Faults()
    sizes = read_sizes(given, faults)
    cap, limit = read_cap(given, faults), read_limit(given, faults)
    for name in ("pair", "slices"):
        if given.text(name) is not None:
            rule = "an order that is sought has neither pairs nor slices"
            faults.add(Fault("DRW002", f"--{name} is of no use here", rule, "--schedule best", "leave it out"))
    pp, micro_batches, vpp = sizes["pp"], sizes["micro_batches"], sizes["vpp"]
    if vpp and vpp > MOST_CHUNKS:
        rule = f"up to {MOST_CHUNKS} chunks a rank are sought"
        faults.add(Fault("SCH052", "the order is too long to be sought", rule, f"--vpp {vpp}", "--vpp 2"))
    if pp is None or micro_batches is None or faults.found:
        durations(given, 1, 1.0, faults)
        faults.stop()
        raise AssertionError
    placed, tick, notes = _placed(given, (pp, micro_batches, vpp), cap or float(micro_batches), faults)
    faults.stop()
    return _asked(placed, tick, notes, cap, limit)


def read_limit(given: Given, faults: Faults) -> float:
    """Seconds that a search takes at the most."""
    text = given.text("time_limit")
    return SECONDS if text is None else seconds(text, "--time-limit", faults) or SECONDS


def read_cap(given: Given, faults: Faults) -> float | None:
    """Micro-batches that a rank may hold; None without a cap."""
    text = given.text("memory_cap")
    if text is None:
        return None
    value = number(text)
    if value is not None and 0 < value < 1e9:
        return float(value)
    rule = "micro-batches whose activations a rank may hold; a chunk's are one of its rank's chunks"
    faults.add(Fault("UNI001", "--memory-cap is not a number of micro-batches", rule, quoted(text), "--memory-cap 4"))
    return None


def _placed(
    given: Given, sizes: tuple[int, int, int | None], cap: float, faults: Faults
) -> tuple[list[Placed], float, tuple[str, ...]]:
    """Each placement: one chunk a rank, or several on a V or in a loop; those alone that --vpp and --times allow."""
    pp, micro_batches, vpp = sizes
    ways = [(2, "snake"), (1, "loop"), (2, "loop")] if vpp is None else [(vpp, "loop")]
    ways = [(vpp, "snake"), *ways] if vpp and vpp % 2 == 0 else ways
    found, tick, notes, wrong = list[Placed](), 0.0, tuple[str, ...](), list[Fault]()
    for chunks, place in ways:
        depth = pp * chunks
        times, tick, notes = durations(given, depth, 1 / chunks, faults)
        faults.stop()
        try:
            problem = problem_of(times, pp, micro_batches, chunks, place, cap)
        except InputError as error:
            wrong += error.faults
            continue
        scale = 1 if tick else 2 * (vpp or 2) // chunks
        found.append(Placed(problem, place, times, scale))
    if not found:
        raise InputError(*dict.fromkeys(wrong))
    return found, tick, notes


def _asked(placed: list[Placed], tick: float, notes: tuple[str, ...], cap: float | None, limit: float) -> Asked:
    """The shortest of all placements as a pipeline to draw."""
    until, answers = time.monotonic() + limit, list[tuple[float, Placed, Found]]()
    line = Line() if sys.stderr.isatty() else None
    for turn, each in enumerate(placed):
        left = max(0.0, until - time.monotonic()) / (len(placed) - turn)
        ahead = min((one[0] for one in answers), default=None)
        if ahead is not None and least(each.problem) * each.problem.tick * each.scale >= ahead:
            left = 0.0  # it cannot be shorter: its named schedules alone are run
        answer = best(each.problem, left, prove=left > 0, said=line.heard if line else None)
        answers.append((answer.makespan * answer.problem.tick * each.scale, each, answer))
        if answer.stopped:
            break
    if line:
        line.close()
    shortest, where, found = min(answers, key=lambda one: one[0])
    problem = where.problem
    plan = Plan("best", problem.pp, problem.chunks, problem.micro_batches, problem.depth, lambda _: found.order)
    said = _said(answers, (shortest, where, found), tick, cap)
    return Asked(
        plan, where.times, tick, _title(plan, where, cap), (*said, *notes), sought=_record(where, found, tick, cap)
    )


def _title(plan: Plan, where: Placed, cap: float | None) -> str:
    under = f", {cap:g} held at the most" if cap else ""
    return f"best, {plan.pp} ranks, {where.words}, {plan.micro_batches:,} micro-batches{under}"


def _said(
    answers: list[tuple[float, Placed, Found]], first: tuple[float, Placed, Found], tick: float, cap: float | None
) -> tuple[str, ...]:
    """How good the order is, and beside which schedules."""
    shortest, where, found = first
    unit = where.scale

    def shown(ticks: float) -> str:
        return duration(ticks * tick) if tick else f"{figure(ticks / unit)} F"

    bounds = [(answer.bound * answer.problem.tick * each.scale, each.words) for _, each, answer in answers]
    below = [bound for bound, _ in bounds if bound < shortest]
    head = f"{shown(shortest)} with {where.words}"
    if not below:
        head += ", proved: no order is shorter under this cap, with " + " or ".join(words for _, words in bounds)
    else:
        gain = percent(1 - min(below) / shortest)
        head += f"; none is below {shown(min(below))}, so at most {gain} less"
        head += ", and of its own placement none is shorter" if found.proved else ""
    named = sorted(
        (taken * each.scale * answer.problem.tick, name) for _, each, answer in answers for name, taken in answer.named
    )
    beside = ", ".join(f"{name} {shown(taken)}" for taken, name in named[:4])
    lines = [head, f"named schedules under it: {beside}" if beside else "no named schedule keeps to this cap"]
    lines += ["stopped before all was tried"] if any(answer.stopped for _, _, answer in answers) else []
    if below and not available():
        lines.append("with OR-tools (pip install outlay[exact]) more is proved, and often a shorter order found")
    lines += [] if cap else ["no --memory-cap: a rank may hold every micro-batch"]
    return tuple(lines)


def _record(where: Placed, found: Found, tick: float, cap: float | None) -> dict[str, object]:
    scale = (tick or 1.0) * found.problem.tick
    return {
        "memory_cap": cap,
        "chunks": found.problem.chunks,
        "placement": where.place,
        "makespan": found.makespan * scale,
        "bound": found.bound * scale,
        "proved": found.proved,
        "named": {name: taken * scale for name, taken in found.named},
        "stopped": found.stopped,
    }


class Line:
    """A line for whoever waits: after two seconds, at most twice a second."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.last, self.width = 0.0, 0

    def heard(self, what: str, makespan: int, bound: int) -> None:
        """What is done, and the best so far."""
        now = time.monotonic()
        if now - self.began < AFTER or now - self.last < EVERY:
            return
        self.last = now
        text = f"{what}: {percent(1 - bound / makespan)} above the bound at most; Ctrl-C keeps the best so far"
        sys.stderr.write("\r" + text.ljust(self.width))
        self.width = len(text)

    def close(self) -> None:
        """Wipe the line, if there is one."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")

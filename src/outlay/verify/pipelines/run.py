"""A pipeline run for real: its order on real ranks of torch, each rank's timeline measured, and simulated again."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...bill import case_of
from ...layout.case import Case
from ...schedule.checks import passes
from ...schedule.executed import drawn, measured, one_by_one, replayed
from ...schedule.listing import from_csv, to_csv
from ...schedule.passes import Order
from ...schedule.timeline import Timeline
from ...schedule.times import TICK, Times
from ...simulated import times_of
from ..comparison import Comparison
from ..comparisons.schedule import LISTS, alike, theirs_of, written
from ..launched import launched
from ..subject import ASLEEP, Checked, Pacing, Subject

if TYPE_CHECKING:
    from .timed_stages import Asked, Seen

KIND = "pipeline"
HOP = 1e-3  # s a message; assumed, not fitted: a small tensor from process to process
WITHIN = 0.05  # of the measured makespan
SHORT = 0.1  # s: of shorter operations, torch's own milliseconds are more than a few percent
A_CORE = 4  # ranks that are started for each core of this machine: they sleep
DISTURBED = "on a CPU, stages that compute take cores from each other and from their messages"


@dataclass(frozen=True)
class Planned:
    """A pipeline that is to be run: its order, and for each stage the seconds of its forward pass and gradients."""

    order: Order
    vpp: int
    seconds: tuple[tuple[float, float, float], ...]
    pacing: Pacing = ASLEEP

    @property
    def diagram(self) -> Timeline:
        """The timeline of these durations, where a message takes no time: nothing can be faster."""
        forward, inputs, weights = (list(column) for column in zip(*self.seconds, strict=True))
        return drawn(self.order, Times(forward, inputs, weights).in_ticks(TICK))

    def asked(self) -> "Asked":
        """What travels to the ranks."""
        from .timed_stages import Asked

        order = self.order
        homes = tuple(order.rank_of(stage) for stage in range(order.stages))
        title = LISTS[order.name] if theirs_of(order, self.vpp) else ""
        return Asked(to_csv(order), homes, order.micro_batches, self.seconds, title, self.pacing.computes)


@dataclass(frozen=True)
class PipelineRun:
    """One pipeline as it ran: the better of its steps, in ticks of a nanosecond, beside its diagram and its replay."""

    planned: Planned
    backend: str
    steps: tuple[float, ...]  # s, the makespan of each
    diagram: Timeline
    measured: Timeline
    replay: Timeline
    asked: tuple[float, ...]  # s: of each rank, one pass of each stage and kind
    worked: tuple[float, ...]  # the same, the shortest that was measured
    clock: float = 0  # s: how far the clocks of several machines may be apart; 0 on one


class Outcome(NamedTuple):
    """What a run says: its comparisons, and the run, if torch took the order."""

    comparisons: tuple[Checked, ...]
    run: PipelineRun | None


def seconds_of(case: Case, order: Order, operation: float) -> tuple[tuple[float, float, float], ...]:
    """Durations of the stages in the proportions of their bill, so that an operation of the order lasts so long in the
    mean. What a stage computes again is part of its input gradient."""
    table = times_of(case).table(order.depth)
    again = table.input_gradient + table.recompute
    each = list(zip(table.forward.tolist(), again.tolist(), table.weight_gradient.tolist(), strict=True))
    total = order.micro_batches * sum(map(sum, each))
    scale = operation * sum(len(passes(one)) for row in order.ranks for one in row) / total
    return tuple((scale * forward, scale * inputs, scale * weights) for forward, inputs, weights in each)


def not_started(order: Order) -> str:
    """Why no ranks are started for an order; "" where they are."""
    ranks, most = len(order.ranks), A_CORE * (os.cpu_count() or 1)
    if order.copies > 1:
        return f"torch's runtime has one model: it does not run {order.name}, which holds it twice"
    if ranks > most and not launched():  # torchrun's own ranks are there already
        start = f"torchrun --nnodes N --nproc-per-node {most} -m outlay verify .. --only pipeline"
        return f"{ranks} ranks, and this machine starts {most} at most, {A_CORE} a core ({start})"
    return ""


def run_order(of: Subject, order: Order, began: Callable[[str], object]) -> list[Outcome]:
    """Run one order with the durations of its bill; `began` hears of it. Otherwise as `run_planned`."""
    case = case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]
    planned = Planned(order, int(of.layout.vpp), seconds_of(case, order, of.pacing.operation), of.pacing)
    began(f"pipeline, {len(order.ranks)} ranks with steps of {planned.diagram.makespan * TICK:.1f} s,")
    return run_planned([planned])


def run_planned(planned: Sequence[Planned]) -> list[Outcome]:
    """Run pipelines of equally many ranks, one after the other; on any but the first rank of torchrun an empty list.

    Raises InputError: VER005 to VER007 where the ranks fail.
    """
    from ..together import PATIENCE, together
    from .timed_stages import MOST_STEPS, run_pipelines

    longest = max(each.diagram.makespan for each in planned) * TICK
    inputs = ([each.asked() for each in planned],)
    found = together(run_pipelines, inputs, len(planned[0].order.ranks), PATIENCE + 2 * MOST_STEPS * longest)
    return [judged(each, [rank[at] for rank in found]) for at, each in enumerate(planned)] if found else []


def judged(planned: Planned, seen: Sequence["Seen"]) -> Outcome:
    """What the ranks have done beside what they were to do."""
    order, title = planned.order, planned.asked().title
    ours = written(one_by_one(order))
    size, found = sum(map(len, ours)), list[Checked]()
    if title:
        note = f"torch's own {title} on these ranks, a step without time"
        found.append(_order(f"order of {title}", size, alike(ours, _listed(seen)), note))
    if seen[0].refused:
        refused = f"refused: {seen[0].refused}"
        return Outcome((*found, _order("order run", size, 0, refused)), None)
    steps = [measured(order_of_step(order, seen, at), _spans(seen, at)) for at in range(len(seen[0].steps))]
    best = min(range(len(steps)), key=lambda at: steps[at].makespan)
    did = [[done.name for done in rank.steps[best]] for rank in seen]
    found.append(_order("order run", size, alike(ours, did)))
    replay = replayed(order_of_step(order, seen, best), _spans(seen, best), round(HOP / TICK))
    makespans = tuple(step.makespan * TICK for step in steps)
    clock = max(rank.clock for rank in seen) * TICK
    asked, worked = _passes_asked(planned), _passes_worked(seen)
    run = PipelineRun(planned, seen[0].backend, makespans, planned.diagram, steps[best], replay, asked, worked, clock)
    return Outcome((*found, *_timed(run)), run)


def order_of_step(order: Order, seen: Sequence["Seen"], at: int) -> Order:
    """What the ranks did in a step: our order, or what they did otherwise. Raises InputError where that is none."""
    did = [[done.name for done in rank.steps[at]] for rank in seen]
    if did == written(one_by_one(order)):
        return order
    return from_csv("\n".join(map(",".join, did)), order.name)


def _order(name: str, size: int, alike: int, note: str = "") -> Checked:
    return Checked(KIND, Comparison(name, size, alike, "operations", note), 0)


def _timed(run: PipelineRun) -> Iterator[Checked]:
    """Durations: of stages that sleep, what a rank was asked for, and the diagram, which nothing can be faster than."""
    took, pacing = run.measured.makespan * TICK * 1e3, run.planned.pacing
    said = f"each operation as long as it was measured, {HOP * 1e3:g} ms assumed for a message"
    if not pacing.computes:
        rank = max(range(len(run.asked)), key=lambda at: abs(run.worked[at] / run.asked[at] - 1))
        note = f"rank {rank}, the furthest from what was asked: one pass of each stage and kind, the shortest measured"
        if pacing.operation < SHORT:
            note += f"; of operations under {SHORT * 1e3:g} ms what torch itself takes is a large share"
        yield Checked(KIND, Comparison("passes", run.asked[rank] * 1e3, run.worked[rank] * 1e3, "ms", note), WITHIN)
        diagram = run.diagram.makespan * TICK * 1e3
        bound = Comparison("diagram", diagram, took, "ms", "operations as asked, messages at once", least=True)
        yield Checked(KIND, bound, 0)
    reason = DISTURBED if pacing.computes and run.backend == "gloo" else ""
    yield Checked(KIND, Comparison("replay", run.replay.makespan * TICK * 1e3, took, "ms", said), WITHIN, reason)


def _passes_asked(planned: Planned) -> tuple[float, ...]:
    lasts = {"F": (1, 0, 0), "B": (0, 1, 1), "I": (0, 1, 0), "W": (0, 0, 1)}
    kinds = [{each[:2] for both in map(passes, row) for each in both} for row in planned.order.ranks]

    def seconds(kind: str, stage: int) -> float:
        return sum(chosen * part for chosen, part in zip(lasts[kind], planned.seconds[stage], strict=True))

    return tuple(sum(seconds(*each) for each in row) for row in kinds)


def _passes_worked(seen: Sequence["Seen"]) -> tuple[float, ...]:
    """The shortest of each stage and kind: what others do on the machine only makes passes longer."""
    found = []
    for rank in seen:
        least: dict[str, int] = {}
        for done in (each for step in rank.steps for each in step):
            kind = done.name.rstrip("0123456789")  # 2F of 2F0
            least[kind] = min(least.get(kind, done.end - done.start), done.end - done.start)
        found.append(sum(least.values()) * TICK)
    return tuple(found)


def _listed(seen: Sequence["Seen"]) -> list[list[str]]:
    return [list(rank.listed) for rank in seen]


def _spans(seen: Sequence["Seen"], at: int) -> list[list[tuple[int, int]]]:
    return [[(done.start, done.end) for done in rank.steps[at]] for rank in seen]

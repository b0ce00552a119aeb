"""Memory over a simulated step: what stands on each rank while its passes run, and the moment that is largest.

The bill counts that moment in closed form. Here every pass of the schedule's own order holds and frees what its chunk
does, so the moment has a time, an operation and its parts, and chunks that differ count as they are.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .bill import Loaded
from .layout.case import Case
from .memory.activations import one_pass_bytes, recomputed_share
from .memory.moments import head_backward_bytes, layer_moment, waiting_logits
from .memory.peak import allocated_bytes, buffer_bytes, held_state, later_bytes
from .memory.states import fresh_bytes
from .reading import parts
from .schedule.timeline import Track
from .schedule.times import TICK, Numbers
from .simulated import Simulated, chunk_costs
from .stage import StageCosts
from .step.compute import recompute_seconds

POINTS = 4  # of each operation on the curve: before it, its first moment, a later one, after it
ENDS = ("end of the backward pass", "the optimizer's update", "the optimizer's update")  # behind the last operation
NAMES = {"F": "forward pass", "W": "weight gradients"}
CURVES = ("state", "activations", "logits", "backward")  # of what a curve is made, from the ground up


@dataclass(frozen=True)
class Moment:
    """A moment on one rank: when, in which operation, and what stands then. The parts add up."""

    seconds: float  # from the step's begin
    operation: str
    parts: dict[str, float]

    @property
    def bytes(self) -> float:
        """All that is allocated."""
        return sum(self.parts.values())


@dataclass(frozen=True, eq=False)
class RankOverTime:
    """One rank of the pipeline over a step. Between two points of the curve its bytes change evenly."""

    stage: int
    peak: Moment
    buffers: float  # beside what is allocated, at the peak
    refined_bytes: float  # what the closed form allocates
    seconds: Numbers
    curves: dict[str, Numbers]  # CURVES

    @cached_property
    def bytes(self) -> Numbers:
        """All that is allocated, at each point."""
        return sum(self.curves.values(), np.zeros(len(self.seconds)))


@dataclass(frozen=True, eq=False)
class OverTime:
    """Memory of every rank of a pipeline over one step."""

    ranks: tuple[RankOverTime, ...]
    seconds: float  # of the whole step
    passes_seconds: float  # of it, until the last pass has ended
    left_out: tuple[float, float] | None  # a time in which passes repeat, and the curves have no points

    @property
    def worst(self) -> RankOverTime:
        """The rank that allocates most; the first of several."""
        return max(self.ranks, key=lambda rank: round(rank.peak.bytes))


@dataclass(frozen=True)
class _Chunks:
    """What passes through each chunk hold, in bytes: an array a figure, one number a chunk."""

    tape: Numbers
    logits: Numbers
    gradients: Numbers  # that come with the backward pass, and were not there before
    first: Numbers  # in the first moment of a backward pass, beside what is kept: at the head, or in a layer
    layer: Numbers  # in the first layer that it reaches
    head_share: Numbers  # of a backward pass, until the head is done


def over_time(loaded: Loaded, run: Simulated) -> OverTime:
    """What stands on every rank over a step that was simulated."""
    case, chunks = loaded.case, chunk_costs(loaded.case)
    figures, line = _figures(chunks, case), run.timeline
    end = (line.makespan * TICK, run.seconds)
    tracks = [_joined(track) for track in line.ranks]
    ranks = tuple(_rank(stage, track, chunks, figures, end, case) for stage, track in zip(loaded.every, tracks))
    repeat = line.repeats
    left_out = ((repeat.start + repeat.period) * TICK, repeat.end * TICK) if repeat and repeat.times else None
    return OverTime(ranks, run.seconds, end[0], left_out)


def _joined(track: Track) -> Track:
    """The same with what is computed again inside its backward pass: layer by layer, behind the head."""
    again = track.kind == "R"
    if not again.any():
        return track
    start = np.where(np.append(False, again[:-1]), np.append(track.start[:1], track.start[:-1]), track.start)
    names = ("end", "kind", "stage", "micro_batch", "back_stage", "back_micro_batch")
    return replace(track, start=start[~again], **{name: getattr(track, name)[~again] for name in names})


def _figures(chunks: tuple[StageCosts, ...], case: Case) -> _Chunks:
    head = [float(head_backward_bytes(chunk, case)) for chunk in chunks]
    layer = [float(layer_moment(chunk, case) - waiting_logits(chunk, case)) for chunk in chunks]
    columns = (
        [float(one_pass_bytes(chunk, case)) for chunk in chunks],
        [float(chunk.head * chunk.ends[1].costs.kept) for chunk in chunks],
        [float(fresh_bytes(chunk, case)) for chunk in chunks],
        [head[place] if chunk.head else layer[place] for place, chunk in enumerate(chunks)],
        layer,
        [_head_share(chunk, case) for chunk in chunks],
    )
    return _Chunks(*(np.array(column) for column in columns))


def _head_share(chunk: StageCosts, case: Case) -> float:
    """Share of a chunk's backward pass, with what is computed again, that its head takes."""
    head = float(chunk.head * (chunk.ends[1].costs.input_gradient + chunk.ends[1].costs.weight_gradient))
    again = float(recompute_seconds(chunk, recomputed_share(chunk, case.layout), case.layout))
    return head / (head + again + float(chunk.gradients)) if head else 0.0


def _rank(
    stage: StageCosts,
    track: Track,
    chunks: tuple[StageCosts, ...],
    figures: _Chunks,
    end: tuple[float, float],
    case: Case,
) -> RankOverTime:
    state = {name: float(value) for name, value in parts(held_state, stage, case).items() if value}
    fresh = float(fresh_bytes(stage, case))
    state["gradients"] = state.get("gradients", 0.0) - fresh
    times, curves = _curves(track, figures, sum(state.values()))
    here = sum(state.values())
    after = here + fresh - state.get("gathered", 0.0) * float(case.gathers_blocks)
    seconds = np.concatenate([times * TICK, times[-1:] * TICK, end])
    ends = {"state": [here + float(later_bytes(stage, case)), after, after]}
    curves = {name: np.concatenate([values, ends.get(name, [0.0, 0.0, 0.0])]) for name, values in curves.items()}
    found = np.sum([*curves.values()], 0)
    at = int(np.flatnonzero(found >= found.max() * (1 - 1e-12))[0])
    now = {name: float(values[at]) for name, values in curves.items()}
    inside = at - (at == len(times))  # where the last pass ends, too
    moment = Moment(
        float(seconds[at]),
        _operation(track, inside, chunks),
        state | _changing(track, inside, chunks, now, state, case),
    )
    buffers = float(buffer_bytes(moment.bytes, case.engine))
    return RankOverTime(int(stage.rank), moment, buffers, float(allocated_bytes(stage, case)), seconds, curves)


def _curves(track: Track, figures: _Chunks, state: float) -> tuple[Numbers, dict[str, Numbers]]:
    """Times in ticks and bytes, `POINTS` of each operation."""
    forward = np.where(np.isin(track.kind, ("F", "P")), track.stage, -1)
    backward = np.where(track.kind == "P", track.back_stage, np.where(np.isin(track.kind, ("B", "I")), track.stage, -1))
    freeing = np.where(np.isin(track.kind, ("B", "W")), track.stage, np.where(track.kind == "P", backward, -1))
    paired = track.kind == "P"
    zero = np.zeros(len(track.kind))
    share = _of(figures.head_share, backward)
    late = track.start + (track.end - track.start) * np.where(forward >= 0, ~paired, share)
    gained = _of(figures.tape, forward)
    early = gained * paired  # both halves of a pair run at once: what one holds is there before the other has freed
    tapes = _steps(gained, _of(figures.tape, freeing), early, gained)
    logits = _of(figures.logits, forward), _of(figures.logits, freeing)  # a gradient apart keeps its whole graph
    standing = np.cumsum(logits[0] - logits[1]) - (logits[0] - logits[1])
    after = standing + logits[0] - logits[1]
    beside = standing + logits[0] * paired
    shown = [standing, beside, np.where(backward >= 0, beside - logits[1], beside), after]
    first, layer = _of(figures.first, backward), _of(figures.layer, backward)
    grown = _steps(_of(figures.gradients, freeing), zero, zero, zero)
    return np.stack([track.start, track.start, late, track.end], 1).ravel(), {
        "state": state + grown,
        "activations": tapes,
        "logits": np.stack(shown, 1).ravel(),
        "backward": np.stack([zero, first, layer, zero], 1).ravel(),
    }


def _of(figure: Numbers, chunk: Numbers) -> Numbers:
    """A figure of each operation's chunk; 0 where it has none."""
    return np.where(chunk >= 0, figure[np.maximum(chunk, 0)], 0.0)


def _steps(gained: Numbers, freed: Numbers, early: Numbers, late: Numbers) -> Numbers:
    """What stands at each point: of what is gained so much is there early, so much late; all is freed behind that."""
    change = gained - freed
    before = np.cumsum(change) - change
    return np.stack([before, before + early, before + late, before + change], 1).ravel()


# --- the moment in words --------------------------------------------------------------------------------------------


def _operation(track: Track, at: int, chunks: tuple[StageCosts, ...]) -> str:
    entry, point = divmod(at, POINTS)
    if entry >= len(track.kind):
        return ENDS[point]
    kind, stage, batch = str(track.kind[entry]), int(track.stage[entry]), int(track.micro_batch[entry])
    if kind == "P":
        stage, batch = int(track.back_stage[entry]), int(track.back_micro_batch[entry])
    words = NAMES.get(kind, "backward pass")
    if point == POINTS - 1:
        words = f"end of the {words}"
    elif kind in "BIP":
        words += " at the head" if chunks[stage].head and point < 2 else ", its first layer"
    return f"{words}, micro-batch {batch + 1}" + (f", chunk {stage}" if len(chunks) > 1 else "")


def _changing(
    track: Track,
    at: int,
    chunks: tuple[StageCosts, ...],
    values: dict[str, float],
    state: dict[str, float],
    case: Case,
) -> dict[str, float]:
    """The parts of a moment that change over a step."""
    entry, point = divmod(at, POINTS)
    grown = values["state"] - sum(state.values())
    found = {"gradients": state["gradients"] + grown, "activations": values["activations"], "logits": values["logits"]}
    if entry >= len(track.kind):
        gone = {"gathered": 0.0} if point and case.gathers_blocks and "gathered" in state else {}
        whole = values["state"] - sum(size for name, size in state.items() if name not in ("gradients", *gone))
        return found | gone | {"gradients": whole}
    place = int(track.back_stage[entry] if str(track.kind[entry]) == "P" else track.stage[entry])
    if point in (1, 2) and values["backward"]:
        at_head = chunks[place].head and point == 1
        moment = {"backward": values["backward"]} if at_head else parts(layer_moment, chunks[place], case)
        return {name: float(value) for name, value in moment.items()} | found
    return found

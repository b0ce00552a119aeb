"""Ranks of a pipeline: memory of a few stages and what they send, against torch's own pipelining."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...bill import case_of, load
from ...job import AUTO
from ...layout.case import Case
from ...memory.activations import activation_bytes, in_flight
from ...memory.messages import message_buffer_bytes, receiving
from ...memory.moments import logits_bytes
from ...memory.states import optimizer_bytes, weight_bytes
from ...stage import StageCosts
from ...step.traffic import data_bytes, pipeline_bytes
from .. import limits
from ..comparison import Comparison
from ..comparisons.kinds import items_of
from ..comparisons.memory import COUNTER, IDS, compared_peak
from ..scaled import Scaled
from ..subject import PEAK, ROUNDING, Checked, Found, NotRun

if TYPE_CHECKING:
    from .stage_rank import Held

EACH = 3  # layers of a chunk between the ends that are run
RUN = ("1f1b", "gpipe", "interleaved", "looped_bfs")  # torch 2.13 does not split these backward passes in two
SCALAR = 4  # B: a number in fp32
AT_ONCE = "all micro-batches are in flight before any gradient is there, and are counted beside all of them"
ADDED = "gradients that nothing shards are added at once to those that stood: counted at a layer's largest moment"


def scaled(case: Case, asked: int) -> Case:
    """The same pipeline with a few layers a chunk and a few micro-batches more than stages."""
    at, model = case.layout, case.model
    chunks = int(at.pp * at.vpp)
    few = asked or EACH * chunks - 2 * bool(case.engine.counts_ends)  # the ends stand for a layer each
    alike = model.pattern[:few] if not at.split and len(set(model.pattern)) == 1 else model.pattern
    many = int(min(case.micro_batches, at.pp + 2))
    job = replace(case.job, global_batch=int(many * at.dp * at.micro_batch))
    all_again = at.recompute == "full" and at.recompute_layers == model.layers
    layout = replace(at, recompute_layers=AUTO) if all_again else at
    return case_of(replace(model, pattern=alike), job, case.cluster, layout, case.engine)[0]


def piped(small: Scaled, kinds: tuple[str, ...]) -> Found:
    """A few ranks of a pipeline: states, tape and peak, or what they send."""
    case = scaled(small.whole(), small.asked)
    sent = kinds == ("traffic",)
    why = limits.cut_otherwise(case) or piped_otherwise(case) or limits.built_otherwise(case.model, case)
    why = why or ("" if sent else limits.kept_otherwise(case) or one_chunk_otherwise(case))
    left = {} if sent else {kind: limits.measured_otherwise(kind, case) for kind in kinds}
    if why or (left and all(left.values())):
        yield NotRun(kinds, why or left[kinds[0]])
        return
    yield from (NotRun((kind,), reason) for kind, reason in left.items() if reason)
    small.shrinks(case, "traffic" if sent else "memory")
    small.began("traffic" if sent else "memory")
    for one, reason in compare_sent(case) if sent else compare_stages(case):
        word = one.name.partition(",")[0]
        kind = "traffic" if sent else word if word in ("tape", "peak") else "states"
        if kind in kinds and not left.get(kind):
            yield Checked(kind, one, PEAK if kind == "peak" else ROUNDING, reason)


def one_chunk_otherwise(case: Case) -> str:
    """Why the memory of a rank is not tracked where its messages are logged."""
    return "memory of several chunks a rank: torch's tracker knows one" if case.layout.vpp > 1 else ""


def piped_otherwise(case: Case) -> str:
    """Why no rank of a pipeline is run, beyond what is not run of others."""
    at, chunks = case.layout, int(case.layout.pp * case.layout.vpp)
    return limits.first(
        (
            (at.schedule not in RUN, f"schedule {at.schedule}: torch runs ranks of {', '.join(RUN)} here"),
            (at.tp > 1, "tensor parallelism inside a pipeline: a rank of either is run"),
            (case.model.tied, "a shared table in a pipeline: torch keeps two, and nobody adds them"),
            (case.model.layers < chunks, f"{case.model.layers} layers leave some of {chunks} chunks without one"),
            (at.recompute == "selective", "recompute of modules in a pipeline is not run"),
            (at.accumulate_whole and at.zero, "gradients that wait whole beyond a pipeline's own are not run"),
        )
    )


def stages_run(case: Case) -> tuple[int, ...]:
    """The first stage, one between the ends, and the last."""
    last = int(case.layout.pp) - 1
    return tuple(sorted({0, min(1, last), last}))


def known_difference(case: Case, stage: StageCosts) -> str:
    """Why a stage's peak is counted as more than torch holds, where it is."""
    at_once = case.micro_batches > 1 and float(in_flight(stage, case)) >= float(case.micro_batches)
    return AT_ONCE if at_once else ADDED if case.layout.zero == 0 else ""


def compare_stages(case: Case) -> Iterator[tuple[Comparison, str]]:
    """States, tape and peak of a few stages, and why a peak differs where that is known."""
    from .stage_rank import held_by

    for rank in stages_run(case):
        stage = load(case).every[rank]
        for one in _compared(case, stage, held_by(case, rank)):
            reason = known_difference(case, stage) if one.name.startswith("peak") else ""
            yield replace(one, name=f"{one.name}, stage {rank}"), reason


def _compared(case: Case, stage: StageCosts, held: "Held") -> Iterator[Comparison]:
    recipe, update, peak = case.recipe, items_of(held.update), items_of(held.peak)
    beyond = f"without {held.beyond:,.0f} parameters beyond an even share, of rows that the ranks do not divide"
    more = [beyond] if held.beyond else []
    yield Comparison(
        "weights", float(weight_bytes(stage, case)), update["weights"] - recipe.weights * held.beyond, "B", *more
    )
    counters = COUNTER * held.tensors
    yield Comparison(
        "optimizer",
        float(optimizer_bytes(stage, case)),
        update["optimizer"] - counters - 2 * recipe.weights * held.beyond,
        "B",
        ", ".join([f"without the counters of steps, {COUNTER} B a tensor", *more]),
    )
    messages = sum(float(message_buffer_bytes(one, case)) for one in receiving(stage, case))
    scalars = SCALAR * (int(case.micro_batches) + 1) if stage.head else 0  # a loss a micro-batch, a weight of targets
    yield Comparison(
        "tape",
        float(activation_bytes(stage, case) + logits_bytes(stage, case)) + messages,
        held.tape - scalars,
        "B",
        f"with tensors for messages ({messages:,.0f} B), {IDS}, and without scalars of the loss",
    )
    yield compared_peak(stage, case, peak)


def compare_sent(case: Case) -> Iterator[tuple[Comparison, str]]:
    """Messages of the stage that sends most, and the data-parallel traffic of a few stages."""
    from .stage_rank import sent_by

    loaded = load(case)
    for rank in stages_run(case):
        calls = sent_by(case, rank)
        if rank == min(1, int(case.layout.pp) - 2):  # between the ends, or the first of two
            yield Comparison("pp traffic", float(pipeline_bytes(case)), sum(one.sent for one in calls["pp"]), "B"), ""
        if case.layout.dp > 1:
            counted = float(data_bytes(loaded.every[rank], case))
            yield Comparison(f"dp traffic, stage {rank}", counted, sum(one.sent for one in calls["dp"]), "B"), ""

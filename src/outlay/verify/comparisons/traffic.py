"""Bytes that a rank sends in one step against PyTorch's collectives, each logged as the rank calls it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...bill import load
from ...items import Timed, traffic_of
from ...job import HALF, SINGLE
from ...layout.case import Case
from ..comparison import Comparison

if TYPE_CHECKING:
    from .collectives import Call

LOSS = 4  # B: a loss on cut logits reduces a maximum, a sum and a target a token, in fp32


class Logged(NamedTuple):
    """The collectives of one step, by axis."""

    calls: "dict[str, list[Call]]"
    padding: dict[int, float]  # of groups of FSDP by the parameters they gather: what share of them pads
    unlearned: int  # parameters that the loss gives no gradient


def log(case: Case, build: "Callable[[Any], Any] | None" = None) -> Logged:
    """The collectives of a second step. The first one is not told: it also makes what lasts. Loads torch."""
    from ..models.build import first_rank, padding, plain_model, unlearned
    from .collectives import Log

    with first_rank(case, build or plain_model) as rank:
        many, whole = int(case.micro_batches), bool(case.layout.accumulate_whole or case.layout.zero == 0)

        def step() -> None:
            for turn in range(many):
                last = turn == many - 1
                if case.layout.dp > 1 and whole:
                    rank.model.set_requires_gradient_sync(last)
                elif case.layout.dp_replicate > 1:
                    rank.model.set_requires_all_reduce(last)
                rank.loss(rank.model, *rank.inputs).backward()

        step()
        with Log() as logged:
            step()
        found: dict[str, list[Call]] = {"tp": [], "dp": []}
        for call in logged.calls:
            found[rank.axes[call.group]].append(call)
        return Logged(found, padding(rank.model), unlearned(rank.model))


def compare_traffic(case: Case, build: "Callable[[Any], Any] | None" = None) -> tuple[Comparison, ...]:
    """Each axis that is cut: what one rank sends in a step. `build` makes the model, else ours of Llama's kind."""
    loaded = load(case)
    counted = {item.axis: item.bytes for item in traffic_of(Timed(loaded.stages, loaded.whole, case))}
    logged = log(case, build)
    return tuple(_compared(axis, counted.get(axis, 0.0), logged, case) for axis, calls in logged.calls.items() if calls)


def _compared(axis: str, counted: float, logged: Logged, case: Case) -> Comparison:
    apart = {name: size for name, size in (_tensor if axis == "tp" else _data)(logged, case).items() if size}
    measured = sum(call.sent for call in logged.calls[axis]) - sum(apart.values())
    note = ", ".join(f"{'without' if size > 0 else 'with'} {name} ({abs(size):,.0f} B)" for name, size in apart.items())
    return Comparison(f"{axis} traffic", counted, measured, "B", note)


def _tensor(logged: Logged, case: Case) -> dict[str, float]:
    """What a tensor-parallel group sends beyond what is counted, by name."""
    names, found = uncounted(case), dict[str, float]()
    for call in logged.calls["tp"]:
        if call.kind == "reduce" and (name := names.get(call.whole)):
            found[name] = found.get(name, 0.0) + call.sent
    again = -spared(case) if case.layout.recompute == "full" else 0.0
    return found | {"the last collective of layers that run again, which torch spares": again}


def _data(logged: Logged, case: Case) -> dict[str, float]:
    """The same of data parallelism: what pads, less gradients that there are none of."""
    calls, ranks = logged.calls["dp"], case.layout.dp_shard
    padded = sum(call.sent * share(call, logged.padding, case) for call in calls)
    none = logged.unlearned * case.reduce_bytes * case.scatters * (ranks - 1) / ranks
    return {
        "the padding of rows that the ranks do not divide": padded,
        f"gradients of {logged.unlearned:,} parameters that this loss gives none": -float(none),
    }


def uncounted(case: Case) -> dict[int, str]:
    """All-reduces of a tensor-parallel group that no move counts, by the bytes of each."""
    tokens = int(case.layout.micro_batch * case.job.sequence_length)
    norms = {int(size) * case.model.hidden: "gradients of norms" for size in (HALF, SINGLE)}
    return norms | {LOSS * tokens: "reductions of the loss on cut logits"}


def spared(case: Case) -> float:
    """What a rank sends in the last collective of each layer in a step: a recompute stops before it, where the backward
    pass has all that it needs. Counted as Megatron runs it: with all of the forward pass."""
    whole = HALF * case.layout.micro_batch * case.job.sequence_length * case.model.hidden
    each = (1 if case.layout.sp else 2) * whole * (case.layout.tp - 1) / case.layout.tp
    return float(case.micro_batches * case.model.layers * each)


def share(call: "Call", padding: Mapping[int, float], case: Case) -> float:
    """The share of a collective that pads: its group is known by its size, in the bytes of weights or gradients."""
    whole = call.whole * (case.layout.dp_shard if call.kind == "reduce" else 1)
    return padding.get(int(whole / (HALF if call.kind == "gather" else case.reduce_bytes)), 0.0)

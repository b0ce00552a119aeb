"""Orders against PyTorch's own: what it lists, what it runs, and what its runtime of any order accepts.

No process group and no data: a stage is imitated, and computes and sends nothing.
"""

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...schedule.listing import action, to_csv
from ...schedule.orders import order_in_rounds
from ...schedule.passes import Order
from ..comparison import Comparison

if TYPE_CHECKING:
    from unittest.mock import Mock

LISTS = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "looped_bfs": "LoopedBFS",
    "interleaved_zb": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipe_v": "DualPipeV",
}  # as PyTorch calls those that it lists
LONGEST = 20_000  # operations of an order: PyTorch takes about a millisecond each


def written(order: Order) -> list[list[str]]:
    """An order, each operation as PyTorch writes it."""
    return [[action(each) for each in row] for row in order.ranks]


def listed(title: str, pp: int, micro_batches: int, vpp: int) -> list[list[str]]:
    """What PyTorch lists, without padding and without the reduction of gradients. Raises ValueError as it does."""
    from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

    rows = get_schedule_ops(title, pp, micro_batches, vpp if vpp > 1 else None)
    return [[str(each) for each in row if each is not None and "REDUCE" not in str(each)] for row in rows]


def stage(pp: int, stage_index: int = 0) -> "Mock":
    """A stage that computes and sends nothing."""
    from unittest import mock

    from torch.distributed.pipelining.stage import PipelineStage

    made: Mock = mock.create_autospec(PipelineStage, instance=True)
    made.group_rank, made.group_size, made.submod = stage_index, pp, None
    made.stage_index, made.num_stages = stage_index, pp
    made.is_first, made.is_last, made.has_backward = stage_index == 0, stage_index == pp - 1, True
    for messages in (made.get_fwd_recv_ops, made.get_fwd_send_ops, made.get_bwd_recv_ops, made.get_bwd_send_ops):
        messages.return_value = []
    return made


def executed(pp: int, micro_batches: int, rank: int) -> list[str]:
    """The passes that PyTorch's 1F1B runs on one rank, logged where it calls the stage."""
    from unittest import mock

    from torch.distributed.pipelining.schedules import Schedule1F1B

    here = stage(pp, rank)
    schedule = Schedule1F1B(here, micro_batches)
    done: list[str] = []
    here.forward_one_chunk.side_effect = lambda at, *_, **__: done.append(f"{rank}F{at}")
    here.backward_one_chunk.side_effect = lambda at, *_, **__: done.append(f"{rank}B{at}")
    with mock.patch.object(schedule, "_initialize_stage"):
        schedule._step_microbatches([()] * micro_batches, [{}] * micro_batches)
    return done


@cache
def judged() -> Any:
    """A stage takes long to imitate: one serves all."""
    return stage(1)


def loaded(text: str, pp: int, stages: int, micro_batches: int) -> list[list[str]]:
    """What PyTorch's loader makes of a listing, once it has checked it and added the messages.

    Raises AssertionError or RuntimeError, as it does, for an order that cannot run.
    """
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    judged().group_size, judged().num_stages = pp, stages
    engine = _PipelineScheduleRuntime([judged()] * (stages // pp), micro_batches)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "order.csv"
        file.write_text(text, encoding="utf-8")
        engine._load_csv(str(file), format="compute_only")
    assert len(engine.pipeline_order_with_comms) == pp
    return [[str(each) for each in engine.pipeline_order[rank]] for rank in range(pp)]


def alike(ours: list[list[str]], theirs: list[list[str]]) -> int:
    """Operations that stand at the same place of both, less those that one has more."""
    same = sum(a == b for row, other in zip(ours, theirs, strict=False) for a, b in zip(row, other, strict=False))
    return same - abs(sum(map(len, ours)) - sum(map(len, theirs)))


def compare_schedule(order: Order, vpp: int) -> tuple[Comparison, ...]:
    """An order before PyTorch's runtime, and beside its own listing where it has one, operation by operation."""
    pp, ours, note = len(order.ranks), written(order), ""
    size = sum(map(len, ours))
    try:
        accepted = alike(ours, loaded(to_csv(order), pp, order.stages, order.micro_batches))
    except (AssertionError, RuntimeError, ValueError) as error:
        accepted, note = 0, f"refused: {' '.join(str(error).split())[:200]}"
    found = [Comparison("order accepted", size, accepted, "operations", note)]
    if theirs := theirs_of(order, vpp):
        said = "its last rank as it runs: PyTorch 2.13 lists that one wrongly" if order.name == "1f1b" else ""
        found.append(Comparison("order as listed", size, alike(ours, theirs), "operations", said))
    return tuple(found)


def theirs_of(order: Order, vpp: int) -> list[list[str]]:
    """The same schedule as PyTorch orders it; nothing where it has none, refuses the numbers, or groups otherwise."""
    pp, many = len(order.ranks), order.micro_batches
    if order.name not in LISTS:
        return []
    try:
        if order.name == "interleaved" and written(order_in_rounds(order.name, pp, many, vpp, True)) != written(order):
            return []
        theirs = listed(LISTS[order.name], pp, many, vpp)
    except (InputError, ValueError):
        return []
    return [*theirs[:-1], executed(pp, many, pp - 1)] if order.name == "1f1b" else theirs

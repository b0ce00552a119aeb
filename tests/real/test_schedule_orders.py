"""Orders against PyTorch's own: operation by operation what it lists, runs and loads, and what it refuses."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from unittest import mock

import pytest
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining.schedules import Schedule1F1B, _PipelineScheduleRuntime
from torch.distributed.pipelining.stage import PipelineStage

from outlay.errors import InputError
from outlay.schedule.listing import action, from_csv, to_csv
from outlay.schedule.orders import facts, names, order, rounds
from outlay.schedule.passes import Order
from test_orders import PYTORCH, listings

PP, MICRO_BATCHES = (2, 4, 8), (1, 2, 3, 4, 6, 7, 8, 10, 12, 15, 16, 17, 24)


def written(of: Order) -> list[list[str]]:
    return [[action(each) for each in row] for row in of.ranks]


def listed(title: str, pp: int, micro_batches: int, vpp: int) -> list[list[str]]:
    """What PyTorch lists, without padding and without the reduction of gradients."""
    rows = get_schedule_ops(title, pp, micro_batches, vpp if vpp > 1 else None)
    return [[str(each) for each in row if each is not None and "REDUCE" not in str(each)] for row in rows]


def asked(name: str, pp: int, micro_batches: int, vpp: int) -> Order:
    """The order as PyTorch asks for it: interleaved groups by its rounds."""
    return order(name, pp, micro_batches, vpp, rounds(pp, micro_batches) if name == "interleaved" else 0)


def cases() -> Iterator[tuple[str, str, int, int, int]]:
    for (title, name), pp, micro_batches in product(PYTORCH.items(), PP, MICRO_BATCHES):
        for vpp in {"one": (1,), "two": (2,)}.get(facts(name).chunks, (2, 3)):
            yield title, name, pp, micro_batches, vpp


def test_an_order_is_pytorchs_operation_by_operation_or_both_refuse() -> None:
    """The exceptions are said: the last rank of 1F1B is compared below, and 1F1B there asks for M >= P."""
    same, refused = 0, 0
    for title, name, pp, micro_batches, vpp in cases():
        try:
            theirs = listed(title, pp, micro_batches, vpp)
        except ValueError:
            refused += 1
            assert (name == "1f1b" and micro_batches < pp) or not legal(name, pp, micro_batches, vpp)
            continue
        ours = written(asked(name, pp, micro_batches, vpp))
        ranks = pp - 1 if name == "1f1b" else pp
        same += 1

        assert ours[:ranks] == theirs[:ranks]

    assert same > 250 and refused > 30


def legal(name: str, pp: int, micro_batches: int, vpp: int) -> bool:
    try:
        return bool(asked(name, pp, micro_batches, vpp))
    except InputError:
        return False


def test_the_listings_that_are_kept_are_todays() -> None:
    for title, name in PYTORCH.items():
        rows = listed(title, 4, 8, 1 if facts(name).chunks == "one" else 2)
        kept = [row.replace(")", ")OVERLAP_F_B").split(" ") for row in listings()[title]]

        assert kept[:3] == rows[:3]
        assert (kept[3] == rows[3]) == (title != "1F1B")


# --- the last rank of 1F1B ------------------------------------------------------------------------------------------


def stage(pp: int, stage_index: int = 0) -> mock.Mock:
    """A stage that computes and sends nothing."""
    made = mock.create_autospec(PipelineStage, instance=True)
    made.group_rank, made.group_size, made.submod = stage_index, pp, None
    made.stage_index, made.num_stages = stage_index, pp
    made.is_first, made.is_last, made.has_backward = stage_index == 0, stage_index == pp - 1, True
    for messages in (made.get_fwd_recv_ops, made.get_fwd_send_ops, made.get_bwd_recv_ops, made.get_bwd_send_ops):
        messages.return_value = []
    return made


def executed(pp: int, micro_batches: int, rank: int) -> list[str]:
    """The passes that PyTorch's 1F1B runs on one rank, logged where it calls the stage."""
    here = stage(pp, rank)
    schedule = Schedule1F1B(here, micro_batches)
    done: list[str] = []
    here.forward_one_chunk.side_effect = lambda at, *_, **__: done.append(f"{rank}F{at}")
    here.backward_one_chunk.side_effect = lambda at, *_, **__: done.append(f"{rank}B{at}")
    with mock.patch.object(schedule, "_initialize_stage"):
        schedule._step_microbatches([()] * micro_batches, [{}] * micro_batches)
    return done


@pytest.mark.parametrize("pp", PP)
def test_1f1b_is_what_pytorch_runs_on_every_rank_though_it_lists_the_last_one_wrongly(pp: int) -> None:
    for micro_batches in (each for each in MICRO_BATCHES if each >= pp):
        ours = written(order("1f1b", pp, micro_batches))

        assert [executed(pp, micro_batches, rank) for rank in range(pp)] == ours
        assert listed("1F1B", pp, micro_batches, 1)[-1][:2] == [f"{pp - 1}F1", f"{pp - 1}B0"]  # its known fault


# --- PyTorch as a judge ---------------------------------------------------------------------------------------------


JUDGED = stage(1)  # a stage takes long to imitate: one serves all


def runtime(pp: int, stages: int, micro_batches: int) -> _PipelineScheduleRuntime:
    """PyTorch's runtime of any order, without processes."""
    JUDGED.group_size, JUDGED.num_stages = pp, stages
    return _PipelineScheduleRuntime([JUDGED] * (stages // pp), micro_batches)


def load(text: str, file: Path, pp: int, stages: int, micro_batches: int) -> list[list[str]]:
    """What PyTorch's loader makes of a listing, once it has checked it and added the messages."""
    file.write_text(text)
    engine = runtime(pp, stages, micro_batches)
    engine._load_csv(str(file), format="compute_only")
    assert len(engine.pipeline_order_with_comms) == pp
    return [[str(each) for each in engine.pipeline_order[rank]] for rank in range(pp)]


def test_pytorch_loads_every_order_that_it_can_express(tmp_path: Path) -> None:
    loaded = set()
    for name, pp, micro_batches in product(names(), (1, 2, 3, 4, 8), (1, 2, 3, 5, 8, 12, 16, 18)):
        for vpp in {"one": (1,), "two": (2,), "any": (1, 2)}.get(facts(name).chunks, (2, 3)):
            if legal(name, pp, micro_batches, vpp) and facts(name).copies == 1:
                of = asked(name, pp, micro_batches, vpp)
                assert load(to_csv(of), tmp_path / "order.csv", pp, of.stages, micro_batches) == written(of)
                loaded.add(name)

    assert loaded == set(names()) - {"dualpipe"}  # a model in each direction has no name there


@pytest.mark.parametrize("group", [4, 5, 6, 7, 8, 10])
def test_pytorch_loads_groups_of_any_legal_size(group: int, tmp_path: Path) -> None:
    for micro_batches in range(group, 30):
        if micro_batches % group == 0 or micro_batches % group >= 4:
            of = order("interleaved", 4, micro_batches, 2, group)
            assert load(to_csv(of), tmp_path / "order.csv", 4, 8, micro_batches) == written(of)


GOOD = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"
WRONG = {
    "its own listing of 1F1B": GOOD.replace("1F0,1B0,1F1,1B1,1F2,1B2,1F3", "1F1,1B0,1F2,1B1,1F3,1B2,1F4"),
    "a backward pass first": GOOD.replace("1F1,1B1", "1B1,1F1"),
    "a weight gradient first": GOOD.replace("1B1", "1W1,1I1"),
    "a pass that is missing": GOOD.replace(",1B3", ""),
    "ranks that wait": GOOD.replace("0F0,0F1,0B0", "0F0,0B0,0F1").replace("1F0,1B0,1F1,1B1", "1F1,1B1,1F0,1B0"),
    "a cell that is no action": GOOD.replace("1B3", "1X3"),
}


@pytest.mark.parametrize("title", WRONG)
def test_pytorch_and_outlay_refuse_the_same_planted_faults(title: str, tmp_path: Path) -> None:
    assert load(GOOD, tmp_path / "good.csv", 2, 2, 4) == written(from_csv(GOOD))
    with pytest.raises((AssertionError, RuntimeError)):
        load(WRONG[title], tmp_path / "wrong.csv", 2, 2, 4)
    with pytest.raises(InputError):
        from_csv(WRONG[title])

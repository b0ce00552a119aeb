"""What a pipeline's stages add up to, hold and send, against the order of passes itself and plain sums."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import MIXTRAL
from outlay import Bill, InputError, Job, Layout, count, explain_count, load_cluster, load_model
from outlay.bill import case_of, load
from outlay.layout.stages import chunk_layers, rank_chunks, stages_of
from outlay.memory.activations import in_flight
from outlay.schedule.orders import order, rounds
from outlay.schedule.passes import Pair
from outlay.step.total import pass_seconds

LLAMA = load_model("llama-3.1-8b")
LARGE = load_model("llama-3.1-70b")
NODES = load_cluster("64xh100-sxm")


def bill_of(on: str = "8xh100-sxm", engine: str = "megatron", batch: int = 64, **layout: object) -> Bill:
    return count(LLAMA, Job(4096, batch), load_cluster(on), Layout(**layout), engine)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("vpp", [1, 2])
def test_passes_of_all_stages_add_up_to_the_pass_of_the_whole_model(recompute: str, vpp: int) -> None:
    case, _ = case_of(LARGE, Job(8192, 64), NODES, Layout(tp=8, pp=8, vpp=vpp, recompute=recompute))
    loaded = load(case)
    stages = sum(float(pass_seconds(stage, case)) for stage in loaded.every)
    assert stages == pytest.approx(float(pass_seconds(loaded.whole, case)), rel=1e-12)


def test_full_recompute_lengthens_the_idle_time_by_what_the_other_stages_recompute() -> None:
    plain, again = (
        count(LARGE, Job(8192, 64), NODES, Layout(tp=8, pp=8, recompute=kind)).bubble.seconds
        for kind in ("none", "full")
    )
    assert 1.3 < again / plain < 1.4  # F of F + B + W more, exchanges included


def test_unequal_expert_load_costs_time_and_is_not_counted_as_work() -> None:
    bills = [count(MIXTRAL, Job(4096, 1024, expert_imbalance=each), NODES, Layout(tp=2, pp=4, ep=8)) for each in (1, 4)]
    even, uneven = bills
    assert uneven.step.model_flops == even.step.model_flops
    assert uneven.step.mfu == pytest.approx(even.step.mfu * even.step.seconds / uneven.step.seconds)
    assert uneven.step.mfu < even.step.mfu / 2


def held_layers(name: str, pp: int, vpp: int, micro_batches: int, group: int, sizes: list[int], rank: int) -> int:
    """The most layers whose tapes a rank holds, its passes taken in order."""
    held = most = 0
    for each in order(name, pp, micro_batches, vpp, group).ranks[rank]:
        for one in (each.forward, each.backward) if isinstance(each, Pair) else (each,):
            held += {"F": 1, "B": -1, "I": 0, "W": -1}[one.kind] * sizes[one.stage]
            most = max(most, held)
    return most


@given(st.data())
def test_a_rank_of_unequal_chunks_never_holds_more_than_is_counted(data: st.DataObject) -> None:
    pp, vpp = data.draw(st.sampled_from([(2, 2), (4, 2), (2, 3), (4, 3)]))
    inner = data.draw(st.lists(st.integers(1, 6), min_size=pp * vpp - 2, max_size=pp * vpp - 2))
    split = (data.draw(st.integers(0, 6)), *inner, data.draw(st.integers(0, 6)))
    rank = data.draw(st.integers(0, pp - 1))
    micro_batches = pp * data.draw(st.integers(1, 4))
    model = replace(LLAMA, pattern=(0,) * sum(split))
    stage = stages_of(model, pp, vpp, split, False, False)[rank]
    layout = Layout(pp=pp, vpp=vpp, split=split)
    case, _ = case_of(model, Job(4096, micro_batches), load_cluster(f"{pp}xh100-sxm"), layout)
    counted = float(in_flight(load(case).every[rank], case)) * sum(stage.counts)
    sizes = [len(chunk) for chunk in chunk_layers(model.layers, pp, vpp, split)]
    exact = held_layers("interleaved", pp, vpp, micro_batches, pp, sizes, rank)
    assert counted >= exact - 1e-9
    if len({sizes[chunk] for chunk in rank_chunks(pp, vpp, rank, False)}) == 1:
        assert counted == pytest.approx(exact)


@pytest.mark.parametrize(("micro_batches", "held"), [(7, 7.0), (10, 6.0)])
def test_pytorch_holds_its_own_rounds_of_micro_batches(micro_batches: int, held: float) -> None:
    case, _ = case_of(LLAMA, Job(4096, micro_batches), load_cluster("4xh100-sxm"), Layout(pp=4, vpp=2), "fsdp2")
    assert case.round_size == rounds(4, micro_batches)
    first = load(case).every[0]
    exact = held_layers("interleaved", 4, 2, micro_batches, rounds(4, micro_batches), [1] * 8, 0) / 2
    assert exact == held
    assert float(in_flight(first, case)) == pytest.approx(min(held * first.unevenness, micro_batches))


def test_offloaded_shards_are_read_as_shards_and_gathered_afterwards() -> None:
    def moved(cards: int) -> float:
        (offload,) = bill_of(f"{cards}xh100-sxm", "fsdp2", cards, zero=3, offload_parameters=1.0).offload
        return offload.bytes

    assert moved(8) == pytest.approx(moved(1) / 8)


def test_of_two_ranks_each_sends_in_one_direction_alone() -> None:
    sent = next(item.bytes for item in bill_of("2xh100-sxm", batch=8, pp=2).traffic if item.axis == "pp")
    assert sent == 8 * 4096 * 4096 * 2  # micro-batches, tokens, hidden, bytes


def test_the_exchange_of_a_tied_embedding_shows_without_data_parallelism() -> None:
    model = load_model("gpt2-xl")
    bill = count(model, Job(1024, 8), load_cluster("2xh100-sxm"), Layout(pp=2))
    (item,) = [each for each in bill.traffic if each.axis == "dp"]
    rows = -(-model.vocab // 128) * 128
    assert item.bytes == rows * model.hidden * 4


def test_fp32_gathers_and_sends_four_bytes_a_value() -> None:
    half, full = (
        count(LLAMA, Job(4096, 8, precision=each), load_cluster("8xh100-sxm"), Layout(zero=2), "fsdp2")
        for each in ("bf16", "fp32")
    )
    gathered = [next(item.value for item in bill.memory.items if item.name == "gathered") for bill in (half, full)]
    assert gathered[1] == 2 * gathered[0]


def test_hops_of_a_long_pipeline_cross_nodes_where_nodes_end() -> None:
    def message(pp: int) -> float:
        item = next(each for each in bill_of("16xh100-sxm", tp=2, pp=pp, batch=8).traffic if each.axis == "pp")
        return item.seconds

    assert message(8) > message(4)


def test_an_explanation_counts_the_layout_that_the_bill_counts() -> None:
    asked = (LLAMA, Job(4096, 8), load_cluster("2xh100-sxm"), Layout(pp=2, split=(1, 2)))
    assert explain_count("memory", *asked).value == pytest.approx(count(*asked).memory.peak_bytes)


def test_a_way_out_does_not_say_that_there_is_none() -> None:
    (broken,) = bill_of(engine="fsdp2", zero=1).violations
    assert broken.code == "LAY022"
    assert "no layout" not in broken.fix and "--zero 0 or 2 or 3" in broken.fix


def test_ways_out_still_make_the_cluster() -> None:
    fixes = [each.fix for each in bill_of(cp=3).violations if each.fix.startswith("--cp")]
    assert fixes == ["--cp 1 or 2 or 4 or 8"]


def test_an_old_megatron_has_neither_sequence_parallelism_nor_a_sharded_optimizer() -> None:
    layout = count(LLAMA, Job(2048, 64), load_cluster("8xa100-sxm-80"), Layout(tp=8), "megatron-2021").layout
    assert not layout.sp and layout.zero == 0
    broken = count(LLAMA, Job(2048, 64), load_cluster("8xa100-sxm-80"), Layout(tp=4, sp=True, zero=1), "megatron-2021")
    assert {"LAY022", "LAY024"} <= {each.code for each in broken.violations}


def test_experts_that_a_replica_group_cannot_share_are_a_rule() -> None:
    layout = Layout(ep=8, dp_replicate=4, dp_shard=12)
    bill = count(MIXTRAL, Job(4096, 48), load_cluster("48xh100-sxm"), layout, "fsdp2")
    assert "LAY025" in {each.code for each in bill.violations}


def test_what_experts_take_from_tensor_parallelism_is_said() -> None:
    bill = count(MIXTRAL, Job(4096, 64), NODES, Layout(tp=8, pp=4))
    assert any("etp 1 (--etp)" in text for text in bill.assumptions)


def test_a_precision_that_is_not_there_is_counted_over_the_one_that_is() -> None:
    bill = count(LLAMA, Job(4096, 8, precision="fp16"), load_cluster("4xtpu-v5p"), Layout())
    assert {each.code for each in bill.violations} == {"JOB002"}
    assert 0 < bill.step.mfu < 1


def test_no_engine_is_a_fault_and_not_a_traceback() -> None:
    with pytest.raises(InputError, match="no engine is called"):
        count(LLAMA, Job(4096, 8), NODES, Layout(), engine=None)  # type: ignore[arg-type]


def test_activations_of_unequal_chunks_are_a_bound_and_not_called_exact() -> None:
    def activations(**split: object) -> str:
        bill = bill_of("2xh100-sxm", pp=2, vpp=2, batch=8, **split)
        return next(item.kind for item in bill.memory.items if item.name == "activations")

    assert activations() == "exact"
    assert activations(split=(14, 6, 6, 6)) == "modelled"

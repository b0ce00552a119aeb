"""A loss that runs by chunks, and experts that take no more than so much: laws, closed forms, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import DEEPSEEK_V3, LLAMA_8B, MIXTRAL, loaded
from outlay import Job, Layout, Model, count, load_cluster
from outlay.bill import Bill, case_of, load
from outlay.cli.main import main
from outlay.engines.tables import engine, engine_names
from outlay.errors import InputError
from outlay.layer import LayerCosts

V, H, TOKENS = 128256, 4096, 8192  # Llama-3.1-8B, one sequence


def chunked(chunks: int, driver: str = "fsdp2", **axes: Any) -> Bill:
    """Llama-3.1-8B on eight cards under full recompute, where the head is the largest moment."""
    layout = Layout(recompute="full", loss_chunks=chunks, **axes)
    return count(LLAMA_8B, Job(TOKENS, 8), load_cluster("8xh100-sxm"), layout, driver)


def head(chunks: int, driver: str = "fsdp2") -> LayerCosts:
    """What head and loss keep and hold on one rank."""
    return loaded(LLAMA_8B, "8xh100-sxm", driver, TOKENS, 8, loss_chunks=chunks).whole.ends[1].costs


def routed(model: Model = MIXTRAL, driver: str = "megatron", on: str = "64xh100-sxm", **said: Any) -> Bill:
    return count(model, Job(4096, 512, **said), load_cluster(on), Layout(ep=8, pp=2), driver)


def sent(bill: Bill) -> float:
    """Bytes between experts."""
    return next(item.bytes for item in bill.traffic if item.axis == "ep")


def same(one: Bill, other: Bill) -> bool:
    return (one.memory.peak_bytes, one.step.seconds, one.step.mfu, one.traffic) == (
        other.memory.peak_bytes,
        other.step.seconds,
        other.step.mfu,
        other.traffic,
    )


# --- the loss -------------------------------------------------------------------------------------------------------


def test_one_chunk_is_no_chunk() -> None:
    plain = count(LLAMA_8B, Job(TOKENS, 8), load_cluster("8xh100-sxm"), Layout(recompute="full"), "fsdp2")

    assert same(chunked(1), plain)
    assert plain.layout.loss_chunks == 1


@settings(max_examples=6)
@given(st.integers(1, 6))
def test_more_chunks_never_need_more_and_take_as_long(power: int) -> None:
    fewer, more = chunked(2**power), chunked(2 ** (power + 1))

    assert more.memory.peak_bytes <= fewer.memory.peak_bytes
    assert more.step.seconds == fewer.step.seconds


@pytest.mark.parametrize("chunks", [2, 8, 64])
def test_logits_and_their_copies_are_those_of_a_chunk_and_gradients_collect_beside_them(chunks: int) -> None:
    """Gradients of hidden vectors collect in fp32, those of the matrix in bf16, beside those of the chunk.

    Source: pytorch/torchtitan, torchtitan/components/loss.py: ChunkedLossWrapper, GradAccumulator.
    """
    whole, part = head(1), head(chunks)
    inputs = 2 * TOKENS * H * 2 + 4 * TOKENS  # of the final norm, with its statistic, and of the head

    assert part.kept - inputs == pytest.approx((whole.kept - inputs) / chunks)
    assert part.workspace == pytest.approx(whole.workspace / chunks + 4 * TOKENS * H + 2 * 2 * V * H)


def test_at_131_072_tokens_a_rank_chunks_keep_the_loss_out_of_the_peak() -> None:
    """The loss is three quarters of the peak there, and nothing of it is left to chunks of 2,048 tokens."""
    job, cluster = Job(131072, 8), load_cluster("8xh100-sxm")
    whole, part = (
        count(LLAMA_8B, job, cluster, Layout(recompute="full", loss_chunks=chunks), "fsdp2") for chunks in (1, 64)
    )

    assert (whole.memory.verdict, part.memory.verdict) == ("does_not_fit", "tight")
    assert whole.memory.peak_bytes - part.memory.peak_bytes > 4 * V * 131072


def test_an_engine_without_chunks_refuses_them_by_name() -> None:
    for driver in ("megatron", "nanotron", "hf_trainer", "deepspeed-liger", "fsdp2-llm-foundry"):
        broken = {rule.code: rule for rule in chunked(8, driver).violations}
        assert broken["LAY047"].got == f"loss_chunks 8, {driver}"
        assert broken["LAY047"].fix == "--loss-chunks 1"


def test_chunks_are_equal() -> None:
    assert [rule.code for rule in chunked(3).violations] == ["LAY048"]
    assert [rule.code for rule in chunked(8192, cp=2).violations] == ["LAY048"]
    assert chunked(4096, cp=2).violations == ()


# --- experts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
def test_a_capacity_of_one_with_equal_loads_changes_nothing(padded: bool) -> None:
    assert same(routed(expert_capacity=1, pad_to_capacity=padded), routed())


@settings(max_examples=25)
@given(st.floats(1, 4), st.floats(0.25, 4))
def test_a_capacity_bounds_the_busiest_expert(imbalance: float, capacity: float) -> None:
    free, bound = routed(expert_imbalance=imbalance), routed(expert_imbalance=imbalance, expert_capacity=capacity)
    least = min(imbalance, capacity)

    assert bound.memory.peak_bytes == pytest.approx(routed_peak(least))
    assert bound.memory.peak_bytes <= free.memory.peak_bytes
    assert bound.step.seconds <= free.step.seconds
    assert sent(bound) == pytest.approx(min(1, capacity) * sent(free))


def routed_peak(busiest: float) -> float:
    """Peak where the busiest expert has so much of the mean: it is linear in that."""
    low, high = routed().memory.peak_bytes, routed(expert_imbalance=2).memory.peak_bytes
    return low + (busiest - 1) * (high - low)


@settings(max_examples=25)
@given(st.floats(1, 4), st.floats(0.25, 4))
def test_what_is_padded_does_not_depend_on_the_loads(imbalance: float, capacity: float) -> None:
    padded = routed(expert_imbalance=imbalance, expert_capacity=capacity, pad_to_capacity=True)

    assert same(padded, routed(expert_capacity=capacity, pad_to_capacity=True))
    assert sent(padded) == pytest.approx(capacity * sent(routed()))


def test_without_a_capacity_the_imbalance_multiplies_the_work_of_the_busiest() -> None:
    """Two matrices of gate and up, one of down: 6 h f FLOPs a routed copy, forward."""
    plain, double = (loaded_experts(expert_imbalance=each) for each in (1, 2))
    capped = loaded_experts(expert_imbalance=2, expert_capacity=1.25)

    assert double.forward > plain.forward
    assert capped.forward == pytest.approx(plain.forward + (double.forward - plain.forward) / 4, rel=0.02)
    assert capped.kept == pytest.approx(plain.kept + (double.kept - plain.kept) / 4)


def loaded_experts(**said: Any) -> LayerCosts:
    case = case_of(MIXTRAL, Job(4096, 512, **said), load_cluster("64xh100-sxm"), Layout(ep=8), "megatron")[0]
    return load(case).whole.layers[0].costs


def test_a_capacity_keeps_what_its_tokens_keep() -> None:
    """A routed copy keeps its dispatched vector, gate, up and their product: 2 h + 6 f bytes in Megatron's kernels."""
    copies, h, f = 2 * 4096, 4096, 14336
    plain, capped = (loaded_experts(expert_imbalance=3, expert_capacity=each).kept for each in (1, 1.5))

    assert capped - plain == 0.5 * copies * (2 * h + 6 * f)


def test_model_flops_count_every_token_and_the_bill_says_so() -> None:
    plain, capped = routed(), routed(expert_imbalance=2, expert_capacity=0.5)
    said = "an expert takes at most 0.5 of its mean, and what is beyond is dropped: model FLOPs count every token"

    assert capped.step.mfu * capped.step.seconds == pytest.approx(plain.step.mfu * plain.step.seconds)
    assert said in capped.assumptions
    padded = routed(expert_capacity=1.5, pad_to_capacity=True)
    assert said.replace("0.5", "1.5").replace("what is beyond is dropped", "is padded to it") in padded.assumptions
    assert "experts are equally loaded (--expert-imbalance)" not in padded.assumptions


@pytest.mark.parametrize(
    ("model", "driver", "said", "code", "fix"),
    [
        (LLAMA_8B, "megatron", {"expert_capacity": 1.5}, "JOB012", "leave --expert-capacity out"),
        (MIXTRAL, "megatron", {"pad_to_capacity": True}, "JOB012", "--expert-capacity 1"),
        (MIXTRAL, "fsdp2", {"expert_capacity": 1.5}, "JOB013", "leave --expert-capacity out"),
        (MIXTRAL, "maxtext", {"expert_capacity": 1.5}, "JOB013", "--pad-to-capacity"),
        (MIXTRAL, "megatron", {"expert_capacity": -1.0}, "JOB000", "0 or more"),
    ],
)
def test_a_capacity_that_cannot_be_is_refused(
    model: Model, driver: str, said: dict[str, Any], code: str, fix: str
) -> None:
    with pytest.raises(InputError) as error:
        count(model, Job(4096, 512, **said), load_cluster("64xh100-sxm"), Layout(), driver)

    assert [(fault.code, fault.fix) for fault in error.value.faults] == [(code, fix)]


@pytest.mark.parametrize("name", engine_names())
def test_the_ways_of_a_capacity_are_known(name: str) -> None:
    assert set(engine(name).expert_capacity) <= {"drop", "pad"}


# --- faces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "table", "fields"),
    [
        ("llama-3.1-8b --engine fsdp2 --on 8xh100-sxm --loss-chunks 8", "layout", {"loss_chunks": 8}),
        (
            "mixtral-8x7b --on 64xh100-sxm --ep 8 --expert-capacity 1.25 --pad-to-capacity",
            "job",
            {"expert_capacity": 1.25, "pad_to_capacity": True},
        ),
    ],
)
def test_they_go_round_through_flags_and_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, words: str, table: str, fields: dict[str, Any]
) -> None:
    main(["count", *words.split(), "--seq", "4096", "--batch", "512", "--json"])
    first = json.loads(capsys.readouterr().out)
    (tmp_path / "bill.json").write_text(json.dumps(first))
    main(["count", str(tmp_path / "bill.json"), "--json"])
    again = json.loads(capsys.readouterr().out)

    assert {name: first[table][name] for name in fields} == fields
    assert again[table] == first[table]
    assert again["memory"]["peak_bytes"] == first["memory"]["peak_bytes"]


def test_deepseek_v3_padded_to_its_mean_is_the_run_of_equal_loads() -> None:
    """NeMo's DeepSeek-V3 recipe drops tokens at a capacity of 1 and pads, so that its speed has no imbalance in it."""
    plain, dropped = (
        count(DEEPSEEK_V3, Job(4096, 8192, **said), load_cluster("1024xh100-sxm"), Layout(pp=16, ep=64))
        for said in ({}, {"expert_imbalance": 1.7, "expert_capacity": 1, "pad_to_capacity": True})
    )

    assert same(plain, dropped)

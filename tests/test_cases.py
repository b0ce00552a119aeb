"""Questions of people who plan and run distributed training, from public threads: outlay's answer to each."""

import re
import shlex
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import DEEPSEEK_V3, LLAMA_7B, MIXTRAL, loaded
from outlay import Beside, Bill, Job, Layout, Model, count, load_cluster, load_model, parameters
from outlay.bill import Violation
from outlay.cli.main import main
from outlay.layout.stages import stage_layers
from outlay.memory.states import state_bytes
from outlay.model.huggingface import read_config
from outlay.model.model import with_extra
from outlay.undivided import sequence_flops

GB, MIB = 1e9, 2**20
NEOX_20B = load_model("gpt-neox-20b")
LLAMA_2_70B = load_model("llama-2-70b")
LLAMA_3_70B = load_model("llama-3-70b")
PAGE = (Path(__file__).parent.parent / "docs" / "cases.md").read_text(encoding="utf-8")


def llama(**fields: int) -> Model:
    """A plain Llama of the shape of a 7 B model, with some fields changed; as many key/value heads as heads."""
    shape = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008}
    rest = {"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 4096, "num_key_value_heads": None}
    return read_config({**rest, **shape, **fields})


def gpt(hidden: int, layers: int, heads: int) -> Model:
    """A GPT of a width and depth, feed-forward four times as wide."""
    shape = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 2048, "vocab_size": 50257}
    return read_config({"model_type": "gpt2", **shape})


def bill(
    model: Model, on: str, per: str = "16", seq: int = 2048, batch: int = 64, engine: str = "megatron", **axes: object
) -> Bill:
    """The bill of a layout, with so many bytes a parameter."""
    return count(model, Job(seq, batch, bytes_per_parameter=per), load_cluster(on), Layout(**axes), engine)


def broken(found: Bill) -> dict[str, Violation]:
    """The rules that a layout breaks, by their codes."""
    return {violation.code: violation for violation in found.violations}


def layers(found: Bill) -> list[int]:
    """The layers of each stage."""
    return [rank.layers for rank in found.memory.ranks]


def items(found: Bill) -> dict[str, float]:
    """The parts of the peak."""
    return {item.name: item.value for item in found.memory.items}


# --- does it fit, and on how many -----------------------------------------------------------------------------------


def test_zero_2_saves_nothing_of_40_b_parameters_without_data_parallel_ranks_and_48_cards_of_32_gb_hold_them() -> None:
    """deepspeedai/DeepSpeed issue 237."""
    model = gpt(8192, 49, 64)
    assert isclose(parameters(model).total, 40e9, rel_tol=0.005)
    alone = bill(model, "8xv100-sxm2-32", tp=8, zero=2, recompute="full")
    spread = bill(model, "48xv100-sxm2-32", batch=48, tp=8, zero=2, recompute="full")
    assert isclose(alone.memory.state_bytes, 80 * GB, rel_tol=0.005)
    assert alone.memory.verdict == "impossible"
    assert (spread.derived.dp, spread.memory.verdict) == (6, "fits")
    assert isclose(spread.memory.state_bytes, (2 * 5 + 14 * 5 / 6) * GB, rel_tol=0.005)


@pytest.mark.parametrize(("per", "stock", "share"), [("16", 329, 41), ("18", 370, 46)])
def test_a_20_b_model_is_impossible_on_2_cards_of_80_gb_and_runs_on_8(per: str, stock: int, share: int) -> None:
    """EleutherAI/gpt-neox issue 616."""
    assert parameters(NEOX_20B).total == 44 * (12 * 6144**2 + 13 * 6144) + 2 * 50432 * 6144 + 2 * 6144
    two = bill(NEOX_20B, "2xa100-sxm-80", per, tp=2)
    eight = bill(NEOX_20B, "8xa100-sxm-80", per, tp=2, pp=4, zero=1, recompute="full")
    assert round(two.memory.unsharded_state_bytes / GB) == stock
    assert two.memory.verdict == "impossible"
    assert round(eight.memory.unsharded_state_bytes / 8 / GB) == share
    assert share * GB < eight.memory.state_bytes < 1.04 * share * GB  # the stage with the embedding holds more
    assert eight.memory.verdict == "fits"


def test_a_20_b_model_is_impossible_on_2_cards_of_40_gb() -> None:
    """EleutherAI/gpt-neox issue 606."""
    for per in ("16", "18"):
        assert bill(NEOX_20B, "2xa100-sxm-40", per, tp=2, recompute="full").memory.verdict == "impossible"


def test_zero_2_of_a_20_b_model_holds_77_gb_on_each_of_8_cards_and_zero_3_holds_41() -> None:
    """EleutherAI/gpt-neox issue 892."""
    second = bill(NEOX_20B, "8xa100-sxm-80", zero=2, micro_batch=4)
    third = bill(NEOX_20B, "8xa100-sxm-80", zero=3, recompute="full")
    assert round(second.memory.state_bytes / GB) == 77
    assert second.memory.verdict == "does_not_fit"
    assert round(third.memory.state_bytes / GB) == 41
    assert third.memory.verdict == "fits"


def test_8_cards_of_80_gb_cannot_hold_a_70_b_fine_tune_and_32_can() -> None:
    """epfLLM/Megatron-LLM issue 52."""
    eight, many = bill(LLAMA_2_70B, "8xa100-sxm-80", "18", tp=8), bill(LLAMA_2_70B, "32xa100-sxm-80", "18", tp=8, pp=4)
    assert round(eight.memory.unsharded_state_bytes / 8 / GB) == 155
    assert eight.memory.verdict == "impossible"
    assert round(many.memory.unsharded_state_bytes / 32 / GB, 1) == 38.8
    assert (many.derived.dp, many.memory.verdict) == (1, "fits")


def test_24_is_the_first_sane_count_of_80_gb_cards_for_a_full_70_b_fine_tune_at_8k() -> None:
    """hiyouga/LLaMA-Factory issue 3993."""
    wall = {per: state_bytes(parameters(LLAMA_3_70B).total, per) for per in (16, 18)}
    assert [round(wall[per] / GB) for per in (16, 18)] == [1129, 1270]
    assert [round(wall[per] / (80 * GB), 1) for per in (16, 18)] == [14.1, 15.9]
    verdicts = {
        cards: bill(LLAMA_3_70B, f"{cards}xa100-sxm-80", "16", 8192, cards, zero=3, recompute="full").memory
        for cards in (8, 16, 24)
    }
    assert [memory.verdict for memory in verdicts.values()] == ["impossible", "does_not_fit", "fits"]
    assert round(verdicts[24].state_bytes / GB) == 47
    assert verdicts[24].activation_bytes == 80 * 8192 * 8192 * 2


def test_full_sharding_never_puts_a_whole_32_b_model_on_one_card() -> None:
    """simplescaling/s1 issue 25."""
    found = bill(load_model("qwen2.5-32b"), "16xh100-sxm", zero=3, recompute="full")
    layer = 0.488e9 * 2  # bytes in bf16; the current one and the next stand gathered
    assert round(found.memory.state_bytes / GB, 1) == 32.8
    assert isclose(items(found)["gathered"], 2 * layer, rel_tol=0.005)


def test_16_cards_of_32_gb_cannot_hold_a_70_b_model_however_it_is_loaded() -> None:
    """meta-llama/llama-cookbook issue 120."""
    found = bill(LLAMA_2_70B, "16xv100-sxm2-32", zero=3, recompute="full")
    assert round(found.memory.state_bytes / GB) == 69
    assert found.memory.verdict == "impossible"


def test_zero_2_holds_the_138_gb_of_a_70_b_models_weights_on_every_card_and_zero_3_holds_at_least_17() -> None:
    """JIA-Lab-research/LongLoRA issue 97."""
    second, third = (items(bill(LLAMA_2_70B, "8xa100-sxm-80", zero=zero, recompute="full")) for zero in (2, 3))
    assert round(second["weights"] / GB) == 138
    assert round(third["weights"] / GB, 1) == 17.2
    offloaded = items(bill(LLAMA_2_70B, "8xa100-sxm-80", zero=3, recompute="full", offload_parameters=0.5))
    assert offloaded["weights"] < 11 * GB < third["weights"]


@pytest.mark.parametrize(("per", "stock", "verdict"), [("12", 80.9, "tight"), ("16", 107.8, "impossible")])
def test_one_card_of_80_gb_for_a_7_b_model_depends_on_the_bytes_a_parameter(
    per: str, stock: float, verdict: str
) -> None:
    """young-geng/EasyLM issue 87."""
    found = bill(LLAMA_7B, "1xa100-sxm-80", per, batch=1, recompute="full")
    assert round(found.memory.state_bytes / GB, 1) == stock
    assert found.memory.verdict == verdict


def test_a_72_b_vision_model_is_impossible_on_4_cards_of_80_gb_by_a_factor_of_more_than_3() -> None:
    """hiyouga/LLaMA-Factory issue 5553: 73.4 billion with the vision tower; 80 GB of the label, 85.9 of the driver."""
    model = with_extra(load_model("qwen2.5-72b"), 675_000_000)  # of the tower
    found = bill(model, "4xa100-sxm-80", batch=4, zero=3, recompute="full", engine="deepspeed").memory
    assert round(parameters(model).total / GB, 1) == 73.4
    assert round(found.unsharded_state_bytes / 4 / GB) == 294
    assert round(found.state_bytes / (80 * GB), 1) == 3.7
    assert round(found.state_bytes / (80 * 2**30), 1) == 3.4
    assert found.verdict == "impossible"


def test_8_b_on_8_cards_of_24_gb_is_neither_yes_nor_no() -> None:
    """hiyouga/LLaMA-Factory issue 5977: out of memory; with both offloads it ran at 13 GB."""
    job = Job(1024, 16, precision="fp16", bytes_per_parameter="16")
    layout = {"zero": 3, "recompute": "full"}
    on = load_cluster("8xrtx3090")
    here = count(load_model("llama-3-8b"), job, on, Layout(**layout), "deepspeed").memory
    away = Layout(**layout, offload_optimizer=1.0, offload_parameters=1.0)
    there = count(load_model("llama-3-8b"), job, on, away, "deepspeed").memory
    assert round(here.state_bytes / GB, 1) == 16.1
    assert here.verdict == "tight"
    assert there.verdict == "fits"
    assert there.peak_bytes < 13 * GB


def test_one_node_cannot_hold_72_b_with_zero_3_and_four_can() -> None:
    """QwenLM/Qwen issue 755."""
    model = load_model("qwen2.5-72b")
    one, four = (
        bill(model, f"{cards}xa800-sxm-80", batch=cards, zero=3, recompute="full", engine="deepspeed").memory
        for cards in (8, 32)
    )
    assert [round(one.state_bytes / GB), round(four.state_bytes / GB, 1)] == [145, 36.4]
    assert (one.verdict, four.verdict) == ("impossible", "fits")


def test_a_gathered_block_of_gpt_oss_120b_is_6_4_gb() -> None:
    """modelscope/ms-swift issue 6509, which divides all 116.83 billion by 36 layers: 6.5 GB."""
    model = load_model("gpt-oss-120b")
    blocks = 116.83e9 - parameters(model).embedding  # table and head
    held = items(bill(model, "72xh100-sxm", batch=72, zero=3, recompute="full", engine="fsdp2"))
    assert round(116.83e9 / 36 * 2 / GB, 1) == 6.5
    assert isclose(held["blocks"], 2 * (2 * blocks / 36), rel_tol=0.001)


def test_32_b_in_reinforcement_learning_holds_65_gb_on_each_of_8_cards_beside_its_rollout_engine() -> None:
    """verl-project/verl issue 3124: 96 GB cards; the engine cut over all 8 leaves room, over 2 it does not."""
    model = load_model("qwen2.5-32b")
    verdicts = {}
    for ranks in (8, 2):
        beside = (Beside("rollout", "inference", float(parameters(model).total), ranks),)
        job = Job(4096, 8, bytes_per_parameter="16", beside=beside)
        found = count(model, job, load_cluster("8xh20"), Layout(zero=3, recompute="full"), "fsdp2").memory
        assert round(found.state_bytes / GB, 1) == 65.5
        verdicts[ranks] = found.verdict
    assert verdicts == {8: "fits", 2: "does_not_fit"}


@pytest.mark.parametrize(("cards", "share"), [(24, 15.0), (32, 11.2)])
def test_30_b_with_lion_has_no_room_to_spare_on_24_and_32_cards_of_16_gb(cards: int, share: float) -> None:
    """mosaicml/llm-foundry issue 437: 12 bytes a parameter; the thread says at least 24 cards, better 32."""
    job = Job(2048, cards, precision="fp16", optimizer="lion")
    on = load_cluster(f"{cards}xv100-sxm2-16")
    found = count(load_model("mpt-30b"), job, on, Layout(zero=3, recompute="full"), "fsdp2-llm-foundry").memory
    assert round(found.state_bytes / GB, 1) == share
    assert found.verdict != "fits"


def test_glm_4_5_air_in_bf16_alone_is_13_gb_of_state_a_card_where_all_of_it_is_sharded_over_64() -> None:
    """huggingface/trl pull request 6869, which measures 41 GB: 8 (dense / 2 + experts / 64), dense over 2 ranks."""
    model = load_model("glm-4.5-air")
    types = {"master_dtype": "none", "moment_dtype": "bf16", "gradient_dtype": "bf16"}
    layout = Layout(zero=3, ep=32, recompute="full")
    found = count(model, Job(2048, 64, **types), load_cluster("64xh100-sxm"), layout, "fsdp2").memory
    experts = sum(part.each * part.layers for part in parameters(model).components if part.name.startswith("expert_"))
    dense = parameters(model).total - experts
    assert round(found.state_bytes / GB) == 13
    assert round(8 * (dense / 2 + experts / 64) / GB) == 41


# Seconds of a step on nodes of 8 H100, context parallel over all cards, one sequence.
LONG = [
    ("qwen3-0.6b", 8, 1e6, 137),
    ("qwen3-8b", 8, 1e6, 364),
    ("qwen3-30b-a3b", 8, 1e6, 483),
    ("qwen3-32b", 8, 1e6, 1295),
    ("qwen3-0.6b", 8, 4e6, 2135),
    ("qwen3-8b", 16, 2e6, 696),
]


@pytest.mark.parametrize(("name", "cards", "length", "measured"), LONG)
def test_a_step_of_one_very_long_sequence_takes_what_was_measured(
    name: str, cards: int, length: float, measured: float
) -> None:
    """huggingface/trl pull request 6845."""
    found = bill(
        load_model(name), f"{cards}xh100-sxm", "fsdp2", int(length), 1, "fsdp2", cp=cards, zero=3, recompute="full"
    )
    assert isclose(found.step.seconds, measured, rel_tol=0.05)


def test_attention_is_18_times_the_matrices_at_a_million_tokens_and_time_grows_with_their_square() -> None:
    """huggingface/trl pull request 6845: attention is 885 GFLOP a token; 4 times the tokens take 15.6 times as long."""
    model, tokens = load_model("qwen3-8b"), 1_000_000
    whole = 3 * sequence_flops(model, Job(tokens, 1)) / tokens
    matrices = 3 * sequence_flops(model, Job(1, 1))
    assert isclose(whole - matrices, 885e9, rel_tol=0.001)
    one, four = (
        bill(load_model("qwen3-0.6b"), "8xh100-sxm", "fsdp2", length, 1, "fsdp2", cp=8, zero=3, recompute="full")
        for length in (tokens, 4 * tokens)
    )
    assert isclose(four.step.seconds / one.step.seconds, 2135 / 137, rel_tol=0.03)


# --- what other estimators got wrong --------------------------------------------------------------------------------


def test_zero_2_holds_2_bytes_of_each_parameter_and_an_eighth_of_the_other_14() -> None:
    """deepspeedai/DeepSpeed pull request 5099."""
    found = bill(LLAMA_7B, "8xa100-sxm-80", zero=2)
    per = found.memory.state_bytes / parameters(LLAMA_7B).total
    assert round(per * 7, 1) == 26.2
    assert "bytes_per_parameter" in found.conventions


def test_the_heaviest_stage_of_an_uneven_pipeline_is_reported_with_its_head_and_not_the_mean() -> None:
    """NVIDIA-NeMo/Megatron-Bridge pull request 5077."""
    hidden, width, vocab = 64, 256, 32000
    model = llama(
        hidden_size=hidden, num_hidden_layers=8, num_attention_heads=4, intermediate_size=width, vocab_size=vocab
    )
    layer = 4 * hidden**2 + 3 * hidden * width + 2 * hidden
    found = bill(model, "4xh100-sxm", "18", 128, 8, "fsdp2", pp=4, split=(1, 2, 2, 3), zero=0)
    heaviest = 3 * layer + hidden + vocab * hidden
    assert found.violations == ()
    assert layers(found) == [1, 2, 2, 3]
    assert [rank.embedding for rank in found.memory.ranks] == [True, False, False, False]
    assert [rank.head for rank in found.memory.ranks] == [False, False, False, True]
    assert found.memory.worst_rank.stage == 3
    assert found.memory.state_bytes == 18 * heaviest
    assert heaviest > parameters(model).total / 4


@pytest.mark.parametrize("split", [(6, 11, 11, 11, 11, 11, 12, 7), (2, 12, 11, 11, 11, 11, 13, 9)])
def test_the_stage_with_most_in_flight_may_hold_more_than_the_one_with_most_layers(split: tuple[int, ...]) -> None:
    memory = bill(LLAMA_3_70B, "64xh100-sxm", "18", 8192, 256, tp=8, pp=8, split=split).memory
    assert memory.peak_bytes == max(rank.peak_bytes for rank in memory.ranks)


@pytest.mark.parametrize(("ep", "etp"), [(8, 1), (4, 2), (4, 1), (2, 4)])
def test_experts_are_divided_by_etp_x_ep_and_never_by_tp(ep: int, etp: int) -> None:
    """NVIDIA/Megatron-LM issues 1784 and 2439."""
    at = loaded(MIXTRAL, "32xh100-sxm", tp=4, ep=ep, etp=etp)
    assert at.stages[0].layers[0].costs.expert_parameters == 8 * 3 * 4096 * 14336 / (etp * ep)
    assert at.case.layout.edp == 32 / (etp * ep)


def test_an_experts_optimizer_is_sharded_over_the_ranks_that_hold_the_same_experts() -> None:
    """NVIDIA/Megatron-LM issue 4050."""
    found = bill(MIXTRAL, "32xh100-sxm", tp=4, ep=8, engine="fsdp2", zero=2)
    dense = 32 * (2 * 4096 * (4096 + 1024) / 4 + 8 * 4096 + 2 * 4096) + 2 * 32000 * 4096 / 4 + 4096
    experts = 32 * 8 * 3 * 4096 * 14336 / 8
    assert (found.derived.dp, found.derived.edp) == (8, 4)
    assert isclose(items(found)["optimizer"], 12 * (dense / 8 + experts / 4), rel_tol=1e-12)


def test_norms_and_router_are_whole_on_every_tensor_parallel_rank() -> None:
    """cli99/llm-analysis issue 19."""
    one, four = (loaded(MIXTRAL, "8xh100-sxm", tp=tp).stages[0].layers[0].costs.dense_parameters for tp in (1, 4))
    replicated = 8 * 4096 + 2 * 4096
    assert four == (one - replicated) / 4 + replicated


@pytest.mark.parametrize(
    ("name", "each"),
    [("llama-2-7b", 2 * 4096), ("qwen3-32b", 2 * 5120 + 2 * 128), ("gemma-2-27b", 4 * 4608), ("gpt2-xl", 2 * 2 * 1600)],
)
def test_every_norm_of_a_layer_is_counted(name: str, each: int) -> None:
    """cli99/llm-analysis issue 19: two a layer, four in Gemma-2, two more on heads in Qwen3."""
    kinds: dict[str, int] = {}
    for component in parameters(load_model(name)).components:
        if component.name.endswith("norm") and component.part not in ("embedding", "head"):
            kinds[component.part] = kinds.get(component.part, 0) + component.each
    assert set(kinds.values()) == {each}


def test_two_data_parallel_ranks_make_12_bytes_a_parameter_of_megatrons_distributed_optimizer() -> None:
    """flagos-ai/FlagScale pull request 454: 46,983.28 MiB on the heaviest shard of 4.1055 billion."""
    at = loaded(load_model("llama-2-13b"), "8xh100-sxm", batch=8, tp=4)
    found = bill(load_model("llama-2-13b"), "8xh100-sxm", "18", tp=4)
    shard = sum(float(part.layers * part.costs.dense_parameters) for part in at.stages[0].parts)
    assert found.derived.dp == 2
    assert found.memory.state_bytes / shard == 6 + 12 / 2
    assert isclose(46_983.28 * MIB / 4.1055e9, 6 + 12 / 2, rel_tol=1e-4)


def test_experts_gates_and_untied_heads_are_all_counted() -> None:
    """jranaraki/vllm-fit issues 19, 20 and 27; AlexsJones/llmfit issues 230 and 474."""
    mixtral, small = parameters(MIXTRAL), parameters(LLAMA_7B)
    assert (round(mixtral.total / GB, 1), round(mixtral.active / GB, 1)) == (46.7, 12.9)
    feed_forward = sum(part.each * part.layers for part in small.components if part.name.startswith("mlp"))
    assert feed_forward == 32 * 3 * 4096 * 11008
    assert small.embedding == 2 * 32000 * 4096
    assert parameters(load_model("gemma-2-27b")).embedding == 256_000 * 4608
    eight_b = load_model("llama-3-8b")  # 8 key/value heads of 128 for 32 heads
    qkv = next(part for part in parameters(eight_b).components if part.name == "qkv")
    assert qkv.each == 4096 * (4096 + 2 * 8 * 128)
    assert bill(MIXTRAL, "8xh100-sxm", ep=8).memory.unsharded_state_bytes == 16 * mixtral.total


def test_gradients_of_2_bytes_make_16_a_parameter_and_gradients_of_4_make_18() -> None:
    """stas00/ml-engineering issue 23; caomaolufei/AIInfraGuide issue 24: Adam of 6.7 B is 80.4 GB, not 26.8."""
    for per, gradient in (("16", 2), ("18", 4)):
        found = bill(LLAMA_7B, "1xh100-sxm", per)
        assert items(found)["gradients"] == gradient * 6_738_415_616
        assert items(found)["optimizer"] == 12 * 6_738_415_616
        assert f"gradients {gradient}" in found.conventions["bytes_per_parameter"]
    assert state_bytes(6.7e9, 12) / GB == 80.4
    assert round(state_bytes(6.7e9, 16) / GB) == 107


# --- what is not legal, and what would be ---------------------------------------------------------------------------


@given(st.integers(1, 130), st.integers(1, 16), st.integers(1, 4))
def test_no_cut_into_stages_loses_a_layer(layers: int, pp: int, vpp: int) -> None:
    """NVIDIA/Megatron-LM issue 1303: 30 layers on 4 stages once became 4 x 7."""
    held = [layer for rank in stage_layers(layers, pp, vpp) for layer in rank]
    assert sorted(held) == list(range(layers))


def test_7_layers_on_2_stages_are_refused_with_the_two_numbers_and_the_legal_values() -> None:
    """NVIDIA/Megatron-LM issue 381."""
    rule = broken(bill(llama(num_hidden_layers=7), "2xa100-sxm-80", pp=2))["LAY009"]
    assert "7 layers" in rule.got and "2" in rule.got
    assert rule.legal_values == ("1", "7")
    assert rule.nearest


def test_40_layers_on_16_stages_are_refused_and_8_stages_of_5_are_near() -> None:
    """NVIDIA/Megatron-LM issue 1304."""
    model = llama(num_hidden_layers=40)
    rule = broken(bill(model, "16xa100-sxm-80", pp=16))["LAY009"]
    assert {"8", "10"} <= set(rule.legal_values)
    assert {"--tp 2 --pp 8", "--tp 1 --pp 8 --dp-shard 2"} <= set(rule.nearest)
    assert layers(bill(model, "16xa100-sxm-80", tp=2, pp=8)) == [5] * 8
    uneven = bill(model, "16xa100-sxm-80", pp=16, split=(6, *[2] * 14, 6))
    assert uneven.violations == ()
    assert sum(layers(uneven)) == 40
    assert max(layers(uneven)) == 3 * min(layers(uneven))


def test_60_layers_on_8_stages_are_legal_once_the_first_stage_has_4_of_them() -> None:
    """NVIDIA-NeMo/Megatron-Bridge pull request 5884."""
    model, split = llama(num_hidden_layers=60), (4, 8, 8, 8, 8, 8, 8, 8)
    assert "LAY009" in broken(bill(model, "8xa100-sxm-80", pp=8))
    found = bill(model, "8xa100-sxm-80", pp=8, split=split)
    assert (found.violations, tuple(layers(found))) == ((), split)
    assert "LAY011" in broken(bill(model, "8xa100-sxm-80", pp=8, split=(4, 8, 8, 8, 8, 8, 8)))


def test_61_layers_on_4_stages_are_16_16_16_13_and_the_last_has_the_fewest() -> None:
    """radixark/miles pull request 1102."""
    split = (16, 16, 16, 13)
    assert [len(held) for held in stage_layers(61, 4, 1)] == list(split)
    assert "LAY009" in broken(bill(DEEPSEEK_V3, "256xh100-sxm", batch=256, pp=4, ep=32))
    found = bill(DEEPSEEK_V3, "256xh100-sxm", batch=256, pp=4, ep=32, split=split)
    assert (found.violations, tuple(layers(found))) == ((), split)
    assert found.memory.ranks[-1].head


WIDE = llama(hidden_size=6656, num_attention_heads=52, intermediate_size=17920, num_hidden_layers=60)
SMALL = llama(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
HEADS = {
    "28 heads, 4 key/value heads": (load_model("qwen2.5-7b"), 8, "28 heads / 8", "1 2 4"),
    "52 heads": (WIDE, 8, "52 heads / 8", "1 2 4"),
    "12 heads": (SMALL, 8, "12 heads / 8", "1 2 4"),
    "25 heads": (load_model("gpt2-xl"), 4, "25 heads / 4", "1"),
    "64 heads": (LLAMA_3_70B, 3, "64 heads / 3", "1 2 4 8 16 32 64"),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_that_tp_does_not_divide_are_refused_with_both_numbers_and_the_values_that_do(name: str) -> None:
    """DeepSpeed issue 3634; hpcaitech/ColossalAI issue 3043."""
    model, tp, got, common = HEADS[name]
    rule = broken(bill(model, f"{tp}xa100-sxm-80", seq=1024, tp=tp))["LAY003"]
    assert rule.got == got
    assert set(common.split()) <= set(rule.legal_values)
    assert str(tp) not in rule.legal_values


@pytest.mark.parametrize("name", HEADS)
def test_the_values_offered_for_tp_obey_every_rule_of_tp(name: str) -> None:
    """THU-KEG/AdaptThink issue 1: users ask which values work, not which one rule allows."""
    model, tp, _, common = HEADS[name]
    found = broken(bill(model, f"{tp}xa100-sxm-80", seq=1024, tp=tp))
    assert {code: rule.legal_values for code, rule in found.items() if rule.legal_values} == dict.fromkeys(
        (code for code, rule in found.items() if rule.legal_values), tuple(common.split())
    )


def test_the_nearest_legal_layouts_of_28_heads_use_a_tp_that_divides_heads_and_width() -> None:
    rule = broken(bill(load_model("qwen2.5-7b"), "8xa100-sxm-80", tp=8))["LAY003"]
    found = [dict(re.findall(r"--(\S+) (\d+)", each)) for each in rule.nearest]
    assert found
    assert {int(each["tp"]) for each in found} <= {1, 2, 4}


def test_experts_over_4_ranks_need_no_more_than_4_ranks_beside_tp_4() -> None:
    """NVIDIA-NeMo/Megatron-Bridge issue 546: a version multiplied tp and ep to 16."""
    found = bill(MIXTRAL, "4xh100-sxm", tp=4, ep=4, etp=1, pp=1)
    assert found.violations == ()
    assert (found.derived.dp, found.derived.edp) == (1, 1)


def test_the_expert_product_is_1_x_2_x_2_on_4_ranks_and_an_ep_of_4_is_refused_with_its_factors() -> None:
    """NVIDIA-NeMo/Speech issue 14838: the ep that was in force was not the one in the recipe's name."""
    assert bill(MIXTRAL, "4xh100-sxm", pp=2, ep=2).violations == ()
    rule = broken(bill(MIXTRAL, "4xh100-sxm", pp=2, ep=4))["LAY002"]
    assert "4 ranks / (1 x 4 x 2)" in rule.got
    assert "etp x ep x pp" in rule.rule
    assert rule.legal_values == ("1", "2")


@pytest.mark.parametrize(("axes", "factors"), [({"pp": 2}, "pp 2"), ({"tp": 2}, "tp 2")])
def test_one_process_for_a_layout_of_two_is_refused_with_the_factors_that_made_2(
    axes: dict[str, int], factors: str
) -> None:
    """NVIDIA-NeMo/Speech issue 11480."""
    rule = broken(bill(load_model("llama-3-8b"), "1xh100-sxm", **axes))["LAY001"]
    assert rule.got == f"{factors} = 2; the cluster has 1"
    assert rule.rule.startswith("tp x cp x pp x dp_replicate x dp_shard")
    assert rule.nearest == ("--tp 1 --pp 1",)


# --- the page -------------------------------------------------------------------------------------------------------


ROWS = re.findall(r"^\|.*`(outlay (?:count|memory) [^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)
EXITS = {"IMPOSSIBLE": 1, "DOES NOT FIT": 1, "NOT LEGAL": 1, "TIGHT": 0, "FITS": 0}


@pytest.mark.parametrize(("command", "answer"), ROWS)
def test_every_command_of_the_page_is_answered_with_the_verdict_that_the_page_gives(
    command: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(shlex.split(command)[1:])
    printed = capsys.readouterr().out
    verdict = next(word for word in EXITS if printed.startswith(word))
    promised = [word for word in EXITS if answer.upper().startswith(word)]
    assert promised in ([], [verdict])
    assert code == EXITS[verdict]


def test_the_page_has_a_command_for_most_questions() -> None:
    assert len(ROWS) >= 20

"""Recurrent parts and the families that have them: traps of their configs, kept bytes, splits, layouts."""

from itertools import pairwise
from typing import Any

import pytest

from models import loaded
from outlay import load_cluster
from outlay.cluster.efficiency import Rates
from outlay.engines.engine import KernelSet
from outlay.engines.tables import kernel_set
from outlay.errors import InputError
from outlay.job import Job
from outlay.layout.rules import RULES, rules_of
from outlay.layout.sizes import sizes
from outlay.model.blocks import rows
from outlay.model.huggingface import read_config
from outlay.model.model import Block, Model
from outlay.model.operations import Sizes
from outlay.model.parts import AnyPart
from outlay.model.scan import Scan
from outlay.model.trained import Training, trained_rows
from outlay.search.blocks import Grid
from outlay.search.options import choice
from outlay.search.plan import asked, plan
from outlay.search.rows import legal_rows
from outlay.search.space import declare
from outlay.sums import split_moves, sum_flops, sum_kept, sum_parameters, sum_sent_forward
from outlay.undivided import layer_flops, parameters, plain_sizes

KERNELS = kernel_set("transformer_engine")  # Megatron-Core: a kernel for each step around a scan
FUSED = kernel_set("pytorch")  # state-spaces/mamba and flash-linear-attention, as their own modules run them
BASE = {
    "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 512,
    "num_key_value_heads": 2, "max_position_embeddings": 4096,
}  # fmt: skip
PAIR = {"layer_types": ["linear_attention", "full_attention"], "num_hidden_layers": 2}
STATES = {"vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 2}
SCANS = {"num_heads": 8, "head_dim": 64, "n_groups": 2, "state_size": 16, "chunk_size": 64}
DELTA = PAIR | {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
}  # fmt: skip
LATENT = {
    "kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_local_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_shared_experts": 1, "first_k_dense_replace": 0,
}  # fmt: skip
NEMOTRON = BASE | {
    "head_dim": 64, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 16,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
    "moe_shared_expert_intermediate_size": 32,
}  # fmt: skip


def model(kind: str, *configs: dict[str, Any], **changed: Any) -> Model:
    fields: dict[str, Any] = {"model_type": kind}
    for config in configs:
        fields |= config
    return read_config(fields | changed)


def kinds(made: Model) -> list[str]:
    """The kind of the first part of every layer."""
    return [made.blocks[place].parts[0].kind for place in made.pattern]


# --- traps ----------------------------------------------------------------------------------------------------------


def test_the_pattern_of_nemotron_h_says_how_many_layers_there_are_and_one_part_is_in_each() -> None:
    made = model("nemotron_h", NEMOTRON, hybrid_override_pattern="ME*-M", num_hidden_layers=52)

    assert kinds(made) == ["mamba2", "experts", "attention", "feed_forward", "mamba2"]
    assert all(len(block.parts) == 1 for block in made.blocks)
    assert "num_hidden_layers 5: as many as the pattern names" in made.notes


def test_nemotron_h_names_its_layers_by_words_too() -> None:
    words = ["mamba", "moe", "attention", "mlp", "linear_attention"]

    by_words = model("nemotron_h", NEMOTRON, layers_block_type=words)
    assert by_words.blocks == model("nemotron_h", NEMOTRON, hybrid_override_pattern="ME*-M").blocks


@pytest.mark.parametrize("kind", ["nemotron_h", "kimi_linear", "bailing_hybrid"])
def test_some_families_never_tie_whatever_the_file_says(kind: str) -> None:
    config = NEMOTRON | {"hybrid_override_pattern": "M"} if kind == "nemotron_h" else BASE | LATENT

    assert not model(kind, config, tie_word_embeddings=True).tied


def test_the_periods_of_jamba_place_attention_and_experts_apart() -> None:
    made = model("jamba", BASE, num_hidden_layers=8, attn_layer_period=4, attn_layer_offset=2, expert_layer_period=2)

    assert kinds(made) == ["mamba", "mamba", "attention", "mamba"] * 2
    assert [bool(made.blocks[place].experts) for place in made.pattern] == [False, True] * 4


def test_one_expert_is_none_in_jamba() -> None:
    assert not model("jamba", BASE, num_experts=1, num_experts_per_tok=1).experts


def test_lfm2_takes_two_thirds_of_the_width_rounded_up_unless_told_not_to() -> None:
    widths = {
        switch: model("lfm2", BASE, intermediate_size=12288, block_auto_adjust_ff_dim=switch).blocks[0].feed_forward
        for switch in (True, False)
    }

    assert {switch: part.width for switch, part in widths.items() if part} == {True: 8192, False: 12288}


def test_lfm2_reads_its_older_names() -> None:
    older = {key: value for key, value in BASE.items() if key != "intermediate_size"}
    made = model("lfm2", older, block_ff_dim=512, tie_embedding=False, full_attn_idxs=[1])

    assert kinds(made) == ["short_conv", "attention", "short_conv", "short_conv"]
    assert not made.tied


def test_granite_without_experts_has_its_shared_part_alone() -> None:
    made = model("granitemoehybrid", BASE, num_local_experts=0, shared_intermediate_size=96)

    assert kinds(made) == ["mamba2"] * 4
    assert [part.width for block in made.blocks if (part := block.feed_forward)] == [96]


def test_kimi_linear_numbers_its_layers_from_one() -> None:
    numbers = {"full_attn_layers": [2, 4], "kda_layers": [1, 3], "num_heads": 4, "head_dim": 16}
    made = model("kimi_linear", BASE, LATENT, linear_attn_config=numbers)

    assert kinds(made) == ["delta", "attention", "delta", "attention"]
    assert kinds(model("kimi_linear", BASE, LATENT, num_hidden_layers=6)) == ["delta"] * 4 + ["attention", "delta"]


def test_auto_is_a_rank_of_the_time_step() -> None:
    assert parameters(model("mamba", STATES, time_step_rank="auto")).total == parameters(model("mamba", STATES)).total
    assert parameters(model("mamba", STATES, time_step_rank=16)).total == parameters(model("mamba", STATES)).total


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("mamba2", {"num_heads": 7, "head_dim": 64}),
        ("mamba2", {"num_heads": 8, "head_dim": 32}),
        ("bamba", {"mamba_n_heads": 8, "mamba_d_head": 32}),
        ("bamba", {"mamba_n_heads": 8, "mamba_n_groups": 3}),
        ("recurrent_gemma", {"lru_width": 250}),
        ("olmo_hybrid", {"linear_num_key_heads": 3, "linear_num_value_heads": 4}),
    ],
)
def test_recurrent_heads_that_do_not_make_up_their_width_are_refused(kind: str, changed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="MOD006"):
        model(kind, BASE, changed)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("nemotron_h", {"hybrid_override_pattern": ""}),
        ("nemotron_h", {"hybrid_override_pattern": "MX"}),
        ("zamba2", {"layers_block_type": []}),
        ("recurrent_gemma", {"block_types": []}),
    ],
)
def test_a_pattern_has_a_layer_and_only_letters_that_it_knows(kind: str, changed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="MOD005"):
        model(kind, BASE, changed)


def test_a_tap_more_is_a_parameter_a_channel_in_every_recurrent_layer() -> None:
    four, three = (parameters(model("recurrent_gemma", BASE, conv1d_width=taps)).total for taps in (4, 3))

    assert four - three == 256 * 3  # of four layers the third has a window


def test_recurrent_gemma_starts_its_short_list_again() -> None:
    made = model("recurrent_gemma", BASE, num_hidden_layers=5, block_types=["recurrent", "attention"])

    assert kinds(made) == ["rg_lru", "attention", "rg_lru", "attention", "rg_lru"]
    assert {part.width for block in made.blocks if (part := block.feed_forward)} == {256}


def test_olmo_hybrid_has_norms_before_its_recurrent_parts_and_behind_the_others() -> None:
    made = model("olmo_hybrid", BASE, DELTA)

    assert [block.sublayers[0].norms for block in made.blocks] == ["before", "after"]


def test_the_published_multi_token_module_of_qwen3_5_is_a_whole_layer() -> None:
    """844 640 768 parameters beside the 35B model: a layer of attention and experts, and its projection."""
    made = model(
        "qwen3_5_moe_text", vocab_size=248320, hidden_size=2048, num_hidden_layers=40, num_attention_heads=16,
        mtp_num_hidden_layers=1,
    )  # fmt: skip

    assert parameters(made).mtp == 844_640_768
    assert parameters(made).total == 34_660_610_688


NEMOTRON_56B = {
    "vocab_size": 131072, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 32768, "expand": 2,
    "mamba_num_heads": 256, "ssm_state_size": 256, "tie_word_embeddings": True,
    "hybrid_override_pattern": "M-M-M-M*-" + "M-M-M-M-M*-" * 9 + "M-M-M-M-M-",
}  # fmt: skip
NEMOTRON_NANO = {
    "vocab_size": 131072, "hidden_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2,
    "intermediate_size": 1856, "mamba_num_heads": 64, "n_routed_experts": 128, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    "hybrid_override_pattern": "MEMEM*" + "EMEMEM*" * 4 + "EMEMEMEM*" + "EMEMEMEME",
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total", "active"),
    [(NEMOTRON_56B, 56_324_350_464, 56_324_350_464), (NEMOTRON_NANO, 31_577_937_344, 3_580_073_408)],
    ids=["56B", "30B-A3B"],
)
def test_the_published_nemotrons_have_their_parameters(config: dict[str, Any], total: int, active: int) -> None:
    counted = parameters(model("nemotron_h", config))

    assert (counted.total, counted.active) == (total, active)


def zamba(kind: str, *hybrids: int, **changed: Any) -> int:
    """Parameters of seven layers, some of which use shared blocks."""
    types = ["hybrid" if layer in hybrids else "linear_attention" for layer in range(7)]
    config = BASE | {"num_hidden_layers": 7, "num_key_value_heads": 8, "layers_block_type": types, "adapter_rank": 16}
    return parameters(model(kind, config, changed)).total


def test_the_shared_block_of_zamba_has_its_parameters_once() -> None:
    """A use more has its h x h matrix alone; the block has q, k, v of 2h x 2h, a way back, an MLP, two norms."""
    first = zamba("zamba", 2) - zamba("zamba")

    assert zamba("zamba", 2, 4) - zamba("zamba", 2) == 256**2
    assert first == 256**2 + 3 * 512 * 512 + 512 * 256 + 3 * 256 * 512 + 3 * 256


def test_zamba2_takes_its_shared_blocks_in_turn_and_each_use_has_its_adapter() -> None:
    use = 256**2 + 16 * (256 + 2 * 512)
    block = 3 * 512 * 512 + 512 * 256 + 3 * 256 * 512 + 3 * 256
    steps = [zamba("zamba2", *range(uses), num_mem_blocks=2) for uses in range(5)]

    assert [later - earlier for earlier, later in pairwise(steps)] == [
        use + block, use + block, use, use,
    ]  # fmt: skip


def test_a_later_use_of_a_shared_block_multiplies_as_the_first_does() -> None:
    made = model("zamba", BASE, num_hidden_layers=2, num_key_value_heads=8, layers_block_type=["hybrid", "hybrid"])
    work = [split_moves(rows(made, block, KERNELS))[0] for block in made.blocks]
    flops = [float(sum_flops(each, plain_sizes(made, block))) for each, block in zip(work, made.blocks, strict=True)]
    held = [
        float(sum_parameters(each, plain_sizes(made, block))) for each, block in zip(work, made.blocks, strict=True)
    ]

    assert flops[0] == flops[1]
    assert held[0] > held[1]


# --- kept bytes: what the save lists of the public kernels give ------------------------------------------------------


def kept(made: Model, kernels: KernelSet = FUSED) -> float:
    """Bytes a token of the first layer's mixer, its norm included."""
    block = Block("mixer", made.blocks[0].sublayers[:1])
    work, _ = split_moves(rows(made, block, kernels))
    return float(sum_kept(work, plain_sizes(made, block)))


HIDDEN = 2 * 256 + 4 + 2 * 256  # a norm's input and statistic, and the input of the projections


def test_mamba_keeps_what_its_fused_kernel_saves() -> None:
    i, n, r = 512, 16, 16

    assert kept(model("mamba", STATES)) == HIDDEN + 4 * i + 2 * (r + 2 * n) + 4 * n + 2 * i + i * n / 256


def test_mamba_in_kernels_of_their_own_keeps_what_each_of_them_saves() -> None:
    """Eight times the channels: input of the convolution and gate, which are one tensor, the convolution's output, the
    scan's copies of it and of the gate, time steps, the scan's output, and that times the gate for the projection."""
    i, n, r = 512, 16, 16
    projected, copies, states = 2 * (r + 2 * n), 2 * 2 * n, i * n / 256
    norms = 3 * 4 + 2 * r  # statistics, and the input of the time step's projection

    jamba = model("jamba", BASE, num_experts=1, num_experts_per_tok=1)
    assert kept(jamba) == HIDDEN + 8 * 2 * i + projected + norms + copies + states
    zamba = model("zamba", BASE, num_key_value_heads=8, n_mamba_heads=1, layers_block_type=["linear_attention"] * 4)
    assert kept(zamba) == HIDDEN + 8 * 2 * i + projected + copies + states


def test_mamba2_keeps_what_its_fused_kernel_saves() -> None:
    """All of the projection, the scan's output, and a statistic a group."""
    i, g, n, h = 512, 2, 16, 8

    assert kept(model("mamba2", STATES, SCANS)) == HIDDEN + 2 * (2 * i + 2 * g * n + h) + 2 * i + 4 * g


def test_mamba2_of_megatron_keeps_the_inputs_of_its_norm_and_of_its_projection_out_too() -> None:
    """Its kernel gets the weights of neither; so an inner width in 16 bit waits in front of each."""
    made = model("mamba2", STATES, SCANS)
    without_norm = model("falcon_h1", BASE, mamba_d_ssm=512, mamba_n_heads=8, mamba_d_head=64)

    assert kept(made, KERNELS) - kept(made) == 4 * 512
    assert kept(without_norm, KERNELS) - kept(without_norm) == 2 * 512


def test_an_adapter_beside_the_projection_out_of_megatron_keeps_its_input_and_a_frozen_one_does_not() -> None:
    made = model("mamba2", STATES, SCANS)
    all_rows = rows(made, made.blocks[0], KERNELS)
    size = {**plain_sizes(made, made.blocks[0]), "adapter_rank": 8}

    def waiting(target: str) -> float:
        work, _ = split_moves(trained_rows(made.blocks[0], all_rows, Training("lora", frozenset({target}))))
        return float(sum_kept(tuple(row for row in work if getattr(row, "ins", "") == "inner"), size))

    assert waiting("out_proj") == 2 * 512
    assert waiting("in_proj") == 0


def delta_rule(heads: int, key_heads: int, key: int, value: int) -> int:
    saved = 4 * heads * key + 8 * heads + 2 * heads * value + 4 * heads + 4 * heads + 2 * 64 * heads
    output = 3 * 2 * heads * value + 4 * heads
    return 2 * (2 * key_heads * key + heads * value) + saved + output


def test_a_gated_delta_net_keeps_what_its_kernels_save() -> None:
    assert kept(model("qwen3_5_text", BASE, DELTA)) == HIDDEN + delta_rule(4, 2, 16, 24)


def test_a_gated_delta_net_of_megatron_keeps_what_is_between_its_kernels_too() -> None:
    """Queries and keys after their norms, with statistics a key head; and the output's norm, for its gate."""
    made = model("qwen3_5_text", BASE, DELTA)
    statistics = 2 * 4 * 2 - 2 * 4 * 4

    assert kept(made, KERNELS) - kept(made) == 2 * 2 * 2 * 16 + statistics + 2 * 4 * 24


def test_a_gated_norm_of_transformers_keeps_sixteen_bytes_a_value_and_a_statistic() -> None:
    """16.0625 in a head of 64: saved_tensors_hooks over Qwen3NextRMSNormGated of transformers 5.24."""
    found = kernel_set("transformers").gated_norm

    assert 2 * found.keeps + found.keeps_bytes + found.keeps_group / 64 == 16.0625


def test_kimi_delta_attention_keeps_a_decay_a_channel_and_a_second_matrix() -> None:
    made = model("kimi_linear", BASE, LATENT, PAIR, linear_num_heads=4, linear_head_dim=16)
    low_rank = 2 * 2 * 16  # what the second matrices of decay and output gate read

    assert kept(made) == HIDDEN + delta_rule(4, 4, 16, 16) + 4 * 4 * 16 + 2 * 64 * 4 + low_rank


def test_a_recurrent_unit_keeps_every_input_once_and_its_states_in_fp32() -> None:
    """Inputs of convolution, branch, recurrence (three) and product (two), a state, and what the way out multiplies."""
    made = model("recurrent_gemma", BASE, num_attention_heads=8)

    assert kept(made) == HIDDEN + 2 * 256 * (1 + 1 + 3 + 2 + 1) + 4 * 256


def test_lightning_attention_keeps_inputs_of_every_step() -> None:
    wide = 8 * 32
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}

    assert kept(model("minimax", BASE, PAIR, experts)) == HIDDEN + 2 * 6 * wide + 2 * wide + 4 + 3 * 2 * wide


def test_a_short_convolution_keeps_its_projections_and_products() -> None:
    made = model("lfm2", BASE, layer_types=["conv"] * 4)

    assert kept(made) == HIDDEN + 6 * 256 + 2 * 256 + 2 * 256 + 2 * 256


# --- splits ---------------------------------------------------------------------------------------------------------


def here(made: Model, engine: str = "megatron", **degrees: Any) -> Sizes:
    ranks = degrees.get("tp", 1) * degrees.get("cp", 1)
    case = loaded(made, f"{ranks}xh100-sxm", engine, seq=1024, batch=8, micro_batch=1, **degrees).case
    return sizes(made, made.blocks[0], case.job, case.layout, case.engine, KERNELS)


def held(made: Model, tp: int) -> float:
    """Parameters of the first layer's mixer on one of tp ranks."""
    work, _ = split_moves(rows(made, Block("mixer", made.blocks[0].sublayers[:1]), KERNELS))
    return float(sum_parameters(work, here(made, tp=tp)))


def replicated(part: AnyPart) -> int:
    """Parameters of a mixer that every tensor-parallel rank has, from the table of splits of each kind."""
    whole = {
        "mamba2": 256,  # the norm before it
        "delta": 256 + 24,  # and that of its heads
        "short_conv": 256,
        "lightning": 256,
        "mamba": 256,
    }
    return whole[part.kind]


@pytest.mark.parametrize(
    "made",
    [
        model("mamba", STATES),
        model("mamba2", STATES, SCANS),
        model("qwen3_5_text", BASE, DELTA),
        model("minimax", BASE, PAIR, num_local_experts=4),
        model("lfm2", BASE, layer_types=["conv"] * 4),
    ],
    ids=lambda made: made.family,
)
def test_tensor_parallelism_cuts_a_mixer_but_for_its_norms(made: Model) -> None:
    whole = replicated(made.blocks[0].parts[0])

    assert held(made, 2) - whole == (held(made, 1) - whole) / 2


def test_one_group_of_mamba2_is_on_every_rank() -> None:
    alone = model("mamba2", STATES, SCANS, n_groups=1)
    columns, taps = 2 * 16, 4 + 1

    assert held(alone, 2) - held(alone, 1) / 2 == 256 / 2 + columns * (256 + taps) / 2


def test_mamba_sums_the_time_step_and_b_and_c_over_its_ranks() -> None:
    """One all-reduce of R + 2N values a token: two passes, each of which sends half of it to the other rank."""
    made = model("mamba", STATES)
    _, moves = split_moves(rows(made, made.blocks[0], KERNELS))
    found = tuple(move for move in moves["tp"] if move.name == "sum_step_state")

    assert float(sum_sent_forward(found, here(made, tp=2))) == 2 * (1024 * (16 + 2 * 16) * 2 / 2)


COLUMNS = 2 * 3  # bytes a channel of the three columns before, in 16 bit
PASSED = {
    "mamba": (model("mamba", STATES), 4 * 512 * 16 + COLUMNS * 512),
    "mamba2": (model("mamba2", STATES, SCANS), 4 * 8 * 64 * 16 + COLUMNS * (512 + 2 * 2 * 16)),
    "delta": (model("qwen3_5_text", BASE, DELTA), 4 * 4 * 16 * 24 + COLUMNS * (2 * 2 * 16 + 4 * 24)),
    "lightning": (model("minimax", BASE, PAIR, num_local_experts=4), 4 * 8 * 32 * 32),
    "rg_lru": (model("recurrent_gemma", BASE), 4 * 256 + COLUMNS * 256),
    "short_conv": (model("lfm2", BASE, layer_types=["conv"] * 4), 2 * 2 * 256),
    "time_mix": (model("rwkv", STATES), 4 * 3 * 256),
}
"""Models, and bytes that a sequence hands on between two ranks: its state in fp32, and columns of the convolution."""


def sent_in_context(made: Model, name: str, **how: Any) -> float:
    """Bytes that one rank of a context-parallel group sends in the forward pass of the first layer."""
    _, moves = split_moves(rows(made, made.blocks[0], KERNELS))
    found = tuple(move for move in moves["cp"] if move.name == name)
    return float(sum_sent_forward(found, here(made, **how)))


@pytest.mark.parametrize("kind", PASSED)
def test_context_parallelism_passes_the_state_of_a_sequence_whatever_its_length(kind: str) -> None:
    made, bytes_passed = PASSED[kind]

    assert sent_in_context(made, "pass_states", cp=2, cp_kind="ring", engine="fsdp2") == bytes_passed
    assert sent_in_context(made, "swap_scan", cp=2, cp_kind="ring", engine="fsdp2") == 0
    assert sent_in_context(made, "pass_states", cp=2, cp_kind="ulysses", engine="fsdp2") == 0


@pytest.mark.parametrize("kind", ["ring", "all_gather", "ulysses"])
@pytest.mark.parametrize(("groups", "ranks"), [(2, 2), (2, 4), (1, 2)])
def test_megatron_deals_recurrent_heads_whatever_the_kind_of_context_parallelism(
    kind: str, groups: int, ranks: int
) -> None:
    """In go z, x, B, C and the time steps, out goes y; a group for each rank, copied where there are fewer."""
    made = model("mamba2", STATES, SCANS, n_groups=groups)
    i, h, n, tokens = 512, 8, 16, 1024 // ranks
    swapped = 2 * tokens * (2 * i + 2 * max(groups, ranks) * n + h + i)

    assert sent_in_context(made, "swap_scan", cp=ranks, cp_kind=kind) == swapped * (ranks - 1) / ranks
    assert sent_in_context(made, "pass_states", cp=ranks, cp_kind=kind) == 0


def broken(made: Model, engine: str = "megatron", **degrees: Any) -> set[str]:
    """The rules that a layout breaks."""
    ranks = degrees.get("tp", 1) * degrees.get("cp", 1)
    case = loaded(made, f"{ranks}xh100-sxm", engine, seq=1024, batch=8, micro_batch=1, **degrees).case
    return {rule.code for rule in rules_of(engine) if not bool(rule.legal(case))}


@pytest.mark.parametrize("kind", ["ring", "all_gather", "ulysses"])
def test_megatron_needs_a_recurrent_head_for_every_rank_under_any_kind(kind: str) -> None:
    made = model("nemotron_h", NEMOTRON, num_key_value_heads=8, hybrid_override_pattern="M*")

    assert not broken(made, tp=2, cp=2, cp_kind=kind) & {"LAY020", "LAY046"}
    assert "LAY020" in broken(made, tp=2, cp=8, cp_kind=kind)
    assert "LAY020" not in broken(made, "fsdp2", tp=2, cp=8, cp_kind="ring")
    assert "LAY020" not in broken(model("llama", BASE), tp=2, cp=8, cp_kind="ring")


@pytest.mark.parametrize(
    ("groups", "tp", "cp", "fits"), [(8, 2, 2, True), (8, 2, 8, True), (6, 2, 2, False), (2, 4, 1, False)]
)
def test_megatron_deals_whole_groups_or_heads_of_one_group(groups: int, tp: int, cp: int, fits: bool) -> None:
    made = model("mamba2", STATES, SCANS, num_heads=96, head_dim=16, hidden_size=768, n_groups=groups)

    assert ("LAY046" not in broken(made, tp=tp, cp=cp)) == fits
    assert "LAY046" not in broken(made, "fsdp2", tp=tp, cp=cp)


@pytest.mark.parametrize("engine", ["deepspeed", "hf_trainer", "fsdp2-torchtitan", "nanotron", "maxtext"])
def test_an_engine_whose_context_parallelism_is_for_attention_alone_refuses_recurrent_layers(engine: str) -> None:
    made = model("nemotron_h", NEMOTRON, hybrid_override_pattern="M*")

    assert "LAY045" in broken(made, engine, cp=2)
    assert "LAY045" not in broken(made, engine)
    assert "LAY045" not in broken(model("llama", BASE), engine, cp=2)


@pytest.mark.parametrize(
    "made",
    [model("mamba2", STATES, SCANS, n_groups=1), model("minimax", BASE, PAIR, num_local_experts=4)],
    ids=lambda made: made.family,
)
def test_a_norm_over_channels_that_tensor_parallelism_cuts_sums_a_statistic_a_token(made: Model) -> None:
    """An all-reduce of a value a token, so two passes, each of which sends half of it to the other rank."""
    _, moves = split_moves(rows(made, made.blocks[0], KERNELS))
    found = tuple(move for move in moves["tp"] if move.name.endswith("norm"))

    assert float(sum_sent_forward(found, here(made, tp=2))) == 2 * 1024 * 2 / 2


def test_a_norm_of_groups_that_are_whole_on_a_rank_sums_nothing() -> None:
    made = model("mamba2", STATES, SCANS)
    _, moves = split_moves(rows(made, made.blocks[0], KERNELS))

    assert not [move.name for move in moves["tp"] if move.name.endswith("norm")]


def test_a_layout_that_cuts_through_a_head_or_a_group_is_refused_by_name() -> None:
    rule = next(rule for rule in RULES if rule.code == "LAY006")
    case = loaded(model("mamba2", STATES, SCANS), "8xh100-sxm", tp=4, dp_shard=2, seq=1024, batch=8).case

    assert not rule.legal(case)
    assert rule.got(case) == "mamba2 2, 8 / 4"


# --- models without attention ---------------------------------------------------------------------------------------


def test_a_model_without_attention_has_no_core_and_grows_with_its_tokens_alone() -> None:
    made = model("mamba2", STATES, SCANS)
    short, long = (layer_flops(made, Job(sequence_length=s, global_batch=1), ("core_attn",)) for s in (1024, 4096))

    assert short[1] == long[1] == 0
    assert long[0] == 4 * short[0]


def test_a_scan_of_products_takes_their_time_and_one_without_takes_that_of_its_bytes() -> None:
    made = model("mamba", STATES)
    work, _ = split_moves(rows(made, made.blocks[0], KERNELS))
    scan = tuple(row for row in work if row.name == "scan")
    size = plain_sizes(made, made.blocks[0])

    assert float(sum_flops(scan, size)) == 9 * 512 * 16 + 2 * 512
    assert scan[0].products(size) == 0  # type: ignore[attr-defined]


# Values a token that a scan reads and writes, from the config: inputs and output in 16 bit, decays in fp32 as two.
MOVED = {
    "mamba": 4 * 512 + 2 * 16,  # x, time step, gate; y; B and C
    # x for the states and for the output, y; steps and sums in fp32; states written, passed on and read, a chunk of 64;
    # B and C twice; C B' in fp32, written and read, a value a token of the chunk and group
    "mamba2": 3 * 512 + 8 * (2 + 2 + 4 + 4) + (2 + 2 + 1 + 1) * 512 * 16 // 64 + 4 * 2 * 16 + 4 * 2 * 64,
    "delta": 2 * 4 * 16 + 2 * 4 * 24 + 2 * 4 + 2 * 4,  # q and k at the value heads; v; o; decays; strengths
    "lightning": 4 * 8 * 32,  # q, k, v; o
    "rg_lru": 4 * 256 + 2 * 256,  # input and two gates; output; a state in fp32
    "time_mix": 4 * 256,  # key, value, receptance; output
}


def scan_of(made: Model) -> Scan:
    """The scan of the first layer."""
    return next(row for row in rows(made, made.blocks[0], KERNELS) if isinstance(row, Scan))


@pytest.mark.parametrize("kind", MOVED)
def test_a_scan_moves_what_its_kernels_read_and_write(kind: str) -> None:
    made, _ = PASSED[kind]

    assert float(scan_of(made).moved(plain_sizes(made, made.blocks[0]))) == 2 * MOVED[kind]


@pytest.mark.parametrize("kind", MOVED)
def test_the_backward_pass_of_a_scan_takes_twice_its_forward_pass(kind: str) -> None:
    """It reads inputs and the gradient of what comes out, writes a gradient for each, and has two products for one."""
    made, _ = PASSED[kind]
    scan, job = scan_of(made), Job(sequence_length=4096, global_batch=1)
    size = plain_sizes(made, made.blocks[0], job)
    rates = Rates(
        matmul=1e15, half_matmul=1e15, attention=5e14, attention_back=5e14, memory=3e12, elementwise=1, launch=0
    )

    assert float(scan.input_gradient(size, rates)) >= 2 * float(scan.forward(size, rates)) > 0


# --- what is said, and what is offered -------------------------------------------------------------------------------


def test_defaults_of_fields_that_no_layer_uses_are_not_said() -> None:
    notes = " ".join(model("nemotron_h", NEMOTRON_56B).notes)

    assert "expert" not in notes
    assert "conv_kernel 4: default of nemotron_h" in notes
    assert "moe_intermediate_size 7688" in " ".join(
        model("nemotron_h", NEMOTRON_56B, hybrid_override_pattern="ME").notes
    )


@pytest.mark.parametrize(("made", "cores"), [(model("mamba2", STATES, SCANS), False), (model("llama", BASE), True)])
def test_selective_recompute_is_offered_where_there_is_an_attention_core(made: Model, cores: bool) -> None:
    case, _ = asked(made, Job(1024, 8), load_cluster("8xh100-sxm"), "megatron")
    space = declare(made, case.job, case.cluster, case.engine)
    grid = Grid(case, space, legal_rows(case, space))
    kinds = {str(kind) for key in grid.keys for kind in choice(int(key), space).recompute.ravel()}

    assert kinds == {"none", "full"} | ({"selective"} if cores else set())


def test_a_search_that_is_told_selective_recompute_keeps_it() -> None:
    made = model("mamba2", STATES, SCANS)
    found = plan(made, Job(1024, 8), load_cluster("8xh100-sxm"), recompute=("selective",))

    assert found.best and {ranked.layout.recompute for ranked in found.best} == {"selective"}

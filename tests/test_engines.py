"""Engines: their facts, what each of them can run, and what people met when they ran it."""

import re
import shlex
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from outlay import Bill, InputError, Job, Layout, Model, count, load_cluster, load_model, parameters
from outlay.bill import Violation
from outlay.cli.main import main
from outlay.engines import engine, engine_names
from outlay.engines.tables import facts_of
from outlay.layout.rules import rules_of
from outlay.search.plan import plan

GB = 1e9
PAGE = (Path(__file__).parent.parent / "docs" / "engines.md").read_text(encoding="utf-8")
LLAMA_3_70B = load_model("llama-3-70b")
LLAMA_3_8B = load_model("llama-3-8b")
GPT3 = load_model("gpt3-175b")
MIXTRAL = load_model("mixtral-8x7b")


def bill(
    model: Model, on: str, engine: str = "megatron", seq: int = 2048, batch: int = 64, job: Any = None, **axes: Any
) -> Bill:
    """The bill of a layout."""
    return count(model, Job(seq, batch, **(job or {})), load_cluster(on), Layout(**axes), engine)


def broken(found: Bill) -> dict[str, Violation]:
    """The rules that a layout breaks, by their codes."""
    return {violation.code: violation for violation in found.violations}


def items(found: Bill) -> dict[str, float]:
    """The parts of the peak."""
    return {item.name: item.value for item in found.memory.items}


# --- facts ----------------------------------------------------------------------------------------------------------


def test_every_fact_of_a_row_is_specified_measured_or_assumed_and_says_by_whom() -> None:
    for name in engine_names():
        tables = {fact: entry for fact, entry in facts_of(name).items() if isinstance(entry, dict)}
        assert len(tables) > 20
        for fact, entry in tables.items():
            assert entry["kind"] in ("specified", "measured", "assumed"), (name, fact)
            assert entry["source"].strip(), (name, fact)
        assert facts_of(name)["source"].strip()


def test_a_row_with_a_base_gives_only_what_differs_from_it() -> None:
    for name in engine_names():
        row = facts_of(name)
        if "base" in row:
            base = facts_of(row["base"])
            assert [fact for fact in row if fact != "base" and row[fact] != base.get(fact)], name
            assert engine(name) != engine(row["base"])


def test_a_release_keeps_the_facts_of_its_base() -> None:
    """Figures of Megatron-LM of 2021 and 2022 that published runs were compared with."""
    old, older = engine("megatron-2022"), engine("megatron-2021")
    assert (old.recipe, old.kernels, old.zero_stages, old.reduce_bytes) == ("16", "megatron_local", (0, 1), 4)
    assert (older.recipe, older.zero_stages, older.reduce_bytes) == ("16", (0,), 2)
    for each in (old, older):
        assert (each.vocab_multiple, each.compute_bytes, each.optimizer_traffic) == (128, 2, 40)
        assert (each.slack_low, each.slack_share, each.slack_high) == (0.007, 0.044, 0.093)
        assert (each.workspace_low, each.workspace_bytes, each.workspace_high) == (0.5e9, 1.5e9, 3e9)
        assert (each.dp_hidden, each.dp_exposed, each.step_seconds, each.splits_sends) == (0, 1, 0.04, True)
    assert (old.backward_exposed, older.backward_exposed) == (0.43, 1)
    assert (old.slices_sequence, older.slices_sequence) == (True, False)


def test_an_unknown_engine_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="ENG001") as caught:
        bill(LLAMA_3_8B, "8xh100-sxm", "deepsped")
    fault = caught.value.faults[0]
    assert fault.fix == "deepspeed"
    assert "nanotron" in fault.rule and "maxtext" in fault.rule


@pytest.mark.parametrize(
    ("name", "zero", "schedule", "recompute", "cp_kind"),
    [
        ("megatron", 1, "1f1b", "none", "ring"),
        ("fsdp2", 3, "1f1b", "none", "ring"),
        ("fsdp2-torchtitan", 2, "1f1b", "none", "all_gather"),
        ("nanotron", 0, "1f1b", "none", "ring"),
        ("megatron_deepspeed", 1, "1f1b", "none", "ring"),
        ("deepspeed", 1, "1f1b", "none", "ulysses"),  # ZeRO-2 by itself, ZeRO-1 with a pipeline
        ("maxtext", 3, "gpipe", "full", "all_gather"),
    ],
)
def test_what_is_not_said_is_as_the_engine_has_it(
    name: str, zero: int, schedule: str, recompute: str, cp_kind: str
) -> None:
    layout = bill(LLAMA_3_8B, "8xh100-sxm", name, pp=2).layout
    assert (layout.zero, layout.schedule, layout.recompute, layout.cp_kind) == (zero, schedule, recompute, cp_kind)


@pytest.mark.parametrize("name", engine_names())
def test_every_engine_is_counted_and_searched_and_its_best_layouts_obey_its_rules(name: str) -> None:
    cluster, job = load_cluster("16xh200-sxm"), Job(2048, 64)
    assert count(LLAMA_3_8B, job, cluster, Layout(), name).violations == ()
    found = plan(LLAMA_3_8B, job, cluster, name, best=5, tp=(1, 2), pp=(1, 2), cp=(1, 2), micro_batch=(1, 2))
    search = found.search
    assert search.space == search.illegal + search.duplicates + search.legal
    assert min(search.illegal, search.duplicates, search.legal) >= 0
    assert found.best and all(ranked.bill.violations == () for ranked in found.best)
    assert {rule.code for rule in rules_of(name)} >= {rejection.rule for rejection in found.rejected} - {"LAY010"}


# --- what it multiplies, optimizes and recomputes ------------------------------------------------------------------


def job_of(**fields: Any) -> dict[str, Any]:
    return {"precision": "bf16"} | fields


@pytest.mark.parametrize("name", ["megatron-2021", "nanotron", "hf_trainer"])
def test_a_precision_that_an_engine_lacks_is_refused_with_those_it_has(name: str) -> None:
    found = broken(bill(LLAMA_3_8B, "8xb200", name, job={"precision": "nvfp4"}))
    assert found["JOB010"].got == f"nvfp4; {name} has {', '.join(engine(name).precisions)}"
    assert "--precision bf16" in found["JOB010"].fix and "nvfp4" not in found["JOB010"].fix


@pytest.mark.parametrize(
    ("name", "precision", "legal"),
    [
        ("megatron", "nvfp4", True),  # --fp4-recipe
        ("megatron", "fp8_blockwise", True),  # --fp8-recipe
        ("megatron-2022", "fp8", False),  # Megatron-Core brought TransformerEngine
        ("hf_trainer", "mxfp8", True),  # accelerate 1.11: use_mxfp8_block_scaling
        ("hf_trainer", "fp8_blockwise", False),
        ("deepspeed", "fp8", False),
        ("maxtext", "nvfp4", True),  # quantization te_nvfp4
        ("fsdp2-torchtitan", "fp16", False),  # mixed_precision_param bfloat16, float32
        ("nanotron", "fp16", True),
    ],
)
def test_engines_multiply_in_the_numbers_that_their_documents_name(name: str, precision: str, legal: bool) -> None:
    assert ("JOB010" not in broken(bill(LLAMA_3_8B, "8xb200", name, job={"precision": precision}))) == legal


@pytest.mark.parametrize(
    ("name", "optimizer", "legal"),
    [
        ("megatron", "muon", True),
        ("megatron", "lion", True),
        ("megatron", "galore", False),
        ("megatron-2021", "muon", False),
        ("megatron_deepspeed", "adam8bit", True),  # --use-bnb-optimizer
        ("nanotron", "galore", False),
        ("hf_trainer", "galore", True),  # OptimizerNames.GALORE_ADAMW
        ("hf_trainer", "muon", False),
        ("deepspeed", "muon", True),  # MUON_OPTIMIZER of its config
        ("maxtext", "lion", False),
        ("fsdp2", "adam_mini", True),
    ],
)
def test_engines_have_the_optimizers_that_their_sources_name(name: str, optimizer: str, legal: bool) -> None:
    found = broken(bill(LLAMA_3_8B, "8xh100-sxm", name, job=job_of(optimizer=optimizer)))
    assert ("JOB011" not in found) == legal
    if not legal:
        assert found["JOB011"].got == f"{optimizer}; {name} has {', '.join(engine(name).optimizers)}"
        assert found["JOB011"].fix.startswith("--optimizer adam")


@pytest.mark.parametrize("name", ["megatron", "megatron-0.15"])
def test_every_release_of_megatron_core_shares_muons_matrices_whole(name: str) -> None:
    found = broken(bill(LLAMA_3_8B, "8xh100-sxm", name, job=job_of(optimizer="muon"), zero=3))
    assert found["JOB005"].fix == "--zero 0 or 1"
    assert broken(bill(LLAMA_3_8B, "8xh100-sxm", name, job=job_of(optimizer="muon"), zero=1)) == {}
    narrow = broken(bill(LLAMA_3_8B, "8xh100-sxm", name, job=job_of(moment_dtype="bf16"), zero=0))
    assert list(narrow) == ["JOB006"]


def test_the_trainer_recomputes_every_nth_layer() -> None:
    """transformers 5.24: every_n_layers checkpoints layers 0, n, 2n ..: of 32 layers 32, 16, 11, 8, 7, 6 to 1."""
    legal = {len(range(0, 32, n)) for n in range(1, 33)}
    for count_ in range(1, 33):
        found = broken(bill(LLAMA_3_8B, "8xh200-sxm", "hf_trainer", recompute="full", recompute_layers=count_))
        assert ("LAY043" not in found) == (count_ in legal), count_
    found = broken(bill(LLAMA_3_8B, "8xh200-sxm", "hf_trainer", recompute="full", recompute_layers=20))
    assert found["LAY043"].got == "20 of 32 layers, hf_trainer"
    assert found["LAY043"].fix == "--recompute-layers 16 or 32"


@pytest.mark.parametrize("name", ["nanotron", "maxtext"])
def test_some_engines_recompute_all_layers_or_none(name: str) -> None:
    def codes(**axes: Any) -> list[str]:
        return list(broken(bill(LLAMA_3_8B, "8xh200-sxm", name, recompute="full", **axes)))

    assert codes() == codes(recompute_layers=32) == codes(pp=2, recompute_layers=16) == []
    assert codes(recompute_layers=16) == ["LAY043"]


def test_the_trainer_has_no_selective_recompute() -> None:
    found = broken(bill(LLAMA_3_8B, "8xh200-sxm", "hf_trainer", recompute="selective"))
    assert (found["LAY044"].got, found["LAY044"].fix) == (
        "selective; hf_trainer has none, full",
        "--recompute none or full",
    )
    assert broken(bill(LLAMA_3_8B, "8xh200-sxm", "fsdp2", recompute="selective")) == {}


@pytest.mark.parametrize("name", ["hf_trainer", "nanotron", "maxtext"])
def test_a_search_recomputes_what_the_engine_can(name: str) -> None:
    plain = {"tp": (1,), "pp": (1,), "cp": (1,), "vpp": (1,), "ep": (1,), "etp": (1,)}
    found = plan(LLAMA_3_8B, Job(4096, 64), load_cluster("8xa100-sxm-80"), name, best=200, **plain)
    for each in found.best:
        assert each.bill.violations == ()
    kinds = {(each.layout.recompute, each.layout.recompute_layers) for each in found.best}
    assert kinds <= {("none", 0), ("selective", 0), ("full", 32), ("full", 16), ("full", 8), ("full", 4)}


def test_gradients_of_maxtext_stand_whole_since_their_norm_is_clipped() -> None:
    """base.yml: gradient_clipping_threshold 1.0 and grad_dtype float32: 4 bytes of a parameter, over the shard."""
    found = bill(LLAMA_3_8B, "8xh200-sxm", "maxtext", batch=64)
    total = parameters(LLAMA_3_8B).total
    assert isclose(items(found)["gradients"], 4 * total / 8)
    assert isclose(found.memory.unsharded_state_bytes, 16 * total)
    assert isclose(items(bill(LLAMA_3_8B, "8xh200-sxm", "maxtext", zero=0))["gradients"], 4 * total)


def test_a_fix_names_a_few_values() -> None:
    few = broken(bill(LLAMA_3_8B, "8xh200-sxm", "fsdp2", pp=8, batch=3))["LAY015"]
    assert few.fix == "--batch 8 or 9 or 10"
    assert broken(bill(LLAMA_3_8B, "8xh200-sxm", batch=62))["BAT001"].fix == "--batch 48 or 56 or 64 or 72"


# --- bytes and buffers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "whole", "shared"), [("fp16", 4, 18), ("bf16", 8, 12)])
def test_megatron_deepspeed_keeps_4_and_18_over_d_bytes_in_fp16_and_8_and_12_over_d_in_bf16(
    precision: str, whole: int, shared: int
) -> None:
    """BLOOM's runs of 2022: ZeRO-1 in fp16, and BF16_Optimizer."""
    for dp in (1, 4):
        found = bill(LLAMA_3_8B, f"{dp}xa100-sxm-80", "megatron_deepspeed", job={"precision": precision})
        per = found.memory.state_bytes / parameters(LLAMA_3_8B).total
        assert isclose(per, whole + shared / dp, rel_tol=1e-4)  # the vocabulary is padded


def test_a_replica_of_the_trainer_keeps_18_bytes_a_parameter_and_4_more_for_the_buckets_of_data_parallelism() -> None:
    """transformers, "model training anatomy": mixed-precision AdamW is 6 + 8 + 4 bytes; torch DDP copies gradients."""
    for cards, per in ((1, 18), (8, 22)):
        found = items(bill(LLAMA_3_8B, f"{cards}xh200-sxm", "hf_trainer"))
        held = sum(found.get(name, 0) for name in ("weights", "gradients", "optimizer", "copies"))
        assert held == per * parameters(LLAMA_3_8B).total
    assert "copies" not in items(bill(LLAMA_3_8B, "8xh200-sxm", "hf_trainer", zero=3))
    assert "copies" not in items(bill(LLAMA_3_8B, "1xh200-sxm", "hf_trainer", job={"precision": "fp32"}))


@pytest.mark.parametrize(
    ("axes", "size"),
    [
        ({"zero": 0}, 0),
        ({"zero": 2, "overlap_dp": False}, 5e8 * 2),
        ({"zero": 2}, 2 * 5e8 * 2),
        ({"zero": 3}, 2 * 5e8 * 2),
        ({"zero": 1, "pp": 2}, 5e8 * 2),
    ],
)
def test_deepspeeds_reduce_bucket_is_5e8_gradients_and_twice_that_where_one_is_sent_while_one_fills(
    axes: dict[str, Any], size: float
) -> None:
    """reduce_bucket_size 5e8, doubled by overlap_comm: 2 GB in bf16."""
    assert items(bill(LLAMA_3_8B, "8xh100-sxm", "deepspeed", **axes)).get("buckets", 0) == size
    assert "buckets" not in items(bill(LLAMA_3_8B, "8xh100-sxm", "megatron", zero=min(2, axes["zero"])))


def test_zero_3_of_qwen3_30b_holds_15_gb_on_each_of_4_cards_and_two_expert_groups_29_gb_of_experts() -> None:
    """modelscope/ms-swift issue 5615."""
    model = load_model("qwen3-30b-a3b")
    sharded = items(bill(model, "4xrtx4090", "deepspeed", zero=3))
    assert round(sharded["weights"] / GB, 1) == 15.3
    dealt, whole = (items(bill(model, "4xrtx4090", ep=ep, zero=1))["weights"] for ep in (2, 1))
    assert round((whole - dealt) / GB) == 29  # half of 58.0 GB of experts
    assert dealt > 24 * GB


def test_70_b_parameters_on_8_cards_do_not_follow_from_tp_8_and_pp_2_and_are_159_gb_a_card() -> None:
    """NVIDIA/Megatron-LM issue 1000."""
    found = bill(LLAMA_3_70B, "8xa100-sxm-80", tp=8, pp=2, seq=4096, recompute="full")
    assert broken(found)["LAY001"].got == "tp 8 x pp 2 = 16; the cluster has 8"
    assert round(found.memory.unsharded_state_bytes / 8 / GB) == 159
    assert round(found.memory.unsharded_state_bytes / 16 / GB, 1) == 79.4
    assert bill(LLAMA_3_70B, "16xa100-sxm-80", tp=8, pp=2, seq=4096, recompute="full").memory.verdict != "fits"


# --- what an engine does not have -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", engine_names())
@pytest.mark.parametrize(
    ("axis", "code"), [("tp", "LAY026"), ("cp", "LAY027"), ("pp", "LAY028"), ("ep", "LAY029"), ("etp", "LAY030")]
)
def test_an_axis_that_an_engine_does_not_have_is_refused_by_name(name: str, axis: str, code: str) -> None:
    found = broken(bill(MIXTRAL, "16xh100-sxm", name, **{axis: 2}))
    assert (code in found) == (axis not in engine(name).axes)
    if code in found:
        assert found[code].got == f"{axis} 2, {name}"
        assert found[code].legal_values == ("1",)


@pytest.mark.parametrize("name", ["deepspeed", "megatron_deepspeed"])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_deepspeed_refuses_a_pipeline_with_zero_2_or_3_and_says_why(name: str, zero: int) -> None:
    """deepspeedai/DeepSpeed issues 1110, 1629, 3589 and 4164; EleutherAI/gpt-neox issue 411."""
    found = broken(bill(LLAMA_3_8B, "16xh100-sxm", name, pp=4, zero=zero))
    assert ("LAY031" in found) == (zero >= 2)
    if zero >= 2:
        rule = found["LAY031"]
        assert "gradients accumulate over the micro-batches" in rule.rule
        assert rule.legal_values == ("0", "1")
    assert "LAY031" not in broken(bill(LLAMA_3_8B, "16xh100-sxm", name, zero=zero))


def test_a_search_leaves_out_pipelines_with_zero_2_and_3_and_counts_them_as_illegal() -> None:
    narrow: dict[str, Any] = {
        "tp": (1,), "cp": (1,), "vpp": (1,), "micro_batch": (1,), "sp": (False,), "recompute": ("none",),
        "offload_optimizer": (0.0,), "overlap_tp": (False,), "overlap_dp": (True,), "hybrid": (False,),
    }  # fmt: skip
    found = plan(LLAMA_3_8B, Job(2048, 64), load_cluster("16xh200-sxm"), "deepspeed", pp=(1, 2), **narrow)
    assert (found.search.space, found.search.legal, found.search.illegal) == (8, 6, 2)
    assert {(ranked.layout.pp, ranked.layout.zero) for ranked in found.best} == {(1, 1), (1, 2), (1, 3), (2, 0), (2, 1)}
    assert found.search.did_not_fit == 1  # replicated without a pipeline
    only = plan(LLAMA_3_8B, Job(2048, 64), load_cluster("16xh200-sxm"), "deepspeed", pp=(2,), zero=(3,), **narrow)
    assert (only.search.legal, [each.rule for each in only.rejected]) == (0, ["LAY031"])


def test_automatic_tensor_parallelism_of_deepspeed_stops_at_zero_2() -> None:
    """DeepSpeed's engine asserts it: AutoTP with stage 3 has not been validated."""
    legal = {zero: bill(LLAMA_3_8B, "8xh100-sxm", "deepspeed", tp=2, zero=zero).violations == () for zero in range(4)}
    assert legal == {0: True, 1: True, 2: True, 3: False}
    assert bill(LLAMA_3_8B, "8xh100-sxm", "deepspeed", tp=2).layout.zero == 2


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("deepspeed", {"ulysses"}), ("nanotron", {"ring"}), ("megatron", {"ring", "all_gather", "ulysses"})],
)
def test_context_parallelism_is_of_the_kinds_that_the_engine_has(name: str, kinds: set[str]) -> None:
    found = {
        kind
        for kind in ("ring", "all_gather", "ulysses")
        if "LAY034" not in broken(bill(LLAMA_3_8B, "8xh100-sxm", name, cp=2, cp_kind=kind))
    }
    assert found == kinds


# --- nanotron, MaxText, torch, Megatron -----------------------------------------------------------------------------


def test_nanotron_needs_as_many_key_value_heads_as_tp() -> None:
    """Its attention asserts it, beside heads that tp divides."""
    assert "LAY036" in broken(bill(LLAMA_3_8B, "16xh100-sxm", "nanotron", tp=16))
    assert "LAY036" not in broken(bill(LLAMA_3_8B, "16xh100-sxm", "nanotron", tp=8))
    assert "LAY003" in broken(bill(LLAMA_3_8B, "12xh100-sxm", "nanotron", batch=12, tp=3))


def test_nanotron_runs_1f1b_and_all_forward_all_backward_alone() -> None:
    orders = ("1f1b", "gpipe", "zb_h1", "zb_h2")
    legal = [
        name for name in orders if bill(LLAMA_3_8B, "4xh200-sxm", "nanotron", pp=4, schedule=name).violations == ()
    ]
    assert legal == ["1f1b", "gpipe"]
    refused = broken(bill(LLAMA_3_8B, "4xh200-sxm", "nanotron", pp=4, vpp=2))
    assert refused["LAY033"].got == "interleaved, nanotron"
    assert "1f1b" in refused["LAY033"].legal_values and "interleaved" not in refused["LAY033"].legal_values


@pytest.mark.parametrize(("micro_batches", "legal"), [(1, False), (6, False), (7, True), (8, True)])
def test_nanotrons_1f1b_on_8_stages_needs_7_micro_batches(micro_batches: int, legal: bool) -> None:
    """huggingface/nanotron issue 347: the assertion named an internal variable."""
    found = broken(bill(LLAMA_3_8B, "8xh100-sxm", "nanotron", batch=micro_batches, pp=8))
    assert ("LAY037" not in found) == legal
    if not legal:
        assert found["LAY037"].got == f"{micro_batches} micro-batches, 8 stages"
        assert "7" in found["LAY037"].legal_values


@pytest.mark.parametrize(
    ("pp", "vpp", "code"), [(4, 1, ""), (4, 2, ""), (3, 1, "LAY038"), (8, 8, "LAY038"), (2, 16, "")]
)
def test_maxtexts_stages_times_repeats_divide_the_layers(pp: int, vpp: int, code: str) -> None:
    cluster = f"{pp}xh200-sxm"
    found = broken(bill(LLAMA_3_8B, cluster, "maxtext", batch=4 * pp, pp=pp, vpp=vpp))
    assert set(found) == ({code} if code else set())


@pytest.mark.parametrize(("micro_batches", "legal"), [(4, True), (6, False), (8, True)])
def test_maxtexts_micro_batches_are_a_multiple_of_its_stages(micro_batches: int, legal: bool) -> None:
    found = broken(bill(LLAMA_3_8B, "4xh200-sxm", "maxtext", batch=micro_batches, pp=4, vpp=2))
    assert ("LAY039" not in found) == legal


def test_maxtexts_bubble_is_that_of_its_manual() -> None:
    """base.yml: (stages - 1) / (repeats x micro-batches + stages - 1)."""
    found = bill(LLAMA_3_8B, "4xh200-sxm", "maxtext", batch=8, pp=4, vpp=2, recompute="none")
    assert found.layout.schedule == "looped_bfs"
    assert isclose(found.bubble.share, 3 / (2 * 8 + 3))


@pytest.mark.parametrize(("micro_batches", "legal"), [(10, True), (3, True), (11, False), (8, True), (9, False)])
def test_torchs_interleaving_needs_whole_rounds(micro_batches: int, legal: bool) -> None:
    """pytorch/pytorch pull request 129597: on 4 stages 10 micro-batches make 2 rounds, and 3 make 1."""
    for name in ("fsdp2", "fsdp2-torchtitan"):
        found = broken(bill(LLAMA_3_8B, "4xh100-sxm", name, batch=micro_batches, pp=4, vpp=2))
        assert ("LAY014" not in found) == legal


def test_two_key_value_heads_are_copied_over_tp_8_from_megatron_core_0_16_on_and_refused_before() -> None:
    """modelscope/ms-swift issue 8219: num_query_groups (2) must be a multiple of tensor parallel (8)."""
    model = load_model("qwen3.5-397b-a17b")
    assert bill(model, "8xh100-sxm", "megatron", tp=8).violations == ()
    rule = broken(bill(model, "8xh100-sxm", "megatron-0.15", tp=8))["LAY004"]
    assert rule.got == "2 key/value heads, tp 8"
    assert rule.legal_values == ("1", "2")


def test_four_key_value_heads_allow_tp_4_before_0_16_and_not_tp_8() -> None:
    """modelscope/ms-swift issue 8219."""
    model = load_model("qwen3-vl-30b-a3b")
    refused = {tp: "LAY004" in broken(bill(model, "8xh100-sxm", "megatron-0.15", tp=tp)) for tp in (4, 8)}
    assert refused == {4: False, 8: True}


def test_46_layers_on_4_stages_need_a_split_and_64_cards() -> None:
    """modelscope/ms-swift issue 5737: GLM-4.5-Air with tp 8, pp 4, ep 16."""
    model = load_model("glm-4.5-air")
    axes: dict[str, Any] = {"tp": 8, "pp": 4, "ep": 16, "etp": 1, "micro_batch": 2}
    assert broken(bill(model, "64xh100-sxm", batch=16, **axes))["LAY009"].got == "46 layers / (4 x 1)"
    found = bill(model, "64xh100-sxm", batch=16, split=(11, 12, 12, 11), **axes)
    assert found.violations == ()
    assert (found.derived.dp, found.derived.micro_batches) == (2, 4)
    assert isclose(found.bubble.share, 3 / 7)
    assert "LAY002" in broken(bill(model, "32xh100-sxm", batch=16, split=(11, 12, 12, 11), **axes))
    assert broken(bill(model, "48xh100-sxm", batch=16, **axes)).keys() >= {"LAY001", "LAY009"}
    assert bill(model, "64xh100-sxm", batch=16, **(axes | {"pp": 2})).violations == ()


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_that_cannot_be_shared_is_refused_with_those_that_can() -> None:
    """mosaicml/examples pull request 41: 6 sequences on 4 ranks became 4 in silence."""
    rule = broken(bill(LLAMA_3_8B, "4xh100-sxm", "fsdp2", batch=6))["BAT001"]
    assert rule.got == "6 / (4 x 1) = 1.5"
    assert {"4", "8"} <= set(rule.legal_values) and "6" not in rule.legal_values


@pytest.mark.parametrize(("tp", "dp", "each"), [(1, 16, 4), (2, 8, 8), (4, 4, 16)])
def test_a_global_batch_is_shared_by_the_data_parallel_ranks_and_not_by_all_cards(tp: int, dp: int, each: int) -> None:
    """deepspeedai/DeepSpeed pull request 8395: 64 sequences on 16 cards."""
    found = bill(LLAMA_3_8B, "16xh100-sxm", "deepspeed", batch=64, tp=tp, zero=1, micro_batch=each)
    assert found.violations == ()
    assert (found.derived.dp, found.derived.micro_batches) == (dp, 1)


# --- the eight most common errors of Megatron -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "model", "on", "axes", "code"),
    [
        ("world and tp x pp x cp", LLAMA_3_8B, "12xh100-sxm", {"tp": 8}, "LAY001"),
        ("interleaving without a pipeline", LLAMA_3_8B, "8xh100-sxm", {"vpp": 2}, "LAY012"),
        ("heads and tp", load_model("qwen2.5-7b"), "8xh100-sxm", {"tp": 8}, "LAY003"),
        ("ep without experts", LLAMA_3_8B, "8xh100-sxm", {"ep": 2}, "LAY016"),
        ("world and etp x ep x pp", MIXTRAL, "4xh100-sxm", {"pp": 2, "ep": 4}, "LAY002"),
    ],
)
def test_the_most_common_errors_of_megatron_are_refused_each_with_its_own_code(
    what: str, model: Model, on: str, axes: dict[str, int], code: str
) -> None:
    """NVIDIA/Megatron-LM pull request 5768. The other three are two of number types, and one below."""
    assert code in broken(bill(model, on, batch=24, **axes)), what


def test_sequence_parallelism_without_tensor_parallelism_changes_nothing_as_in_megatron_and_is_said() -> None:
    """NVIDIA/Megatron-LM pull request 5768: Megatron warns, and turns it off."""
    on, off = (bill(LLAMA_3_8B, "8xh100-sxm", sp=sp) for sp in (True, False))
    assert on.violations == ()
    assert (on.memory.peak_bytes, on.step.seconds) == (off.memory.peak_bytes, off.step.seconds)
    assert any("sp without tp" in text for text in on.assumptions)
    assert not any("sp without tp" in text for text in off.assumptions)


# --- the page -------------------------------------------------------------------------------------------------------


ROWS = re.findall(r"^\|.*`(outlay count [^`]+)` \| (legal|not legal)(?: \((\w+)\))?", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("command", "answer", "code"), ROWS)
def test_every_command_of_the_page_is_answered_as_the_page_says(
    command: str, answer: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(shlex.split(command)[1:])
    printed = capsys.readouterr().out
    assert printed.startswith("NOT LEGAL") == (answer == "not legal")
    assert code in printed


def test_the_page_has_a_command_for_most_rules() -> None:
    assert len(ROWS) >= 6

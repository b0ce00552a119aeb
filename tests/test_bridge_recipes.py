"""The 1,242 recipe configurations that Megatron-Bridge publishes, each through the reader and the rules of a layout.

Facts: `bridge_recipes.csv`, from NVIDIA-NeMo/Megatron-Bridge scripts/performance/configs at r0.2 to r0.5 (containers
25.11 to 26.06), one line a distinct configuration, with the number of rows that it stands for. What a recipe sets in
code, beside these tables, is named here with its source.
"""

import csv
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from outlay.bill import case_of
from outlay.cluster.catalogue import clusters
from outlay.errors import InputError
from outlay.formats import bridge
from outlay.formats.setting import Found
from outlay.layout.rules import rules_of
from outlay.model.catalogue import find

FACTS = Path(__file__).parent / "bridge_recipes.csv"
MODELS = {  # the longest name that fits is a recipe's
    "LLAMA3_8B": "llama-3-8b", "LLAMA3_70B": "llama-3-70b", "LLAMA31_405B": "llama-3.1-405b",
    "DEEPSEEK_V3": "deepseek-v3", "DEEPSEEK_V4_PRO": "deepseek-v4-pro", "KIMI_K2": "kimi-k2",
    "QWEN3_235B_A22B": "qwen3-235b-a22b", "QWEN3_VL_235B_A22B": "qwen3-235b-a22b",
    "QWEN3_30B_A3B": "qwen3-30b-a3b", "QWEN3_VL_30B_A3B": "qwen3-vl-30b-a3b",
    "QWEN3_NEXT_80B_A3B": "qwen3-next-80b-a3b", "QWEN35_VL_35B_A3B": "qwen3.5-35b-a3b",
    "QWEN35_VL_397B_A17B": "qwen3.5-397b-a17b", "GPT_OSS_20B": "gpt-oss-20b", "GPT_OSS_120B": "gpt-oss-120b",
    "NEMOTRON_3_NANO": "nemotron-3-nano-30b-a3b", "NEMOTRONH_56B": "nemotron-h-56b",
}  # fmt: skip
# Models that the catalogue does not have: what holds without one is checked with another.
OTHERS = {"QWEN35_VL_122B_A10B": "qwen3.5-397b-a17b", "NEMOTRON_3_SUPER": "qwen3.5-397b-a17b", "WAN_14B": "llama-3-8b"}
WITHOUT_A_MODEL = {"LAY001", "LAY002", "LAY012", "LAY013", "LAY023", "BAT001"}
CARDS = {"GB300": "gb300", "GB200": "gb200", "B300": "b300", "B200": "b200", "H100": "h100-sxm"}
CARDS |= {"VR200": "gb300", "R100": "b300"}  # not on the market: their predecessors
PRECISIONS = {
    "_FP8_CS": "bf16_with_fp8_current_scaling_mixed", "_FP8_MX": "bf16_with_mxfp8_mixed",
    "_FP8_SC": "bf16_with_fp8_subchannel_scaling_mixed", "_NVFP4": "bf16_with_nvfp4_mixed",
}  # fmt: skip

# Set in code: recipes/deepseek/deepseek_v3.py and recipes/kimi/kimi_k2.py, layouts by stages and chunks.
BY_FOUR = "Et*4|(t*4|)*14t"
LAYOUTS = {(4, 1): "Et*16|t*16|t*16|t*13", (8, 1): "Et*8|(t*8|)*6t*5", (4, 2): "Et*8|(t*8|)*6t*5"}
LAYOUTS |= dict.fromkeys([(16, 1), (8, 2), (4, 4), (2, 8)], BY_FOUR) | {(8, 4): "Et|(tt|)*30"}
# recipes/llama/llama3.py, recipes/qwen/qwen3_moe.py, recipes/qwen_vl/qwen3_vl.py: both ends count as a layer.
ENDS_COUNT = ("LLAMA31_405B", "QWEN3_235B_A22B", "QWEN3_VL_235B_A22B")


@cache
def rows() -> list[dict[str, str]]:
    with FACTS.open() as file:
        return list(csv.DictReader(file))


def family_of(recipe: str) -> str:
    plain = recipe.lstrip("_")
    return max((name for name in (*MODELS, *OTHERS) if plain.startswith(name)), key=len)


def overrides(row: dict[str, str]) -> str:
    """The line that would start a recipe with the fields of a row: scripts/performance/utils/overrides.py."""
    family = family_of(row["recipe"])
    words = [
        *(f"model.{name}_parallel_size={row[key]}" for key, name in DEGREES.items() if row[key]),
        f"model.sequence_parallel={'true' if int(row['tp']) > 1 else 'false'}",
        f"train.global_batch_size={row['batch']}",
        f"train.micro_batch_size={row['micro']}",
        f"model.seq_length={8192 if 'LLAMA' in family else 4096}",
        f"mixed_precision={next((n for part, n in PRECISIONS.items() if part in row['recipe']), 'bf16_mixed')}",
        *(f"model.{name}={row[key].replace(' ', ',')}" for key, name in FIELDS.items() if row[key]),
    ]
    name = MODELS.get(family) or OTHERS[family]
    words += [f"model.moe_token_dispatcher_type={'flex' if row['flex'] else 'alltoall'}"] * has_experts(name)
    words += ["comm_overlap.overlap_moe_expert_parallel_comm=true"] * (row["overlap_ep"] == "1")
    words += ["ddp.use_megatron_fsdp=true", "ddp.data_parallel_sharding_strategy=optim_grads_params"] * bool(
        row["fsdp"]
    )
    words += ["model.cpu_offloading=true"] * bool(row["offload"])
    words += ["peft.dim=32"] * (row["peft"] == "lora" or "_LORA_" in row["recipe"])
    if row["modules"]:
        names = row["modules"].strip("[]").replace(" ", ",")
        words += ["model.recompute_granularity=selective", f"model.recompute_modules=[{names}]"]
    if row["recompute"]:
        words += ["model.recompute_granularity=full", "model.recompute_method=block"]
    layout = row["layout"]
    if not layout and family in ("DEEPSEEK_V3", "KIMI_K2") and row["pp"] != "1":
        layout = LAYOUTS[int(row["pp"]), int(row["vpp"] or 1)] + ("mL" if family == "DEEPSEEK_V3" else "L")
    words += [f"'model.pipeline_model_parallel_layout={layout}'"] * bool(layout)
    if family in ENDS_COUNT:
        words += [f"model.account_for_{end}_in_pipeline_split=true" for end in ("embedding", "loss")]
    recipe = f"{name.replace('-', '_').replace('.', '')}_pretrain_config"
    start = f"torchrun --nproc-per-node {row['gpus']} scripts/training/run_recipe.py --recipe {recipe}"
    return f"{start} {' '.join(words)}\n"


DEGREES = {
    "tp": "tensor_model", "pp": "pipeline_model", "cp": "context", "vpp": "virtual_pipeline_model",
    "ep": "expert_model", "etp": "expert_tensor",
}  # fmt: skip
FIELDS = {
    "flex": "moe_flex_dispatcher_backend", "graphs": "cuda_graph_impl", "offload": "cpu_offloading_num_layers",
    "recompute": "recompute_num_layers", "scope": "cuda_graph_scope",
}  # fmt: skip


def broken(row: dict[str, str], found: Found) -> list[str]:
    """The rules that a recipe breaks, by their codes and figures, with the layers of the recipe's own model."""
    family = family_of(row["recipe"])
    cards = re.findall("|".join(CARDS), row["recipe"])[0]
    (cluster,) = clusters(f"{row['gpus']}x{CARDS[cards]}")
    assert found.model is not None
    try:
        case, _ = case_of(found.model, found.job, cluster, found.layout, "megatron")
    except InputError as error:
        return [f"{fault.code} {fault.what}" for fault in error.faults]
    rules = [rule for rule in rules_of("megatron") if not bool(rule.legal(case))]
    known = family in MODELS
    return [f"{rule.code} {rule.got(case)}" for rule in rules if known or rule.code in WITHOUT_A_MODEL]


@cache
def read_text(text: str) -> Found:
    return bridge.read(text.encode())


@cache
def has_experts(model: str) -> bool:
    return find(model).experts > 0


@cache
def read() -> tuple[tuple[dict[str, str], Found], ...]:
    return tuple((row, read_text(overrides(row))) for row in rows())


def test_every_recipe_of_megatron_bridge_is_read_whole() -> None:
    assert len(rows()) == 663 and sum(int(row["rows"]) for row in rows()) == 1242

    for row, found in read():
        at, job = found.layout, found.job
        said = [at.tp, at.pp, at.cp, at.vpp, at.ep, job.global_batch, at.micro_batch, found.ranks]
        told = [row[key] for key in ("tp", "pp", "cp", "vpp", "ep", "batch", "micro", "gpus")]
        experts = found.model is not None and found.model.experts > 0
        told[4] = told[4] if experts else "1"
        assert said == [int(one or 1) for one in told], row["recipe"]
        assert found.kept == () and found.missing == () and found.findings == (), row["recipe"]
        assert at.zero == (3 if row["fsdp"] else 1)
        assert (at.moe_dispatch == "deduplicated") == bool(row["flex"]) or not experts
        assert at.overlap_ep == (row["overlap_ep"] == "1")
        assert (job.adapter == "lora") == (row["peft"] == "lora" or "_LORA_" in row["recipe"])
        assert bool(at.offload_activations) == bool(row["offload"])
        whole = row["graphs"] == "full_iteration" or (row["graphs"] == "local" and row["scope"] == "full_iteration")
        assert at.graphs == ("full" if whole else "partial" if row["graphs"] not in ("", "none") else "none")


def test_recipes_that_break_a_rule_are_those_whose_layers_nothing_shares_out() -> None:
    """megatron-core refuses them too: `num_layers should be divisible by pipeline_model_parallel_size`, and with chunks
    by their product. The code of these recipes (scripts/performance/configs/qwen_vl/qwen35_vl_pretrain.py) gives
    neither a layout nor counts of the first and last stage, and 60 and 40 layers do not divide. The last one is legal:
    outlay has no word yet for the projections of DeepSeek-V4's compressed attention as a module that runs again."""
    wrong = defaultdict[str, int](int)
    families = defaultdict[str, set[str]](set)
    for row, found in read():
        for said in broken(row, found):
            wrong[said] += int(row["rows"])
            families[said].add(family_of(row["recipe"]))

    assert wrong == {
        "LAY009 60 layers / (8 x 1)": 6,
        "LAY009 60 layers / (8 x 4)": 10,
        "LAY009 40 layers / (2 x 12)": 4,
        "RCP002 mla_up_proj: the model has no such module": 1,
    }
    unknown = sum(int(row["rows"]) for row in rows() if family_of(row["recipe"]) in OTHERS)
    assert (unknown, 1242 - sum(wrong.values()) - unknown) == (59, 1162)
    assert set.union(*families.values()) == {"QWEN35_VL_397B_A17B", "QWEN35_VL_35B_A3B", "DEEPSEEK_V4_PRO"}


def test_without_what_recipes_set_in_code_outlay_refuses_more() -> None:
    """The ends that count as a layer, and the layouts of DeepSeek-V3 and Kimi K2, are what makes 94, 126 and 61 layers
    divide: a reader that left them out would call those recipes illegal."""
    for recipe, layers in (("LLAMA31_405B_B200_BF16_BASE_CONFIG", 126), ("DEEPSEEK_V3_GB300_BASE_CONFIG", 61)):
        row = next(row for row in rows() if row["recipe"] == recipe)
        text = re.sub(r"model.account\S+|'model.pipeline_model_parallel_layout\S+", "", overrides(row))

        assert [one.split(" /")[0] for one in broken(row, bridge.read(text.encode()))] == [f"LAY009 {layers} layers"]

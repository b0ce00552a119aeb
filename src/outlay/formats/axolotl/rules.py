"""What axolotl refuses, by its AxolotlInputConfig or when it starts, and what does not do what it seems to."""

from typing import Any

from ...layout.axes import Layout
from ..fine_tuning.reading import Reading
from ..fine_tuning.sharding import Sharding

CHECKPOINTING = ("true", "false", "none", "offload", "offload_disk")
SHORT = {"flash": "flash_attention_2", "flex": "flex_attention", "sdp": "sdpa"}
FLASH = "flash_attention_2"


def check(read: Reading, shared: Sharding, layout: Layout, micro: Any) -> None:
    """Every finding in a file that has been read."""
    _batch(read)
    _sharding(read, shared, layout)
    _adapters(read)
    _optimizer(read, shared)
    _memory(read, shared)
    _attention(read, layout, micro)
    _precision(read)


def _batch(read: Reading) -> None:
    held = read.at.held
    if "batch_size" in held and "gradient_accumulation_steps" in held:
        rule, fix = "axolotl takes one of them", "gradient_accumulation_steps alone"
        what = "both gradient_accumulation_steps and batch_size are given"
        read.find("AXO001", "batch_size", what, rule, "both", fix)


def _sharding(read: Reading, shared: Sharding, layout: Layout) -> None:
    if read.has("deepspeed") and (read.has("fsdp") or read.has("fsdp_config")):
        serious = read.has("fsdp")
        rule = "deepspeed and fsdp cannot be used together" + ("" if serious else "; fsdp_config is let through")
        read.find(
            "AXO003",
            "deepspeed",
            "DeepSpeed and FSDP are both asked for",
            rule,
            "both",
            "leave one of them out",
            serious,
        )
    shards = layout.dp_shard or 1
    if shards > 1 and not shared.fsdp:
        rule = "dp_shard_size needs fsdp_config: axolotl stops when it starts"
        read.find("AXO011", "dp_shard_size", "shards without FSDP", rule, f"dp_shard_size {shards}", "add fsdp_config")
    wrap = read.text("fsdp_config.auto_wrap_policy")
    if wrap == "SIZE_BASED_WRAP" and not read.has("fsdp_config.min_num_params"):
        rule, fix = "SIZE_BASED_WRAP needs fsdp_config.min_num_params", "min_num_params: 100000000"
        read.find("AXO010", "fsdp_config.auto_wrap_policy", "no size to wrap by is given", rule, wrap, fix)


def _adapters(read: Reading) -> None:
    kind, at = read.text("adapter").lower(), read.at
    four, eight = at.flag("load_in_4bit"), at.flag("load_in_8bit")
    if kind == "qlora" and (eight or not four):
        rule, fix = "adapter: qlora needs load_in_4bit: true, without load_in_8bit", "load_in_4bit: true"
        read.find(
            "AXO004", "adapter", "qlora without weights in 4 bit", rule, "8 bit" if eight else "no load_in_4bit", fix
        )
    if (not kind or kind == "none") and (four or eight):
        name = "load_in_4bit" if four else "load_in_8bit"
        rule, fix = "a model in 4 or 8 bit is trained with an adapter alone", "adapter: qlora"
        read.find("AXO004", name, f"{name} without an adapter", rule, "no adapter", fix)


def _optimizer(read: Reading, shared: Sharding) -> None:
    name = read.text("optimizer", "adamw_torch_fused")
    if "8bit" in name and shared.fsdp == 2 and name in ("adamw_8bit", "adamw_bnb_8bit"):
        rule = "FSDP2 does not go with bitsandbytes' 8-bit optimizers"
        read.find("AXO005", "optimizer", f"optimizer {name} under FSDP2", rule, name, "adamw_torch_8bit")
    if "8bit" in name and shared.fsdp == 1 and read.at.flag("fsdp_config.offload_params"):
        rule = "FSDP1 with offload_params does not go with 8-bit optimizers"
        read.find("AXO005", "optimizer", f"optimizer {name} under offload", rule, name, "adamw_torch_fused")
    if name == "muon" and (shared.engine == "deepspeed" or shared.fsdp == 1):
        rule = "Muon goes with DDP and FSDP2: neither DeepSpeed nor FSDP1"
        read.find("AXO005", "optimizer", "optimizer muon here", rule, name, "adamw_torch_fused, or fsdp_version: 2")


def _memory(read: Reading, shared: Sharding) -> None:
    said = read.text("gradient_checkpointing", "false").lower()
    if said not in CHECKPOINTING:
        rule = "gradient_checkpointing is true, false, offload or offload_disk"
        read.find("AXO009", "gradient_checkpointing", "gradient_checkpointing cannot be read", rule, said[:40], "true")
    if said.startswith("offload"):
        rule, fix = (
            "axolotl reads it as gradient_checkpointing: true with activation_offloading",
            "activation_offloading: true",
        )
        read.find("AXO009", "gradient_checkpointing", f"{said[:20]} is an old value", rule, said[:20], fix, False)
    if read.has("activation_offloading") and said in ("false", "none"):
        rule, fix = "activation_offloading needs gradient_checkpointing", "gradient_checkpointing: true"
        what = "activation_offloading without gradient_checkpointing"
        read.find("AXO006", "activation_offloading", what, rule, "gradient_checkpointing false", fix)
    if shared.fsdp == 2 and read.at.flag("load_in_4bit") and read.at.flag("fsdp_config.cpu_ram_efficient_loading"):
        rule = "FSDP2 cannot load weights in 4 bit on the first rank alone"
        path, fix = "fsdp_config.cpu_ram_efficient_loading", "cpu_ram_efficient_loading: false"
        read.find("AXO016", path, "cpu_ram_efficient_loading with load_in_4bit", rule, "true", fix)


def _attention(read: Reading, layout: Layout, micro: Any) -> None:
    named = read.text("attn_implementation")
    if named in SHORT:
        rule, fix = "axolotl takes the full names of attention alone", SHORT[named]
        read.find("AXO008", "attn_implementation", f"attn_implementation {named} is none", rule, named, fix)
    path = "context_parallel_size" if "context_parallel_size" in read.at.held else "sequence_parallel_degree"
    if (layout.cp or 1) > 1 and path in read.at.held:
        flash = named == FLASH or read.at.flag("flash_attention")
        if not flash:
            rule, fix = "ring attention needs attn_implementation: flash_attention_2", f"attn_implementation: {FLASH}"
            read.find("AXO007", path, "context parallelism without flash attention", rule, named or "not given", fix)
        if read.at.flag("sample_packing") and micro > 1:
            rule, fix = "with context parallelism and sample_packing, micro_batch_size is 1", "micro_batch_size: 1"
            read.find(
                "AXO007", "micro_batch_size", "packed sequences of several rows", rule, f"micro_batch_size {micro}", fix
            )


def _precision(read: Reading) -> None:
    brain = read.text("bf16", "auto").lower()
    if read.at.flag("fp16") and brain in ("true", "full"):
        rule = "axolotl turns fp16 off where bf16 is on"
        read.find("AXO012", "fp16", "fp16 has no effect beside bf16", rule, "both", "leave fp16 out", serious=False)

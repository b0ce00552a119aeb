"""Keys of MaxText that are read, and its words for what outlay has.

Source: src/maxtext/configs/base.yml and types.py of maxtext 0.2.5.
"""

from .mesh import AXES, OURS

_KEYS = """
    model_name per_device_batch_size gradient_accumulation_steps max_target_length steps dtype weight_dtype grad_dtype
    mu_dtype quantization opt_type remat_policy decoder_layer_input optimizer_memory_host_offload
    parameter_memory_host_offload shard_optimizer_over_data context_parallel_strategy context_parallel_load_balance
    num_layers_per_pipeline_stage num_pipeline_repeats num_pipeline_microbatches pipeline_parallel_layers
    pipeline_delay_activation_forwarding pipeline_fsdp_ag_once capacity_factor num_vocab_tiling hardware
    compile_topology compile_topology_num_slices attention use_tokamax_splash override_model_config scan_layers
    base_emb_dim base_num_query_heads base_num_kv_heads base_mlp_dim base_num_decoder_layers mtc_data_parallelism
"""
SIZES = (  # of a model, which stand over those of `model_name`
    "base_emb_dim", "base_num_query_heads", "base_num_kv_heads", "base_mlp_dim", "base_num_decoder_layers",
    "base_moe_mlp_dim", "num_experts", "num_experts_per_tok", "head_dim", "vocab_size",
)  # fmt: skip
KNOWN = frozenset((*_KEYS.split(), *(f"{kind}_{name}_parallelism" for kind in ("ici", "dcn") for name in AXES)))

OPTIMIZERS = {"adamw": "adam", "adam_pax": "adam", "sgd": "sgd", "muon": "muon"}
STATE = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
FORMATS = {  # quantization: the precision that is counted
    "": "", "te_no_quant": "", "fp8": "fp8", "fp8_full": "fp8", "nanoo_fp8": "fp8", "fp8_nanoo": "fp8",
    "fp8_gpu": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "te_fp8_delayedscaling": "fp8_delayed",
    "te_fp8_currentscaling": "fp8_tensorwise", "te_mxfp8": "mxfp8", "te_nvfp4": "nvfp4", "te_nvfp4_no_rht": "nvfp4",
}  # fmt: skip


def is_key(name: str) -> bool:
    """Whether a name is a key that is read."""
    return name in KNOWN


def field_of(name: str) -> str:
    """The field of ours that rests on a key; empty for a key that none rests on."""
    kind, _, axis = name.removesuffix("_parallelism").partition("_")
    if kind in ("ici", "dcn") and axis in OURS:
        return {"data": "dp_replicate", "fsdp": "dp_shard"}.get(OURS[axis], OURS[axis])
    return FIELDS.get(name, "")


FIELDS = {
    "model_name": "model", "per_device_batch_size": "micro_batch", "max_target_length": "sequence_length",
    "gradient_accumulation_steps": "global_batch", "remat_policy": "recompute", "quantization": "precision",
    "dtype": "precision", "opt_type": "optimizer", "num_pipeline_repeats": "vpp",
    "num_pipeline_microbatches": "global_batch",
}  # fmt: skip

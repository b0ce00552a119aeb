"""The keys of an Accelerate configuration, by section, and how a file is held.

Source: huggingface/accelerate 1.15.0, commands/config/config_args.py and commands/launch.py.
"""

from dataclasses import dataclass, field

from ..json_comments import Placed
from ..sections import Sections

_TOP = """
    compute_environment distributed_type mixed_precision use_cpu debug num_processes machine_rank num_machines gpu_ids
    main_process_ip main_process_port rdzv_backend same_network main_training_function enable_cpu_affinity fp8_config
    deepspeed_config fsdp_config parallelism_config megatron_lm_config mpirun_config downcast_bf16 tpu_name tpu_zone
    tpu_use_cluster tpu_use_sudo command_file commands tpu_vm tpu_env dynamo_config fp16 dynamo_backend
"""
TOP = frozenset(_TOP.split())  # the last two are of old releases, which are read into others
NOT_COUNTED = """
    compute_environment debug downcast_bf16 enable_cpu_affinity machine_rank main_training_function main_process_ip
    main_process_port rdzv_backend same_network gpu_ids tpu_name tpu_zone tpu_use_cluster tpu_use_sudo command_file
    commands tpu_vm tpu_env use_cpu
"""
_SECTIONS = {
    "fsdp_config": """
        fsdp_version fsdp_reshard_after_forward fsdp_auto_wrap_policy fsdp_transformer_layer_cls_to_wrap
        fsdp_min_num_params fsdp_offload_params fsdp_cpu_ram_efficient_loading fsdp_state_dict_type
        fsdp_activation_checkpointing fsdp_activation_checkpointing_offload fsdp_ignored_modules fsdp_sharding_strategy
        fsdp_backward_prefetch fsdp_forward_prefetch fsdp_use_orig_params fsdp_sync_module_states
    """,
    "deepspeed_config": """
        deepspeed_config_file zero_stage gradient_accumulation_steps gradient_clipping offload_optimizer_device
        offload_param_device offload_optimizer_nvme_path offload_param_nvme_path zero3_init_flag
        zero3_save_16bit_model deepspeed_multinode_launcher deepspeed_hostfile deepspeed_exclusion_filter
        deepspeed_inclusion_filter deepspeed_moe_layer_cls_names
    """,
    "megatron_lm_config": """
        megatron_lm_tp_degree megatron_lm_pp_degree megatron_lm_num_micro_batches megatron_lm_sequence_parallelism
        megatron_lm_recompute_activations megatron_lm_recompute_granularity megatron_lm_recompute_method
        megatron_lm_recompute_num_layers megatron_lm_use_distributed_optimizer megatron_lm_gradient_clipping
        megatron_lm_expert_model_parallel_size megatron_lm_expert_tensor_parallel_size
        megatron_lm_context_parallel_size megatron_lm_decoder_last_pipeline_num_layers
        megatron_lm_optimizer_cpu_offload megatron_lm_use_precision_aware_optimizer megatron_lm_use_custom_fsdp
        megatron_lm_overlap_cpu_optimizer_d2h_h2d megatron_lm_no_load_optim megatron_lm_no_save_optim
        megatron_lm_eod_mask_loss megatron_lm_attention_backend megatron_lm_attention_dropout
        megatron_lm_hidden_dropout megatron_lm_attention_softmax_in_fp32 megatron_lm_calculate_per_token_loss
        megatron_lm_use_rotary_position_embeddings
    """,
    "parallelism_config": """
        parallelism_config_dp_replicate_size parallelism_config_dp_shard_size parallelism_config_tp_size
        parallelism_config_cp_size parallelism_config_sp_size parallelism_config_cp_backend
        parallelism_config_cp_comm_strategy parallelism_config_sp_backend parallelism_config_sp_seq_length
        parallelism_config_sp_seq_length_is_variable parallelism_config_sp_attn_implementation
    """,
}
SECTIONS = {section: tuple(names.split()) for section, names in _SECTIONS.items()}
PREFIXES = {"fsdp_config": "fsdp_", "fp8_config": "fp8_", "dynamo_config": "dynamo_"}  # that a key may leave out
OF_TYPE = {"fsdp_config": "FSDP", "deepspeed_config": "DEEPSPEED", "megatron_lm_config": "MEGATRON_LM"}
ONE_EACH = tuple(f"MULTI_{one}" for one in ("CPU", "GPU", "NPU", "MLU", "SDAA", "MUSA", "XPU", "HPU", "NEURON"))
TYPES = ("NO", *ONE_EACH, "XLA", *OF_TYPE.values())
NEVER_READ = frozenset(
    (
        *NOT_COUNTED.split(), "fsdp_config.fsdp_transformer_layer_cls_to_wrap", "fsdp_config.fsdp_min_num_params",
        "fsdp_config.fsdp_cpu_ram_efficient_loading", "fsdp_config.fsdp_state_dict_type",
        "fsdp_config.fsdp_sync_module_states", "deepspeed_config.gradient_clipping", "deepspeed_config.zero3_init_flag",
        "deepspeed_config.zero3_save_16bit_model", "megatron_lm_config.megatron_lm_gradient_clipping",
    )
)  # fmt: skip


@dataclass
class Held:
    """A configuration, what its type is, and what there is to say about it."""

    at: Sections
    kind: str = ""
    version: int = 1  # of FSDP
    bare: bool = False  # mixed_precision is the word no without quotes
    notes: list[str] = field(default_factory=list)


def no_switch(flat: dict[str, Placed]) -> dict[str, Placed]:
    """Paths whose value is the word no, which YAML takes for a switch where it stands without quotes."""
    bare = [path for path in ("distributed_type", "mixed_precision") if path in flat and flat[path].value is False]
    return flat | {path: Placed("no", flat[path].line, flat[path].column) for path in bare}


def named(flat: dict[str, Placed]) -> dict[str, Placed]:
    """Paths under their whole names: in some sections a key may leave its first part out."""
    made = dict[str, Placed]()
    for path, one in flat.items():
        section, dot, key = path.partition(".")
        prefix = PREFIXES.get(section, "")
        whole = key if not dot or key.startswith(prefix.rstrip("_")) else prefix + key
        made.setdefault(f"{section}{dot}{whole}", one)
    return made

"""Where Megatron-Bridge keeps what Megatron-LM has flags for: the section and the field of each.

Sources: NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/config.py (ConfigContainer), mixed_precision.py,
comm_overlap.py, and scripts/translate_mlm_to_bridge.py, which names the pairs.
"""

from collections.abc import Mapping

SECTIONS = (
    "model", "train", "ddp", "optimizer", "scheduler", "mixed_precision", "comm_overlap", "dataset", "checkpoint",
    "dist", "logger", "tokenizer", "rng", "validation", "peft", "profiling", "rerun_state_machine", "ft",
    "straggler", "nvrx_straggler", "inprocess_restart", "tensor_inspect",
)  # fmt: skip

_MODEL = """
    num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels normalization
    position_embedding_type add_bias_linear add_qkv_bias qk_layernorm hidden_dropout attention_dropout window_size
    vocab_size max_position_embeddings
    multi_latent_attention q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim mtp_num_layers
    moe_router_topk moe_ffn_hidden_size moe_shared_expert_intermediate_size moe_shared_expert_gate moe_layer_freq
    moe_router_enable_expert_bias moe_router_score_function moe_grouped_gemm moe_token_dispatcher_type
    moe_flex_dispatcher_backend moe_expert_capacity_factor moe_pad_expert_input_to_capacity
    tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size expert_model_parallel_size
    expert_tensor_parallel_size sequence_parallel pipeline_model_parallel_layout cp_comm_type
    account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split
    recompute_granularity recompute_method recompute_num_layers recompute_modules cuda_graph_impl
    cpu_offloading cpu_offloading_num_layers cpu_offloading_activations seq_length
    bf16 fp16 fp4_recipe fp8_recipe params_dtype experimental_attention_variant hybrid_layer_pattern
    hybrid_override_pattern heterogeneous_layers_config_path moe_latent_size
"""
_TRAIN = "micro_batch_size global_batch_size train_iters train_samples rampup_batch_size"
_DDP = "use_megatron_fsdp data_parallel_sharding_strategy num_distributed_optimizer_instances"
_OPTIMIZER = """
    optimizer sgd_momentum use_precision_aware_optimizer main_grads_dtype main_params_dtype exp_avg_dtype
    exp_avg_sq_dtype optimizer_cpu_offload optimizer_offload_fraction use_layer_wise_distributed_optimizer
"""
_DIFFERENT = {  # a field of Megatron-Bridge whose flag has another name
    "model.num_moe_experts": "num_experts",
    "model.gated_linear_unit": "swiglu",
    "model.virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "model.num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "model.num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "model.cuda_graph_scope": "cuda_graph_modules",
    "model.cuda_graph_modules": "cuda_graph_modules",
    "model.fp8": "fp8_format",
    "model.fp4": "fp4_format",
    "model.tp_comm_overlap": "tp_comm_overlap",
    "comm_overlap.tp_comm_overlap": "tp_comm_overlap",
    "model.overlap_moe_expert_parallel_comm": "overlap_moe_expert_parallel_comm",
    "comm_overlap.overlap_moe_expert_parallel_comm": "overlap_moe_expert_parallel_comm",
    "ddp.use_distributed_optimizer": "use_distributed_optimizer",
    "optimizer.use_distributed_optimizer": "use_distributed_optimizer",
    "ddp.overlap_grad_reduce": "overlap_grad_reduce",
    "comm_overlap.overlap_grad_reduce": "overlap_grad_reduce",
    "ddp.overlap_param_gather": "overlap_param_gather",
    "comm_overlap.overlap_param_gather": "overlap_param_gather",
    "dist.use_megatron_fsdp": "use_megatron_fsdp",
    "dist.use_torch_fsdp2": "use_torch_fsdp2",
    "dataset.seq_length": "seq_length",
    "dataset.sequence_length": "seq_length",
    "tokenizer.vocab_size": "vocab_size",
    "mixed_precision.fp8": "fp8_format",
    "mixed_precision.fp4": "fp4_format",
    "mixed_precision.fp8_recipe": "fp8_recipe",
    "mixed_precision.fp8_param_gather": "fp8_param_gather",
    "mixed_precision.bf16": "bf16",
    "mixed_precision.fp16": "fp16",
}
_APART = """
    model.share_embeddings_and_output_weights model.activation_func ddp.grad_reduce_in_fp32 mixed_precision
    mixed_precision.grad_reduce_in_fp32 mixed_precision.fp8_param train.num_epochs peft peft.dim
    peft.target_modules optimizer.bf16
"""
APART = frozenset(_APART.split())  # fields that are the other way round, or are looked at with others
_NOTHING = """
    model.pipeline_dtype model.moe_grouped_gemm checkpoint.ckpt_format optimizer.fp16 optimizer.params_dtype
    rerun_state_machine.check_for_nan_in_loss ddp.check_for_nan_in_grad model.delay_wgrad_compute
    comm_overlap.delay_wgrad_compute model.autocast_dtype ddp.average_in_collective mixed_precision.params_dtype
    mixed_precision.pipeline_dtype mixed_precision.fp4_recipe model.cpu_offloading_weights comm_overlap
    scheduler.lr_warmup_iters scheduler.lr_decay_iters
"""
NOTHING_TO_COUNT = frozenset(_NOTHING.split())
FLAGS: Mapping[str, str] = {
    **{f"model.{name}": name for name in _MODEL.split()},
    **{f"train.{name}": name for name in _TRAIN.split()},
    **{f"ddp.{name}": name for name in _DDP.split()},
    **{f"optimizer.{name}": name for name in _OPTIMIZER.split()},
    **_DIFFERENT,
}
PATHS: Mapping[str, str] = {flag: path for path, flag in reversed(tuple(FLAGS.items()))}  # the first one is written
FIELDS = frozenset((*FLAGS, *APART, *NOTHING_TO_COUNT))


def is_field(name: str) -> bool:
    """Whether a dotted name is a field that is read here, with or without the name of a configuration before it."""
    return plain(name) in FIELDS


def plain(name: str) -> str:
    """The dotted name from its section on: `cfg.model.transformer.x` is `model.x`."""
    parts = name.split(".")
    start = next((place for place, part in enumerate(parts[:3]) if part in SECTIONS), 0)
    return ".".join(part for part in parts[start:] if part != "transformer")

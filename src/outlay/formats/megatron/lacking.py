"""Values that Megatron-LM arguments rest on and the file does not hold, under the fields that can be given for them."""

from dataclasses import fields

from ...job import Job
from ...layout.axes import Layout
from ..setting import Missing

_OURS = """
    sp sequence_parallel
    recompute recompute_granularity recompute_activations recompute_method recompute_num_layers
    recompute_modules moe_layer_recompute
    graphs cuda_graph_impl cuda_graph_modules enable_cuda_graph external_cuda_graph
    zero use_distributed_optimizer use_layer_wise_distributed_optimizer data_parallel_sharding_strategy
    zero use_megatron_fsdp use_custom_fsdp use_torch_fsdp2 torch_fsdp2_no_reshard_after_forward
    cp_kind cp_comm_type
    moe_dispatch moe_token_dispatcher_type
    split pipeline_model_parallel_layout decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers
    split account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split
    overlap_tp tp_comm_overlap
    overlap_ep overlap_moe_expert_parallel_comm
    overlap_dp overlap_grad_reduce overlap_param_gather
    offload_optimizer optimizer_cpu_offload optimizer_offload_fraction
    offload_activations cpu_offloading cpu_offloading_num_layers cpu_offloading_activations
    sequence_length seq_length
    batch_rampup rampup_batch_size
    optimizer sgd_momentum
    precision bf16 fp16 fp4_format fp8_format fp8_recipe params_dtype mixed_precision
    gather_dtype fp8_param_gather
    gradient_dtype main_grads_dtype accumulate_allreduce_grads_in_fp32 grad_reduce_in_bf16
    master_dtype main_params_dtype use_precision_aware_optimizer
    moment_dtype exp_avg_dtype exp_avg_sq_dtype
    expert_capacity moe_expert_capacity_factor
    pad_to_capacity moe_pad_expert_input_to_capacity
"""
FIELDS = {name: line.split()[0] for line in _OURS.strip().splitlines() for name in line.split()[1:]}
FREE = ("train_iters", "train_samples")  # how long the run is may stay open
KEPT = {one.name for kind in (Layout, Job) for one in fields(kind)} | {"model"}


def in_our_fields(missing: list[Missing], notes: list[str]) -> list[Missing]:
    """What is to be given beside the file, once a field; the sizes of a model are its name."""
    found: dict[str, Missing] = {}
    for one in missing:
        if one.field in FREE:
            notes.append(f"how long the run is, is not read: {one.why}")
            continue
        field = FIELDS.get(one.field) or (one.field if one.field in KEPT else "model")
        found.setdefault(field, Missing(field, one.why))
    return [*found.values()]

"""LLaMA-Factory on Megatron-Core, by mcore_adapter: its arguments are those of megatron-core's classes.

Source: alibaba/ROLL mcore_adapter/src/mcore_adapter/training_args.py at 1bc12057.
"""

from dataclasses import replace
from typing import Any

from ...model.model import Model
from ..fine_tuning.reading import Reading, batched, found_of, sized
from ..megatron.layout import job_of, layout_of
from ..megatron.text import named
from ..setting import Found, Setting, Settings

_NAMES = """
    tensor_model_parallel_size pipeline_model_parallel_size sequence_parallel virtual_pipeline_model_parallel_size
    context_parallel_size expert_model_parallel_size expert_tensor_parallel_size
    account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split pipeline_model_parallel_layout
    overlap_p2p_comm variable_seq_lengths recompute_granularity recompute_method recompute_modules
    recompute_num_layers bias_activation_fusion apply_rope_fusion cross_entropy_loss_fusion moe_layer_recompute
    moe_token_dispatcher_type moe_aux_loss_coeff moe_grouped_gemm moe_expert_capacity_factor
    moe_pad_expert_input_to_capacity moe_token_drop_policy moe_shared_expert_overlap moe_enable_routing_replay
    moe_router_dtype mtp_num_layers calculate_per_token_loss micro_batch_size transformer_impl cuda_graph_impl
    cuda_graph_scope fp8_recipe fp8_param fp8_format use_flash_attn additional_configs
    accumulate_allreduce_grads_in_fp32 use_distributed_optimizer distrib_optim_fully_reshardable
    overlap_grad_reduce delay_grad_reduce overlap_param_gather check_for_nan_in_loss_and_grad
    ddp_average_in_collective ddp_bucket_size optimizer optimizer_cpu_offload optimizer_offload_fraction
    save_hf_model save_merged_model ckpt_format ckpt_d2h_non_blocking sequence_packing compile_warmup
"""
MEGATRON_KEYS = frozenset(_NAMES.split())
# Those by which the backend is known, where the file does not say use_mca.
SURE = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size")
UNCOUNTED = "bias_activation_fusion apply_rope_fusion overlap_p2p_comm moe_grouped_gemm variable_seq_lengths use_mca"


def is_megatron(read: Reading) -> bool:
    """Whether the arguments are of the Megatron backend."""
    return read.at.flag("use_mca") or any(name in read.at.held for name in SURE)


def megatron_of(read: Reading, framework: str, model: Model | None, micro: Any, steps: Any, length: Any) -> Found:
    """The same arguments as those of Megatron-Core, with the defaults of mcore_adapter."""
    settings = Settings(_settings(read, micro, length))
    experts = model is not None and model.experts > 0
    layout = layout_of(settings, model.layers if model else 0, experts, read.held.ranks, read.notes)
    job = job_of(settings, read.notes)
    read.at.faults += settings.faults
    read.at.findings += settings.findings
    read.missing += [one for one in settings.missing if one not in read.missing]
    read.at.asked.update(
        (*MEGATRON_KEYS & {*settings.asked}, *UNCOUNTED.split(), "virtual_pipeline_model_parallel_size")
    )
    if (layout.ep or 1) > 1:
        read.note("experts lie inside data parallelism: the batch is micro x accumulation x (ranks / (tp x pp x cp))")
    if read.text("finetuning_type", "lora").lower() != "full":
        read.note("adapters on the Megatron backend are not counted: all parameters are counted as trained")
    layout = sized(layout, read.held.ranks)
    batch, each = batched(read, micro, steps, layout)
    return found_of(read, framework, model, replace(job, global_batch=batch), layout, "megatron", each)


def _settings(read: Reading, micro: Any, length: Any) -> dict[str, Setting]:
    """Flat settings under the names of Megatron-LM's flags."""
    kept = (*MEGATRON_KEYS, "bf16", "fp16")
    found = []
    for name in kept:
        one = read.at.held.get(name)
        if one is not None and not isinstance(one.value, dict):
            texts = [each.value for each in one.value] if isinstance(one.value, list) else [one.value]
            values = tuple("" if text is None else f"{text}" for text in texts)
            found.append(Setting(name, values, one.line, one.column))
    read.at.asked.update(("bf16", "fp16"))
    told = {"micro_batch_size": f"{micro}", "seq_length": f"{length}"}
    if "expert_tensor_parallel_size" not in read.at.held:
        told["expert_tensor_parallel_size"] = "1"
    return named([*found, *(Setting(name, (value,)) for name, value in told.items())])

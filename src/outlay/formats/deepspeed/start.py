"""What DeepSpeed refuses when it starts, beside the numbers of the batch.

Checked against deepspeed 0.19.8: runtime/config.py (keys that were removed), runtime/zero/config.py (its fields; others
are forbidden), runtime/pipe/engine.py.
"""

from ...errors import nearest
from ...job import AUTO
from ..sections import Sections

REMOVED = (
    "nebula", "compression_training", "amp", "quantize_training", "sparse_gradients", "eigenvalue", "sparse_attention",
    "elasticity", "graph_harvesting", "curriculum_learning", "progressive_layer_drop",
    "zero_optimization.mics_shard_size", "zero_optimization.mics_hierarchical_params_gather",
    "zero_optimization.zeropp_loco_param",
)  # fmt: skip
_NAMES = """
    allgather_bucket_size allgather_partitions allgather_sequential compute_grad_norm contiguous_gradients
    cpu_offload cpu_offload_param cpu_offload_use_pin_memory elastic_checkpoint enable_sanity_checks
    gather_16bit_weights_on_model_save ignore_unused_parameters leaf_module legacy_stage1 load_from_fp32_weights
    log_trace_cache_warnings max_live_parameters max_reuse_distance memory_efficient_linear
    model_persistence_threshold module_granularity_threshold offload_optimizer offload_param overlap_comm
    override_module_apply param_persistence_threshold parameter_alignment pipeline_loading_checkpoint
    prefetch_bucket_size reduce_bucket_size reduce_scatter round_robin_gradients
    save_muon_momentum_buffer_in_memory stage stage3_allgather_sequential
    stage3_gather_16bit_weights_on_model_save stage3_gather_fp16_weights_on_model_save
    stage3_max_live_parameters stage3_max_reuse_distance stage3_model_persistence_threshold
    stage3_module_granularity_threshold stage3_param_persistence_threshold stage3_prefetch_bucket_size
    stage3_use_all_reduce_for_fetch_params sub_group_size use_all_reduce_for_fetch_params
    use_multi_rank_bucket_allreduce zenflow zero_hpz_partition_size zero_quantized_gradients
    zero_quantized_nontrainable_weights zero_quantized_weights
"""
ZERO = frozenset(_NAMES.split())
OLD = "zero_optimization.cpu_offload_params"  # a finding of its own


def at_the_start(at: Sections, ranks: int) -> None:
    """Keep what the start will refuse."""
    for path in REMOVED:
        if path in at.held:
            fix = _instead(at, ranks) if path == "elasticity" else "remove it"
            rule, what = f"DeepSpeed 0.19 stops at {path}", f"{path} was removed from DeepSpeed"
            at.find("DSP006", path, what, rule, path, fix, edits={path: None})
    _pipeline(at)
    for path in at.held:
        section, _, name = path.rpartition(".")
        if section == "zero_optimization" and name not in ZERO and path not in (*REMOVED, OLD):
            _unknown(at, path, name)


def _pipeline(at: Sections) -> None:
    stages, zero = at.count("pipeline.stages", 1), at.count("zero_optimization.stage", 0)
    if AUTO in (stages, zero) or stages <= 1 or zero < 2:
        return
    path, what = "zero_optimization.stage", f"a pipeline does not go with ZeRO-{zero}"
    rule = "DeepSpeed: with a pipeline, stage 0 or 1: gradients add up over the micro-batches, stage 2 would reduce"
    rule += " them in each, and stage 3 would gather the weights in each too"
    got, fix = f"{stages} stages, ZeRO-{zero}", '"stage": 1'
    at.find("DSP007", path, what, rule, got, fix, edits={path: "1"})


def _unknown(at: Sections, path: str, name: str) -> None:
    close = nearest(name, ZERO, 1)
    fix = f"did you mean {close[0]}?" if close else "remove it"
    rule = "DeepSpeed stops at a key of zero_optimization that it does not have"
    at.find("DSP008", path, f"zero_optimization has no {name[:40]}", rule, name[:60], fix)


def _instead(at: Sections, ranks: int) -> str:
    """The numbers that an elastic batch stands for: the data-parallel ranks share it, not all ranks."""
    batch = at.count("elasticity.max_train_batch_size", 0) or 0
    cut = at.count("elasticity.model_parallel_size", 1) or 1
    sizes = at.ask("elasticity.micro_batch_sizes")
    held = [one.value for one in sizes.value] if sizes and isinstance(sizes.value, list) else []
    micro = sorted(size for size in held if isinstance(size, int) and size > 0)
    if not batch or not ranks or ranks % cut:
        return "set the three numbers of the batch"
    copies = ranks // cut
    share, rest = divmod(batch, copies)
    fits = [size for size in micro if not rest and share % size == 0]
    said = f"{batch} / ({ranks} ranks / model parallel {cut}) = {batch / copies:.6g} a data-parallel rank"
    if not fits:
        return f"{said}, which none of {', '.join(map(str, micro)) or 'its micro-batches'} divides"
    return f'{said}: "train_batch_size": {batch}, "train_micro_batch_size_per_gpu": {fits[-1]}'

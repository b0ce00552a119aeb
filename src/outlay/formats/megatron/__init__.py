"""Megatron-LM arguments: read from a script, a log or YAML; written as a script with torchrun.

Checked against the parser of megatron-core 0.19.2.
"""

from ...engines.engine import MEGATRON
from ...errors import Fault, InputError
from ...job import AUTO
from ..setting import Found, Missing, Run, Settings, Written, fault
from ..source import text_of
from .lacking import in_our_fields
from .layout import job_of, layout_of
from .model import NEEDED, model_of
from .run_time import Said, at_run_time
from .start import at_the_start
from .text import LAUNCHER, hold
from .write import HELD, flags_of_run, launch_lines

RELEASE = "Megatron-LM with megatron-core 0.19"
ENGINE, ENGINES = "megatron", MEGATRON  # the usual one, and those whose runs it holds
COMMENTS = True
NOTHING_TO_COUNT = """
    world_size data_parallel_size rank local_rank params_dtype ckpt_format moe_grouped_gemm moe_router_score_function
    check_for_nan_in_loss_and_grad no_check_for_nan_in_loss_and_grad
"""
COMPUTED = frozenset((*NOTHING_TO_COUNT.split(), *LAUNCHER))  # what follows from other settings, or changes no count


def is_of(text: str) -> bool:
    """Whether a text names an argument of Megatron-LM."""
    return any(name in text.replace("-", "_") for name in KNOWN)


def read(content: bytes) -> Found:
    """What Megatron-LM arguments say. Raises InputError (FMT002, FMT003, FMT005) with line and column."""
    held = hold(text_of(content), KNOWN)
    settings, notes = Settings(held.settings), held.notes
    settings.asked.update(COMPUTED)
    if not any(name in KNOWN for name in held.settings):
        raise InputError(_nothing(held.form))
    model = model_of(settings, notes)
    experts = settings.number("num_experts") > 0
    layout = layout_of(settings, model.layers if model else 0, experts, held.ranks, notes)
    job = job_of(settings, notes)
    said = Said(settings, model, job, layout, held.ranks)
    at_the_start(said)
    layout = at_run_time(said)
    if settings.faults:
        raise InputError(*settings.faults)
    missing = in_our_fields(settings.missing, notes)
    if any(one.field == "model" for one in missing):
        model = None
    elif model is None:
        absent = [words for name, words in NEEDED.items() if name not in held.settings]
        missing.append(Missing("model", f"the file does not say {', '.join(absent) or 'its sizes'}"))
    elif not model.vocab:
        missing.append(Missing("model", "the file does not say the vocabulary, which the tokenizer brings"))
        model = None
    if job.sequence_length is AUTO and not any(one.field == "sequence_length" for one in missing):
        missing.append(Missing("sequence_length", "the file does not say --seq-length"))
    for one, meant in settings.misspelled(KNOWN):
        rule, fix = "a name that Megatron-LM does not have stops it", f"did you mean {meant}?"
        name = next(name for name, held_one in settings.held.items() if held_one is one)
        edits: dict[str, str | None] = {name: None} | ({} if meant in settings.held else {meant: " ".join(one.values)})
        settings.find("MEG005", name, f"{one.name} is not read", rule, one.text, fix, serious=False, edits=edits)
    return Found(
        ENGINE,
        held.form,
        model,
        job,
        layout,
        ENGINE,
        held.ranks,
        tuple(missing),
        settings.kept(),
        tuple(notes),
        tuple(settings.findings),
    )


def _nothing(form: str) -> Fault:
    rule = "some argument of Megatron-LM, such as --num-layers or --tensor-model-parallel-size"
    return fault(
        "FMT004", "nothing here is an argument of Megatron-LM", rule, f"read as {form}", "the launch script, or a log"
    )


def write(run: Run) -> Written:
    """The arguments as a script, with what they cannot say in its first comment."""
    flags, lost = flags_of_run(run)
    lines = ["#!/bin/bash", _comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in lost]
    lines += ["# Data, tokenizer, learning rate and length of the run are yours: add them behind the script's name."]
    before, after = launch_lines(run)
    lines += ["", *before, "", "ARGS=("]
    lines += ["  " + " ".join((one.name, *map(_quoted, one.values))) for one in flags]
    lines += [")", "", *after, ""]
    return Written("\n".join(lines), "pretrain.sh", tuple(lost), ())


def _comment(text: str) -> str:
    """A comment of one line, whatever a name in it holds: what stands behind a line's end would be run."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _quoted(value: str) -> str:
    plain = all(letter.isalnum() or letter in "._-/,+=" for letter in value)
    return value if plain and value else "'" + value.replace("'", "'\\''") + "'"


_NAMES = """
    microbatch_group_size_per_virtual_pipeline_stage
    accumulate_allreduce_grads_in_fp32 account_for_embedding_in_pipeline_split
    account_for_loss_in_pipeline_split add_bias_linear add_position_embedding add_qkv_bias attention_dropout
    bf16 context_parallel_size cp_comm_type cuda_graph_impl cuda_graph_modules data_parallel_sharding_strategy
    decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers decrease_batch_size_if_needed
    enable_cuda_graph eval_global_batch_size exp_avg_dtype
    exp_avg_sq_dtype expert_model_parallel_size expert_tensor_parallel_size external_cuda_graph ffn_hidden_size
    fp16 fp4_format fp4_recipe fp8_format fp8_param_gather fp8_recipe global_batch_size grad_reduce_in_bf16
    group_query_attention hidden_dropout hidden_size kv_channels kv_lora_rank main_grads_dtype main_params_dtype
    max_position_embeddings micro_batch_size moe_expert_capacity_factor moe_ffn_hidden_size moe_layer_freq
    moe_layer_recompute moe_pad_expert_input_to_capacity moe_router_enable_expert_bias moe_router_topk
    moe_shared_expert_gate moe_shared_expert_intermediate_size moe_token_dispatcher_type mtp_num_layers
    multi_latent_attention normalization num_attention_heads num_distributed_optimizer_instances num_experts
    num_layers num_layers_per_virtual_pipeline_stage num_query_groups num_virtual_stages_per_pipeline_rank
    optimizer optimizer_cpu_offload optimizer_offload_fraction overlap_grad_reduce
    overlap_moe_expert_parallel_comm overlap_param_gather padded_vocab_size pipeline_model_parallel_layout
    pipeline_model_parallel_size position_embedding_type q_lora_rank qk_head_dim qk_layernorm
    qk_pos_emb_head_dim quick_geglu rampup_batch_size recompute_activations recompute_granularity
    recompute_method recompute_modules recompute_num_layers seq_length sequence_parallel sgd_momentum swiglu
    tensor_model_parallel_size tp_comm_overlap train_iters train_samples untie_embeddings_and_output_weights
    use_distributed_optimizer use_layer_wise_distributed_optimizer use_megatron_fsdp use_precision_aware_optimizer
    use_rotary_position_embeddings
    use_torch_fsdp2 v_head_dim vocab_size window_size
"""
KNOWN = frozenset(_NAMES.split())

__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "KNOWN", "is_of", "read", "write"]

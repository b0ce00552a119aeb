"""A layout as overrides of Megatron-Bridge behind a recipe, and what they cannot say."""

from collections.abc import Iterator
from typing import TypeAlias

from ..leaving_out import cards_of
from ..megatron.model import pattern_of
from ..megatron.write import HELD as MEGATRON_HELD
from ..megatron.write import flags_of_run
from ..setting import Lost, Run, Setting, Written
from .names import PATHS

RELEASE = "Megatron-Bridge 0.6"
RECIPE = "vanilla_gpt_pretrain_config"  # its own: a GPT without settings of any model
HELD = MEGATRON_HELD | {"offload_activations"}
Overrides: TypeAlias = Iterator[tuple[str, str] | Lost]

# By a precision of ours: the name there, and whether its weights are gathered in 8 bit.
PRECISIONS = {
    "bf16": ("bf16_mixed", False), "fp16": ("fp16_mixed", False), "fp32": ("null", False),
    "fp8_delayed": ("bf16_with_fp8_delayed_scaling_mixed", True),
    "fp8_tensorwise": ("bf16_with_fp8_current_scaling_mixed", True),
    "fp8_blockwise": ("bf16_with_fp8_subchannel_scaling_mixed", False),
    "mxfp8": ("bf16_with_mxfp8_mixed", True), "nvfp4": ("bf16_with_nvfp4_mixed", False),
}  # fmt: skip
BY_NAME = ("bf16", "fp16", "fp8_format", "fp8_recipe", "fp4_format", "fp4_recipe", "fp8_param_gather")
WIDTHS = ("accumulate_allreduce_grads_in_fp32", "grad_reduce_in_bf16")
TYPED = ("main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
TORCH = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16", "fp8": "torch.uint8"}
BOTH = {  # beside the field itself: what has to agree with it
    "use_distributed_optimizer": ("optimizer.use_distributed_optimizer=true",),
    "use_megatron_fsdp": ("dist.use_megatron_fsdp=true", "ddp.average_in_collective=false"),
    "seq_length": ("dataset.seq_length={}",),
    "swiglu": ("model.activation_func=silu",),
}


def write(run: Run) -> Written:
    """A script that starts a recipe with these overrides, and with what they cannot say in its first comment."""
    made = [*_overrides(run)]
    lost = [one for one in made if isinstance(one, Lost)]
    words = [f"{one[0]}={one[1]}" for one in made if not isinstance(one, Lost)]
    own = all(one.path != "model" for one in lost)
    recipe = RECIPE if own else '"${RECIPE:?the recipe of the model}"'
    each, nodes = cards_of(run.cluster)
    lines = ["#!/bin/bash", _comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in lost]
    lines += ["# Data, tokenizer, learning rate and length of the run are yours: add them at the end."]
    lines += ["", f"NNODES={nodes}", f"GPUS_PER_NODE={each}", "", "OVERRIDES=("]
    lines += [f"  {_quoted(word)}" for word in words]
    lines += [
        ")",
        "",
        'torchrun --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" --node-rank "${NODE_RANK:-0}" \\',
        '  --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-6000}" \\',
        f'  scripts/training/run_recipe.py --recipe {recipe} "${{OVERRIDES[@]}}" "$@"',
        "",
    ]
    return Written("\n".join(lines), "pretrain_bridge.sh", tuple(lost), ())


def _comment(text: str) -> str:
    """A comment of one line, whatever a name in it holds: what stands behind a line's end would be run."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _quoted(word: str) -> str:
    plain = all(letter.isalnum() or letter in "._-=:/+" for letter in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


def _overrides(run: Run) -> Overrides:
    flags, lost = flags_of_run(run)
    held = {one.name.lstrip("-").replace("-", "_"): one for one in flags}
    offloaded = _offloaded_layers(run)
    gone = {"job.gather_dtype", "layout.offload_activations" if offloaded else ""}
    yield from (one for one in lost if one.path not in gone)
    for name, one in held.items():
        yield from _override(name, one, run)
    yield from _usual(run, held)
    yield from _precision(run, held)
    if offloaded:
        yield from (("model.cpu_offloading", "true"), ("model.cpu_offloading_num_layers", str(offloaded)))
        yield from (("model.cpu_offloading_activations", "true"), ("model.cpu_offloading_weights", "false"))


def _offloaded_layers(run: Run) -> int:
    """Layers whose activations leave, where the share is of whole layers; no pipeline and no recompute goes with it."""
    layers = run.layout.offload_activations * run.model.layers
    fits = run.layout.pp == 1 and run.layout.recompute == "none" and 0 < layers < run.model.layers
    return int(layers) if fits and layers == int(layers) else 0


def _override(name: str, one: Setting, run: Run) -> Overrides:
    """One flag as the field that it stands for."""
    value = ",".join(one.values)
    if name in (
        *BY_NAME,
        *WIDTHS,
        "group_query_attention",
        "no_check_for_nan_in_loss_and_grad",
        "overlap_param_gather",
    ):
        return
    if name == "disable_bias_linear":
        yield "model.add_bias_linear", "false"
    elif name == "untie_embeddings_and_output_weights":
        yield "model.share_embeddings_and_output_weights", "false"
    elif name == "moe_layer_freq":
        yield "model.moe_layer_freq", f"[{','.join(map(str, pattern_of(value) or ()))}]"
    elif name in ("recompute_modules", "cuda_graph_modules", "rampup_batch_size", "window_size"):
        yield PATHS[name], f"[{value}]"
    elif name in TYPED:
        yield PATHS[name], TORCH[value]
    elif name == "train_samples":
        yield from _length(run, int(value))
    elif name == "ckpt_format":
        yield "checkpoint.ckpt_format", value
    elif name == "cp_comm_type" or one.values:
        yield PATHS[name], value
    else:
        yield PATHS[name], "true"
    for beside in BOTH.get(name, ()):
        path, _, said = beside.format(value).partition("=")
        yield path, said


def _length(run: Run, samples: int) -> Overrides:
    """The length of the run in steps, of which a recipe has a number; in samples where the batch grows."""
    steps, rest = divmod(samples, run.job.global_batch)
    if not rest and not run.job.batch_rampup:
        yield "train.train_iters", str(steps)
        return
    yield from (("train.train_samples", str(samples)), ("train.train_iters", "null"))
    yield from (("scheduler.lr_warmup_iters", "0"), ("scheduler.lr_decay_iters", "null"))


def _usual(run: Run, held: dict[str, Setting]) -> Overrides:
    """What a recipe may have switched on, where the run has it off."""
    for name, paths in (
        ("use_distributed_optimizer", ("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer")),
        ("overlap_grad_reduce", ("ddp.overlap_grad_reduce",)),
    ):
        yield from ((path, "false") for path in paths if name not in held)
    yield "ddp.overlap_param_gather", "true" if "overlap_param_gather" in held else "false"
    if run.layout.graphs == "full":
        yield from (("rerun_state_machine.check_for_nan_in_loss", "false"), ("ddp.check_for_nan_in_grad", "false"))
    if run.layout.pp > 1 and run.job.precision == "fp32":
        yield "model.pipeline_dtype", "torch.float32"
    if run.layout.moe_dispatch == "deduplicated" and run.model.experts:
        yield "model.moe_flex_dispatcher_backend", "deepep"


def _precision(run: Run, held: dict[str, Setting]) -> Overrides:
    named, gathers = PRECISIONS.get(run.job.precision, PRECISIONS["fp8_delayed"])
    yield "mixed_precision", named
    if named == "null":
        yield from (("model.bf16", "false"), ("optimizer.bf16", "false"))
    if run.job.precision not in PRECISIONS:
        why = "its 8 bits have a named scaling: delayed is written"
        yield Lost("job.precision", f"(--precision {run.job.precision})", why)
    if gathers != (run.job.gather_dtype == "fp8"):
        why = f"{named} gathers weights in {'8' if gathers else '16'} bit"
        yield Lost("job.gather_dtype", f"(--gather-dtype {run.job.gather_dtype})", why)
    wide = [name for name in WIDTHS if name in held]
    if wide:
        why = f"{named} sums gradients in {'16' if wide == [WIDTHS[0]] else '32'} bit; in Python they can be named"
        yield Lost("job.gradient_dtype", f"(--gradient-dtype {run.job.gradient_dtype})", why)
        yield Lost("job.reduce_dtype", f"(--reduce-dtype {run.job.reduce_dtype})", "the same")

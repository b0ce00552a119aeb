"""What the Trainer refuses when its arguments are made or when it starts, and what does not do what it seems to."""

from collections.abc import Collection
from typing import Any

from ...errors import nearest
from ..fine_tuning.reading import Reading, misspelled_keys
from ..fine_tuning.sharding import Sharding, check_deepspeed

# Arguments of older releases. Source: transformers 5.24 and TRL 1.16, which have none of these names.
OLD = {
    "max_seq_length": "max_length", "evaluation_strategy": "eval_strategy", "no_cuda": "use_cpu",
    "warmup_ratio": "warmup_steps", "per_gpu_train_batch_size": "per_device_train_batch_size",
    "group_by_length": "train_sampling_strategy", "fsdp_transformer_layer_cls_to_wrap": "fsdp_config",
    "fsdp_min_num_params": "fsdp_config",
}  # fmt: skip

# What a reading puts beside the arguments of a call.
BESIDE = ("peft_config", "quantization_config", "parallelism_config", "model_name_or_path", "dtype")


def check(read: Reading, shared: Sharding, own: tuple[Any, Any, Any], names: tuple[Collection[str], ...]) -> None:
    """Every finding in arguments that have been read. `own`: micro-batch, accumulation and precision; `names`: of the
    Trainer with TRL, of TRL alone, and of scripts."""
    known, of_trl, of_scripts = names
    at = read.at
    if at.flag("fp16") and at.flag("bf16"):
        rule, fix = "at most one of fp16 and bf16 is true", "leave fp16 out"
        read.find("TRN001", "fp16", "both fp16 and bf16 are true", rule, "both", fix)
    _sharding(read, shared, own)
    if read.held.calls:
        _names(read, known, of_trl)
    else:
        rule = "transformers 5.24 with TRL 1.16 has no such argument; a script may have one"
        misspelled_keys(read, {*known, *of_scripts, *OLD}, "TRN009", rule)
        for path in OLD:
            if path in at.held:
                what, fix = f"{path} is of older releases", OLD[path]
                read.find("TRN009", path, what, rule, path, fix, serious=False)
    if "parallelism_config" in at.held and not read.held.calls:
        rule = "it is an object of Accelerate's class ParallelismConfig, which a file or a flag cannot make"
        fix = "make it in Python, or give PARALLELISM_CONFIG_TP_SIZE and the like to accelerate launch"
        read.find("TRN008", "parallelism_config", "parallelism_config is not an object", rule, "text", fix)


def _sharding(read: Reading, shared: Sharding, own: tuple[Any, Any, Any]) -> None:
    at = read.at
    if read.has("fsdp") and read.has("deepspeed"):
        rule = "the Trainer takes --fsdp or --deepspeed, not both"
        read.find("TRN006", "deepspeed", "DeepSpeed and FSDP are both asked for", rule, "both", "leave one of them out")
    if shared.engine == "deepspeed":
        check_deepspeed(
            read, "deepspeed", shared, dict(zip(("micro_batch", "steps", "precision"), own, strict=True)), "TRN005"
        )
    if read.has("fsdp_config") and not read.has("fsdp"):
        rule = "transformers reads fsdp_config where fsdp is true alone"
        read.find("TRN007", "fsdp_config", "fsdp_config has no effect", rule, "no fsdp", "fsdp: true", serious=False)
        at.asked.update(path for path in at.held if path.startswith("fsdp_config."))
    asked = at.flag("gradient_checkpointing") or at.flag("activation_checkpointing")
    if shared.reruns and asked:
        rule = "FSDP's activation_checkpointing and that of the Trainer cannot both be true"
        path = "fsdp_config.activation_checkpointing"
        fix = "leave out gradient_checkpointing"
        read.find("TRN004", path, "layers would be recomputed twice over", rule, "both", fix)
    for name in ("offload_params", "sharding_strategy"):
        path = f"fsdp_config.{name}"
        if shared.fsdp == 2 and read.has(path):
            fix = "cpu_offload: true" if name == "offload_params" else "reshard_after_forward: true or false"
            rule = f"the Trainer reads {fix.partition(':')[0]} there"
            read.find("TRN010", path, f"{name} has no effect", rule, read.text(path)[:40], fix, serious=False)


def _names(read: Reading, known: Collection[str], of_trl: Collection[str]) -> None:
    """Arguments of a call that its class does not have: Python stops there. Other classes than these two have more."""
    calls = read.held.calls
    if not {*calls} <= {"TrainingArguments", "SFTConfig"}:
        return
    has = {*known} - ({*of_trl} if "SFTConfig" not in calls else set())
    for path in [path for path in read.at.held if "." not in path and path not in (*has, *BESIDE)]:
        fix = OLD.get(path) or ("SFTConfig has it" if path in of_trl else "")
        close = nearest(path, has)
        fix = fix or (f"did you mean {close[0]}?" if close else "remove it")
        rule = "the class takes the arguments that it has alone: a TypeError"
        read.find("TRN009", path, f"{path[:40]} is not an argument of {calls[0]}", rule, path[:60], fix)

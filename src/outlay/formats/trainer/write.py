"""A layout as arguments of TRL's SFTTrainer in Python, which alone can hold ParallelismConfig, and what is lost."""

from collections.abc import Mapping
from typing import Any

from ..fine_tuning.adapters import bits_of, named_targets
from ..fine_tuning.models import name_on_hub
from ..fine_tuning.printing import comment
from ..fine_tuning.reading import OURS
from ..fine_tuning.writing import (
    Entries,
    Trainer,
    accumulation,
    all_lost,
    axis_losses,
    copies_lost,
    deepspeed_entries,
    fsdp_config,
    gathered,
    launch_of,
    memory_losses,
    packing_entries,
    type_losses,
)
from ..leaving_out import lost
from ..setting import Lost, Run, Written

RELEASE = "transformers 5.24 with TRL 1.16"
TRAINER = Trainer(
    "the Trainer",
    RELEASE,
    "torchrun --nnodes {nodes} --nproc-per-node {each} train.py",
    "Which tuning of the model, data, learning rate and length of the run are yours.",
    fsdp=("tp", "cp", "dp_replicate"),
    deepspeed=("tp", "cp", "ep", "etp"),
)
IMPORTS = {
    "ParallelismConfig": "from accelerate.parallelism_config import ParallelismConfig",
    "LoraConfig": "from peft import LoraConfig",
    "BitsAndBytesConfig": "from transformers import BitsAndBytesConfig",
    "SFTConfig": "from trl import SFTConfig",
}
EVERYTHING = "all-linear"


def write(run: Run) -> Written:
    """The arguments as a piece of Python, with what they cannot say in its first comments."""
    made, gone = gathered((*_model(run), *_task(run), *_cut(run), *_memory(run), *type_losses(run, _bare(run))))
    peft, more = gathered(_adapter(run))
    gone = all_lost(run, TRAINER, (*gone, *more))
    body = [f'MODEL = "{_plain(name_on_hub(run.model) or run.model.name)}"', *_call("args", "SFTConfig", made)]
    if peft:
        body += _call("peft_config", "LoraConfig", peft)
        bits = bits_of(run.job)
        if bits in (4, 8):
            body += _call("quantization_config", "BitsAndBytesConfig", _quantised(run, bits))
    trainer = "SFTTrainer(MODEL, args=args" + (", peft_config=peft_config" if peft else "") + ", train_dataset=...)"
    used = [line for name, line in IMPORTS.items() if any(f"{name}(" in line for line in body)]
    lines = [comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [comment(f"NOT IN THIS FILE: {one}") for one in gone]
    lines += [
        comment(f"launch: {launch_of(run, TRAINER.launch)}"),
        comment(TRAINER.yours),
        comment(f"then: {trainer}"),
        "",
    ]
    return Written("\n".join([*lines, *used, "", *body, ""]), "train.py", tuple(gone))


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() and letter not in "\"'\\")


def _call(name: str, called: str, made: Mapping[str, Any]) -> list[str]:
    """An assignment of a call, an argument a line."""
    return [f"{name} = {called}(", *(f"    {key}={_value(value)}," for key, value in made.items()), ")"]


def _value(value: Any) -> str:
    if isinstance(value, _Object):
        return f"{value.called}({', '.join(f'{key}={_value(one)}' for key, one in value.items())})"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_value(one)}' for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


class _Object(dict[str, Any]):
    """Arguments of a class that stand as an argument themselves."""

    def __init__(self, called: str, made: Mapping[str, Any]) -> None:
        super().__init__(made)
        self.called = called


def _model(run: Run) -> Entries:
    if not name_on_hub(run.model):
        yield Lost("model", run.model.name, "the catalogue has no id of the hub for it: MODEL is yours")


def _task(run: Run) -> Entries:
    job = run.job
    yield "max_length", job.sequence_length
    yield "per_device_train_batch_size", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", accumulation(run, TRAINER)
    if job.optimizer == "momentum":
        yield from (("optim", "sgd"), ("optim_args", "momentum=0.9"))
    elif job.optimizer in OURS:
        yield "optim", OURS[job.optimizer]
    else:
        yield lost(run, "optimizer", "it has no setting for it: adam is written")
    yield "bf16", job.precision not in ("fp16", "fp32")
    yield from [("fp16", True)] if job.precision == "fp16" else []
    if job.precision not in ("bf16", "fp16", "fp32"):
        yield lost(run, "precision", "fp8 is Accelerate's (mixed_precision fp8): bf16 is written")
    yield from packing_entries(run, "packing")
    kind = _loaded(run)
    yield from [("model_init_kwargs", {"dtype": kind})] if kind else []


def _loaded(run: Run) -> str:
    """The type that the weights are loaded in, where it is not TRL's fp32."""
    job = run.job
    if job.adapter != "none":
        half = "float16" if job.precision == "fp16" else "bfloat16"
        return half if job.frozen_format == "16bit" else ""
    bare = run.engine.name == "hf_trainer" and not run.layout.zero and job.precision == "bf16"
    return "bfloat16" if bare and job.master_dtype == "none" else ""


def _bare(run: Run) -> bool:
    return run.job.adapter == "none" and bool(_loaded(run))


def _adapter(run: Run) -> Entries:
    job = run.job
    if job.adapter == "none":
        return
    yield "r", job.adapter_rank
    yield "target_modules", named_targets(run) or EVERYTHING
    yield from [("use_dora", True)] if job.adapter == "dora" else []
    yield "task_type", "CAUSAL_LM"
    if not bits_of(job) and job.frozen_format != "32bit":
        yield lost(run, "frozen_format", "weights load in 32 or 16 bit, int8 or NF4")


def _quantised(run: Run, bits: int) -> dict[str, Any]:
    if bits == 8:
        return {"load_in_8bit": True}
    double = (run.job.frozen_format or "nf4_double") == "nf4_double"
    return {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": double}


def _cut(run: Run) -> Entries:
    at = run.layout
    if run.engine.name != "hf_trainer":
        yield from deepspeed_entries(run, TRAINER)
        if at.cp > 1:
            yield "parallelism_config", _Object("ParallelismConfig", {"sp_backend": "deepspeed", "sp_size": int(at.cp)})
        return
    if at.zero:
        yield from (("fsdp", True), ("fsdp_config", fsdp_config(run)))
    sizes = {"dp_replicate_size": at.dp_replicate, "dp_shard_size": at.dp_shard, "cp_size": at.cp, "tp_size": at.tp}
    copies = at.dp_replicate > 1 and not at.zero
    if at.tp > 1 or at.cp > 1 or (at.dp_replicate > 1 and not copies):
        sizes = {
            name: size for name, size in sizes.items() if not (copies or not at.zero) or not name.startswith("dp_")
        }
        made = {name: int(size) for name, size in sizes.items() if size > 1}
        yield "parallelism_config", _Object("ParallelismConfig", made)
    if copies:
        yield from copies_lost(run)
    if at.cp > 1 and at.cp_kind != "all_gather":
        yield lost(run, "cp_kind", "all-gather is its own; alltoall stands in cp_handler")
    yield from axis_losses(run, TRAINER.fsdp, "it has no such axis")


def _memory(run: Run) -> Entries:
    at = run.layout
    whole = at.recompute == "full"
    yield "activation_checkpointing", whole
    kwargs: dict[str, Any] = {}
    if whole and 0 < at.recompute_layers < run.model.layers:
        kwargs["every_n_layers"] = _every(run)
    if at.offload_activations == 1 and whole:
        kwargs["offload"] = True
    elif at.offload_activations:
        yield lost(run, "offload_activations", "all inputs of recomputed layers leave, or none")
    yield from [("activation_checkpointing_kwargs", kwargs)] if kwargs else []
    yield from memory_losses(run)


def _every(run: Run) -> int:
    """The n of which so many layers are every n-th."""
    layers, wanted = run.model.layers, run.layout.recompute_layers
    return next((n for n in range(2, layers + 1) if -(-layers // n) == wanted), 1)

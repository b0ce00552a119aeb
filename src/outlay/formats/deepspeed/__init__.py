"""DeepSpeed's JSON: read as people write it, with the launcher's line before or behind it; written as plain JSON.

Checked against deepspeed 0.19.8. What stands in code there, such as the model, its stages and its recompute, is said.
"""

from dataclasses import replace
from typing import Any, TypeAlias

from ...errors import InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ..sections import AUTO_TEXT, Sections
from ..setting import Found, Missing
from ..source import text_of
from .start import ZERO, at_the_start
from .text import KEYS, Held, hold
from .write import HELD, IN_CODE, sections_of, write

ENGINE, ENGINES = "deepspeed", ("deepspeed", "deepspeed-liger")  # the usual one, and those whose runs it holds
COMMENTS = False
OPTIMIZERS = {"adam": "adam", "adamw": "adam", "lion": "lion", "muon": "muon", "sgd": "momentum", "onebitadam": "adam"}
GRADIENTS: dict[str, Any] = {
    "fp32": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
}


def is_of(text: str) -> bool:
    """Whether a text is an object with keys of DeepSpeed."""
    keys = any(f'"{key}"' in text or f"'{key}'" in text for key in KEYS)
    return "{" in text and keys and not text.lstrip().startswith("#!")


def read(content: bytes) -> Found:
    """What a DeepSpeed configuration says. Raises InputError (FMT002, FMT003, FMT004, FMT005)."""
    return found_of(hold(text_of(content)))


def found_of(held: Held) -> Found:
    """What a configuration says, also where it is a section of another file. Raises InputError (FMT005)."""
    at, notes = held.sections, held.notes
    layout = _layout(at, held.ranks, notes)
    job = _job(at, layout, notes)
    batch, micro, missing = _batch(at, layout, held.ranks)
    at_the_start(at, held.ranks)
    if at.faults:
        raise InputError(*at.faults)
    job, layout = replace(job, global_batch=batch), replace(layout, micro_batch=micro)
    needed = [Missing("model", IN_CODE), Missing("sequence_length", IN_CODE)]
    notes.append("recompute (gradient checkpointing) is switched on in code: give --recompute where it is")
    ranks = held.ranks or _ranks(at, layout, batch, micro)
    return Found(
        ENGINE,
        held.form,
        None,
        job,
        layout,
        ENGINE,
        ranks,
        (*needed, *missing),
        tuple(at.kept()),
        tuple(notes),
        tuple(at.findings),
    )


def _layout(at: Sections, ranks: int, notes: list[str]) -> Layout:
    tp = at.count("tensor_parallel.autotp_size") or at.count("tensor_parallel.tp.tp_size") or 1
    cp, pp = at.count("sequence_parallel_size") or 1, at.count("pipeline.stages") or 1
    experts = at.switch("expert_parallel.enabled", bool(at.count("expert_parallel.autoep_size")))
    stage = at.count("zero_optimization.stage", 0)
    at.ask("zero_optimization.overlap_comm")
    overlap = at.switch("zero_optimization.overlap_comm", stage == 3)
    if stage is not AUTO and stage > 3:
        at.wrong("zero_optimization.stage", "0 to 3")
        stage = 3
    shared: dict[str, Any] = {} if not ranks or ranks % (tp * cp * pp) else {"dp_shard": ranks // (tp * cp * pp)}
    if ranks and not shared:
        what, rule = "the degrees do not make the launch", "tensor x sequence x pipeline divides the ranks"
        got, fix = f"{ranks} ranks / {tp * cp * pp}", "other degrees, or other nodes and cards"
        at.find("DSP005", "tensor_parallel.autotp_size", what, rule, got, fix)
    hpz = at.count("zero_optimization.zero_hpz_partition_size") or 1
    if hpz > 1:
        notes.append(f"zero_hpz_partition_size {hpz}: its second copy of the weights is not counted")
    return Layout(
        tp=tp,
        cp=cp,
        pp=pp,
        vpp=1,
        ep=(at.count("expert_parallel.autoep_size") or 1) if experts else 1,
        etp=(at.count("expert_parallel.expert_tensor_parallel_size") or 1) if experts else 1,
        cp_kind="ulysses",
        dp_replicate=1,
        **shared,
        zero=stage,
        schedule="1f1b",
        overlap_dp=overlap,
        offload_optimizer=_offloaded(at, "offload_optimizer", 1, stage),
        offload_parameters=_offloaded(at, "offload_param", 3, stage),
    )


OLD = {"offload_optimizer": ("cpu_offload",), "offload_param": ("cpu_offload_params", "cpu_offload_param")}


def _offloaded(at: Sections, name: str, least: int, stage: Any) -> Any:
    """The share that leaves the device, from a stage of ZeRO on, also under the names of old releases."""
    device = at.word(f"zero_optimization.{name}.device", "none")
    ratio = at.real(f"zero_optimization.{name}.ratio", 1.0)
    for also in OLD[name]:
        if at.flag(f"zero_optimization.{also}"):
            device = "cpu" if device == "none" else device
            rule, fix = "its name of today says which device", f'"{name}": {{"device": "cpu"}}'
            old, now = f"zero_optimization.{also}", f"zero_optimization.{name}"
            edits = {old: None} | ({} if now in at.held else {now: '{"device": "cpu"}'})
            refused = also not in ZERO
            at.find("DSP003", old, f"{also} is an old name", rule, also, fix, serious=refused, edits=edits)
    if device in ("cpu", "nvme") and stage is not AUTO and stage < least:
        rule, fix = f"DeepSpeed: {name} needs stage {least}", f'"stage": {least}, or leave it out'
        path, what = f"zero_optimization.{name}", f"{name} does nothing here"
        at.find("DSP004", path, what, rule, f"stage {stage}", fix, edits={path: None} if path in at.held else None)
    return AUTO if device == AUTO_TEXT else ratio if device in ("cpu", "nvme") else 0.0


def _job(at: Sections, layout: Layout, notes: list[str]) -> Job:
    half, brain = at.switch("fp16.enabled", False), at.switch("bf16.enabled", at.switch("bfloat16.enabled", False))
    if half is True and brain is True:
        at.wrong("fp16.enabled", "bf16 or fp16, not both")
    undecided = AUTO in (half, brain) and True not in (half, brain)
    if undecided:
        notes.append("bf16 and fp16 are auto: the trainer decides")
    if any(one.value == AUTO_TEXT for one in at.held.values()):
        path = next(path for path, one in at.held.items() if one.value == AUTO_TEXT)
        rule, fix = "the transformers Trainer or Accelerate fills it in; DeepSpeed by itself fails on it", "a number"
        at.find("DSP002", path, f'{path} is "auto"', rule, AUTO_TEXT, fix, serious=False)
    precision: Any = AUTO if undecided else "bf16" if brain else "fp16" if half else "fp32"
    name = at.word("optimizer.type", "adam")
    if name not in OPTIMIZERS:
        notes.append(f"optimizer {name} is not counted: read as adam")
    kinds = {each: at.word(f"data_types.{each}", "") for each in ("grad_accum_dtype",)}
    sent = at.word("communication_data_type", "")
    narrow = at.flag("bf16.bf16_master_weights_and_grads") or at.flag("fp16.fp16_master_weights_and_grads")
    moments = at.flag("bf16.bf16_optimizer_states")
    weights: Any = "fp16" if precision == "fp16" else "bf16"
    return Job(
        precision=precision,
        optimizer=OPTIMIZERS.get(name, "adam"),  # type: ignore[arg-type]
        master_dtype=weights if narrow else AUTO,
        moment_dtype=weights if narrow and moments else AUTO,
        gradient_dtype=weights if narrow else GRADIENTS.get(kinds["grad_accum_dtype"], AUTO),
        reduce_dtype=GRADIENTS.get(sent, AUTO if precision is AUTO else precision),  # that of training, by itself
    )


NUMBERS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
Batch: TypeAlias = tuple[Any, Any, list[Missing]]


def _batch(at: Sections, layout: Layout, ranks: int) -> Batch:
    """Global batch and micro-batch from the two of three numbers that are there, as DeepSpeed fills the third."""
    whole, micro, steps = (at.count(name, AUTO) for name in NUMBERS)
    dp = ranks // (layout.tp * layout.cp * layout.pp) if layout.dp_shard is not AUTO else 0
    if whole and micro and steps and dp and whole != micro * steps * dp:
        got = f"{whole} is not {micro} x {steps} x {dp} data-parallel ranks"
        rule, fix = " = ".join((NUMBERS[0], " x ".join((*NUMBERS[1:], "data-parallel ranks")))), "leave one of them out"
        made, rest = divmod(whole, micro * dp)
        edits = {NUMBERS[2]: str(made)} if made and not rest else None
        what = "the numbers of the batch do not multiply out"
        at.find("DSP001", NUMBERS[0], what, rule, got, fix, edits=edits)
    if whole is AUTO and micro and dp:
        whole = micro * (steps or 1) * dp
    if micro is AUTO and whole and dp:
        micro = whole // ((steps or 1) * dp) or AUTO
    if whole is AUTO and micro and steps and not dp:
        return (
            AUTO,
            micro,
            [Missing("global_batch", f"{micro} x {steps} x data-parallel ranks, which the file does not say")],
        )
    lacks = [name for name, value in zip(NUMBERS[:2], (whole, micro), strict=True) if value is AUTO]
    fields = {"train_batch_size": "global_batch", "train_micro_batch_size_per_gpu": "micro_batch"}
    auto = [Missing(fields[name], f'{name} is "auto" or absent') for name in lacks]
    return whole, micro, auto


def _ranks(at: Sections, layout: Layout, batch: Any, micro: Any) -> int:
    """Ranks that the three numbers of the batch stand for, where all are there."""
    steps = at.count("gradient_accumulation_steps", AUTO)
    if not (batch and micro and steps) or batch % (micro * steps):
        return 0
    return int(batch // (micro * steps) * layout.tp * layout.cp * layout.pp)


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "found_of", "is_of", "read", "sections_of", "write"]

"""torchtitan: read from a command line, a script, a function of its registry, or a job file of before; written as a
script with a command line, and with a function where options cannot say it.

Checked against torchtitan 0.3.0: its ConfigManager, ParallelDims and schedules.
"""

import re
from dataclasses import replace
from typing import Any

from ...errors import Fault, InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.catalogue import find
from ...model.model import Model
from ..setting import Found, Missing, fault
from ..source import short, text_of
from .command import read_command
from .function import read_function
from .held import HERE, Held
from .layout import GLOBAL, LOCAL, MICRO, job_of, layout_of
from .old import is_old, read_old
from .options import Options, is_option
from .rules import look
from .write import HELD, RELEASE, write

ENGINE = "fsdp2-torchtitan"
UNCOMPILED = "fsdp2-uncompiled"
ENGINES = (ENGINE,)  # that whose rules are its own; others of FSDP2 are held to them
COMMENTS = True
OPTION = re.compile(r"--(?:training|parallelism|compile|activation[-_]checkpoint)\.[a-z][\w-]+")
MODULE = re.compile(r"-m[ \t]+torchtitan\.train\b|--module[= ]\S+\s[^#]{0,400}?--config[= ]\S+")
FUNCTION = re.compile(r"\bTrainer\.Config\b|\bmodel_registry\(|\bfrom torchtitan\b")
DEFINED = re.compile(r"^def \w+\(.*\).*:\s*$", re.MULTILINE)
DECIDED = ("compile.backend", "parallelism.spmd_backend", "parallelism.context_parallel_load_balancer")


def is_of(text: str) -> bool:
    """Whether a text has options of torchtitan, a function of its registry, or two sections of its job files."""
    head = text[:200_000]
    return bool(OPTION.search(head) or MODULE.search(head) or _is_function(head) or is_old(head))


def _is_function(text: str) -> bool:
    return bool(FUNCTION.search(text) and DEFINED.search(text))


def _hold(text: str) -> Held:
    """The text in whichever form it is."""
    short(text)
    commands = OPTION.search(text) or MODULE.search(text) or HERE.search(text)
    if is_old(text) and not commands:
        return read_old(text)
    if _is_function(text) and not commands:
        return read_function(text)
    return read_command(text)


def read(content: bytes) -> Found:
    """What a torchtitan file says. Raises InputError (FMT002 to FMT005) with line and column."""
    held = _hold(text_of(content))
    if not held.options and held.base is None:
        raise InputError(_nothing(held.form))
    at = Options(held.options, own=held.own, unknown=held.unknown)
    at.asked.update(DECIDED)
    model = _model(at, held)
    layout = layout_of(at, held, model.layers if model else 0, model.experts > 0 if model else True)
    job = job_of(at, held)
    layout, job = _batch(at, layout, job, held)
    look(at, held, layout, model)
    if at.faults:
        raise InputError(*at.faults)
    missing = at.missing + ([] if model else [Missing("model", _no_model(held))])
    compiled = at.on("compile.enable") and "model" in (at.ask("compile.components") or _components(at)).plain()
    engine = ENGINE if compiled else UNCOMPILED
    if not compiled:
        held.notes.append("compile.enable is not on for the model: kernels are counted as they run without a compiler")
    return Found(
        ENGINE,
        held.form,
        model,
        job,
        layout,
        engine,
        held.ranks,
        tuple(missing),
        tuple(one for one in at.kept() if held.old or is_option(one.name)),
        tuple(held.notes),
        tuple(at.findings),
    )


def _components(at: Options) -> Any:
    from .held import placed

    return placed(at.taken("compile.components", ["model", "loss"]), 0, 0)


def _nothing(form: str) -> Fault:
    rule = "some option of torchtitan, such as --parallelism.tensor_parallel_degree"
    return fault("FMT004", "nothing here is an option of torchtitan", rule, f"read as {form}", "the launch script")


def _no_model(held: Held) -> str:
    named = held.asked or "the file names no configuration"
    return f"{named}: its sizes are in torchtitan's code"


def _model(at: Options, held: Held) -> Model | None:
    """The model of the configuration, or of the flavor that the file registers."""
    name = at.ask("model")
    known = name.value if name is not None else held.base.model if held.base else ""
    if held.base is None and not held.whole and not held.old and held.asked:
        held.notes.append(f"{held.asked} is not known: what it sets itself is read as torchtitan's own defaults")
    try:
        found = find(known) if known else None
    except InputError:
        return None
    if found is not None and found.mtp_layers:
        held.notes.append("its multi-token prediction is not trained unless a function asks for it: left out")
        found = replace(found, mtp_layers=0, mtp_blocks=())
    return found


def _batch(at: Options, layout: Layout, job: Job, held: Held) -> tuple[Layout, Job]:
    """Micro-batch and global batch: the local batch is one pass, or all micro-batches of one run of the pipeline."""
    local, whole = at.number(LOCAL, 8, "micro_batch"), at.number(GLOBAL, 0, "global_batch")
    part = at.number(MICRO, 1, "micro_batch")
    parts = at.count("parallelism.pipeline_parallel_microbatches", 0)
    steps = at.count("training.steps", at.taken("training.steps", 10_000))
    piped = (layout.pp or 1) > 1
    if piped and parts and local:
        part = max(1, local // parts)
    micro = part if piped else local
    dp = AUTO if layout.dp_shard is AUTO or layout.dp_replicate is AUTO else layout.dp
    if not whole and local and dp is not AUTO and GLOBAL not in at.unknown:
        whole = local * dp
    elif not whole:
        why = "training.global_batch_size is not set: local batch x data-parallel ranks, which the file does not say"
        one = Missing("global_batch", why)
        at.missing += [] if any(other.field == one.field for other in at.missing) else [one]
    if piped and whole and local and dp is not AUTO and dp and whole > local * dp:
        runs = whole // (local * dp)
        held.notes.append(f"the pipeline runs {runs} times a step, and fills and drains each time: counted as once")
    tokens = float(steps * whole * (job.sequence_length or 0)) if whole else 0.0
    said = "training.steps" in held.options  # those of the configuration are its authors'
    return replace(layout, micro_batch=micro or AUTO), replace(job, global_batch=whole or AUTO, tokens=tokens * said)


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]

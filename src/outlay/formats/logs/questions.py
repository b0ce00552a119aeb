"""The question in a log: the arguments that Megatron-LM printed, else what the lines of other frameworks say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...undivided import parameters
from .. import megatron
from ..dump import is_dump
from ..setting import Found, Missing
from .pace import Told, told_by
from .record import Log

ENGINES: Mapping[str, str] = {
    "neox": "megatron_deepspeed",
    "megatron_deepspeed": "megatron_deepspeed",
    "torchtitan": "fsdp2-torchtitan",
    "torchtune": "fsdp2",
    "nanotron": "nanotron",
    "picotron": "nanotron",
    "maxtext": "maxtext",
    "composer": "fsdp2-llm-foundry",
    "trainer": "hf_trainer",
    "deepspeed": "deepspeed",
}
OF_MEGATRON = ("megatron", "megatron_bridge", "megatron_deepspeed")  # whose arguments have Megatron-LM's names
AXES = ("pp", "dp_replicate", "dp_shard", "cp", "tp", "ep")
MOST = 10**9


def found_of(log: Log) -> Found:
    """What a log says of its run, in the form in which files of frameworks are read."""
    told = told_by(log)
    why = "the lines of steps do not say it"
    if holds_arguments(log):
        try:
            found = megatron.read(f"{log.dump}\n{_vocabulary(log)}".encode())
        except InputError as error:  # the log is then read as lines alone
            found, why = None, f"its arguments cannot be read: {error.faults[0].what}"
        if found is not None:
            engine = ENGINES.get(log.framework, found.engine)
            return replace(found, ranks=found.ranks or int(told.devices or 0), engine=engine)
    return Found(
        framework=log.framework,
        form="the lines of a log",
        model=None,
        job=_job(told),
        layout=_layout(log),
        engine=ENGINES.get(log.framework, "megatron"),
        ranks=_count(told.devices) or 0,
        missing=_missing(told, why),
    )


def holds_arguments(log: Log) -> bool:
    """Whether a log holds the arguments of Megatron-LM."""
    return log.framework in OF_MEGATRON and is_dump(log.dump)


def with_found(log: Log, found: Found) -> Log:
    """A log with what its arguments say of the model and the devices among its facts."""
    more: dict[str, float | str] = {}
    if found.model is not None:
        more["parameters"] = float(parameters(found.model).total)
    if found.ranks:
        more["devices"] = float(found.ranks)
    return replace(log, facts={**more, **log.facts})


def _vocabulary(log: Log) -> str:
    """The padded vocabulary, which is printed behind the arguments."""
    size = log.number("padded_vocabulary")
    return f"  padded_vocab_size ..... {size:.0f}\n" if size and "padded_vocab_size" not in log.dump else ""


def _count(value: float | None) -> int | None:
    return round(value) if value and 1 <= value <= MOST else None


def _job(told: Told) -> Job:
    length = told.sequence_length
    samples = told.samples or (told.tokens / length if told.tokens and length else None)
    return Job(sequence_length=_count(length) or AUTO, global_batch=_count(samples) or AUTO)


def _missing(told: Told, why: str) -> tuple[Missing, ...]:
    """What the lines leave open and a bill needs."""
    lacks = [Missing("model", why)]
    if not told.sequence_length:
        lacks.append(Missing("sequence_length", "the log does not say how long a sequence is"))
    if not told.samples and not (told.tokens and told.sequence_length):
        lacks.append(Missing("global_batch", "the log does not say how many sequences a step has"))
    return tuple(lacks)


def _layout(log: Log) -> Layout:
    """The mesh of torchtitan, the micro-batch of the Trainer."""
    known: dict[str, Any] = {name: value for name in AXES if (value := _count(log.number(name)))}
    if each := _count(log.number("micro_batch")):
        known["micro_batch"] = each
    return Layout(**known)

"""MODEL as several models, of which the largest that fits is sought: a list with commas, or the beginning of names."""

import os
from collections.abc import Sequence
from dataclasses import replace

from ..errors import Fault, quoted
from ..job import AUTO, Job
from ..model.catalogue import matching, names
from ..model.model import Model
from .flags import Given
from .question import Task, read_task
from .values import Faults

MOST_MODELS = 64
RULE = "--objective model takes one model, or several with commas between them, or how names of the catalogue begin"


def read_tasks(given: Given, objective: str, faults: Faults) -> list[Task]:
    """The question once for each model, the first one first; of all but --objective model, one."""
    text = given.text("model") or ""
    several = named(text)
    if objective != "model" or len(several) == 1:
        if "," in text and len(several) > 1:
            what = "several models for one plan"
            faults.add(Fault("PLN007", what, RULE, quoted(text), f"--objective model, or {several[0]}"))
            several = several[:1]
        return [read_task(_of(given, several[0]) if objective == "model" or "," in text else given, faults)]
    if len(several) > MOST_MODELS:
        fix = ",".join(several[:3])
        faults.add(Fault("PLN007", "too many models", f"{MOST_MODELS} or less", f"{len(several):,} models", fix))
        several = several[:1]
    return [read_task(_of(given, name), faults) for name in several]


def _of(given: Given, name: str) -> Given:
    return replace(given, values=given.values | ({"model": name} if name else {}))


def named(text: str) -> list[str]:
    """The models that a text names, each once. A file with a comma in its name is one model."""
    if os.path.exists(text) or "," not in text:
        return _beginning(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(name for part in parts for name in _beginning(part))) or [text]


def _beginning(part: str) -> list[str]:
    """A name or a path as it is; else the names of the catalogue that begin so, where there are any."""
    known = part.strip().lower()
    if not known or matching(known) == (known,) or os.sep in part or os.path.exists(part):
        return [part]
    return [name for name in names() if name.startswith(known)] or [part]


def one_sequence(job: Job, models: Sequence[Model]) -> tuple[Job, tuple[str, ...]]:
    """Models are compared at one sequence: where none was given, the shortest that they were trained with."""
    trained = [model.trained_length for model in models if model.trained_length]
    if len(models) < 2 or job.sequence_length is not AUTO or not trained:
        return job, ()
    length = min(trained)
    said = f"SEQUENCE {length:,} TOKENS FOR EVERY MODEL: THE SHORTEST THAT ONE OF THEM WAS TRAINED WITH (--seq)"
    return replace(job, sequence_length=length), (said,)

"""Several files of one run as one reading: field by field, with the files that they name and what is still missing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..job import AUTO, Job
from ..layout.axes import Layout
from .said import Said
from .setting import Found, Missing, Setting

DEEPSPEED, MEGATRON = "deepspeed", "megatron"
# What a reader puts where its file is silent: another file's word stands over it.
SILENT = (1, 0, 0.0, False, "none", "1f1b", "fp32", "adam", "ring", "ulysses", "all_gather", (), "usual")
NAMES_FILE = re.compile(
    r"""(?P<name>deepspeed_config_file|deepspeed_config|deepspeed|config_file|yaml[_-]cfg|fsdp_config)["']?"""
    r"""(?:[ \t]*[:=][ \t]*|[ \t]+)["']?(?P<path>[\w./~-]+\.(?:json|ya?ml))\b"""
)


@dataclass(frozen=True)
class Part:
    """One file of a run: its name, its text, what it says, and what it says of the quantities that all know."""

    title: str
    text: str
    found: Found
    said: tuple[Said, ...] = ()

    def value(self, quantity: str) -> Said | None:
        """The first word of this file on a quantity."""
        return next((one for one in self.said if one.quantity == quantity), None)


def in_order(parts: Sequence[Part]) -> list[Part]:
    """The files as their words weigh: a DeepSpeed file drives the run wherever Megatron-LM does not; else as given."""
    if any(part.found.framework == DEEPSPEED for part in parts):
        return sorted(parts, key=lambda part: part.found.framework != DEEPSPEED)
    return list(parts)


def joined(parts: Sequence[Part]) -> Found:
    """The files as one. What none of them says stays AUTO, or missing."""
    if len(parts) == 1:
        return parts[0].found
    order = in_order(parts)
    first = order[0].found
    layout = Layout(**dict(_fields(Layout, [part.found.layout for part in order])))
    job = Job(**dict(_fields(Job, [part.found.job for part in order])))
    ranks = _ranks(parts)
    layout = replace(layout, dp_shard=_shards(layout, ranks))
    job, layout = _batch(parts, job, layout, ranks)
    model = next((part.found.model for part in order if part.found.model), None)
    made = replace(first, form="several files", model=model, job=job, layout=layout, ranks=ranks)
    return replace(
        made,
        missing=tuple(_missing(parts, made)),
        kept=tuple(_kept(parts)),
        notes=tuple(f"{part.title}: {note}" for part in parts for note in part.found.notes),
        findings=tuple(one for part in parts for one in part.found.findings),
    )


def _fields(record: type, held: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each field from the first file that says it."""
    for field in fields(record):
        values = [value for one in held if (value := getattr(one, field.name)) is not AUTO]
        yield field.name, next((value for value in values if value not in SILENT), values[0] if values else AUTO)


def _ranks(parts: Sequence[Part]) -> int:
    """The ranks of the launch: of a file that is no DeepSpeed file, whose numbers only stand for them."""
    known = sorted(parts, key=lambda part: part.found.framework == DEEPSPEED)
    return next((part.found.ranks for part in known if part.found.ranks), 0)


def degrees_of(layout: Layout) -> int:
    """Ranks that hold one copy of the data."""
    return int((layout.tp or 1) * (layout.cp or 1) * (layout.pp or 1))


def _shards(layout: Layout, ranks: int) -> Any:
    each = degrees_of(layout) * (layout.dp_replicate or 1)
    return ranks // each if ranks and ranks % each == 0 else AUTO


def amount(parts: Sequence[Part], quantity: str) -> int:
    """A whole number that some file says, in the order of their words; 0 where none does."""
    said = [one for part in in_order(parts) if (one := part.value(quantity))]
    return next((int(one.value) for one in said if re.fullmatch(r"[1-9]\d{0,14}", one.value)), 0)


def _batch(parts: Sequence[Part], job: Job, layout: Layout, ranks: int) -> tuple[Job, Layout]:
    """The batch that micro-batch, accumulation and ranks of several files make."""
    micro, steps = (amount(parts, quantity) for quantity in ("micro-batch", "accumulation"))
    copies = ranks // degrees_of(layout)
    if layout.micro_batch in (AUTO, 1) and micro:
        layout = replace(layout, micro_batch=micro)
    if job.global_batch is AUTO and micro and copies:
        job = replace(job, global_batch=micro * (steps or 1) * copies)
    return job, layout


def _missing(parts: Sequence[Part], made: Found) -> Iterator[Missing]:
    """What no file says."""
    asked = set[str]()
    for one in (one for part in parts for one in part.found.missing):
        record = made.layout if hasattr(made.layout, one.field) else made.job
        lacks = made.model is None if one.field == "model" else getattr(record, one.field, AUTO) is AUTO
        if lacks and one.field not in asked:
            asked.add(one.field)
            yield one


def _kept(parts: Sequence[Part]) -> Iterator[Setting]:
    """Settings that no count reads, less those that are compared."""
    for part in parts:
        read = {(one.line, one.column) for one in part.said}
        yield from (one for one in part.found.kept if (one.line, one.column) not in read)


def named_files(part: Part) -> Iterator[tuple[str, int, int]]:
    """Other configurations that a file names, with their places; not what a comment or a variable says."""
    for line, text in enumerate(part.text.split("\n"), 1):
        plain = text.split("#")[0]
        for match in NAMES_FILE.finditer(plain):
            yield match["path"].rpartition("/")[2], line, match.start("name") + 1

"""A printed bill read back: the question it answered. Everything else in it is counted again."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..cluster.accelerator import Cluster
from ..engines.profile import Profile, unusable
from ..engines.tables import engine
from ..errors import Fault, InputError, quoted
from ..job import AUTO, Job
from ..layout.axes import Layout
from ..layout.complete import STATE, complete
from ..model.model import Model
from .text import safe

MOST_LAYERS, MOST_EXPERTS, MOST_RANKS, LARGEST = 10_000, 100_000, 10_000_000, 1e18
DIVISORS = ("heads", "kv_heads", "head_dim", "value_dim", "hidden", "vocab")  # sizes that 0 makes no sense of
PARTS = ("model", "job", "cluster", "layout", "engine")
TOGETHER = (("bytes_per_parameter", *STATE),)  # fields that one default fills


@dataclass(frozen=True)
class Asked:
    """One question, as a bill holds it."""

    model: Model
    job: Job
    cluster: Cluster
    layout: Layout
    engine: str
    assumptions: tuple[str, ...] = ()
    profile: Profile | None = None


def is_bill(value: object) -> bool:
    """Whether a JSON value says that outlay printed it."""
    return isinstance(value, Mapping) and str(value.get("schema", "")).startswith("outlay.")


def bill_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record itself, or the bill of a plan's best layout; where nothing fits, that of the smallest."""
    if record.get("schema") != "outlay.plan.1":
        return record
    best = record.get("best")
    first = best[0] if isinstance(best, list) and best else record.get("smallest")
    bill = first.get("bill") if isinstance(first, Mapping) else None
    if not isinstance(bill, Mapping):
        rule = "a plan stands for the bill of its best layout"
        fix = "outlay plan ... with a wider space, --json > plan.json"
        raise InputError(Fault("CFG004", "this plan holds no layout", rule, "no bill in best or smallest", fix))
    return bill


def restore(record: Mapping[str, Any]) -> Asked:
    """The question in a bill, or in a plan's best. Raises InputError with every field that cannot be read."""
    try:
        record = _printable(bill_of(record))
    except RecursionError:
        rule, fix = "a bill is what `outlay count --json` prints", "outlay count ... --json > bill.json"
        raise InputError(Fault("CFG004", "this is not a bill", rule, "too deep a nesting", fix)) from None
    missing = [name for name in PARTS if name not in record]
    if str(record.get("schema")) != "outlay.bill.1" or missing:
        got = f"schema {quoted(record.get('schema'))}" + (f", without {', '.join(missing)}" if missing else "")
        rule = "a bill is what `outlay count --json` prints, with schema outlay.bill.1"
        raise InputError(Fault("CFG004", "this is not a bill", rule, got, "outlay count ... --json > bill.json"))
    whole = record["model"].get("shape") if isinstance(record["model"], Mapping) else None
    faults: list[Fault] = []
    model = _read(Model, whole, "model.shape", faults)
    job, layout = _read(Job, record["job"], "job", faults), _read(Layout, record["layout"], "layout", faults)
    cluster = _read(Cluster, record["cluster"], "cluster", faults)
    if cluster is not None and not (cluster.accelerator.bf16_flops or cluster.accelerator.fp16_flops):
        faults.append(_fault("cluster.accelerator.bf16_flops", "bf16_flops or fp16_flops above 0", 0))
    if not isinstance(record["engine"], str):
        faults.append(_fault("engine", "a name", record["engine"]))
    profile = _read(Profile, record["profile"], "profile", faults) if "profile" in record else None
    faults += [_fault(*each) for each in unusable(profile)] if profile else []
    if model is not None and not _sound(model):
        faults.append(_fault("model.shape.pattern", "one index of `blocks` for each layer", len(model.pattern)))
    if faults:
        raise InputError(*faults)
    said = record.get("assumptions", [])
    notes = tuple(str(each) for each in said) if isinstance(said, list) else ()
    return Asked(model, job, cluster, layout, record["engine"], notes, profile)


def left_out(asked: Asked, given: Collection[str]) -> tuple[Job, Layout]:
    """The task and the layout without what the bill says it assumed, where the same would be assumed again.

    So their bill says it again too. A bill holds every field filled, and so does not tell which ones were left out;
    `given` are fields that were given since.
    """
    job, layout, driver = asked.job, asked.layout, engine(asked.engine)
    if not asked.assumptions:  # as of a file of a framework: nothing was said to be assumed
        return job, layout
    whole = complete(asked.model, job, asked.cluster, layout, driver)
    alone = [(field.name,) for cls in (Job, Layout) for field in fields(cls) if field.default is AUTO]
    for group in (*TOGETHER, *alone):
        if not set(group).isdisjoint(given):
            continue
        fewer, bare = _without(job, group), _without(layout, group)
        made = complete(asked.model, fewer, asked.cluster, bare, driver)
        said = set(made[2]) - set(whole[2])
        if made[:2] == whole[:2] and said and said <= set(asked.assumptions):
            job, layout, whole = fewer, bare, made
    return job, layout


def _without(record: Any, names: Collection[str]) -> Any:
    return replace(record, **{field.name: AUTO for field in fields(record) if field.name in names})


def _sound(model: Model) -> bool:
    kinds = range(len(model.blocks))
    return 0 < len(model.pattern) <= MOST_LAYERS and set(model.pattern) == set(kinds)


USUAL = ("fp8_share", "mxfp8_share", "fp4_share", "attention_back_share", "switch_share")


def _fault(path: str, rule: str, got: object) -> Fault:
    return Fault("CFG005", f"{path} of the bill cannot be used", rule, quoted(got), "print the bill again with --json")


def _read(kind: Any, value: Any, path: str, faults: list[Fault]) -> Any:
    """One record of the bill, checked field by field."""
    from pydantic import TypeAdapter, ValidationError

    try:
        made = TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            where = ".".join([path, *_place(each["loc"])])
            faults.append(_fault(where, each["msg"][:1].lower() + each["msg"][1:], each["input"]))
        return None
    faults += [_fault(where, rule, number) for where, rule, number in _outside(value, path)]
    return made


def _place(steps: tuple[Any, ...]) -> Iterator[str]:
    """The steps to a fault, without the kind of a part, which is no step in the file."""
    for place, step in enumerate(steps):
        if place < 2 or steps[place - 2] != "parts":
            yield str(step)


def _printable(value: Any) -> Any:
    """The same value, its texts without what would move a cursor: they are printed again."""
    if isinstance(value, Mapping):
        return {safe(str(key)): _printable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_printable(each) for each in value]
    return safe(value) if isinstance(value, str) else value


def _range(key: str) -> tuple[float, float, str]:
    """Least and most of a figure by its name, and both in words. A least of 0 that is left out is a tiny number."""
    if key in ("ranks", "size", "paths", "rails", "accelerators"):
        return 1, MOST_RANKS, f"a whole number from 1 to {MOST_RANKS:,}"
    if key in ("experts", "active"):
        return 0, MOST_EXPERTS, f"a whole number up to {MOST_EXPERTS:,}"
    if key in USUAL:
        return 0, 1, "a share, or 0 for what is usual"
    if key == "share" or key.endswith("_share"):
        return 1e-6, 1, "a share above 0, at most 1"
    if key == "pue" or key == "mtbf_seconds":
        return 1, LARGEST, "1 or more"
    if key.endswith("bandwidth"):
        return 1, LARGEST, "bytes a second, above 0"
    return (1, LARGEST, "1 or more") if key in DIVISORS else (0, LARGEST, "a finite number, 0 or more")


def _outside(value: Any, path: str) -> Iterator[tuple[str, str, float]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _outside(each, f"{path}.{key}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _outside(each, f"{path}.{index}")
    elif isinstance(value, int | float):
        least, most, rule = _range(path.rpartition(".")[2])
        if not least <= value <= most:  # also what is not a number
            yield path, rule, value

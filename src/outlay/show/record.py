"""Answers as records of plain values, for JSON. Equal bills give equal records, byte for byte."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from outlay import __version__

from ..bill import Bill
from ..holding import Item, Memory
from ..items import Step, TrafficItem
from ..measured import reached_of
from ..model.model import Model
from ..search.advice import Advice
from ..undivided import Parameters
from ..whole_run import goodput_of, run_of

if TYPE_CHECKING:
    from ..search.mixed.best import Mixes
    from ..search.split.best import Split

Record = dict[str, Any]


def plain(value: Any) -> Any:
    """A value as JSON knows it: records are objects, tuples are lists, and a number that is not finite is null."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    number = value.item() if hasattr(value, "item") else float(value)  # NumPy's numbers are not JSON's
    return None if isinstance(number, float) and not isfinite(number) else number


def dumps(record: Record) -> str:
    """The text of a record: one object, no NaN, no Infinity."""
    return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False)


def head(kind: str) -> Record:
    """What every record begins with."""
    return {"schema": f"outlay.{kind}.1", "version": __version__}


def whole(value: float) -> float:
    """A count without a needless decimal point."""
    return int(value) if isfinite(value) and value == int(value) else value


def items(parts: Iterable[Item], unit: str) -> list[Record]:
    """Named parts: `bytes` or `seconds`, with both ends of their bands; an exact part is its own band."""
    found = []
    for part in parts:
        exact = part.kind == "exact"
        low, high = (part.value, part.value) if exact else (part.low, part.high)
        found.append(
            {
                "name": part.name,
                unit: plain(part.value),
                "kind": part.kind,
                "low": plain(low),
                "high": plain(high),
                "band": None if exact else part.band or "assumed",
            }
        )
    return found


def memory(of: Memory) -> Record:
    """Memory of the worst rank, its parts, and every stage."""
    names = (
        *("unsharded_state_bytes", "state_bytes", "activation_bytes", "peak_bytes", "capacity_bytes", "usable_bytes"),
        *("allocated_bytes", "reserved_bytes", "device_bytes"),
    )
    return {name: plain(getattr(of, name)) for name in names} | {
        "verdict": of.verdict,
        "worst_rank": plain(of.worst_rank),
        "items": items(of.items, "bytes"),
        "ranks": plain(of.ranks),
    }


def step(of: Step) -> Record:
    """Time, rates and utilisation of one step; a layout that does not make its cluster has no utilisation."""
    made = {field.name: plain(getattr(of, field.name)) for field in fields(of)}
    shares = {name: made[name] if (made[name] or 0) <= 1 else None for name in ("mfu", "hfu")}
    return made | shares | {"items": items(of.items, "seconds")}


def traffic(of: tuple[TrafficItem, ...]) -> Record:
    """Bytes and seconds of each axis."""
    return {"items": plain(of)}


def model(of: Bill) -> Record:
    """The model of a bill."""
    return shape(of.model, of.parameters)


def shape(of: Model, owned: Parameters) -> Record:
    """The model's counts, and its whole shape, from which it can be read back."""
    counts = {"total": owned.total, "active": owned.active, "embedding": owned.embedding, "mtp": owned.mtp}
    return {"name": of.name, "parameters": counts, "shape": plain(of)}


def record(
    of: Bill, advice: Sequence[Advice] = (), split: "Split | None" = None, mixed: "Mixes | None" = None
) -> Record:
    """A whole bill, the ways to fit where it does not, and its split beside the engine's own cut."""
    made = head("bill") | {
        "model": model(of),
        "job": plain(of.job),
        "cluster": plain(of.cluster),
        "layout": plain(of.layout),
        "engine": of.engine.name,
        "memory": memory(of.memory),
        "step": step(of.step),
        "derived": {
            "dp": of.derived.dp,
            "edp": whole(of.derived.edp),
            "micro_batches": whole(of.derived.micro_batches),
        },
        "bubble": plain(of.bubble),
        "traffic": traffic(of.traffic),
        "saved": plain(of.saved),
        "binds": plain(of.binds),
        "violations": plain(of.violations),
        "assumptions": list(of.assumptions),
        "conventions": dict(of.conventions),
        **({"advice": [plain(each) for each in advice]} if advice else {}),
        **_split(split),
        **_mixed(mixed),
        **({"profile": plain(of.engine.profile)} if of.engine.profile else {}),
        **({"rampup": plain(of.rampup)} if of.rampup else {}),
        **({"offload": plain(of.offload)} if of.offload else {}),
        **({"loading": plain(of.loading)} if of.loading else {}),
        **{name: plain(found) for name, found in _whole(of).items() if found},
    }
    made["assumptions"] += [f"{path} is null: it has no meaning here" for path in unknown(made)]
    return made


def _split(of: "Split | None") -> Record:
    if of is None:
        return {}
    from .split import split_record

    return {"split": split_record(of)}


def _mixed(of: "Mixes | None") -> Record:
    if of is None:
        return {}
    from .mixed import mixed_record

    return {"mixed": mixed_record(of)}


def _whole(of: Bill) -> Record:
    """The whole run, what failures leave of it, and what was measured: each where the question says enough."""
    return {"run": run_of(of), "goodput": goodput_of(of), "measured": reached_of(of)}


def table(bills: Iterable[Bill], advised: Bill | None = None, advice: Sequence[Advice] = ()) -> Record:
    """Several bills of one job: a scaling table; advice stands in the row that it is of."""
    return head("bills") | {"rows": [record(bill, advice if bill is advised else ()) for bill in bills]}


STORAGE = ("storage_bandwidth", "write_seconds", "read_seconds", "needed_bandwidth", "accelerator_bytes")
RUN = ("dollars", "band_dollars", "energy_kwh", "band_energy_kwh", "run", "failures")
SITE = ("mtbf_seconds", "restart_seconds", "pue", "measured")
NULLABLE = ("verdict", "band", "spine", "price", "packing", "host_bytes", *STORAGE, *RUN, *SITE)


def unknown(value: Any, path: str = "") -> Iterator[str]:
    """Paths of the figures that are null."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in NULLABLE:
                yield from unknown(each, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from unknown(each, f"{path}[{index}]")
    elif value is None:
        yield path

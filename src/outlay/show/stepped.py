"""A real run beside its bill: what ran, each step's time, each rank's peak, and where the time of a step goes."""

from collections.abc import Iterator
from typing import Any

from ..verify.steps.profiled import EXCHANGE, NOTHING
from ..verify.steps.run import Stepped
from .record import Record, model, plain
from .schema import MAYBE, NUMBER, TEXT, WHOLE, Schema, list_of, record_of
from .text import Style, block, counted, safe, table

SAYS = {
    EXCHANGE: "communication is what shows of it, and waiting for other ranks",
    NOTHING: "where nothing runs the host is behind, or at work of its own",
}


def stepped_lines(found: Stepped, style: Style) -> Iterator[str]:
    """Where the time of a step goes, and what ran."""
    heads = ("where a step goes", "outlay, s", "profiler, s", "ratio", "band, s")
    rows: list[tuple[str, ...]] = [
        (
            one.name,
            _seconds(one.counted),
            _seconds(one.measured),
            _ratio(one.counted, one.measured),
            _band(one) if found.judged else "-",
        )
        for one in found.items
    ]
    whole = sum(one.counted for one in found.items), sum(one.measured for one in found.items)
    rows.append(("in all", *map(_seconds, whole), _ratio(*whole), ""))
    yield from [*table(heads, rows, style, "lrrrl"), ""]
    yield from block("RAN", safe(_ran(found)), style)
    yield from block("NOTE", "; ".join(SAYS.values()), style)


def _ran(found: Stepped) -> str:
    device, bill = found.device, found.bill
    many = len(found.ranks)
    libraries = ", ".join(f"{name} {version}" for name, version in device.libraries.items() if version)
    steps = f"{found.warm} steps before, {len(found.slowest.seconds)} timed, one under the profiler"
    spread = f"{_seconds(min(found.slowest.seconds))} to {_seconds(max(found.slowest.seconds))} s"
    case = f"{counted(bill.model.layers, 'layer')}, {counted(bill.derived.micro_batches, 'micro-batch')}"
    return f"{many} x {device.name} ({libraries}), {found.date}: {case}; {steps}, {spread}"


def _seconds(value: float) -> str:
    return f"{value:.4g}"


def _ratio(count: float, measured: float) -> str:
    return f"{count / measured:.3f}" if measured else "-"


def _band(one: Any) -> str:
    return f"{'in' if one.inside else 'outside'} {_seconds(one.low)} .. {_seconds(one.high)}"


def stepped_record(found: Stepped | None) -> Record | None:
    """All that it takes to keep a run as a fact."""
    if found is None:
        return None
    bill = found.bill
    return {
        "date": found.date,
        "device": plain(found.device),
        "model": model(bill),
        "layers": bill.model.layers,
        "cluster": plain(bill.cluster),
        "job": plain(bill.job),
        "layout": plain(bill.layout),
        "micro_batches": bill.derived.micro_batches,
        "warm_steps": found.warm,
        "seconds": bill.step.seconds,
        "band_seconds": list(bill.step.band_seconds),
        "items": [plain(one) | {"in_band": one.inside if found.judged else None} for one in found.items],
        "ranks": [_rank(rank) for rank in found.ranks],
    }


def _rank(rank: Any) -> Record:
    names = ("class", "name", "runs", "seconds")
    return {
        "rank": rank.rank,
        "seconds": list(rank.seconds),
        "allocated_bytes": rank.allocated,
        "reserved_bytes": rank.reserved or None,
        "profiled_seconds": rank.moments.seconds,
        "shown_seconds": dict(rank.moments.shown),
        "alone_seconds": dict(rank.moments.alone),
        "kernels": [dict(zip(names, one, strict=True)) for one in rank.moments.longest],
    }


def stepped_schema() -> Schema:
    """What `stepped_record` gives; null where no step was run."""
    number, whole = NUMBER, {"type": "object"}
    classes = {"type": "object", "additionalProperties": number}
    item = {
        "name": TEXT,
        **dict.fromkeys(("counted", "low", "high", "measured"), number),
        "in_band": {"type": ["boolean", "null"]},
    }
    kernel = {"class": TEXT, "name": TEXT, "runs": WHOLE, "seconds": number}
    rank = {
        "rank": WHOLE,
        "seconds": list_of(number),
        "allocated_bytes": WHOLE,
        "reserved_bytes": MAYBE,
        "profiled_seconds": number,
        "shown_seconds": classes | {"description": "by class; they add up to profiled_seconds"},
        "alone_seconds": classes | {"description": "by class, whatever runs beside it"},
        "kernels": list_of(record_of(kernel)),
    }
    libraries = {"type": "object", "additionalProperties": TEXT}
    keys = {
        "date": TEXT,
        "device": record_of({"kind": {"enum": ["cpu", "cuda"]}, "name": TEXT, "memory": WHOLE, "libraries": libraries}),
        **dict.fromkeys(("model", "cluster", "job", "layout"), whole),
        "layers": WHOLE,
        "micro_batches": number,
        "warm_steps": WHOLE,
        "seconds": number,
        "band_seconds": list_of(number),
        "items": list_of(record_of(item)),
        "ranks": list_of(record_of(rank)),
    }
    return {"anyOf": [record_of(keys), {"type": "null"}]}

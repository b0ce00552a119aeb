"""What `outlay calibrate` found: each constant with what it rests on, and the files that were written."""

from collections.abc import Iterator

from ..verify.calibration.calibrated import Calibrated
from ..verify.calibration.tasks import Measured
from .record import Record, head, plain
from .schema import DRAFT, NUMBER, TEXT, WHOLE, Schema, list_of, record_of
from .text import Style, block, counted, percent, safe, table

UNITS = {"seconds": " us", "depth": " values"}


def calibrated_record(found: Calibrated, output: str, machine: str) -> Record:
    """The whole calibration: its constants, every measurement, and its files."""
    return head("calibrate") | {
        "profile": plain(found.profile),
        "measured": [_row(one) for one in found.measured],
        "said": list(found.said),
        "where": found.where,
        "date": found.date,
        "files": [output, *([machine] if found.machine else [])],
        "toml": found.text,
        "machine_toml": found.machine,
    }


def _row(one: Measured) -> Record:
    of = one.task
    named = {"kind": of.kind, "what": of.what, "precision": of.precision, "sizes": list(of.sizes)}
    return named | {"seconds": one.seconds, "low": one.low, "high": one.high, "runs": one.runs, "core": one.core}


def calibrate_schema() -> Schema:
    """What --json prints."""
    constant = record_of(dict.fromkeys(("name", "kind", "source", "date", "rows"), TEXT) | {"value": NUMBER})
    row = dict.fromkeys(("kind", "what", "precision"), TEXT) | dict.fromkeys(("seconds", "low", "high", "core"), NUMBER)
    row |= {"sizes": list_of(WHOLE), "runs": WHOLE}
    profile = dict.fromkeys(("name", "accelerator", "engine"), TEXT)
    texts = dict.fromkeys(("schema", "version", "where", "date", "toml", "machine_toml"), TEXT)
    held = {"hardware": list_of(constant), "kernels": list_of(constant)}
    lists = {"measured": list_of(record_of(row)), "said": list_of(TEXT), "files": list_of(TEXT)}
    return {"$schema": DRAFT, **record_of(texts | lists | {"profile": record_of(profile | held)})}


schema = calibrate_schema


def calibrated_lines(found: Calibrated, output: str, machine: str, on: str, style: Style) -> Iterator[str]:
    """The answer of `outlay calibrate`. `on`: what --on takes to count with it."""
    of = found.profile
    constants = (*of.hardware, *of.kernels)
    answer = f"{counted(len(constants), 'constant')} of {of.accelerator} on {counted(len(found.measured), 'kernel')}"
    yield from block("MEASURED", safe(answer), style)
    yield from block("ON", safe(found.where), style)
    rows = [(each.name, _value(each.name, each.value), *_rests(found, each.name)) for each in constants]
    yield from ["", *table(("constant", "value", "measurements", "times within"), rows, style, "lrrr"), ""]
    for said in found.said:
        yield from block("NOTE", safe(said), style)
    wrote = f"{output} and {machine} are written" if found.machine else f"{output} is written"
    yield from block("PROFILE", safe(wrote), style)
    yield from block("MORE", safe(f"outlay count MODEL --on {on} --profile {output}"), style)


def _value(name: str, value: float) -> str:
    measure = name.split("_")[-1]
    return f"{value * 1e6 if measure == 'seconds' else value:.4g}{UNITS.get(measure, '')}"


def _rests(found: Calibrated, name: str) -> tuple[str, str]:
    """How many measurements a constant rests on, and how far their single times lie from their medians."""
    count, spread = found.rests[name]
    return str(count), percent(spread, 2)

"""JSON Schemas: of inputs, made from their records; of outputs, kept by hand, and held against answers by a test."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..job import Job
from ..layout.axes import Layout
from .measured import REACHED
from .mixed_schema import MIXED
from .profile_schema import FIT, PROFILE
from .split_schema import SPLIT
from .storage import LOADING, OFFLOAD, SAVED
from .sweep.schema import SWEEP
from .whole_run import WHOLE_RUN

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT, NUMBER, SHARE, WHOLE = (
    {"type": "string"},
    {"type": "number"},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "integer"},
)
YES_NO, MAYBE = {"type": "boolean"}, {"type": ["number", "null"]}
MAYBE_SHARE = {"type": ["number", "null"], "minimum": 0, "maximum": 1}


def input_schema(name: str, sentences: Mapping[str, str]) -> Schema:
    """The schema of Job or Layout: types, choices, ranges and the sentence of each field."""
    from pydantic import TypeAdapter

    made: Schema = TypeAdapter({"job": Job, "layout": Layout}[name]).json_schema()
    for key, about in made["properties"].items():
        about.pop("title", None)
        about["description"] = sentences.get(key, "")
        if about.get("default", 0) is None:
            del about["default"]  # what is not given is filled, and listed in `assumptions`
    return {"$schema": DRAFT, **made}


def record_of(properties: Mapping[str, Any], needed: bool = True) -> Schema:
    """An object with exactly these keys."""
    made: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return made | {"required": list(properties)} if needed else made


def list_of(each: Schema) -> Schema:
    """A list of one kind of thing."""
    return {"type": "array", "items": each}


def _item(unit: str) -> Schema:
    kinds = {"enum": ["exact", "modelled"]}
    band = {"enum": ["measured", "assumed", None]}
    return record_of({"name": TEXT, unit: NUMBER, "kind": kinds, "low": NUMBER, "high": NUMBER, "band": band})


def _memory() -> Schema:
    stage = {"stage": WHOLE, "ranks": WHOLE, "layers": WHOLE, "embedding": YES_NO, "head": YES_NO}
    stage |= {"peak_bytes": NUMBER, "allocated_bytes": NUMBER}
    sizes = (
        *("unsharded_state_bytes", "state_bytes", "activation_bytes", "peak_bytes", "capacity_bytes", "usable_bytes"),
        *("allocated_bytes", "reserved_bytes", "device_bytes"),
    )
    return record_of(
        dict.fromkeys(sizes, NUMBER)
        | {
            "verdict": {"enum": ["fits", "tight", "does_not_fit", "impossible", None]},
            "worst_rank": record_of({"rank": WHOLE, "stage": WHOLE, "why": TEXT}),
            "items": list_of(_item("bytes")),
            "ranks": list_of(record_of(stage)),
        }
    )


def _step() -> Schema:
    band = list_of(NUMBER) | {"minItems": 2, "maxItems": 2}
    rates = dict.fromkeys(("tokens_per_second", "tokens_per_second_per_device"), NUMBER)
    shares = dict.fromkeys(("mfu", "hfu"), MAYBE_SHARE)
    items = list_of(_item("seconds"))
    return record_of(
        {"seconds": NUMBER, "band_seconds": band, "items": items, **rates, **shares, "model_flops": NUMBER}
    )


BUBBLE: Mapping[str, Any] = {
    "share": SHARE,
    "span_share": SHARE,
    "seconds": MAYBE,
    "slots": NUMBER,
    "useful_slots": NUMBER,
    "held_slots": NUMBER,
    "definition": TEXT,
}
VIOLATION: Mapping[str, Any] = {
    "code": TEXT,
    "what": TEXT,
    "rule": TEXT,
    "got": TEXT,
    "fix": TEXT,
    "legal_values": list_of(TEXT),
    "nearest": list_of(TEXT),
}
AXIS: Mapping[str, Any] = {
    "axis": TEXT,
    "bytes": NUMBER,
    "seconds": NUMBER,
    "exposed_seconds": NUMBER,
    "link": TEXT,
    "grows_with": {"enum": ["tokens", "parameters"]},
}


ADVICE = {
    "change": TEXT,
    "flag": TEXT,
    "peak_bytes": NUMBER,
    "seconds": NUMBER,
    "tokens_per_second_per_device": NUMBER,
}


def bill_schema() -> Schema:
    """What `outlay count --json` prints."""
    counts = dict.fromkeys(("total", "active", "embedding", "mtp"), WHOLE)
    shape = {"type": "object", "description": "the whole model, from which the bill can be counted again"}
    whole = {"type": "object", "description": "as given, every field filled"}
    made = record_of(
        {
            "schema": {"const": "outlay.bill.1"},
            "version": TEXT,
            "model": record_of({"name": TEXT, "parameters": record_of(counts), "shape": shape}),
            "job": whole,
            "cluster": whole,
            "layout": whole,
            "engine": TEXT,
            "memory": _memory(),
            "step": _step(),
            "derived": record_of({"dp": WHOLE, "edp": NUMBER, "micro_batches": NUMBER}),
            "bubble": record_of(BUBBLE),
            "traffic": record_of({"items": list_of(record_of(AXIS))}),
            "saved": record_of(SAVED),
            "binds": record_of({"term": {"enum": ["memory", "step"]}, "item": TEXT, "share": SHARE}),
            "violations": list_of(record_of(VIOLATION)),
            "assumptions": list_of(TEXT),
            "conventions": {"type": "object", "additionalProperties": TEXT},
        }
    )
    more = {"advice": list_of(record_of(ADVICE)), "split": SPLIT, "mixed": MIXED, "profile": PROFILE}
    more |= {"rampup": _ramp()}
    more |= {"offload": list_of(record_of(OFFLOAD)), "loading": record_of(LOADING), **WHOLE_RUN, **REACHED}
    return {"$schema": DRAFT, **with_more(made, more)}


def _ramp() -> Schema:
    """The sizes of a batch that grows; only there where it does."""
    size = dict.fromkeys(("global_batch", "steps", "tokens"), WHOLE) | {"step_seconds": NUMBER, "idle_share": SHARE}
    whole = {"steps": WHOLE, "tokens": WHOLE, "seconds": NUMBER, "idle_share": SHARE}
    return record_of({"sizes": list_of(record_of(size)), **whole, "run_steps": WHOLE, "run_seconds": NUMBER})


def with_more(record: Schema, more: Mapping[str, Any]) -> Schema:
    """An object that may have more keys."""
    return record | {"properties": record["properties"] | dict(more)}


def _simulated() -> Schema:
    numbers = {"seconds": MAYBE, "step_seconds": MAYBE}
    held = {"idle_by_cause": _causes(), "peak_in_flight": list_of(NUMBER)}
    return record_of({"share": SHARE, "span_share": SHARE, **numbers, **held})


def _causes() -> Schema:
    return record_of(dict.fromkeys(("fill", "drain", "dependency", "communication"), NUMBER))


def draw_schema() -> Schema:
    """What `outlay draw --json` prints; of a layout that breaks rules `violations` alone. Times are in `unit`."""
    rank = {"rank": WHOLE, "busy": NUMBER, "idle": NUMBER, "idle_share": SHARE, "idle_by_cause": _causes()}
    step = {"rank": WHOLE, "kind": TEXT, "stage": WHOLE, "micro_batch": WHOLE, "start": NUMBER, "end": NUMBER}
    cut = record_of({"start": NUMBER, "end": NUMBER, "micro_batches": WHOLE})
    idle = {"total": NUMBER, "share": SHARE, "span_share": SHARE, "by_cause": _causes()}
    needed = {"schema": {"const": "outlay.draw.1"}, "version": TEXT, "violations": list_of(record_of(VIOLATION))}
    more = {
        "title": TEXT,
        "schedule": TEXT,
        "micro_batches": WHOLE,
        "unit": {"enum": ["s", "F"]},
        "makespan": NUMBER,
        "span": NUMBER,
        "idle": record_of(idle),
        "accelerators": WHOLE,
        "ranks": list_of(record_of({**rank, "peak_in_flight": NUMBER})),
        "critical_path": list_of(record_of(step)),
        "folded": cut | {"type": ["object", "null"]},
        "files": list_of(TEXT),
        "notes": list_of(TEXT),
        "sought": _sought(),
    }
    return {"$schema": DRAFT, **with_more(record_of(needed), more)}


def _sought() -> Schema:
    """How good an order is that was sought."""
    flag, numbers = {"type": "boolean"}, {"type": "object", "additionalProperties": NUMBER}
    keys = {"memory_cap": MAYBE, "chunks": WHOLE, "placement": {"enum": ["loop", "snake"]}, "makespan": NUMBER}
    return record_of({**keys, "bound": NUMBER, "proved": flag, "named": numbers, "stopped": flag})


def bubble_schema() -> Schema:
    """What `outlay bubble --json` prints."""
    more = {
        "fraction": list_of(WHOLE),
        "pp": WHOLE,
        "vpp": WHOLE,
        "schedule": TEXT,
        "slot_seconds": MAYBE,
        "step_seconds": MAYBE,
        "at_most": SHARE,
        "micro_batches_needed": {"type": ["integer", "null"]},
    }
    keys = {
        "schema": {"const": "outlay.bubble.1"},
        "version": TEXT,
        "bubble": with_more(record_of({**BUBBLE, **more}), {"simulated": _simulated()}),
        "micro_batches": WHOLE,
    }
    return {"$schema": DRAFT, **record_of(keys)}


def _apart(module: str) -> Callable[[], Schema]:
    """A schema that a module of its own keeps."""

    def made() -> Schema:
        found: Schema = import_module(f"{__package__}.{module}").schema()
        return found

    return made


OUTPUT_SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "bill": bill_schema,
    "plan": _apart("plan.schema"),
    "bubble": bubble_schema,
    "draw": draw_schema,
    "recompute": _apart("recompute.schema"),
    "validate": _apart("validation.schema"),
    "choices": _apart("validation.choices_schema"),
    "fit": lambda: {"$schema": DRAFT, **FIT},
    "hold_out": _apart("validation.hold_out_schema"),
    "sweep": lambda: {"$schema": DRAFT, **SWEEP},
    "export": _apart("export_schema"),
    "check": _apart("check.record"),
    "watch": _apart("watch_record"),
    "verify": _apart("verified"),
    "drill": _apart("drill"),
    "calibrate": _apart("calibrated"),
    "report": _apart("report.written"),
}

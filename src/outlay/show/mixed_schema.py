"""The schema of a strategy for each layer."""

from collections.abc import Mapping
from typing import Any

NUMBER, WHOLE, TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}
MAYBE = {"type": ["number", "null"]}
LAYOUT = {"type": "object", "description": "a layout"}


def _record(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(keys), "required": list(keys), "additionalProperties": False}


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


RUN = _record(
    {
        "first": WHOLE,
        "last": WHOLE,
        "tp": WHOLE,
        "recompute": {"enum": ["none", "selective", "full"]},
        "modules": _list(TEXT),
        "operations": _list(TEXT),
    }
)
STAGE = _record(
    {
        "stage": WHOLE,
        "peak_bytes": NUMBER,
        "pass_seconds": NUMBER,
        "relayouts": WHOLE,
        "relayout_bytes": NUMBER,  # of one rank, micro-batch and both directions
        "layers": _list(RUN),
    }
)
TIMED = {"layout": LAYOUT, "seconds": NUMBER, "peak_bytes": NUMBER}
BEST = _record(
    TIMED
    | {
        "how": {"enum": ["proved", "searched"]},
        "stages": _list(STAGE),
        "runs": _list(_record({"framework": {"enum": ["megatron", "torch", "galvatron", "none"]}, "how": TEXT})),
    }
)
GALVATRON = {"type": "object", "description": "keys of its strategy file, where it can say this"}
BEST["properties"]["galvatron"] = GALVATRON
MIXED: Mapping[str, Any] = _record(
    {
        "what": _list({"enum": ["recompute", "tp"]}),
        "cuts": WHOLE,
        "gain_seconds": MAYBE,
        "gain_share": MAYBE,
        "uniform": _record(TIMED | {"operations": _list(TEXT)}) | {"type": ["object", "null"]},
        "best": BEST | {"type": ["object", "null"]},
    }
)

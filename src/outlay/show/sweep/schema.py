"""The JSON Schema of what `outlay sweep --json` prints."""

from collections.abc import Mapping
from typing import Any

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
ROW = {
    "type": "object",
    "description": "every column of the Parquet files; what is not known is null; where a study has several prices"
    " and they make no group, `prices`: price, dollars and dollars_per_million_tokens of the layout at each",
}


def _record(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, "required": [*properties]}


VERDICTS = _record(dict.fromkeys(("fits", "tight", "does_not_fit", "impossible", "not_legal"), WHOLE))
GROUP = _record(
    {
        "group": {"type": "object", "description": "the values of `by`"},
        "questions": WHOLE,
        "fitting": WHOLE,
        "best": {"type": "array", "items": ROW},
    }
)
SWEEP: Mapping[str, Any] = _record(
    {
        "schema": {"const": "outlay.sweep.1"},
        "version": TEXT,
        "folder": TEXT,
        "kind": {"enum": ["count", "plan"]},
        "questions": WHOLE,
        "counted": WHOLE,
        "verdicts": VERDICTS,
        "axes": {"type": "object", "description": "the values of each axis, as the study writes them"},
        "limits": {"type": "object", "description": "both ends of each limit, as texts"},
        "objective": TEXT,
        "by": TEXTS,
        "groups": {"type": "array", "items": GROUP},
        "files": TEXTS,
    }
)

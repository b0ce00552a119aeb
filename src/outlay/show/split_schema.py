"""The schema of a split beside the engine's own cut."""

from collections.abc import Mapping
from typing import Any

NUMBER, SIZES = {"type": "number"}, {"type": "array", "items": {"type": "integer"}}
OWN: Mapping[str, Any] = {
    "own_sizes": SIZES,
    "own_seconds": NUMBER,
    "own_peak_bytes": NUMBER,
    "own_verdict": {"enum": ["fits", "tight", "does_not_fit", "impossible"]},
    "saved_seconds": NUMBER,
    "saved_share": NUMBER,
    "saved_bytes": NUMBER,
}
SPLIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"sizes": SIZES, "settings": {"type": "array", "items": {"type": "string"}}, **OWN},
    "required": ["sizes", "settings"],
    "additionalProperties": False,
}

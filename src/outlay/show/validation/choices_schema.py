"""The JSON Schema of what `outlay validate --choices --json` prints."""

from ..schema import DRAFT, MAYBE, NUMBER, TEXT, WHOLE, YES_NO, Schema, list_of, record_of
from .choices import FIELDS


def schema() -> Schema:
    """Each published choice: its layout and the best of its space, as they were counted."""
    bill = record_of(
        {
            "layout": {"type": "object"},
            "flags": TEXT,
            "seconds": NUMBER,
            "band_seconds": list_of(NUMBER),
            "peak_bytes": NUMBER,
            "usable_bytes": NUMBER,
            "verdict": {"enum": ["fits", "tight", "does_not_fit", "impossible", None]},
            "violations": list_of(TEXT),
        }
    )
    row = dict.fromkeys(FIELDS, TEXT) | {
        "searched": TEXT,
        "legal": WHOLE,
        "inside": YES_NO,
        "measured_step_time_s": MAYBE,
        "published": bill,
        "best": {"anyOf": [bill, {"type": "null"}]},
        "ratio": MAYBE,
        "why": TEXT,
    }
    keys = {"schema": {"const": "outlay.choices.1"}, "version": TEXT, "total": WHOLE, "stopped": YES_NO}
    return {"$schema": DRAFT, **record_of(keys | {"choices": list_of(record_of(row))})}

"""The JSON Schema of what `outlay validate --hold-out --json` prints."""

from typing import Any

from ..profile_schema import MAYBE, NUMBER, TEXT, WHOLE, YES_NO, Schema, record_of
from ..schema import DRAFT


def schema() -> Schema:
    """Errors as signed fractions of the measured time; a gap is a difference of two means."""
    figures = record_of({"rows": WHOLE, "mean": NUMBER, "bias": NUMBER})
    maybe = {"anyOf": [figures, {"type": "null"}]}
    sides = dict.fromkeys(("tables_fitted", "tables_held", "fitted", "held"), maybe)
    group = {"tier": {"enum": [1, 2]}, "name": TEXT, "source": YES_NO, "rested": YES_NO} | sides
    constant = {"of": TEXT, "name": TEXT, "basis": TEXT, "shipped": NUMBER}
    made: dict[str, Any] = {
        "schema": {"const": "outlay.hold_out.1"},
        "version": TEXT,
        "configurations": WHOLE,
        "thirds": _list(WHOLE),
        "groups": _list(record_of(group | dict.fromkeys(("tables", "seen", "unseen"), figures) | {"gap": NUMBER})),
        "constants": _list(
            record_of(constant | {"values": _list(MAYBE), "loose": _list(NUMBER), "held": _list(TEXT)}),
        ),
        "left": _list(record_of({"name": TEXT, "of": _list(TEXT), "why": TEXT})),
    }
    return {"$schema": DRAFT, **record_of(made)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}

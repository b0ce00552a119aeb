"""JSON Schemas of a profile, as a bill keeps it, and of what `outlay validate --fit --json` prints."""

from typing import Any

Schema = dict[str, Any]
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
WHOLE, MAYBE, YES_NO = {"type": "integer"}, {"type": ["number", "null"]}, {"type": "boolean"}


def record_of(properties: dict[str, Any]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


KIND = {"enum": ["specified", "measured", "assumed"]}
CONSTANT = record_of({"name": TEXT, "value": NUMBER, "kind": KIND, "source": TEXT, "date": TEXT, "rows": TEXT})
CONSTANTS = {"type": "array", "items": CONSTANT}
PROFILE = record_of({"name": TEXT, "accelerator": TEXT, "hardware": CONSTANTS, "engine": TEXT, "kernels": CONSTANTS})
"""Constants of one's own, in SI units: `hardware` of the accelerator, `kernels` of the engine and its kernel set."""

ERRORS = record_of({"rows": WHOLE, "mean": NUMBER, "median": NUMBER, "worst": NUMBER, "bias": NUMBER})
MAYBE_ERRORS = {"anyOf": [ERRORS, {"type": "null"}]}
FITTED = record_of(
    {
        "table": {"enum": ["accelerator", "engine"]},
        "name": TEXT,
        "before": NUMBER,
        "value": NUMBER,
        "loose": NUMBER,
        "tied": YES_NO,
    }
)
ROW = record_of(
    {
        "file": TEXT,
        "line": WHOLE,
        "side": {"enum": ["fitted", "held out"]},
        "measured_step_time_s": NUMBER,
        "predicted_step_time_s": NUMBER,
        "error": NUMBER,
        "error_without": MAYBE,
    }
)
FIT = record_of(
    {
        "schema": {"const": "outlay.fit.1"},
        "version": TEXT,
        "profile": PROFILE,
        "fitted": {"type": "array", "items": FITTED},
        "rows": {"type": "array", "items": ROW},
        "before": ERRORS,
        "inside": ERRORS,
        "left_out": MAYBE_ERRORS,
        "held_out": MAYBE_ERRORS,
        "said": {"type": "array", "items": TEXT},
        "stopped": YES_NO,
        "toml": TEXT,
    }
)

"""The JSON Schema of a comparison with measured runs."""

from ..schema import DRAFT, MAYBE, TEXT, WHOLE, Schema, list_of


def schema() -> Schema:
    """What `outlay validate --json` prints: a row for each measured run, and errors as signed fractions."""
    row = {
        "line": WHOLE,
        "status": {"enum": ["compared", "skipped"]},
        "reason": {"type": ["string", "null"]},
        "measured_step_time_s": MAYBE,
        "predicted_step_time_s": MAYBE,
        "step_time_error": MAYBE,
        "step_time_in_band": {"type": ["boolean", "null"]},
        "step_time_tier": {"enum": [0, 1, 2]},
        "step_time_unscored": TEXT,
        "measured_peak_mem_gib": MAYBE,
        "predicted_peak_mem_gib": MAYBE,
        "peak_mem_error": MAYBE,
        "peak_mem_in_band": {"type": ["boolean", "null"]},
        "peak_mem_score": {"enum": ["", "allocator", "device"]},
        "peak_mem_unscored": TEXT,
    }
    lists = ("summary", "sources", "timed", "peers", "cases")
    each = {"type": "object", "properties": row, "required": list(row)}
    return {
        "$schema": DRAFT,
        "type": "object",
        "properties": {"rows": list_of(each), "profile": {"type": ["string", "null"]}}
        | dict.fromkeys(lists, list_of({"type": "object"})),
        "required": ["rows", *lists],
    }

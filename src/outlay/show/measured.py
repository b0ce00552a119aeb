"""What a run measured, beside the bill of its layout: MFU and HFU under each convention."""

from collections.abc import Mapping
from typing import Any

from ..bill import Bill
from ..measured import CONVENTIONS, reached_of
from .text import Style, block, duration, percent, short, table, wrapped

NUMBER = {"type": "number"}
_RATES = ("flops_per_token", "mfu", "hfu", "predicted_mfu", "predicted_hfu")
_EACH: Mapping[str, Any] = {"convention": {"type": "string"}, **dict.fromkeys(_RATES, NUMBER)}
_ALL: Mapping[str, Any] = {
    **dict.fromkeys(("tokens_per_second_per_device", "step_seconds", "step_time_error"), NUMBER),
    "step_time_in_band": {"type": "boolean"},
    "utilisation": {
        "type": "array",
        "items": {"type": "object", "properties": _EACH, "additionalProperties": False, "required": list(_EACH)},
    },
}
REACHED: Mapping[str, Any] = {
    "measured": {"type": "object", "properties": _ALL, "additionalProperties": False, "required": list(_ALL)}
}


def reached_line(bill: Bill, style: Style) -> list[str]:
    """What was measured, and how far the prediction is from it."""
    found = reached_of(bill)
    if found is None:
        return []
    error = found.step_time_error
    off = f"{percent(abs(error))} {'more' if error > 0 else 'less'}"
    inside = "inside" if found.step_time_in_band else "outside"
    own = found.utilisation[0]
    more = ": more than these accelerators can do" if own.mfu > 1 else ""
    text = (
        f"{duration(found.step_seconds)} a step, {found.tokens_per_second_per_device:,.0f} tokens/s a card   MFU"
        f" {percent(own.mfu)}{more}; predicted {off}, and it is {inside} the band"
    )
    return block("MEASURED", text, style)


def reached_part(bill: Bill, style: Style) -> list[str]:
    """MFU and HFU of the measured run under each convention, beside the predicted ones."""
    found = reached_of(bill)
    if found is None:
        return []
    rows = [
        (
            each.convention,
            short(each.flops_per_token),
            *(percent(one) for one in (each.mfu, each.hfu, each.predicted_mfu, each.predicted_hfu)),
        )
        for each in found.utilisation
    ]
    heads = ("counted as by", "FLOPs a token", "MFU", "HFU", "predicted MFU", "HFU")
    names = {each.convention for each in found.utilisation}
    said = [f"{one.name}: {one.source}" for one in CONVENTIONS if one.name in names]
    lines = table(heads, rows, style, "l", 4)
    return [*block("REACHED", "utilisation of the measured run", style), *lines, *wrapped("; ".join(said), style), ""]

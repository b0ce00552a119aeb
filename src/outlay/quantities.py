"""Quantities: a number, or a broadcastable array of numbers, with its unit in the type.

Data, time and work are dimensions. Parameters, tokens, counts and shares are plain numbers, so that a count
times bytes is bytes; their names say what they count.
"""

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = float | NDArray[np.floating[Any]]
Flag: TypeAlias = bool | NDArray[np.bool_]

Count = Annotated[Real, ""]
Share = Annotated[Real, "share"]
Params = Annotated[Real, "param"]
Tokens = Annotated[Real, "token"]
Bytes = Annotated[Real, "B"]
Seconds = Annotated[Real, "s"]
Flops = Annotated[Real, "FLOP"]
FlopRate = Annotated[Real, "FLOP/s"]
Bandwidth = Annotated[Real, "B/s"]
Pace = Annotated[Real, "s/B"]
Intensity = Annotated[Real, "FLOP/B"]
Energy = Annotated[Real, "J"]
Power = Annotated[Real, "W"]

# Plain numbers of a record: one figure with its unit, never an array, so that the faces can make a schema of them.
PlainBytes = Annotated[float, "B"]
PlainSeconds = Annotated[float, "s"]
PlainFlopRate = Annotated[float, "FLOP/s"]
PlainBandwidth = Annotated[float, "B/s"]
PlainShare = Annotated[float, "share"]
PlainPower = Annotated[float, "W"]

GB = 1e9
GIB = 2.0**30

PREFIXES = (
    ("P", 1e15),
    ("T", 1e12),
    ("G", 1e9),
    ("M", 1e6),
    ("k", 1e3),
    ("", 1.0),
    ("m", 1e-3),
    ("u", 1e-6),
    ("n", 1e-9),
    ("p", 1e-12),
)


def unit_of(hint: object) -> str:
    """The unit in an annotation: `unit_of(Bytes) == "B"`; an empty text where there is none."""
    metadata = getattr(hint, "__metadata__", ("",))
    return metadata[0] if metadata and isinstance(metadata[0], str) else ""


def show(value: float, unit: str = "") -> str:
    """A quantity in four digits: `4.375 GB`, `12.5 ms`, `70.55 Gparam`, `17.95 %`; plain counts keep no prefix."""
    number = float(value)
    if unit == "share":
        return f"{100 * number:.4g} %"
    if not unit:
        return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.6g}"
    if number == 0:
        return f"0 {unit}"
    prefix, size = next(((p, s) for p, s in PREFIXES if abs(number) >= s), PREFIXES[-1])
    return f"{number / size:.4g} {prefix}{unit}"

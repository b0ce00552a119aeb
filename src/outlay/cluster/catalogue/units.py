"""The units that a figure of the hardware may be written in, by what it measures, and their SI size."""

from collections.abc import Mapping

from ...errors import Fault, InputError, quoted

UNITS: Mapping[str, Mapping[str, float]] = {  # by the last word of a figure's name, which says what it measures
    "flops": {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "FLOP/s": 1.0},
    "bytes": {"MiB": 2.0**20, "GiB": 2.0**30, "GB": 1e9, "B": 1.0},
    "bandwidth": {"GB/s": 1e9, "TB/s": 1e12, "Gb/s": 1e9 / 8, "B/s": 1.0},
    "seconds": {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    "share": {"share": 1.0},
    "size": {"accelerators": 1.0},
    "accelerators": {"accelerators": 1.0},
    "paths": {"paths": 1.0},
    "depth": {"values": 1.0},
    "multiprocessors": {"multiprocessors": 1.0},
    "price": {"USD/h": 1.0},
    "watts": {"W": 1.0, "kW": 1000.0},
}


def convert(value: float, unit: str, measure: str) -> float:
    """A value in SI units; a unit that is unknown, or that measures something else, is refused."""
    fitting = UNITS[measure]
    if unit not in fitting:
        rule = f"{measure}: write {', '.join(fitting)}"
        fix = f"{value} {next(iter(fitting))}"
        raise InputError(Fault("UNI001", f"the unit {quoted(unit)} does not fit", rule, f"{value} {unit}", fix))
    return value * fitting[unit]


def written(value: float, measure: str) -> str:
    """A value as a text with its unit that `convert` reads back as exactly the same number: `81559 MiB`."""
    for unit, size in UNITS[measure].items():
        for digits in (6, 12, 17):
            text = f"{value / size:.{digits}g}"
            if float(text) * size == value and "e+" not in text:
                return f"{text} {unit}"
    return f"{value!r} {next(unit for unit, size in UNITS[measure].items() if size == 1)}"

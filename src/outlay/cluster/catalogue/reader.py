"""Tables of a TOML file read key by key: every fault is kept, by the path of its field, and reading goes on."""

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import Fault, InputError, nearest, quoted
from .units import UNITS

NUMBER = re.compile(r"([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf))\s*(.*)", re.ASCII)
LONGEST = 60  # characters of a text
LARGEST = 2**20  # bytes of a file
RANGES: Mapping[str, tuple[float, float, str]] = {  # least and most in SI units, and both in words; by measure or name
    "flops": (0, 1e18, "0 or more; 0 where the type is absent"),
    "bytes": (0, 1e18, "0 or more"),
    "bandwidth": (1, 1e18, "above 0"),
    "seconds": (0, 1, "0 s to 1 s"),
    "share": (1e-6, 1, "above 0, at most 1"),
    "price": (0, 1e9, "0 USD/h or more"),
    "watts": (0, 1e6, "0 W or more; 0 where it is not known"),
    "mtbf_seconds": (1, 1e12, "1 s or more"),
    "restart_seconds": (0, 1e7, "0 s or more"),
    "depth": (0, 1e6, "0 values or more"),
    "multiprocessors": (0, 1e6, "0 or more; 0 where it is not known"),
    **dict.fromkeys(("fp8_share", "mxfp8_share", "fp4_share"), (0, 1, "0 to 1; 0: as matmul_share")),
    "attention_back_share": (0, 1, "0 to 1; 0: as attention_share"),
    **dict.fromkeys(("straggler_share", "switch_share"), (0, 1, "0 to 1")),
}
EXAMPLES = {
    "flops": "989 TFLOP/s",
    "bytes": "80 GiB",
    "bandwidth": "400 Gb/s",
    "seconds": "20 us",
    "share": "0.8",
    "price": "55.04 USD/h",
    "depth": "150 values",
    "multiprocessors": "132 multiprocessors",
    "watts": "700 W",
}
NOTHING = object()


def toml_of(path: str, code: str, rule: str, fix: str) -> Mapping[str, Any]:
    """A whole TOML file. A folder, a device, a file without end, or bytes that are no text are refused by `code`."""

    def unreadable(got: str) -> InputError:
        return InputError(Fault(code, f"{quoted(path)} cannot be read", rule, got, fix))

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise unreadable("not a file")
        with Path(path).open("rb") as file:
            read = file.read(LARGEST + 1)
    except OSError as error:
        raise unreadable(error.strerror or "?") from None
    except ValueError:  # a NUL in the path
        raise unreadable("not a path") from None
    if len(read) > LARGEST:
        raise unreadable(f"more than {LARGEST:,} bytes")
    try:
        return tomllib.loads(read.decode("utf-8"))
    except UnicodeDecodeError:
        raise unreadable("bytes that are not UTF-8") from None
    except (ValueError, RecursionError) as error:
        said = "".join(letter if letter.isprintable() else "?" for letter in str(error))
        raise unreadable(f"no TOML: {said[:90]}") from None


@dataclass(frozen=True)
class Table:
    """One table of a file. Where a value cannot be used, a fault is kept and a harmless value is returned."""

    values: Mapping[str, Any]
    path: str  # "" at the top, `levels[1]`, `accelerator`
    file: str
    faults: list[Fault]

    def place(self, key: str) -> str:
        """The path of a field: `levels[1].share`."""
        return f"{self.path}.{key}" if self.path else key

    def fault(self, key: str, what: str, rule: str, fix: str, code: str = "HW007") -> None:
        """Keep one fault of a field."""
        got = shown(self.values[key]) if key in self.values else "nothing"
        self.faults.append(Fault(code, f"{self.place(key)} {what}", rule, f"{got}   ({quoted(self.file)})", fix))

    def inner(self, key: str) -> "Table | None":
        """A table inside this one; None where there is none."""
        value = self.values.get(key, NOTHING)
        if value is not NOTHING and not isinstance(value, Mapping):
            self.fault(key, "is not a table", "a table of fields", f"[{self.place(key)}]")
        return Table(value, self.place(key), self.file, self.faults) if isinstance(value, Mapping) else None

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that mean nothing here, with the one that was probably meant."""
        known = list(known)
        for key in self.values:
            if key not in known:
                close = nearest(key, known)
                fix = f"did you mean {' or '.join(close)}?" if close else "remove it"
                safe = key if key.isprintable() and len(key) <= LONGEST else quoted(key)
                what = f"nothing is called {safe if not self.path else f'{self.path}.{safe}'}"
                rule = f"known here: {', '.join(known)}"
                self.faults.append(Fault("HW007", what, rule, quoted(self.file), fix))

    def text(self, key: str, default: str | None = None, most: int = LONGEST) -> str:
        """A short text that can be printed."""
        value = self.values.get(key, default)
        if value is None:
            self._missing(key, '"..."')
        elif key not in self.values or (isinstance(value, str) and value.isprintable() and 0 < len(value) <= most):
            return str(value)
        else:
            rule = f"a text of 1 to {most} letters, in quotes, without control characters"
            self.fault(key, "is not a name", rule, f'{key} = "name"')
        return "?"

    def count(self, key: str, most: int, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self.values.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        if value is None:
            self._missing(key, "8")
        else:
            self.fault(key, "is not a count", f"a whole number from 1 to {most:,}", f"{key} = 8")
        return default or 1

    def number(self, key: str, least: float, most: float, default: float) -> float:
        """A plain number inside a range."""
        value = self.values.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        self.fault(key, "is out of range", f"a number from {least:g} to {most:g}", f"{key} = {default:g}")
        return default

    def figure(self, key: str, default: float | None = None, least: float | None = None) -> float:
        """A figure with its unit, in SI units; the last word of its name says what it measures."""
        measure = key.split("_")[-1]
        low, high, rule = RANGES[key if key in RANGES else measure]
        low = low if least is None else least
        if key not in self.values:
            if default is None:
                self._missing(key, EXAMPLES[measure] if measure == "share" else f'"{EXAMPLES[measure]}"')
            return 1.0 if default is None else default
        value = self._si(key, measure)
        if value is not None and not low <= value <= high:  # also what is not a number
            rule = "above 0" if least is not None else rule
            self.fault(key, "is out of range", rule, self._example(key, measure))
            return 1.0
        return 1.0 if value is None else value

    def names(self, key: str) -> tuple[str, ...]:
        """A list of short texts."""
        value = self.values.get(key, [])
        short = isinstance(value, list) and len(value) <= 100
        if short and all(isinstance(one, str) and one.isprintable() and len(one) <= LONGEST for one in value):
            return tuple(value)
        self.fault(key, "is not a list of names", "a list of texts in quotes", f'{key} = ["nic bandwidth"]')
        return ()

    def flag(self, key: str) -> bool:
        """true or false; false where nothing is said."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fault(key, "is not true or false", "true or false, without quotes", f"{key} = true")
        return value is True

    def _missing(self, key: str, example: str) -> None:
        self.fault(key, "is missing", "the file has to say it", f"{key} = {example}")

    def _example(self, key: str, measure: str) -> str:
        return f"{key} = {EXAMPLES[measure]}" if measure == "share" else f'{key} = "{EXAMPLES[measure]}"'

    def _si(self, key: str, measure: str) -> float | None:
        """The value in SI units; None, and a fault, where it cannot be read."""
        value, fitting = self.values[key], UNITS[measure]
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if plain and measure == "share":
            return value if abs(value) <= 2 else 2.0
        match = NUMBER.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= LONGEST else None
        if match and match[2] in fitting:
            return float(match[1]) * fitting[match[2]]
        fix = self._example(key, measure)
        if match or plain:
            meant = match[2].replace("ps", "/s") if match else ""
            meant = meant if meant in fitting else next(iter(fitting))
            usable = match and match[1][-1].isdigit() and measure != "share"
            fix = f'{key} = "{match[1]} {meant}"' if match and usable else fix
            bits = "; b is a bit and B a byte, which differ by 8" if measure == "bandwidth" else ""
            what = f"has the unit {quoted(match[2])}, which does not fit" if match and match[2] else "has no unit"
            rule = "a plain number above 0, at most 1" if measure == "share" else f"write {', '.join(fitting)}{bits}"
            self.fault(key, what, rule, fix, "UNI001")
        else:
            kind = "a plain number" if measure == "share" else f"a text with a unit: {', '.join(fitting)}"
            self.fault(key, "is not a figure", kind, fix)
        return None


def shown(value: Any) -> str:
    """A value of a file, short and safe to print."""
    try:
        return quoted(value)
    except (ValueError, RecursionError):  # a whole number of too many digits
        return "a value that is too long to print"

"""Every fault that outlay reports, each with the same four parts: what, rule, got, fix.

OutlayError
├── InputError     the question cannot be read (exit 2); carries every fault found, not the first alone
└── FormulaError   a formula broke the rules of formula.py (a fault of the program, not of the user)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: a code with a page of its own, the rule, what was found, and a change that works."""

    code: str
    what: str
    rule: str
    got: str
    fix: str


class OutlayError(Exception):
    """The base of everything outlay raises on purpose."""


class InputError(OutlayError):
    """The question cannot be read. `faults` holds all that was found."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(f"{fault.code} {fault.what}: {fault.got}" for fault in faults))
        self.faults = faults

    def __reduce__(self) -> tuple[type["InputError"], tuple[Fault, ...]]:
        """From process to process with its faults, which are not what an exception is made of by itself."""
        return type(self), self.faults


class FormulaError(OutlayError):
    """A formula broke the rules that let it be read: only annotated assignments, one returned quantity."""


def quoted(text: object) -> str:
    """A user's text, safe to print: quoted, control characters escaped, at most 60 characters."""
    plain = str(text)
    return repr(plain if len(plain) <= 60 else plain[:57] + "...").replace("'", '"')


def nearest(name: object, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that look like this one, closest first."""
    return get_close_matches(str(name).lower(), list(known), n=most, cutoff=0.5)

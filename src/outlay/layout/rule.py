"""One rule of a layout, as data."""

from collections.abc import Callable
from dataclasses import dataclass

from ..quantities import Flag
from .case import Case


@dataclass(frozen=True)
class Rule:
    """One rule: whether a case (or each of a grid) obeys it, and the numbers in words for one that does not."""

    code: str
    what: str
    rule: str
    axis: str  # the field whose change mends it
    legal: Callable[[Case], Flag]
    got: Callable[[Case], str]
    engines: tuple[str, ...] = ()  # whose rule it is; empty: everyone's
    couples: bool = False  # options of one layout that a search pairs freely: not known before both are chosen

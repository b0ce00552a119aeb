"""What the forms of a torchtitan run have in common: options by their paths, and the configuration under them."""

import re
from dataclasses import dataclass, field
from typing import Any

from ..json_comments import Placed
from ..setting import Setting
from .registry import Configuration

CONVERTERS = {
    "Float8LinearConverter": "fp8_rowwise",
    "Float8GroupedExpertsConverter": "fp8_rowwise",
    "MXFP8LinearConverter": "mxfp8",
    "MXFP8GroupedExpertsConverter": "mxfp8",
    "NVFP4LinearConverter": "nvfp4",
}
POLICIES = {"SelectiveAC": "selective", "FullAC": "full", "MemoryBudgetAC": "memory_budget"}
BACKENDS = {"standard": "all_to_all", "deepep": "deduplicated", "hybridep": "deduplicated"}


@dataclass
class Held:
    """Options by their paths, what a file does not say of them, and what there is to say about it."""

    form: str
    options: dict[str, Placed] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)  # options whose value rests on what the file does not say
    base: Configuration | None = None
    asked: str = ""  # the configuration that the file names, in words
    ranks: int = 0
    whole: set[str] = field(default_factory=set)  # sections that the file gives whole
    misplaced: list[tuple[Setting, str]] = field(default_factory=list)  # options that its parser refuses, and why
    notes: list[str] = field(default_factory=list)
    old: bool = False  # the job file of a release before 0.3
    renamed: dict[str, str] = field(default_factory=dict)  # paths by the old name that stands there

    @property
    def own(self) -> dict[str, object]:
        """The values of the configuration under the options, but those of sections that the file gives whole."""
        values = self.base.values if self.base and not self.old else {}
        return {path: value for path, value in values.items() if path.partition(".")[0] not in self.whole}


def path_of(name: str) -> tuple[str, bool]:
    """The path of an option as it is typed, and whether it is switched off: `--training.no-x` is x, off."""
    section, dot, last = name.lstrip("-").replace("-", "_").rpartition(".")
    negated = last.startswith("no_") and bool(section)
    return f"{section}{dot}{last.removeprefix('no_') if negated else last}", negated


def placed(value: Any, line: int, column: int) -> Placed:
    """A value with its place; what a list holds has the same one."""
    inner = [placed(one, line, column) for one in value] if isinstance(value, list | tuple) else value
    return Placed(inner, line, column)


HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1[^\n]*\n(?P<text>.*?)^\s*\2[ \t]*$", re.DOTALL | re.MULTILINE)

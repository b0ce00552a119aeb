"""The forms in which people hold a DeepSpeed configuration: JSON with a launcher's line beside it, as sections."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Fault, InputError, quoted
from ..job import AUTO
from .json_comments import Placed, read_json
from .setting import FALSE, LARGEST, TRUE, Finding, Setting, as_number, fault

AUTO_TEXT = "auto"
LAUNCH = re.compile(r"--(num_nodes|num_gpus|nnodes|nproc[_-]per[_-]node|world_size)[= ]+(\d{1,7})")
FIRST_KEY = re.compile(r"\{\s*(?:(?://|#)[^\n]*\s*|/\*.*?\*/\s*)*[\"'}A-Za-z_]", re.DOTALL)
KEYS = (
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization", "fp16",
    "bf16", "bfloat16", "optimizer", "scheduler", "activation_checkpointing", "pipeline", "tensor_parallel",
    "sequence_parallel_size", "gradient_clipping", "zero_allow_untested_optimizer",
)  # fmt: skip


@dataclass
class Sections:
    """A configuration by dotted paths. `auto` and what is not there are AUTO, or the default that is given."""

    held: dict[str, Placed]
    asked: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def find(self, code: str, path: str, what: str, rule: str, got: str, fix: str, serious: bool = True) -> None:
        """Keep a finding at the place of a path."""
        at = self.held.get(path, Placed(None, 0, 0))
        self.findings.append(Finding(code, serious, what, rule, got, fix, at.line, at.column))

    def ask(self, path: str) -> Placed | None:
        """The value at a path."""
        self.asked.add(path)
        return self.held.get(path)

    def wrong(self, path: str, rule: str) -> None:
        """Keep a fault of the value at a path."""
        one = self.held[path]
        what, got = f"{path} cannot be read", quoted(one.value)
        made = fault("FMT005", what, f"{path} is {rule}", got, "write the value, or leave it out", one.line, one.column)
        self.faults += [made] if made not in self.faults else []

    def real(self, path: str, default: Any) -> Any:
        """A number, also as a text such as "5e8"; AUTO where it is "auto"."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        if one.value == AUTO_TEXT:
            return AUTO
        number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        value = one.value if number else as_number(one.value) if isinstance(one.value, str) else None
        if value is None or not 0 <= value <= LARGEST:
            self.wrong(path, f"a number from 0 to {LARGEST:,}, or auto")
            return default
        return value

    def count(self, path: str, default: Any = AUTO) -> Any:
        """A whole number."""
        value = self.real(path, default)
        if value is AUTO or value == int(value):
            return value if value is AUTO else int(value)
        self.wrong(path, "a whole number")
        return default

    def switch(self, path: str, default: Any) -> Any:
        """True, false, or AUTO where it is "auto"."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        text = str(one.value).lower()
        if text == AUTO_TEXT:
            return AUTO
        if text not in TRUE + FALSE:
            self.wrong(path, "true or false, or auto")
        return text in TRUE

    def flag(self, path: str) -> bool:
        """A switch of which auto is no."""
        return self.switch(path, False) is True

    def word(self, path: str, default: str) -> str:
        """A word in lower case."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        if not isinstance(one.value, str):
            self.wrong(path, "a text")
            return default
        return one.value.strip().lower()

    def kept(self) -> Iterator[Setting]:
        """Values that nothing reads, in the order of the file."""
        for path, one in self.held.items():
            if path not in self.asked and not isinstance(one.value, dict):
                yield Setting(path, (_shown(one),), one.line, one.column)


@dataclass
class Held:
    """A configuration, how it was written, what its launcher says, and what there is to say about it."""

    form: str
    sections: Sections
    ranks: int
    notes: list[str] = field(default_factory=list)


def hold(text: str) -> Held:
    """The configuration in a text. What stands around the object is read as a launcher's line, and never run."""
    begin = FIRST_KEY.search(text)
    if begin is None:
        rule = "one JSON object, with comments and a launcher's line if you like"
        raise InputError(
            fault("FMT004", "nothing here is a DeepSpeed configuration", rule, quoted(text[:40]), "the file")
        )
    before, after = text[: begin.start()], ""
    lines = before.count("\n")
    found = read_json("\n" * lines + text[begin.start() :] if not _trails(text) else _cut(text, begin.start(), lines))
    after = _behind(text)
    flat: dict[str, Placed] = {}
    _flatten(found, "", flat)
    if not any(key in flat for key in KEYS):
        rule = f"some key of DeepSpeed, such as {', '.join(KEYS[:4])}"
        raise InputError(
            fault(
                "FMT004", "nothing here is a DeepSpeed configuration", rule, f"keys {', '.join(flat)[:60]}", "the file"
            )
        )
    said: dict[str, str] = dict(LAUNCH.findall(before + after))
    counts = {name.replace("-", "_"): int(count) for name, count in said.items()}
    each = counts.get("num_gpus", counts.get("nproc_per_node", 0))
    ranks = counts.get("world_size", 0) or each * counts.get("num_nodes", counts.get("nnodes", 1))
    return Held("JSON" + (" and a launcher's line" if said else ""), Sections(flat), ranks)


def _trails(text: str) -> bool:
    return bool(_behind(text))


def _behind(text: str) -> str:
    """What stands behind the last brace."""
    tail = text[text.rfind("}") + 1 :] if "}" in text else ""
    return tail if LAUNCH.search(tail) else ""


def _cut(text: str, begin: int, lines: int) -> str:
    return "\n" * lines + text[begin : text.rfind("}") + 1]


def _flatten(one: Placed, path: str, flat: dict[str, Placed]) -> None:
    if path:
        flat[path] = one
    if isinstance(one.value, dict):
        for key, value in one.value.items():
            _flatten(value, f"{path}.{key}".lstrip("."), flat)


def _shown(one: Placed) -> str:
    return str(one.plain())[:60]

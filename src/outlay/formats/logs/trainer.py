"""The transformers Trainer, TRL, axolotl, LLaMA-Factory: a bar `20/1000 [00:50<40:50,  2.50s/it]` and dictionaries.

A dictionary says neither step nor time: both come from the bar before it, whose rate is a moving average; the bar's
total is of optimizer steps. Since transformers 5 each value is a text of four digits. Source: huggingface/transformers
trainer_callback.py, trainer_utils.py; hiyouga/LLaMA-Factory callbacks.py; axolotl core/trainers/base.py.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .numbers import GIB, number, positive
from .record import Begins, Event, Fact, Kind, Line, Mark, Memory, Step

NAME, TITLE = "trainer", "transformers Trainer"
LOOKS_FOR = "20/1000 [00:50<40:50, 2.50s/it] and {'loss': 7.1, .., 'epoch': 0.02}"
WARM = 1
BAR = re.compile(
    r"(?:^|\]:\s?|Epoch (?P<epoch>\d{1,6}):)\s*\d{1,3}%\|[^|]{0,200}\|\s*(?P<step>\d{1,12})/(?P<total>\d{1,12})\s"
    r"\[[\d:]{1,20}<"
    r"(?:(?:\d{1,6} days?, )?[\d:?]{1,20}),\s*(?P<rate>[\d.]{1,20}|\?)(?P<unit>s/it|it/s)"
)
SAID = re.compile(r"\{['\"](?:loss|eval_loss|train_runtime|current_steps)['\"]:[^{}]{0,8000}\}")
BARE = re.compile(r"(?<=: )(nan|-?inf)(?=[,}])|(?<=: )(?:np\.float\d+)\(([^)]{1,40})\)")
JSON = re.compile(r"(?<=: )(true|false|null)(?=[,}])", re.IGNORECASE)
HELD = re.compile(
    r"(?P<name>Num examples|Instantaneous batch size per device|Total train batch size[^=]{0,80}|"
    r"Gradient Accumulation steps|Total optimization steps)"
    r"\s*=\s*(?P<value>\d[\d,.]{0,20})"
)
ELAPSED = re.compile(r"(?:(?P<d>\d{1,4}) days?, )?(?P<h>\d{1,4}):(?P<m>\d\d):(?P<s>\d\d)")
FACTS = {
    "Instantaneous batch size per device": "micro_batch",
    "Gradient Accumulation steps": "accumulation",
    "Total optimization steps": "total_steps",
}
PEAKS: dict[str, Kind] = {
    "memory/max_active (gib)": "active",
    "memory/max_allocated (gib)": "allocated",
    "memory/device_reserved (gib)": "reserved",
    "vram_allocated": "allocated",
    "vram_reserved": "reserved",
}
EACH = ("tokens/train_per_sec_per_gpu", "tokens_per_second_per_gpu", "train_tokens_per_second_per_gpu")


class Reader:
    """Reads the lines of one log."""

    def __init__(self) -> None:
        self._at, self._total = 0, 0

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "Running training *****" in text:
            self._at, self._total = 0, 0
            yield Begins()
        elif " = " in text and (match := HELD.search(text)):
            yield from self._fact(match)
        if "it" in text and "%|" in text:
            for match in BAR.finditer(text):
                yield from self._bar(match)
        if "{" in text and (match := SAID.search(text)):
            yield from self._said(match[0], line)

    def _fact(self, match: re.Match[str]) -> Iterator[Event]:
        value = positive(match["value"])
        name = "samples" if match["name"].startswith("Total train") else FACTS.get(match["name"])
        if name and value:
            self._total = int(value) if name == "total_steps" else self._total
            yield Fact(name, value)

    def _bar(self, match: re.Match[str]) -> Iterator[Event]:
        """A bar of training; those of loading and of evaluation have another total."""
        total, at, rate = int(match["total"]), int(match["step"]), positive(match["rate"])
        if total != (self._total or total) or at == 0:
            return
        if match["epoch"]:  # Lightning's, which counts anew in each epoch
            self._total, at = total, at + int(match["epoch"]) * total
        elif not self._total:
            self._total = total
            yield Fact("total_steps", float(total))
        if at == self._at:
            return
        self._at = at
        seconds = None if rate is None else rate if match["unit"] == "s/it" else 1 / rate
        yield Step(at, seconds, source=NAME)

    def _said(self, text: str, line: Line) -> Iterator[Event]:
        said = values_of(text)
        if "eval_loss" in said:
            yield Mark("evaluation")
        rate = positive(str(said.get("train_steps_per_second", "")))
        if rate and not self._at:  # the bars went elsewhere: what is left is the mean of the run
            yield Step(self._total or 1, 1 / rate, source=NAME, marks=("whole run",))
        if "loss" not in said:
            return
        at = positive(str(said.get("current_steps", said.get("step", ""))))
        if total := positive(str(said.get("total_steps", ""))):
            yield Fact("total_steps", total)
        number_ = int(at) if at else self._at
        for name, kind in PEAKS.items():
            if value := positive(str(said.get(name, ""))):
                yield Memory(kind, value * GIB, line.rank, number_ or None)
        each = next((positive(str(said[name])) for name in EACH if name in said), None)
        if number_:
            loss = number(str(said["loss"]))
            when = elapsed(str(said.get("elapsed_time", "")))
            yield Step(number_, tokens_per_second_per_device=each, loss=loss, when=when or line.when, source=NAME)


def elapsed(text: str) -> float | None:
    """`1 day, 0:00:50` in seconds; None where it is no such time."""
    match = ELAPSED.fullmatch(text)
    if not match:
        return None
    return float(match["d"] or 0) * 86400 + float(match["h"]) * 3600 + float(match["m"]) * 60 + float(match["s"])


def values_of(text: str) -> Mapping[str, Any]:
    """A dictionary that was printed, its names in small letters; empty where it is none. Nothing in it is run."""
    quoted = BARE.sub(lambda match: repr(match[1]) if match[1] else match[2], text)
    plain = JSON.sub(lambda match: {"true": "True", "false": "False", "null": "None"}[match[1].lower()], quoted)
    try:
        value = ast.literal_eval(plain)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {str(name).lower(): each for name, each in value.items()} if isinstance(value, dict) else {}

"""Composer and llm-foundry: a block a batch, `[batch=20/1000]:` and then ` Train throughput/..: value`.

Rates are means over a window, and stand there only once it is full. Memory is 10^9 bytes, of one rank. Source:
mosaicml/composer callbacks/speed_monitor.py, memory_monitor.py, loggers/console_logger.py.
"""

import re
from collections.abc import Iterator

from .numbers import finite, number, positive
from .record import Event, Fact, Kind, Line, Memory, Step

NAME, TITLE = "composer", "Composer"
LOOKS_FOR = "[batch=20/1000]: and Train throughput/device/tokens_per_sec: 6553.6"
WARM = 0  # the window leaves it out
HEAD = re.compile(r"\[(?:epoch=\d{1,9}\]\[)?batch=(?P<at>\d{1,12})(?:/(?P<total>\d{1,12}))?\]:?\s*$")
ONE = re.compile(r"(?:^|\s)Train (?P<name>[\w/.()-]{1,80}): (?P<value>-?\d{1,20}\.\d{4}|nan|-?inf)\s*$")
SHAPE = re.compile(r"^\s+(?P<name>max_seq_len|global_train_batch_size): (?P<value>\d{1,9})\s*$")
PEAKS: dict[str, Kind] = {"memory/peak_allocated_mem": "allocated", "memory/peak_reserved_mem": "reserved"}
FACTS = {"max_seq_len": "sequence_length", "global_train_batch_size": "samples"}


class Reader:
    """Reads the lines of one log."""

    def __init__(self) -> None:
        self._at = -1  # the batch whose block is being read

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "batch=" in text and (match := HEAD.search(text)):
            self._at = int(match["at"])
            if match["total"]:
                yield Fact("total_steps", float(match["total"]))
        elif "Train " in text and self._at >= 0 and (match := ONE.search(text)):
            yield from self._one(match, line)
        elif ": " in text and text[:1].isspace() and (match := SHAPE.search(text)):
            yield Fact(FACTS[match["name"]], float(match["value"]))

    def _one(self, match: re.Match[str], line: Line) -> Iterator[Event]:
        name, value = match["name"], positive(match["value"])
        if name in PEAKS and value:
            yield Memory(PEAKS[name], value * 1e9, line.rank, self._at)
        elif name == "throughput/batches_per_sec" and value:
            yield Step(self._at, 1 / value, source=NAME)
        elif name == "throughput/device/tokens_per_sec" and value:
            yield Step(self._at, tokens_per_second_per_device=value, source=NAME)
        elif name == "throughput/tokens_per_sec" and value:
            yield Step(self._at, tokens_per_second=value, source=NAME)
        elif name == "throughput/samples_per_sec" and value:
            yield Step(self._at, samples_per_second=value, source=NAME)
        elif name == "throughput/device/mfu" and value:
            yield Step(self._at, mfu=value, source=NAME)
        elif name == "throughput/device/flops_per_sec" and value:
            yield Step(self._at, flops_per_second=value, source=NAME)
        elif name.startswith("loss/train") and finite(match["value"]) is not None:
            yield Step(self._at, loss=number(match["value"]), source=NAME)

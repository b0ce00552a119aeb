"""DeepSpeed: `SamplesPerSec=`, its memory line, its timers, and the steps that overflowed.

GB are of 2^30. A pipeline prints its own line. Source: deepspeedai/DeepSpeed deepspeed/utils/timer.py,
runtime/utils.py, runtime/pipe/engine.py.
"""

import re
from collections.abc import Iterator

from .numbers import GIB, finite, number, positive, whole
from .record import Event, Fact, Line, Mark, Memory, Step, Timer

NAME, TITLE = "deepspeed", "DeepSpeed"
LOOKS_FOR = "epoch=0/micro_step=40/global_step=20, RunningAvgSamplesPerSec=50.9, CurrSamplesPerSec=51.2, .."
WARM = 1
RATE = re.compile(
    r"(?:epoch=)?\d{1,9}/(?:micro_step=\d{1,12}/)?(?:global_step=)?(?P<step>\d{1,12}), (?:RunningAvg)?SamplesPerSec="
    r"(?P<mean>[\d.eE+-]{1,30})(?:, CurrSamplesPerSec=(?P<now>[\d.eE+-]{1,30}))?"
    r"(?:, MemAllocated=(?P<held>[\d.]{1,20})GB, MaxMemAllocated=(?P<peak>[\d.]{1,20})GB)?"
)
TIMES = re.compile(r"time \(ms\)(?P<fields>(?: \| [\w/-]{1,60}: [\d.]{1,20}){1,60})")
ONE = re.compile(r"(?P<name>[\w/-]{1,60}): (?P<value>[\d.]{1,20})(?= \||\s*$)")
HELD = re.compile(r"\bMax_MA (?P<peak>[\d.]{1,20}) GB\s+CA [\d.]{1,20} GB\s+Max_CA (?P<reserved>[\d.]{1,20}) GB")
PIPELINE = re.compile(
    r"steps: (?P<step>\d{1,12}) loss: (?P<loss>[\d.naif+-]{1,20}) .{0,200}?iter time \(s\): (?P<seconds>[\d.]{1,20})"
    r" samples/sec: (?P<rate>[\d.]{1,20})(?=\s|$)"
)
CONFIG = re.compile(
    r"(?P<name>train_batch_size|train_micro_batch_size_per_gpu|gradient_accumulation_steps|world_size) \.{2,60} "
    r"(?P<value>\d{1,9})\s*$"
)
FACTS = {
    "train_batch_size": "samples",
    "train_micro_batch_size_per_gpu": "micro_batch",
    "gradient_accumulation_steps": "accumulation",
    "world_size": "devices",
}
SKIPPED = re.compile(r"step=(?P<step>\d{1,12}), skipped=(?P<skipped>\d{1,12}), lr=\[")


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "SamplesPerSec=" in text and (match := RATE.search(text)):
            yield from _rate(match, line)
        elif "time (ms) |" in text and (match := TIMES.search(text)):
            for one in ONE.finditer(match["fields"]):
                value = finite(one["value"])
                if value is not None:
                    yield Timer(one["name"], value / 1e3)
        elif "Max_MA" in text and (match := HELD.search(text)):
            for kind, name in (("allocated", "peak"), ("reserved", "reserved")):
                value = positive(match[name])
                if value:
                    yield Memory("allocated" if kind == "allocated" else "reserved", value * GIB, line.rank)
        elif "iter time (s):" in text and (match := PIPELINE.search(text)):
            yield Step(
                int(match["step"]),
                positive(match["seconds"]),
                samples_per_second=positive(match["rate"]),
                loss=number(match["loss"]),
                when=line.when,
                source=NAME,
            )
        elif "skipped=" in text and (match := SKIPPED.search(text)):
            yield Fact("skipped", float(whole(match["skipped"])))
        elif "config.py" in text and (match := CONFIG.search(text)):
            yield Fact(FACTS[match["name"]], float(match["value"]))
        elif "OVERFLOW!" in text:
            yield Mark("overflow")


def _rate(match: re.Match[str], line: Line) -> Iterator[Event]:
    peak = positive(match["peak"])
    if peak:
        yield Memory("allocated", peak * GIB, line.rank, int(match["step"]))
    now = positive(match["now"]) if match["peak"] else None  # at the end of a line it may be cut
    mean = positive(match["mean"]) if match["now"] or "RunningAvg" not in match[0] else None
    yield Step(int(match["step"]), samples_per_second=now or mean, when=line.when, source=NAME)

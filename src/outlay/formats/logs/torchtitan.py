"""torchtitan: `step: 20  loss:  7.1  memory: 66.30GiB(83.82%)  tps: 6,554  tflops: 379.55  mfu: 38.38%`.

tps is of one device. Memory is what the allocator reserved at most since the line before; of MFU the peak stands in the
line itself. Source: pytorch/torchtitan torchtitan/components/metrics.py.
"""

import re
from collections.abc import Iterator

from .numbers import GIB, finite, number, positive
from .record import Begins, Event, Fact, Line, Mark, Memory, Step

NAME, TITLE = "torchtitan", "torchtitan"
LOOKS_FOR = "step: 20 loss: 7.1 memory: 66.30GiB(83.82%) tps: 6,554 tflops: 379.55 mfu: 38.38%"
WARM = 1

STEP = re.compile(
    r"(?<!validate )\bstep:\s*(?P<step>\d{1,12})\s+loss:\s*(?P<loss>[-\d.naif]{1,20})"
    r"(?:\s+grad_norm:\s*[-\d.naif]{1,20})?\s+memory:\s*(?P<gib>[\d.]{1,12})GiB\((?P<percent>[\d.]{1,9})%\)"
    r"(?:\s+(?:tps|wps):\s*(?P<rate>[\d,]{1,20})(?:\s+tflops:\s*(?P<flops>[\d,.]{1,20}))?\s+mfu:\s*(?P<mfu>[\d.]{1,20}%|N/A))?"
)
RETRIES = re.compile(r"(?P<count>\d{1,9}) \w+ memory allocation retries")
MESH = re.compile(r"(?:device mesh with parallelism: |Building \d-D device mesh with )(?P<mesh>.{1,400})")
AXIS = re.compile(r"\b(pp|dp_replicate|dp_shard|cp|tp|ep)\s*[=:]\s*(\d{1,7})")
MODEL = re.compile(r"Model (?P<name>\S{1,60}) (?P<flavor>\S{1,60}) size: (?P<size>[\d,]{1,20}) total parameters")
CARD = re.compile(r"CUDA capacity: (?P<card>.{1,80}?) with (?P<gib>[\d.]{1,12})GiB memory")
PEAK = re.compile(r"Peak FLOPS used for computing MFU: (?P<peak>[\d.eE+]{1,20})")
INITIAL = {
    "sequence_length": re.compile(r"(?:sequence|maximum context) length:? (\d{1,15}(?:,\d{3}){0,5})"),
    "samples": re.compile(r"global batch size:? (\d{1,15}(?:,\d{3}){0,5})"),
    "tokens_a_step": re.compile(r"tokens per train step:? (\d{1,15}(?:,\d{3}){0,5})"),
    "total_steps": re.compile(r"total steps:? (\d{1,15}(?:,\d{3}){0,5})"),
    "accumulation": re.compile(r"gradient accumulation steps:? (\d{1,15}(?:,\d{3}){0,5})"),
}


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "step:" in text and "memory:" in text and (match := STEP.search(text)):
            yield from _step(match, line)
        elif "allocation retries" in text and (match := RETRIES.search(text)):
            yield Mark("allocation retries", int(match["count"]))
        elif "raining starts at step" in text:
            yield Begins()
        else:
            yield from _facts(text)


def _step(match: re.Match[str], line: Line) -> Iterator[Event]:
    number_, gib, share = int(match["step"]), positive(match["gib"]), positive(match["percent"])
    if gib:
        yield Memory("reserved", gib * GIB, line.rank, number_, share / 100 if share else None)
    mfu = positive((match["mfu"] or "").rstrip("%"))
    flops = positive(match["flops"])
    yield Step(
        number_,
        tokens_per_second_per_device=positive(match["rate"]),
        flops_per_second=flops * 1e12 if flops else None,
        mfu=mfu / 100 if mfu else None,
        loss=number(match["loss"]),
        when=line.when,
        source=NAME,
    )


def _facts(text: str) -> Iterator[Event]:
    if "device mesh" in text and (match := MESH.search(text)):
        degrees = {name: float(value) for name, value in AXIS.findall(match["mesh"])}
        yield from (Fact(name, value) for name, value in degrees.items())
        devices = 1.0
        for name in ("pp", "dp_replicate", "dp_shard", "cp", "tp"):
            devices *= degrees.get(name, 1.0)
        if degrees and "dp_shard" in degrees:
            yield Fact("devices", devices)
    elif "total parameters" in text and (match := MODEL.search(text)):
        size = positive(match["size"])
        if size:
            yield Fact("parameters", size)
        yield Fact("model", f"{match['name']} {match['flavor']}")
    elif "CUDA capacity" in text and (match := CARD.search(text)):
        yield Fact("card", match["card"])
        gib = positive(match["gib"])
        if gib:
            yield Fact("capacity_bytes", gib * GIB)
    elif "Peak FLOPS" in text and (match := PEAK.search(text)):
        peak = finite(match["peak"])
        if peak:
            yield Fact("peak_flops", peak)
    elif "rainer is initialized with" in text:
        for name, pattern in INITIAL.items():
            value = positive(found[1]) if (found := pattern.search(text)) else None
            if value:
                yield Fact(name, value)

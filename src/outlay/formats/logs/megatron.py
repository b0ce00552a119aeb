"""Megatron-LM and its kin: GPT-NeoX, Megatron-DeepSpeed, Primus, and the second line of Megatron-Bridge.

 iteration       20/    1000 | consumed samples:         2560 | elapsed time per iteration (ms): 2500.0 | ..

Sources: NVIDIA/Megatron-LM megatron/training/training.py; EleutherAI/gpt-neox megatron/logging.py.
"""

import re
from collections.abc import Iterator

from .numbers import GIB, MIB, fields, finite, number, positive, whole
from .record import Begins, Event, Fact, Kind, Line, Memory, Step, Timer

NAME, TITLE = "megatron", "Megatron-LM"
LOOKS_FOR = "iteration 20/ 1000 | elapsed time per iteration (ms): 2500.0 | .."
WARM = 1  # lines at the start of a run that hold start-up

HEAD = re.compile(
    r"(?:samples/sec:\s*(?P<rate>[\d.]{1,20})\s*\|\s*)?\biteration\s{1,12}(?P<step>\d{1,12})/\s{0,12}(?P<total>\d{1,12})\s*\|"
)
MEMORY = re.compile(r"after (?P<step>\d{1,12}) iterations\)? memory \((?P<unit>MB|GB)\)(?P<fields>.{0,2000})")
ONE = re.compile(r"(?P<name>[\w -]{3,40}?):\s*(?P<value>[\d.eE+]{1,20})(?=\s|\||$)")
TIMER = re.compile(
    r"(?:^|\s)(?P<name>[a-z][\w/-]{1,60})\s\.{2,60}:\s*(?:\((?P<least>[\d.]+),\s*(?P<most>[\d.]+)\)|(?P<only>[\d.]+))\s*$"
)
BRIDGE = re.compile(
    r"Step Time :\s*(?P<seconds>[\d.]{1,20})s GPU utilization:\s*(?P<flops>[\d.]{1,20})\s*(?:MODEL_)?TFLOP/s/GPU"
)
VOCABULARY = re.compile(r"padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (?P<size>\d{1,12})\)")
BEGINS = re.compile(r"-{4,80} ?(?:NeoXArgs )?arguments -{4,80}")
WORLD = re.compile(r"using world size: (?P<world>\d{1,9})")

PEAKS: dict[str, Kind] = {
    "max allocated": "allocated",
    "mem-max-allocated-gigabytes": "allocated",
    "mem-max-allocated-bytes": "allocated",
    "max reserved": "reserved",
    "mem-max-reserved-gigabytes": "reserved",
    "mem-reserved-gigabytes": "reserved",
}
TOKENS_EACH = (
    "tokens per gpu per second (tgs)",
    "tokens per second per gpu (tok/s/gpu)",
    "tokens per gpu (tokens/s/gpu)",
    "tokens/s/gpu inst/harmonic mean",
)
FLOPS_EACH = (
    "throughput per gpu (tflop/s/gpu)",
    "throughput (tflop/s/gpu)",
    "compute per gpu (tflop/s/gpu)",
    "tflops",
    "approx flops per gpu",
)
TIME, MOST_PARTS = "elapsed time per iteration (", 8
LOSSES = ("lm loss", "lm_loss", "loss")
UNITS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Reader:
    """Reads the lines of one log."""

    def __init__(self) -> None:
        self._pairs = 0  # second lines of Megatron-Bridge, which say no number
        self._open: Line | None = None  # a step's line that a terminal broke, as far as it was read
        self._parts = 0

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        line = self._joined(line)
        text = line.text
        if "iteration" in text and "Training epoch" not in text:  # which is NeMo's
            yield from _steps(line)
            if match := MEMORY.search(text):
                yield from _memory(match, line)
        if "...:" in text and (match := TIMER.search(text)):
            most = finite(match["most"] or match["only"])
            least = finite(match["least"])
            if most is not None:
                yield Timer(match["name"], most / 1e3, None if least is None else least / 1e3)
        elif "Step Time :" in text and (match := BRIDGE.search(text)):
            self._pairs += 1
            flops = positive(match["flops"])
            seconds = positive(match["seconds"])
            rate = flops * 1e12 if flops else None
            yield Step(self._pairs, seconds, flops_per_second=rate, source="megatron_bridge")
        else:
            yield from _facts(text)

    def _joined(self, line: Line) -> Line:
        """A line, or the whole of one that was broken: a step's line without its time goes on in those behind it."""
        held, new = self._open, HEAD.search(line.text) is not None if "iteration" in line.text else False
        self._open = None
        if held is None or new or self._parts >= MOST_PARTS:
            self._parts = 0
            whole = line
        else:
            whole = Line(held.text + line.text, line.whole)
        broken = (new or whole is not line) and not (TIME in whole.text and whole.text.rstrip().endswith("|"))
        if broken:
            self._open, self._parts = whole, self._parts + 1
        return whole


def _facts(text: str) -> Iterator[Event]:
    if "arguments ---" in text and BEGINS.search(text):
        yield Begins()
    elif "world size" in text and (match := WORLD.search(text)):
        yield Fact("devices", float(match["world"]))
    elif "padded vocab" in text and (match := VOCABULARY.search(text)):
        yield Fact("padded_vocabulary", float(match["size"]))


def _steps(line: Line) -> Iterator[Event]:
    """The steps of a line: usually one, two where ranks wrote into each other's line."""
    heads = list(HEAD.finditer(line.text))
    ends = [*(head.start() for head in heads[1:]), len(line.text)][: len(heads)]
    for head, end in zip(heads, ends, strict=True):
        said = {name.lower(): value for name, value in fields(line.text[head.end() : end])}
        yield Fact("total_steps", float(head["total"]))
        yield _step(head, said, line)


def _step(head: re.Match[str], said: dict[str, str], line: Line) -> Step:
    each = next((said[name] for name in TOKENS_EACH if name in said), None)
    flops = next((said[name] for name in FLOPS_EACH if name in said), None)
    neox = head["rate"] is not None
    return Step(
        number=int(head["step"]),
        seconds=_seconds(said),
        samples=positive(said.get("global batch size")),
        samples_per_second=positive(head["rate"] or said.get("samples per second")),
        tokens_per_second_per_device=positive(each.split("/")[0]) if each else None,
        flops_per_second=_flops(flops) if flops else None,
        mfu=_share(said.get("mfu")),
        loss=next((number(said[name]) for name in LOSSES if name in said), None),
        loss_scale=finite(said.get("loss scale")),
        consumed_samples=finite(said.get("consumed samples")),
        skipped=whole(said.get("number of skipped iterations")),
        nans=whole(said.get("number of nan iterations")),
        when=line.when,
        source="neox" if neox else "megatron_deepspeed" if "consumed tokens" in said else NAME,
    )


def _seconds(said: dict[str, str]) -> float | None:
    """Seconds a step; the unit stands in the name."""
    for unit, size in (("ms", 1e-3), ("s", 1.0)):
        value = positive(said.get(f"elapsed time per iteration ({unit})"))
        if value is not None:
            return value * size
    return None


def _flops(text: str) -> float | None:
    """`337.3`, `379.5TFLOPS`, `a (avg b)`, in FLOP/s."""
    match = re.match(r"([\d.]{1,20})\s*([KMGTP]?)", text)
    value = positive(match[1]) if match else None
    return value * UNITS.get(match[2] if match else "", 1e12) if value else None


def _share(text: str | None) -> float | None:
    value = positive((text or "").rstrip("% "))
    return value / 100 if value else None


def _memory(match: re.Match[str], line: Line) -> Iterator[Event]:
    """MB are of 2^20; GB, which Megatron-Bridge prints, of 10^9."""
    for one in ONE.finditer(match["fields"]):
        kind, value = PEAKS.get(one["name"].strip()), positive(one["value"])
        if kind and value:
            size = 1.0 if one["name"].endswith("-bytes") else MIB if match["unit"] == "MB" else 1e9
            yield Memory(kind, min(value * size, 1e6 * GIB), line.rank, int(match["step"]))
        elif "alloc-reti" in one["name"] or "alloc-retr" in one["name"]:
            yield Fact("allocation_retries", value or 0.0)

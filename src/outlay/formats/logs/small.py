"""Trainers of one line a step: nanoGPT, nanochat, torchtune, xtuner, InternEvo, NeMo.

nanoGPT's MFU is over 312 TFLOP/s on any card, a moving mean that begins below 0. NeMo counts from 0. Sources:
karpathy/nanoGPT train.py; karpathy/nanochat base_train.py; pytorch/torchtune; InternLM/xtuner; InternLM/InternEvo;
NVIDIA-NeMo/NeMo lightning/pytorch/callbacks/progress_printer.py.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from .numbers import GIB, fields, number, positive
from .record import Event, Fact, Kind, Line, Memory, Step

NAME, TITLE = "small", "a trainer of one line a step"
LOOKS_FOR = "iter 20: loss 7.1, time 2500.00ms, mfu 38.37% (nanoGPT), and lines of nanochat, torchtune, xtuner, NeMo"
WARM = 1
TITLES = {
    "nanogpt": "nanoGPT",
    "nanochat": "nanochat",
    "torchtune": "torchtune",
    "xtuner": "xtuner",
    "internevo": "InternEvo",
    "nemo": "NeMo",
}
NANOGPT = re.compile(
    r"\biter (?P<step>\d{1,12}): loss (?P<loss>[\d.naif]{1,20}), time (?P<ms>[\d.]{1,20})ms"
    r"(?:, mfu (?P<mfu>-?[\d.]{1,20})%)?"
)
NANOCHAT = re.compile(r"\bstep (?P<step>\d{1,12})/(?P<total>\d{1,12}) \([^)]{0,20}\) \| (?P<fields>.{0,600})")
TORCHTUNE = re.compile(r"\bStep (?P<step>\d{1,12}) \| (?P<fields>(?:[\w/]{1,60}:[-\d.eE+naif]{1,30} ){1,40})")
XTUNER = re.compile(
    r"\bStep (?P<step>\d{1,12})/(?P<total>\d{1,12})\s+data_time:\s*(?P<data>[\d.]{1,20}).{0,300}?\btime:\s*"
    r"(?P<seconds>[\d.]{1,20}).{0,600}?max_memory:\s*(?P<peak>[\d.]{1,20})\s*GB\s+reserved_memory:\s*"
    r"(?P<reserved>[\d.]{1,20})\s*GB\s+tgs:\s*(?P<rate>[\d.]{1,20})(?=\s)"
)
INTERNEVO = re.compile(
    r"\btflops=(?P<flops>[\d.]{1,20})[, ]\s*step=(?P<step>\d{1,12})[, ].{0,600}?tgs \(tokens/gpu/second\)="
    r"(?P<rate>[\d.]{1,20})(?=[\s,])"
)
NEMO = re.compile(r"Training epoch \d{1,9}, iteration (?P<step>\d{1,12})/(?P<last>\d{1,12}) \|(?P<fields>.{0,2000})")
BATCH = re.compile(
    r"Total batch size (?P<tokens>\d[\d,]{0,18}) => gradient accumulation steps: (?P<accumulation>\d{1,9})"
)


def _nanogpt(match: re.Match[str], line: Line) -> Iterator[Event]:
    ms, mfu = positive(match["ms"]), positive(match["mfu"])
    yield Step(
        int(match["step"]),
        ms / 1e3 if ms else None,
        mfu=mfu / 100 if mfu else None,
        loss=number(match["loss"]),
        source="nanogpt",
    )


def _nanochat(match: re.Match[str], line: Line) -> Iterator[Event]:
    said = dict(fields(match["fields"]))
    ms = positive(said.get("dt", "").removesuffix("ms"))
    mfu = positive(said.get("mfu"))
    yield Fact("total_steps", float(match["total"]))
    yield Step(
        int(match["step"]),
        ms / 1e3 if ms else None,
        tokens_per_second=positive(said.get("tok/sec")),
        mfu=mfu / 100 if mfu else None,
        loss=number(said.get("loss")),
        source="nanochat",
    )


def _torchtune(match: re.Match[str], line: Line) -> Iterator[Event]:
    said = dict(part.split(":", 1) for part in match["fields"].split())
    if value := positive(said.get("peak_memory_active")):
        yield Memory("active", value * GIB, line.rank, int(match["step"]))
    rate = positive(said.get("tokens_per_second_per_gpu"))
    yield Step(int(match["step"]), tokens_per_second_per_device=rate, loss=number(said.get("loss")), source="torchtune")


def _xtuner(match: re.Match[str], line: Line) -> Iterator[Event]:
    kinds: tuple[tuple[Kind, str], ...] = (("allocated", "peak"), ("reserved", "reserved"))
    for kind, name in kinds:
        if value := positive(match[name]):
            yield Memory(kind, value * GIB, line.rank, int(match["step"]))
    yield Fact("total_steps", float(match["total"]))
    yield Step(
        int(match["step"]),
        positive(match["seconds"]),
        tokens_per_second_per_device=positive(match["rate"]),
        data_seconds=positive(match["data"]),
        source="xtuner",
    )


def _internevo(match: re.Match[str], line: Line) -> Iterator[Event]:
    flops = positive(match["flops"])
    yield Step(
        int(match["step"]),
        tokens_per_second_per_device=positive(match["rate"]),
        flops_per_second=flops * 1e12 if flops else None,
        when=line.when,
        source="internevo",
    )


def _nemo(match: re.Match[str], line: Line) -> Iterator[Event]:
    said = dict(fields(match["fields"]))
    flops = positive(said.get("TFLOPS_per_GPU"))
    yield Fact("total_steps", float(match["last"]) + 1)
    yield Step(
        int(match["step"]),
        positive(said.get("train_step_timing in s")),
        samples=positive(said.get("global_batch_size")),
        flops_per_second=flops * 1e12 if flops else None,
        loss=number(said.get("reduced_train_loss")),
        consumed_samples=positive(said.get("consumed_samples")),
        when=line.when,
        source="nemo",
    )


Read = Callable[[re.Match[str], Line], Iterator[Event]]
KNOWN: Mapping[str, tuple[re.Pattern[str], Read]] = {
    "iter ": (NANOGPT, _nanogpt),
    "dt: ": (NANOCHAT, _nanochat),
    " | loss:": (TORCHTUNE, _torchtune),
    "data_time:": (XTUNER, _xtuner),
    "tflops=": (INTERNEVO, _internevo),
    "Training epoch ": (NEMO, _nemo),
}


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        for sign, (pattern, read) in KNOWN.items():
            if sign in line.text and (match := pattern.search(line.text)):
                yield from read(match, line)
                return
        if "Total batch size" in line.text and (match := BATCH.search(line.text)):
            yield Fact("tokens_a_step", positive(match["tokens"]) or 0.0)
            yield Fact("accumulation", float(match["accumulation"]))

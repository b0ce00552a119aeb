"""A machine that the catalogue does not have, as a TOML file for --on: measured rates stand as its specified ones."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...cluster.catalogue.units import written
from .peaks import Peaks

HEAD = """\
# A machine for outlay, as `outlay calibrate` measured it on {date}: {where}.
# One "accelerator" of it is one rank: {rank}. With the profile beside it:
#   outlay count MODEL --on {ranks}x{file} --profile {profile}
# Its specified rates are the best that was measured: a multiply in each precision, a copy or a sum of large tensors, a
# collective of a large buffer. Shares and times are those of the profile, which says what each rests on.
"""
ALONE = "# Measured on one rank: nothing was sent, and the link below is an assumption.\n"
NEEDED = ("matmul_share", "attention_share", "memory_share", "launch_seconds")
OPTIONAL = ("matmul_depth", "attention_back_share", "collective_seconds")


@dataclass(frozen=True)
class Rank:
    """What one rank of the machine has."""

    title: str  # of the device
    vendor: str
    memory_bytes: float
    words: str  # what a rank is


@dataclass(frozen=True)
class Names:
    """What the files are called, for the head of one of them."""

    machine: str
    file: str
    profile: str


def machine_text(
    names: Names, rank: Rank, peaks: Peaks, values: Mapping[str, float], ranks: int, local: int, where: str, date: str
) -> str:
    """The file. `values`: the constants that were measured, by name; `local`: ranks of one machine."""
    head = HEAD.format(date=date, where=where, rank=rank.words, ranks=ranks, file=names.file, profile=names.profile)
    lines = [head, "" if ranks > 1 else ALONE, f"name = {_text(names.machine)}\nranks = {ranks}\n"]
    lines += [f"accelerators_per_node = {local}\n"] if ranks > local else []
    lines += [] if ranks > 1 else ['unverified = ["link bandwidth"]\n']
    return "".join([*lines, *_card(names.machine, rank, peaks, values), *_levels(peaks, values, ranks, local)])


def lacking(values: Mapping[str, float], ranks: int) -> list[str]:
    """Constants without which there is no file."""
    wires = ("link_share", "nic_share") if ranks > 1 else ()
    return [name for name in NEEDED if name not in values] + (
        ["link_share or nic_share"] if wires and not any(name in values for name in wires) else []
    )


def _card(name: str, rank: Rank, peaks: Peaks, values: Mapping[str, float]) -> Iterator[str]:
    texts = {"name": name, "title": rank.title, "vendor": rank.vendor}
    figures = {
        "bf16_flops": peaks.flops["bf16"],
        "fp32_flops": peaks.flops["fp32"],
        "memory_bytes": rank.memory_bytes,
        "context_bytes": 0.0,
        "memory_bandwidth": peaks.memory,
        "host_bandwidth": peaks.memory,
    }
    yield "\n[accelerator]\n"
    yield from (f"{key} = {_text(text)}\n" for key, text in texts.items())
    yield from (_figure(key, value) for key, value in figures.items())
    yield from (_figure(key, values[key]) for key in (*NEEDED, *OPTIONAL) if key in values)


def _levels(peaks: Peaks, values: Mapping[str, float], ranks: int, local: int) -> Iterator[str]:
    if ranks == 1:
        yield '\n[[levels]]\nname = "nobody to send to"\nsize = 1\nbandwidth = "1 GB/s"\nshare = 1\n'
        yield 'latency_seconds = "0 s"\n'
        return
    inside = {"link": local} if local > 1 else {}
    for level, size in (inside | ({"nic": ranks} if ranks > local else {})).items():
        yield f"\n[[levels]]\nname = {_text(LEVELS[level])}\nsize = {size}\n"
        yield _figure("bandwidth", getattr(peaks, level))
        yield _figure("share", values[f"{level}_share"])
        yield _figure("latency_seconds", values.get(f"{level}_latency_seconds", 0.0))


LEVELS = {"link": "inside a machine", "nic": "between machines"}


def _figure(name: str, value: float) -> str:
    measure = name.split("_")[-1]
    return f"{name} = {float(value)!r}\n" if measure == "share" else f'{name} = "{written(value, measure)}"\n'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)

"""A cluster of one's own, from a TOML file. Nothing in it is executed; every fault is said at once.

name, accelerator (a name of the catalogue, or a table: `base` and what differs), ranks, accelerators_per_node, rails,
host_bytes (an accelerator's part of its node), storage_bandwidth (of all accelerators together), mtbf_seconds (of one
accelerator), restart_seconds, pue, unverified, [[levels]] from the inside out (two or three; or one that joins all),
[price].
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...errors import Fault, InputError
from ..accelerator import Accelerator, Cluster, Link, Price
from .reader import LONGEST, Table, shown, toml_of
from .tables import accelerator, accelerator_names, closest, find, links, node, node_names, used_figures, words

MOST = 10_000_000  # accelerators in a cluster: beyond any that exists, and small enough for exact whole numbers
RULE = "--on FILE.toml is a TOML file in UTF-8, of 1 MiB at most"
FIX = "outlay hardware 8xp5.48xlarge --toml > my.toml, and edit that"
TOP = (
    *("name", "accelerator", "ranks", "accelerators_per_node", "rails", "host_bytes", "storage_bandwidth"),
    *("mtbf_seconds", "restart_seconds", "pue", "unverified", "levels", "price"),
)
LEVEL = (
    "name", "size", "bandwidth", "share", "latency_seconds", "switch_share", "switch_seconds", "paths", "nics",
    "oversubscription",
)  # fmt: skip
MIXED = ("accelerators", "nodes")  # keys that would name several kinds


@dataclass(frozen=True)
class _Card:
    """The accelerator of a file, and the catalogue's that it rests on."""

    made: Accelerator
    base: str  # "" where every figure is the file's own
    unverified: tuple[str, ...]


def own_cluster(path: str, ranks: int = 0) -> Cluster:
    """The cluster of a TOML file; `ranks` above 0 stands for the file's own. Raises InputError with every fault."""
    faults: list[Fault] = []
    top = Table(toml_of(path, "HW006", RULE, FIX), "", path, faults)
    kinds = [key for key in MIXED if key in top.values]
    top.only((*TOP, *kinds))
    several = [*kinds, *(["accelerator"] if isinstance(top.values.get("accelerator"), list) else [])]
    if several:
        raise InputError(mixed(f"{several[0]} = {shown(top.values[several[0]])}", 'accelerator = "h100-sxm"'), *faults)
    card = _card(top)
    most = top.count("ranks", MOST, ranks or None)
    joined = ranks or most
    notes: list[str] = []
    levels = _levels(top, card.base, joined, notes)
    rails = top.count("rails", 1_024, 1)
    price, named = _price(top), top.names("unverified")
    sized = ("host_bytes", "storage_bandwidth")
    host, storage = (top.figure(key, least=1.0) if key in top.values else None for key in sized)
    timed = ("mtbf_seconds", "restart_seconds")
    mtbf, restart = (top.figure(key) if key in top.values else None for key in timed)
    stem = Path(path).stem
    stem = stem if stem.isprintable() and 0 < len(stem) <= LONGEST else "own"
    name = top.text("name", stem)
    _check_sizes(top, levels, joined, rails)
    if faults:
        raise InputError(*faults)
    if rails > 1:
        notes.append(f"{rails} rails: what an all-to-all sends to another rail crosses {levels[0].name} first")
    return Cluster(
        name=f"{ranks}x{stem}" if ranks else name,
        accelerator=card.made,
        ranks=joined,
        inside=levels[0],
        outside=levels[1] if len(levels) > 1 else replace(levels[0], size=joined),
        unverified=tuple(dict.fromkeys((*card.unverified, *named))),
        spine=levels[2] if len(levels) > 2 and levels[1].size < joined else None,
        rails=rails,
        price=price,
        notes=tuple(notes),
        host_bytes=host,
        storage_bandwidth=storage,
        mtbf_seconds=mtbf,
        restart_seconds=restart,
        pue=top.number("pue", 1, 10, 1) if "pue" in top.values else None,
    )


def mixed(got: str, fix: str) -> Fault:
    """HW005: a cluster of two kinds of accelerator."""
    rule = "a cluster is of one kind: ranks are cut alike and wait for each other, so the slowest sets every step"
    advice = f"{fix}   (count each kind by itself; or all of it as the slower kind, with the smaller memory)"
    return Fault("HW005", "two kinds of accelerator in one cluster", rule, got, advice)


# ---- the accelerator


def _card(top: Table) -> _Card:
    value = top.values.get("accelerator")
    if isinstance(value, Mapping):
        return _own_card(Table(value, "accelerator", top.file, top.faults))
    base = _base(top, "accelerator")
    return _Card(accelerator(base or "h100-sxm"), base, _recalled(base, ()))


def _own_card(at: Table) -> _Card:
    """Figures of one's own, over those of a base where there is one."""
    base = _base(at, "base") if "base" in at.values else ""
    under = accelerator(base) if base else None
    numbers = [field.name for field in fields(Accelerator) if field.type is not str]
    at.only(("base", "name", "title", "vendor", *numbers))
    values = {name: _number(at, name, under) for name in numbers}
    name = at.text("name", f"{base}-own" if base else "own")
    made = Accelerator(
        name=name,
        title=at.text("title", name),
        vendor=at.text("vendor", under.vendor if under else "own"),
        **values,
    )
    if not (made.bf16_flops or made.fp16_flops):
        at.fault("bf16_flops", "and fp16_flops are both 0", "one of them is above 0", 'bf16_flops = "989 TFLOP/s"')
    return _Card(made, base, _recalled(base, at.values))


SHARES = ("fp8_share", "mxfp8_share", "fp4_share", "attention_back_share")
USUAL = (*SHARES, "matmul_depth", "fp8_depth", "multiprocessors", "power_watts", "collective_seconds")


def _number(at: Table, name: str, under: Accelerator | None) -> float:
    absent = 0.0 if name.endswith("_flops") or name in USUAL else None  # a type that it has not, or what is usual
    least = 1.0 if name == "memory_bytes" else None
    return at.figure(name, getattr(under, name) if under else absent, least)


def _base(at: Table, key: str) -> str:
    """The catalogue's name for an accelerator; an empty text, and a fault, where it has none."""
    text = at.text(key)
    found = find(text, accelerator_names())
    if not found and key in at.values and text != "?":
        holds = find(text, node_names())
        close = [node(holds).accelerator] if holds else closest(text, accelerator_names()) or ["h100-sxm"]
        also = f"   (also close: {', '.join(close[1:])})" if close[1:] else "   (list: outlay hardware)"
        rule = "an accelerator of the catalogue, or a table [accelerator] with figures of your own"
        what = "is a node type, not an accelerator" if holds else "is no accelerator that is known"
        at.fault(key, what, rule, f'{key} = "{close[0]}"{also}', "HW001")
    return found


def _recalled(base: str, own: Mapping[str, Any] | tuple[()]) -> tuple[str, ...]:
    """Unverified figures of the base that the file does not replace; those of its links are the levels'."""
    known = {words(field.name) for field in fields(Accelerator)} - {words(key) for key in own}
    return tuple(name for name, one in used_figures(base).items() if one.unverified and name in known) if base else ()


# ---- the levels


def _levels(top: Table, base: str, ranks: int, notes: list[str]) -> tuple[Link, ...]:
    """The links from the inside out; those of the catalogue's accelerator where the file has none."""
    usual = links(base, ranks) if base else ()
    given = top.values.get("levels")
    if given is None and usual:
        notes.append(f"{' and '.join(link.name for link in usual)} as the catalogue has them for {base}")
        return usual
    rows = given if isinstance(given, list) and 1 <= len(given) <= 3 else []
    usual = (*usual[:1], *usual[-1:]) if len(rows) < 3 else usual
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        rule = "one to three tables [[levels]], from the inside out: a domain, the network, and a spine"
        top.fault("levels", "cannot be used" if given is not None else "is missing", rule, "[[levels]]")
        return (Link("?", 1, 1.0, 1.0, 0.0), Link("?", ranks, 1.0, 1.0, 0.0))
    made: list[Link] = []
    for index, row in enumerate(rows):
        at = Table(row, f"levels[{index}]", top.file, top.faults)
        whole = ranks if index == len(rows) - 1 else None
        made.append(_level(at, whole, usual[index] if index < len(usual) else None, made[1:], base, notes))
    return tuple(made)


def _level(at: Table, whole: int | None, usual: Link | None, below: list[Link], base: str, notes: list[str]) -> Link:
    """One level. Its share and latency are the catalogue's where the file does not say them; a spine's, the network's.

    `whole` is the size of the outermost level, which joins all.
    """
    at.only(LEVEL)
    under, last = (below[-1], "the level below") if below and usual is None else (usual, base)
    over, nics = at.number("oversubscription", 1, 1_000, 1), at.number("nics", 0.001, 1_000, 1)
    made = Link(
        name=at.text("name", "spine" if below else None),
        size=at.count("size", MOST, whole),
        bandwidth=at.figure("bandwidth", below[-1].bandwidth if below else None) * nics / over,
        share=at.figure("share", under.share if under else None),
        latency_seconds=at.figure("latency_seconds", under.latency_seconds if under else None),
        switch_share=at.figure("switch_share", under.switch_share if under else 0.0),
        switch_seconds=at.figure("switch_seconds", under.switch_seconds if under else 0.0),
        paths=at.count("paths", 1_000, 1 if below or under is None else under.paths),
    )
    taken = [words(key) for key in ("share", "latency_seconds") if key not in at.values]
    switch = ("switch_share", "switch_seconds") if made.switch_share else ()
    taken += [words(key) for key in switch if key not in at.values]
    taken += ["paths"] if "paths" not in at.values and made.paths > 1 else []
    if taken and under:
        notes.append(f"{' and '.join(taken)} of {made.name} as {last} has them")
    if over > 1:
        notes.append(f"{made.name}: {made.bandwidth / 1e9:.4g} GB/s an accelerator, at {over:g} to 1 oversubscription")
    return made


def _check_sizes(top: Table, levels: tuple[Link, ...], ranks: int, rails: int) -> None:
    """HW008: what does not fit together."""
    node = top.count("accelerators_per_node", MOST, 1)
    if ranks > node and ranks % node:
        fix = f"ranks = {max(node, ranks // node * node)} or {-(-ranks // node) * node}"
        rule = f"a multiple of accelerators_per_node, {node}"
        top.fault("ranks", "is not a whole number of nodes", rule, fix, "HW008")
    for index, (low, high) in enumerate(pairwise(levels)):
        last = index == len(levels) - 2
        if low.size < ranks and not last and high.size % low.size:
            at = Table({"size": high.size}, f"levels[{index + 1}]", top.file, top.faults)
            fix = f"size = {-(-high.size // low.size) * low.size}"
            at.fault("size", "does not hold whole domains", f"a multiple of {low.size}, the size below", fix, "HW008")
    if levels[-1].size < ranks:
        at = Table({"size": levels[-1].size}, f"levels[{len(levels) - 1}]", top.file, top.faults)
        rule = f"the outermost level joins all {ranks:,} accelerators; without a size it does"
        at.fault("size", "is smaller than the cluster", rule, "leave size out, or add a level outside", "HW008")
    if rails > levels[0].size:
        rule = f"one accelerator of a domain is on each rail: {levels[0].size} at most"
        top.fault("rails", "is more than a domain has", rule, f"rails = {levels[0].size}", "HW008")


def _price(top: Table) -> Price | None:
    """What the user pays, in place of a list price."""
    at = top.inner("price")
    if at is None:
        return None
    at.only(("price", "accelerators", "date", "unverified"))
    return Price(
        at.figure("price"), at.count("accelerators", MOST, 1), at.text("date", "your own"), at.flag("unverified")
    )

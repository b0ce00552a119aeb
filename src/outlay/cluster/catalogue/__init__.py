"""The hardware that outlay knows by name, each figure with its unit, kind, date and source; and what `--on` means.

accelerators.toml   one block an accelerator
nodes.toml          one block a node type: an accelerator, how many, and the NICs they share
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from ...errors import Fault, InputError, nearest, quoted
from ..accelerator import Accelerator, Cluster, Link

MOST = 10_000_000  # accelerators in a cluster: beyond any that exists, and small enough for exact whole numbers

# By the last word of a figure's name, which says what it measures: the units it may be written in, and their SI size.
UNITS: Mapping[str, Mapping[str, float]] = {
    "flops": {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "FLOP/s": 1.0},
    "bytes": {"MiB": 2.0**20, "GiB": 2.0**30, "GB": 1e9, "B": 1.0},
    "bandwidth": {"GB/s": 1e9, "TB/s": 1e12, "Gb/s": 1e9 / 8, "B/s": 1.0},
    "seconds": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "share": {"share": 1.0},
    "size": {"accelerators": 1.0},
    "accelerators": {"accelerators": 1.0},
    "price": {"USD/h": 1.0},
}

HEADER = re.compile(r'^\["?([^"\].]+|(?<=")[^"\]]+)"?\]$', re.MULTILINE)  # of an entry, not of a table inside one


@dataclass(frozen=True)
class Figure:
    """One figure of the catalogue as it was published, and how far to trust it."""

    name: str  # "memory bandwidth", "nic share"
    value: float
    unit: str
    kind: str  # specified, measured or assumed
    date: str  # when it was last read, or set
    source: str
    unverified: bool  # recalled from a vendor's sheet, not read again

    @property
    def si(self) -> float:
        """The value in SI units (B, B/s, FLOP/s, s); a price stays in USD an hour."""
        return convert(self.value, self.unit, self.name.split()[-1])


@dataclass(frozen=True)
class Node:
    """One node type: so many of one accelerator behind shared NICs."""

    name: str
    title: str
    accelerator: str
    accelerators: int
    domain: int  # accelerators on the fast link; it may join several nodes
    nic_bandwidth: float  # B/s an accelerator, one direction
    price_per_hour: float | None  # USD a node; None where no price was published


def convert(value: float, unit: str, measure: str) -> float:
    """A value in SI units; a unit that is unknown, or that measures something else, is refused."""
    fitting = UNITS[measure]
    if unit not in fitting:
        rule = f"{measure}: write {', '.join(fitting)}"
        fix = f"{value} {next(iter(fitting))}"
        raise InputError(Fault("UNI001", f"the unit {quoted(unit)} does not fit", rule, f"{value} {unit}", fix))
    return value * fitting[unit]


def accelerator_names() -> tuple[str, ...]:
    """The accelerators, as `--on` writes them."""
    return tuple(_sections("accelerators.toml"))


def node_names() -> tuple[str, ...]:
    """The node types, as `--on` writes them."""
    return tuple(_sections("nodes.toml"))


def accelerator(name: str) -> Accelerator:
    """One accelerator by its name, in SI units."""
    name = _known(name, accelerator_names())
    entry, values = _entry("accelerators.toml", name), _values(figures(name))
    rates = {field.name: values[_words(field.name)] for field in fields(Accelerator) if field.type is not str}
    return Accelerator(name=name, title=entry["title"], vendor=entry["vendor"], **rates)


def node(name: str) -> Node:
    """One node type by its name, in SI units."""
    name = _known(name, node_names())
    entry, values = _entry("nodes.toml", name), _values(figures(name))
    return Node(
        name=name,
        title=entry["title"],
        accelerator=entry["accelerator"],
        accelerators=int(values["accelerators"]),
        domain=int(values["link size"]),
        nic_bandwidth=values["nic bandwidth"],
        price_per_hour=values.get("price"),
    )


def figures(name: str) -> tuple[Figure, ...]:
    """Every figure that the catalogue holds of an accelerator or a node type."""
    name = _known(name, (*accelerator_names(), *node_names()))
    return _figures("accelerators.toml" if name in _sections("accelerators.toml") else "nodes.toml", name)


def cluster(text: str) -> Cluster:
    """What `--on` names: `64xh100-sxm` (accelerators), `8xp5.48xlarge` (nodes), or a bare name for one of it."""
    parsed = _parse(str(text), str(text))
    if parsed.faults:
        raise InputError(*parsed.faults)
    return _build(parsed)


def clusters(text: str) -> tuple[Cluster, ...]:
    """A scaling table: `8,16,32,64xh100-sxm` is four clusters; a part may also name its own accelerator."""
    parts = [part.strip() for part in str(text).split(",")]
    _, name = _split(parts[-1])
    parsed = [_parse(f"{part}x{name}" if _is_number(part) else part, str(text)) for part in parts]
    faults = {(fault.code, fault.what): fault for one in parsed for fault in one.faults}
    if faults:
        raise InputError(*faults.values())
    return tuple(_build(one) for one in parsed)


@dataclass(frozen=True)
class _Parsed:
    """One reading of `--on`: its name and count, or what is wrong with them."""

    name: str
    count: int
    faults: tuple[Fault, ...]


@cache
def _sections(file: str) -> dict[str, str]:
    """The text of each entry. An entry is parsed when it is asked for: to parse all takes longer than to count."""
    text = files(__package__).joinpath(file).read_text("utf-8")
    _, *parts = HEADER.split(text)
    return {name: f'["{name}"]\n{body}' for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def _entry(file: str, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = tomllib.loads(_sections(file)[name])[name]
    return entry


@cache
def _figures(file: str, name: str) -> tuple[Figure, ...]:
    return tuple(_read(_entry(file, name)))


def _read(entry: Mapping[str, Any], prefix: str = "") -> Iterator[Figure]:
    """The figures of an entry; those of a sub-table carry its name in front: `nic bandwidth`."""
    for key, value in entry.items():
        name = f"{prefix} {_words(key)}".strip()
        if isinstance(value, dict) and "value" in value:
            yield Figure(name=name, **{"unverified": False, **value})
        elif isinstance(value, dict):
            yield from _read(value, name)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _values(of: Iterable[Figure]) -> dict[str, float]:
    return {figure.name: figure.si for figure in of}


def _find(name: str, known: Iterable[str]) -> str:
    """A known name whatever its capitals; an empty text where there is none."""
    return next((one for one in known if one.lower() == name.lower()), "")


def _known(name: str, known: tuple[str, ...]) -> str:
    found = _find(name, known)
    if not found:
        raise InputError(_unknown(name, name, _closest(name, known), ""))
    return found


def _closest(name: str, known: Iterable[str]) -> list[str]:
    """The known names nearest to this one; those that begin with it come first, so `a100` means the accelerator."""
    exact = {one.lower(): one for one in known}
    near = sorted(nearest(name, exact), key=lambda one: not one.startswith(name.lower()))
    return [exact[one] for one in near]


def _unknown(name: str, text: str, close: list[str], fix: str) -> Fault:
    """HW001: the name means nothing here. `fix` is a text that works, by the closest name."""
    also = f"also close: {', '.join(close[1:])}; " if close[1:] else ""
    advice = f"{fix or close[0]}   ({also}list: outlay hardware)" if close else "outlay hardware lists the names"
    rule = "--on is COUNTxNAME; NAME is an accelerator such as h100-sxm or a node type such as p5.48xlarge"
    return Fault("HW001", f"no accelerator is called {quoted(name)}", rule, quoted(text), advice)


def _split(text: str) -> tuple[str, str]:
    """The count and the name in `COUNTxNAME`; a count of "1" where none was written.

    Names hold an x too (rtx4090, p5.48xlarge), so a count is split off only where it looks like a number, or
    where what follows is a name that is known.
    """
    whole = text.strip()
    before, *rest = (part.strip() for part in re.split("[xX\u00d7]", whole, maxsplit=1))
    if rest and not _find(whole, _all_names()) and (_is_number(before) or _find(rest[0], _all_names())):
        return before, rest[0]
    return ("", "") if _is_number(whole) else ("1", whole)


def _all_names() -> tuple[str, ...]:
    return (*accelerator_names(), *node_names())


def _is_number(text: str) -> bool:
    """Whether a text is meant as a number, of any kind: `8`, `-3`, `8.5`, `1e400`, `nan`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(part: str, text: str) -> _Parsed:
    """One reading of one part of the text; `text` is the whole, as the user wrote it."""
    count, name = _split(part)
    if not name.strip("xX, "):
        return _Parsed("", 0, (_unreadable(text),))
    found = _find(name, _all_names())
    close = [found] if found else _closest(name, _all_names())
    most = MOST // node(found).accelerators if found in node_names() else MOST
    number = _whole(count, most)
    faults = [] if number else [_bad_count(count, text, most, (close or ["h100-sxm"])[0])]
    if not found:
        faults.append(_unknown(name, text, close, _corrected(name, text, number, (close or [""])[0])))
    return _Parsed(found, number, tuple(faults))


def _corrected(name: str, text: str, number: int, right: str) -> str:
    """The user's own text with the right name, where its count is good and it is safe to print."""
    plain = number and text.isprintable() and len(text) <= 60
    return f"--on {text.strip().replace(name, right)}" if plain else f"--on {number or 8}x{right}"


def _whole(text: str, most: int) -> int:
    """A count from 1 to `most`; 0 where the text is not one. Long texts are not turned into numbers at all."""
    digits = text.lstrip("0")
    plain = text.isascii() and text.isdigit() and 0 < len(digits) <= len(str(MOST))
    return int(digits) if plain and int(digits) <= most else 0


def _bad_count(count: str, text: str, most: int, name: str) -> Fault:
    what = f"{quoted(count)} is not a count of accelerators or nodes"
    return Fault("HW002", what, f"the count is a whole number from 1 to {most:,}", quoted(text), f"--on 8x{name}")


def _unreadable(text: str) -> Fault:
    rule = "--on is COUNTxNAME, or a NAME by itself for one of it"
    return Fault("HW003", "--on names no hardware", rule, quoted(text), "--on 8xh100-sxm or --on 8xp5.48xlarge")


def _build(parsed: _Parsed) -> Cluster:
    """The cluster of a reading without faults: a node's own figures stand in for those of its accelerator."""
    of_node = {} if parsed.name in accelerator_names() else _entry("nodes.toml", parsed.name)
    card = of_node.get("accelerator", parsed.name)
    used = {figure.name: figure for figure in figures(card)}
    used |= {figure.name: figure for figure in _read(of_node) if figure.name != "price"}
    values, entry = _values(used.values()), _entry("accelerators.toml", card)
    ranks = parsed.count * int(values.get("accelerators", 1))
    network = of_node.get("nic", entry["nic"])["name"]
    return Cluster(
        name=f"{parsed.count}x{parsed.name}",
        accelerator=accelerator(card),
        ranks=ranks,
        inside=_link("link", entry["link"]["name"], int(values["link size"]), values),
        outside=_link("nic", network, ranks, values),
        unverified=tuple(name for name, figure in used.items() if figure.unverified),
    )


def _link(level: str, name: str, size: int, values: Mapping[str, float]) -> Link:
    bandwidth, share, latency = (values[f"{level} {part}"] for part in ("bandwidth", "share", "latency seconds"))
    return Link(name=name, size=size, bandwidth=bandwidth, share=share, latency_seconds=latency)

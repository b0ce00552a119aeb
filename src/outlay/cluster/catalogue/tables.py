"""The tables of accelerators and node types: a block each, read when it is asked for.

accelerators.toml   one block an accelerator
nodes.toml          one block a node type: an accelerator, how many, and the NICs they share
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

from ...errors import Fault, InputError, nearest, quoted
from ...sections import section, sections
from ..accelerator import Accelerator, Link, Price
from .units import convert

PACKAGE = __name__.rpartition(".")[0]


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
    host_bytes: float | None  # host memory of a node; None where it was not published
    price_per_hour: float | None  # USD a node; None where no price was published


def accelerator_names() -> tuple[str, ...]:
    """The accelerators, as `--on` writes them."""
    return tuple(sections(PACKAGE, "accelerators.toml"))


def node_names() -> tuple[str, ...]:
    """The node types, as `--on` writes them."""
    return tuple(sections(PACKAGE, "nodes.toml"))


def all_names() -> tuple[str, ...]:
    """Accelerators, then node types."""
    return (*accelerator_names(), *node_names())


def accelerator(name: str) -> Accelerator:
    """One accelerator by its name, in SI units."""
    name = known(name, accelerator_names())
    entry, values = _entry("accelerators.toml", name), values_of(figures(name))
    numbers = [field for field in fields(Accelerator) if field.type is not str]
    needed = [field.name for field in numbers if field.default is MISSING or words(field.name) in values]
    rates = {name: values[words(name)] for name in needed}
    return Accelerator(name=name, title=entry["title"], vendor=entry["vendor"], **rates)


def node(name: str) -> Node:
    """One node type by its name, in SI units."""
    name = known(name, node_names())
    entry = _entry("nodes.toml", name)
    used = values_of(used_figures(name).values())
    return Node(
        name=name,
        title=entry["title"],
        accelerator=entry["accelerator"],
        accelerators=int(used["accelerators"]),
        domain=int(used["link size"]),
        nic_bandwidth=used["nic bandwidth"],
        host_bytes=used.get("host bytes"),
        price_per_hour=used.get("price"),
    )


def figures(name: str) -> tuple[Figure, ...]:
    """Every figure that the catalogue holds of an accelerator or a node type."""
    name = known(name, all_names())
    return _figures("accelerators.toml" if name in sections(PACKAGE, "accelerators.toml") else "nodes.toml", name)


def used_figures(name: str) -> dict[str, Figure]:
    """The figures of an accelerator by name; for a node type, its own in place of those of its accelerator."""
    if name in accelerator_names():
        return {figure.name: figure for figure in figures(name)}
    own = {figure.name: figure for figure in figures(name)}
    return used_figures(_entry("nodes.toml", name)["accelerator"]) | own


def links(name: str, ranks: int) -> tuple[Link, ...]:
    """The levels of so many accelerators from the inside out, by the name of an accelerator or a node type.

    They are the scale-up domain and the network; where bridges join few cards of a host, PCIe stands between them, and
    joins all where the host holds all.
    """
    of_node = {} if name in accelerator_names() else _entry("nodes.toml", name)
    entry = _entry("accelerators.toml", of_node.get("accelerator", name))
    values = values_of(used_figures(name).values())
    network = of_node.get("nic", entry["nic"]).get("name", entry["nic"]["name"])
    inside = _link("link", entry["link"]["name"], int(values["link size"]), values)
    nic = _link("nic", network, ranks, values)
    host = int(min(values.get("pcie size", 0), values.get("accelerators", ranks)))
    if host <= inside.size:
        return inside, nic
    between = _link("pcie", entry["pcie"]["name"], host, values)
    return (inside, between) if ranks <= host else (inside, between, nic)


def host_bytes(name: str) -> float | None:
    """Host memory of one accelerator's part of its node; None for an accelerator, and where it was not published."""
    found = values_of(used_figures(name).values())
    return found["host bytes"] / found["accelerators"] if "host bytes" in found else None


def price(name: str) -> Price | None:
    """The list price of a node type; None for an accelerator, and where none was published."""
    found = used_figures(name)
    if "price" not in found:
        return None
    of = found["price"]
    return Price(of.si, int(found["accelerators"].si), of.date, of.unverified)


def _link(level: str, name: str, size: int, values: Mapping[str, float]) -> Link:
    bandwidth, share, latency = (values[f"{level} {part}"] for part in ("bandwidth", "share", "latency seconds"))
    adds, until = (values.get(f"{level} {part}", 0.0) for part in ("switch share", "switch seconds"))
    return Link(name, size, bandwidth, share, latency, adds, until, int(values.get(f"{level} paths", 1)))


def _entry(file: str, name: str) -> dict[str, Any]:
    return section(PACKAGE, file, name)


@cache
def _figures(file: str, name: str) -> tuple[Figure, ...]:
    return tuple(_read(_entry(file, name)))


def _read(entry: Mapping[str, Any], prefix: str = "") -> Iterator[Figure]:
    """The figures of an entry; those of a sub-table carry its name in front: `nic bandwidth`."""
    for key, value in entry.items():
        name = f"{prefix} {words(key)}".strip()
        if isinstance(value, dict) and "value" in value:
            yield Figure(name=name, **{"unverified": False, **value})
        elif isinstance(value, dict):
            yield from _read(value, name)


def words(key: str) -> str:
    """The name of a figure, from that of its field."""
    return key.replace("_", " ")


def values_of(of: Iterable[Figure]) -> dict[str, float]:
    """Figures by name, in SI units."""
    return {figure.name: figure.si for figure in of}


def find(name: str, among: Iterable[str]) -> str:
    """A known name whatever its capitals; an empty text where there is none."""
    return next((one for one in among if one.lower() == name.lower()), "")


def known(name: str, among: tuple[str, ...]) -> str:
    """The name as the catalogue writes it, or a fault with those that are near."""
    found = find(name, among)
    if not found:
        raise InputError(unknown(name, name, closest(name, among), ""))
    return found


def closest(name: str, among: Iterable[str]) -> list[str]:
    """The known names nearest to this one, three at most; those that begin with it come first: `a100` is no `a10`."""
    exact = {one.lower(): one for one in among}
    begin = [one for one in exact if len(name) > 1 and one.startswith(name.lower())]
    near = [*(nearest(name, begin) or begin[:3]), *nearest(name, exact)]
    return [exact[one] for one in dict.fromkeys(near)][:3]


def unknown(name: str, text: str, close: list[str], fix: str) -> Fault:
    """HW001: the name means nothing here. `fix` is a text that works, by the closest name."""
    also = f"also close: {', '.join(close[1:])}; " if close[1:] else ""
    advice = f"{fix or close[0]}   ({also}list: outlay hardware)" if close else "outlay hardware lists the names"
    rule = "--on is COUNTxNAME, NAME an accelerator such as h100-sxm or a node type such as p5.48xlarge; or a TOML file"
    return Fault("HW001", f"no accelerator is called {quoted(name)}", rule, quoted(text), advice)

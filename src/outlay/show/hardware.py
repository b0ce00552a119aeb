"""The hardware that is known by name, each figure with its unit, its date and who says so; and a cluster's levels."""

from collections.abc import Iterable

from ..cluster.accelerator import Accelerator, Cluster, Link
from ..cluster.catalogue import Figure, accelerator, accelerator_names, cluster, figures, node, node_names, template
from ..cluster.efficiency import flops_per_byte, memory_over_link
from ..quantities import GB
from .record import Record, head, plain
from .text import Style, block, both, counted, figure, table, wrapped

RECALLED = "? = recalled, not read again from its source"


def found_by(text: str) -> list[str]:
    """The names that hold a text in their name, title, vendor or, of a node type, in its accelerator's name."""
    low = text.lower()
    cards = [name for name in accelerator_names() if low in _said_of(name).lower()]
    return cards + [
        name for name in node_names() if low in f"{name} {node(name).title} {node(name).accelerator}".lower()
    ]


def _said_of(name: str) -> str:
    card = accelerator(name)
    return f"{name} {card.title} {card.vendor}"


# --- a list ---------------------------------------------------------------------------------------------------------


def _card(name: str) -> Record:
    card, here = accelerator(name), cluster(name)
    return {
        "name": name,
        "title": card.title,
        "vendor": card.vendor,
        "memory_bytes": card.memory_bytes,
        **{f"{each}_flops": getattr(card, f"{each}_flops") for each in ("bf16", "fp16", "fp8", "fp4", "fp32")},
        "memory_bandwidth": card.memory_bandwidth,
        "flops_per_byte": plain(flops_per_byte(card)) if card.bf16_flops else None,
        "memory_over_link": plain(memory_over_link(card, here.inside)),
        "memory_over_nic": plain(memory_over_link(card, here.outside)),
        "unverified": list(here.unverified),
    }


def _node(name: str) -> Record:
    price = next((each for each in figures(name) if each.name == "price"), None)
    return plain(node(name)) | {  # type: ignore[no-any-return]
        "price_date": price.date if price else None,
        "price_unverified": price.unverified if price else None,
        "unverified": list(cluster(name).unverified),
    }


def hardware_record(names: list[str]) -> Record:
    """A row for each accelerator and each node type."""
    cards = [_card(name) for name in names if name in accelerator_names()]
    return head("hardware") | {"accelerators": cards, "nodes": [_node(name) for name in names if name in node_names()]}


def hardware_lines(names: list[str], style: Style) -> list[str]:
    """Accelerators with the ratios that decide what binds, then node types with their prices."""
    found = hardware_record(names)
    lines = _cards(found["accelerators"], style) + _nodes(found["nodes"], style)
    if any("?" in line for line in lines):
        lines += ["", *wrapped(f"{RECALLED}; of a card, one figure or more", style, 2, 2)]
    more = "outlay hardware NAME: every figure with its source; --toml: a file to edit   |   --json"
    return [*lines[1:], "", *block("MORE", more, style)]


def _cards(cards: list[Record], style: Style) -> list[str]:
    rows = [
        (
            one["name"],
            "?" if one["unverified"] else "",
            figure(one["memory_bytes"] / 2**30),
            _rate(one["bf16_flops"]),
            _rate(one["fp8_flops"]),
            figure(one["memory_bandwidth"] / 1e12),
            "-" if one["flops_per_byte"] is None else f"{one['flops_per_byte']:.0f}",
            f"{one['memory_over_link']:.1f}",
            f"{one['memory_over_nic']:,.0f}",
            one["vendor"],
        )
        for one in cards
    ]
    heads = ("name", "", "GiB", "bf16 TFLOP/s", "fp8", "mem TB/s", "FLOP/byte", "mem/link", "mem/NIC", "vendor")
    title = block("CARDS", f"{counted(len(rows), 'accelerator')}, as --on 64xNAME", style)
    return ["", *title, *table(heads, rows, style, "l        l")] if rows else []


def _nodes(nodes: list[Record], style: Style) -> list[str]:
    rows = [
        (
            one["name"],
            f"{one['accelerators']} x {one['accelerator']}",
            f"{one['domain']}",
            figure(one["nic_bandwidth"] / GB),
            "" if one["price_per_hour"] is None else f"{one['price_per_hour']:,.2f}",
            f"{one['price_date'] or ''}{' ?' if one['price_unverified'] else ''}",
        )
        for one in nodes
    ]
    heads = ("name", "accelerators", "on fast link", "NIC GB/s a card", "USD an hour", "price of")
    title = block("NODES", f"{counted(len(rows), 'node type')}, as --on 8xNAME", style)
    return ["", *title, *table(heads, rows, style, "ll   l")] if rows else []


def _rate(value: float) -> str:
    return figure(value / 1e12) if value else "-"


# --- one of them ----------------------------------------------------------------------------------------------------


def card_record(name: str) -> Record:
    """Every figure of one accelerator or node type."""
    about = {"accelerator": _card(name)} if name in accelerator_names() else {"node": _node(name)}
    return head("hardware") | about | {"figures": [plain(each) | {"si": each.si} for each in figures(name)]}


def card_lines(name: str, style: Style) -> list[str]:
    """Every figure of one, with its kind, its date and who says so; those that were not read again are marked."""
    rows = [
        (each.name, _value(each), each.unit, each.kind + (" ?" if each.unverified else ""), each.date)
        for each in figures(name)
    ]
    lines = [*(_about_card(name, style) if name in accelerator_names() else _about_node(name, style)), ""]
    for each, text in zip(
        figures(name), table(("figure", "value", "unit", "kind", "date"), rows, style, "lrlll")[1:], strict=False
    ):
        lines += [text, *wrapped(each.source, style, 6, 6)]
    marks = ["", *wrapped(RECALLED, style, 2, 2)] if any(each.unverified for each in figures(name)) else []
    return [*lines, *marks, "", *block("MORE", f"outlay hardware {name} --toml: a file to edit, for --on", style)]


def _value(of: Figure) -> str:
    """A figure as it is written; a rate of 0 is one that the card does not have, or that nobody lists."""
    return "-" if not of.value and of.name.endswith("flops") else f"{of.value:,g}"


def _about_card(name: str, style: Style) -> list[str]:
    card, here = accelerator(name), cluster(name)
    lines = block(name, f"{card.title}, {card.vendor}: {both(card.memory_bytes)}, {_fastest(card)}", style)
    if card.bf16_flops:
        ratio = f"{flops_per_byte(card):.0f} FLOP a byte of memory"
        lines += block("  work", f"{ratio}: a kernel with less work a byte is bound by memory", style, "2")
    near = f"{memory_over_link(card, here.inside):.1f} times faster than {here.inside.name}, and "
    far = f"{memory_over_link(card, here.outside):,.0f} times faster than {here.outside.name}"
    text = f"memory is {near if here.inside.size > 1 else ''}{far} (one direction, one card, as specified)"
    lines += block("  links", text, style, "2")
    holders = [each for each in node_names() if node(each).accelerator == name]
    return lines + (block("  nodes", ", ".join(holders), style, "2") if holders else [])


def _fastest(card: Accelerator) -> str:
    rate = f"{_rate(card.bf16_flops)} bf16 TFLOP/s dense" if card.bf16_flops else "no bf16"
    return rate if card.bf16_flops else f"{rate}, {_rate(card.fp16_flops)} fp16 TFLOP/s dense"


def _about_node(name: str, style: Style) -> list[str]:
    one = _node(name)
    recalled = ", recalled" if one["price_unverified"] else ""
    price = f"{one['price_per_hour']:,.2f} USD an hour ({one['price_date']}{recalled})" if one["price_date"] else ""
    host = f"{both(one['host_bytes'])} of host memory" if one["host_bytes"] else ""
    text = (
        f"{one['title']}: {one['accelerators']} x {one['accelerator']}, {one['domain']} on the fast link,"
        f" {figure(one['nic_bandwidth'] / GB)} GB/s of NIC a card"
    )
    text = ", ".join(filter(None, (text, host, price)))
    return block(name, text, style)


# --- a cluster ------------------------------------------------------------------------------------------------------


def cluster_record(of: Cluster) -> Record:
    """A whole cluster: what `--on` means."""
    return head("hardware") | {"cluster": plain(of), "dollars_per_hour": plain(of.dollars())}


def cluster_lines(of: Cluster, style: Style) -> list[str]:
    """The accelerator and the levels of a cluster, from the inside out."""
    card, price = of.accelerator, of.price
    lines = block(
        of.name, f"{counted(of.ranks, 'card')}: {card.title}, {both(card.memory_bytes)}, {_fastest(card)}", style
    )
    every = [of.inside, of.outside, *([of.spine] if of.spine else [])]
    heads = ("level", "joins", "GB/s a card", "reached", "us a step")
    lines += ["", *table(heads, [_level(link, of.ranks) for link in every], style, "l")]
    said = [*of.notes, *(f"{each}: recalled, not read from its source" for each in of.unverified)]
    if of.host_bytes is not None:
        said.insert(0, f"{both(of.host_bytes)} of host memory a card")
    if of.storage_bandwidth is not None:
        said.insert(0, f"{figure(of.storage_bandwidth / GB)} GB/s to the storage of checkpoints, all cards together")
    if of.mtbf_seconds is not None:
        said.insert(0, f"a card fails every {of.mtbf_seconds / 3600:,.0f} hours")
    if price and (dollars := of.dollars()) is not None:
        said.insert(0, f"{dollars:,.2f} USD an hour, price of {price.date}{', recalled' if price.unverified else ''}")
    return [*lines, *_notes(said, style), "", *block("MORE", "the same with --toml: a file to edit, for --on", style)]


def _notes(said: Iterable[str], style: Style) -> list[str]:
    lines = [line for each in said for line in wrapped(each, style, 2, 4)]
    return ["", *lines] if lines else []


def _level(link: Link, ranks: int) -> tuple[str, ...]:
    paths = f" ({link.paths} paths)" if link.paths > 1 else ""
    joined = f"{link.size:,}" if link.size != ranks else "all"
    rate, reached = figure(link.bandwidth / GB), figure(link.bandwidth * link.share / GB)
    return f"{link.name}{paths}", joined, rate, reached, f"{link.latency_seconds * 1e6:g}"


def toml_record(of: Cluster, whole: bool) -> Record:
    """The file of a cluster as a text."""
    return cluster_record(of) | {"toml": template(of, whole)}


def toml_lines(of: Cluster, whole: bool) -> list[str]:
    """The file of a cluster, a line each."""
    return template(of, whole).splitlines()

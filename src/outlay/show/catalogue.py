"""What is known by name: models and hardware, each figure with its unit, its date and who says so."""

from ..cluster.catalogue import (
    accelerator,
    accelerator_names,
    cluster,
    figures,
    node,
    node_names,
)
from ..cluster.efficiency import flops_per_byte, memory_over_link
from ..layout.stages import whole
from ..model.catalogue import entry, load
from ..quantities import GB
from ..undivided import parameters
from .record import Record, head, plain
from .text import Style, block, both, figure, percent, safe, short, table, wrapped


def _model(name: str) -> Record:
    model, found = load(name), entry(name)
    owned = parameters(model)
    counts = {"total": owned.total, "active": owned.active, "embedding": owned.embedding, "mtp": owned.mtp}
    return {
        "name": name,
        "family": model.family,
        "parameters": counts,
        "layers": model.layers,
        "hidden": model.hidden,
        "trained_length": model.trained_length or None,
        "source": found.source,
        "also": list(found.also),
    }


def models_record(names: list[str]) -> Record:
    """A row for each model."""
    return head("models") | {"models": [_model(name) for name in names]}


def models_lines(names: list[str], style: Style) -> list[str]:
    """A row for each model: parameters, those a token reaches, family, and where the facts are from."""
    rows = []
    for one in map(_model, names):
        total, active = one["parameters"]["total"], one["parameters"]["active"]
        rows.append(
            (
                one["name"],
                f"{total / 1e9:,.3f}",
                f"{active / 1e9:,.3f}" if active != total else "",
                one["family"],
                _cut(one["source"], 34),
            )
        )
    lines = [*block("MODELS", f"{len(names)}; parameters in billions, active ones where they differ", style)]
    lines += table(("name", "total", "active", "family", "source"), rows, style, "lrrll")
    return [
        *lines,
        "",
        *block("MORE", "outlay models NAME   |   outlay count NAME --on 64xh100-sxm   |   --json", style),
    ]


def _cut(text: str, most: int) -> str:
    """A long text with a mark where it is cut: the whole stands under the name itself."""
    return text if len(text) <= most else text[: most - 2].rstrip() + ".."


def model_record(name: str) -> Record:
    """One model: its counts, components and whole shape."""
    model = load(name)
    shape = {"components": plain(parameters(model).components), "shape": plain(model)}
    return head("model") | {"model": _model(name) | shape}


def model_lines(name: str, style: Style) -> list[str]:
    """One model: its counts, its shape, its components, and who says so."""
    model, one, owned = load(name), _model(name), parameters(load(name))
    active = f", {short(owned.active)} active a token" if owned.active != owned.total else ""
    lines = block(name, f"{short(owned.total)} parameters ({owned.total:,}){active}", style)
    kinds = ", ".join(f"{int(many)} {kind.name}" for kind, many in zip(model.blocks, whole(model).counts, strict=True))
    length = f"{model.trained_length:,}" if model.trained_length else "not said"
    facts = {
        "family": model.family,
        "layers": f"{model.layers}: {kinds}",
        "hidden": f"{model.hidden:,}",
        "vocabulary": f"{model.vocab:,}",
        "trained on": f"sequences of {length} tokens",
        "source": one["source"],
        "also": ", ".join(one["also"]),
    }
    lines += [line for key, text in facts.items() if text for line in block(f"  {key}", str(text), style, "2")]
    rows = [
        (
            part.part,
            part.name,
            f"{part.each:,}",
            str(part.layers),
            f"{part.each * part.layers:,}",
            percent(part.each * part.layers / owned.total),
        )
        for part in owned.components
    ]
    lines += ["", *table(("kind", "component", "each", "times", "parameters", "share"), rows, style, "llrrrr")]
    return [*lines, *(line for note in model.notes for line in wrapped(f"note: {safe(note)}", style, 2, 8))]


def _card(name: str) -> Record:
    card = accelerator(name)
    here = cluster(f"16x{name}")
    return {
        "name": name,
        "title": card.title,
        "vendor": card.vendor,
        "memory_bytes": card.memory_bytes,
        "bf16_flops": card.bf16_flops,
        "memory_bandwidth": card.memory_bandwidth,
        "flops_per_byte": plain(flops_per_byte(card)) if card.bf16_flops else None,
        "memory_over_link": plain(memory_over_link(card, here.inside)),
        "memory_over_nic": plain(memory_over_link(card, here.outside)),
    }


def _node(name: str) -> Record:
    return plain(node(name))  # type: ignore[no-any-return]


def hardware_record(names: list[str]) -> Record:
    """A row for each accelerator and each node type."""
    cards = [_card(name) for name in names if name in accelerator_names()]
    return head("hardware") | {"accelerators": cards, "nodes": [_node(name) for name in names if name in node_names()]}


def hardware_lines(names: list[str], style: Style) -> list[str]:
    """Accelerators with the ratios that decide what binds, then node types."""
    found = hardware_record(names)
    rows = [
        (
            one["name"],
            figure(one["memory_bytes"] / 2**30),
            figure(one["bf16_flops"] / 1e12) if one["bf16_flops"] else "-",
            figure(one["memory_bandwidth"] / 1e12),
            "-" if one["flops_per_byte"] is None else f"{one['flops_per_byte']:.0f}",
            f"{one['memory_over_link']:.1f}",
            f"{one['memory_over_nic']:.0f}",
            one["vendor"],
        )
        for one in found["accelerators"]
    ]
    heads = ("name", "GiB", "bf16 TFLOP/s", "memory TB/s", "FLOP a byte", "memory/link", "memory/NIC", "vendor")
    lines = (
        [*block("CARDS", f"{_many(len(rows), 'accelerator')}, as --on 64xNAME", style), *table(heads, rows, style, "l")]
        if rows
        else []
    )
    nodes = [
        (
            one["name"],
            f"{one['accelerators']} x {one['accelerator']}",
            f"{one['domain']}",
            figure(one["nic_bandwidth"] / GB),
            _price(one),
        )
        for one in found["nodes"]
    ]
    if nodes:
        of_nodes = ("name", "accelerators", "on fast link", "NIC GB/s a card", "USD an hour")
        lines += [
            "",
            *block("NODES", f"{_many(len(nodes), 'node type')}, as --on 8xNAME", style),
            *table(of_nodes, nodes, style, "ll"),
        ]
    return [*lines, "", *block("MORE", "outlay hardware NAME: every figure with its source   |   --json", style)]


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _price(one: Record) -> str:
    return "" if one["price_per_hour"] is None else f"{one['price_per_hour']:,.2f}"


def card_record(name: str) -> Record:
    """Every figure of one accelerator or node type."""
    about = {"accelerator": _card(name)} if name in accelerator_names() else {"node": _node(name)}
    return head("hardware") | about | {"figures": [plain(each) | {"si": each.si} for each in figures(name)]}


def card_lines(name: str, style: Style) -> list[str]:
    """Every figure of one, with its kind, its date and who says so; those that were not read again are marked."""
    rows = [
        (each.name, f"{each.value:,g}", each.unit, each.kind + (" ?" if each.unverified else ""), each.date)
        for each in figures(name)
    ]
    lines = [*(_about_card(name, style) if name in accelerator_names() else _about_node(name, style)), ""]
    for each, text in zip(
        figures(name), table(("figure", "value", "unit", "kind", "date"), rows, style, "lrlll")[1:], strict=False
    ):
        lines += [text, *wrapped(each.source, style, 6, 6)]
    marks = "? = recalled, not read again from its source" if any(each.unverified for each in figures(name)) else ""
    return [*lines, *(["", *wrapped(marks, style, 2, 2)] if marks else [])]


def _about_card(name: str, style: Style) -> list[str]:
    card, one, here = accelerator(name), _card(name), cluster(f"16x{name}")
    rate = f"{figure(card.bf16_flops / 1e12)} bf16 TFLOP/s dense" if card.bf16_flops else "no bf16"
    lines = block(name, f"{card.title}, {card.vendor}: {both(card.memory_bytes)}, {rate}", style)
    if one["flops_per_byte"] is not None:
        text = f"{one['flops_per_byte']:.0f} FLOP a byte of memory: a kernel with less work a byte is bound by memory"
        lines += block("  work", text, style, "2")
    text = (
        f"memory is {one['memory_over_link']:.1f} times faster than {here.inside.name}, and"
        f" {one['memory_over_nic']:.0f} times faster than {here.outside.name} (one direction, one card, as specified)"
    )
    return [*lines, *block("  links", text, style, "2")]


def _about_node(name: str, style: Style) -> list[str]:
    one = node(name)
    price = f", {one.price_per_hour:,.2f} USD an hour" if one.price_per_hour is not None else ""
    text = (
        f"{one.title}: {one.accelerators} x {one.accelerator}, {one.domain} on the fast link,"
        f" {figure(one.nic_bandwidth / GB)} GB/s of NIC a card{price}"
    )
    return block(name, text, style)

"""The models that are known by name, each with its counts and who says so."""

from ..layout.stages import whole
from ..model.catalogue import entry, load
from ..undivided import parameters
from .record import Record, head, plain
from .text import Style, block, percent, safe, short, table, wrapped

SOURCE_WIDTH = 31  # columns: with the longest name and family, a row has 100
LABEL_WIDTH = 10  # columns of the longest label of one model


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
                _cut(one["source"].split(";")[0], SOURCE_WIDTH),
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
    length = f"sequences of {model.trained_length:,} tokens" if model.trained_length else "not said"
    facts = {
        "family": model.family,
        "layers": f"{model.layers}: {kinds}",
        "hidden": f"{model.hidden:,}",
        "vocabulary": f"{model.vocab:,}",
        "trained on": length,
        "also": ", ".join(one["also"]),
    }
    for key, text in facts.items():
        lines += block(f"  {key:<{LABEL_WIDTH}}", str(text), style, "2") if text else []
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
    said = [*(f"note: {safe(note)}" for note in model.notes), f"source: {one['source']}"]
    return [*lines, "", *(line for each in said for line in wrapped(each, style, 2, 8))]

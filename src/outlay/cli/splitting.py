"""`--split best`: the split is found, and then it is one that was given."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..job import AUTO
from ..layout.axes import Layout

if TYPE_CHECKING:
    from .question import Task

BEST = "best"


def without_best(at: "Task") -> tuple["Task", bool]:
    """The task without `--split best`, and whether it was asked for, by a flag or in the file's [layout]."""
    table = at.file.get("layout")
    table = table if isinstance(table, dict) else {}
    said = at.texts.get("split", table.get("split"))
    if not isinstance(said, str) or said.strip().lower() != BEST:
        return at, False
    texts = {name: text for name, text in at.texts.items() if name != "split"}
    layout = {name: value for name, value in table.items() if name != "split"}
    return replace(at, texts=texts, file={**at.file, "layout": layout}), True


def freed(layout: Layout, at: "Task") -> Layout:
    """The layout with its split let go, and the layers that a printed bill recomputes with it."""
    given = {*at.texts, *at.file.get("layout", {})}
    follows: dict[str, Any] = {"recompute_layers": AUTO} if at.asked and "recompute_layers" not in given else {}
    return replace(layout, split=AUTO, **follows)

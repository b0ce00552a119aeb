"""What several searches answer: a cluster, a sequence, or a model; and all that were tried."""

from typing import TYPE_CHECKING

from ...model.scaled import MOST_LAYERS
from ...search.several import LONGEST, STEP, Tried
from ...whole_run import DAY
from ..labels import VERDICTS
from ..text import Style, block, counted, short, table

if TYPE_CHECKING:
    from .answer import Answer

STOPPED = "the search was stopped: more may fit"


def sought_text(answer: "Answer") -> tuple[str, str] | None:
    """The answer of several searches, under its word; nothing where there was one."""
    cluster = answer.plan.cluster
    this = f"{cluster.name} ({counted(cluster.ranks, 'card')})"
    tried = [each for each in answer.tried if each.tokens_per_second]
    chosen = next((each for each in tried if each.name == cluster.name), None)
    if answer.objective == "accelerators":
        below = [each for each in answer.tried if each.ranks < cluster.ranks]
        before = f"; none of {counted(len(below), 'smaller cluster')} that were tried holds it" if below else ""
        return "FEWEST", f"{this}{before}"
    if answer.objective == "sequence":
        return "LONGEST", _longest(answer, this)
    if answer.objective == "model":
        return "LARGEST", _deepest(answer, this) if len(answer.models) == 1 else _largest(answer, this)
    rest = f", of {counted(len(tried), 'cluster')} that hold it"
    if answer.objective == "money" and chosen and chosen.dollars_per_million_tokens:
        return "CHEAPEST", f"{this}: {chosen.dollars_per_million_tokens:.3f} USD a million tokens{rest}"
    if answer.objective == "tokens" and chosen and chosen.tokens_per_second:
        return "MOST", f"{this}: {short(chosen.tokens_per_second * DAY)} tokens a day{rest}"
    return None


def _proved(answer: "Answer") -> bool:
    return answer.several is None or answer.several.proved


def _longest(answer: "Answer", this: str) -> str:
    length = int(answer.plan.job.sequence_length)
    more = f"{STEP:,} more do not" if length < LONGEST else "no longer one is tried"
    return f"{length:,} tokens a sequence fit on {this}; {more if _proved(answer) else STOPPED}"


def _deepest(answer: "Answer", this: str) -> str:
    """The layers of one model's widths."""
    model, given = answer.plan.model, answer.models[0]
    here = next(each for each in answer.tried if each.layers == model.layers)
    more = "one more does not" if model.layers < MOST_LAYERS else "more are not tried"
    said = (
        f"{counted(model.layers, 'layer')} of {given.name}'s widths, {short(here.parameters)} parameters, fit on {this}"
    )
    own = f"it has {given.layers:,}" if given.layers != model.layers else "as many as it has"
    return f"{said}; {more if _proved(answer) else STOPPED}; {own}"


def _largest(answer: "Answer", this: str) -> str:
    """One of several models: the last that was tried."""
    *larger, here = answer.tried
    said = f"{here.model}, {short(here.parameters)} parameters, of {len(answer.models)} models: fits on {this}"
    if not _proved(answer):
        return f"{said}; {STOPPED}"
    if len(larger) == 1:
        return f"{said}; {larger[0].model}, which is larger, does not"
    return f"{said}; none of {len(larger)} larger ones does" if larger else f"{said}; none is larger"


def others_text(answer: "Answer") -> str:
    """What else does not fit, where the answer is that nothing does."""
    more = len(answer.tried) - 1
    if more < 1:
        return ""
    if answer.objective == "model":
        if len(answer.models) == 1:
            return ", nor with more layers"
        return ", nor of the larger model" if more == 1 else f", nor of {more} larger models"
    return f", nor on {counted(more, 'smaller cluster')}"


def tried_part(answer: "Answer", style: Style) -> list[str]:
    """What was searched, in turn: clusters, or sequences or models on one."""
    tried, objective = list(answer.tried), answer.objective
    words = {"empty": "no legal layout", **{name: text.lower() for name, text in VERDICTS.items()}}
    if objective == "sequence":
        tried.sort(key=lambda each: each.sequence_length)
    elif objective == "model":
        tried.sort(key=lambda each: (each.parameters, each.layers))
    rows = [
        (
            *_names(each, answer),
            words.get(each.verdict, each.verdict),
            f"{each.legal:,}",
            short(each.tokens_per_second) if each.tokens_per_second else "-",
            f"{each.dollars_per_million_tokens:.3f}" if each.dollars_per_million_tokens else "-",
        )
        for each in tried
    ]
    heads = [*_heads(answer), "verdict", "legal layouts", "tokens/s", "USD/M tokens"]
    gap = ("..", *[""] * (len(heads) - 1))
    shown = [*rows[:4], gap, *rows[-8:]] if len(rows) > 13 else rows
    if all(row[-1] in ("-", "") for row in rows):
        heads, shown = heads[:-1], [row[:-1] for row in shown]
    left = "lr" if objective == "model" and len(answer.models) > 1 else "r" * len(_heads(answer))
    return [*block("TRIED", "", style), *table(heads, shown, style, left + "lrrr"[: len(heads) - len(left)])]


def _heads(answer: "Answer") -> tuple[str, ...]:
    if answer.objective == "model":
        return ("layers", "parameters") if len(answer.models) == 1 else ("model", "parameters")
    return ("sequence",) if answer.objective == "sequence" else ("on",)


def _names(each: Tried, answer: "Answer") -> tuple[str, ...]:
    """What tells a search from the others."""
    if answer.objective == "model":
        return f"{each.layers:,}" if len(answer.models) == 1 else each.model, short(each.parameters)
    return (f"{each.sequence_length:,}" if answer.objective == "sequence" else each.name,)

"""Published choices beside the best: for a terminal, as a table of a page, as a record."""

from collections import Counter

from ...bill import Bill
from ...quantities import GIB
from ...validate.choices import Choices, Compared
from ..labels import NOT_LEGAL, VERDICTS
from ..layouts import layout_flags
from ..plan.why import largest
from ..record import Record, head, plain
from ..text import Style, block, counted, figure, gib, wrapped

LONGEST_SPLIT = 60  # letters of the flags of a layout, from which its split is left out of a table
FIELDS = ("name", "model", "on", "engine", "source", "step_from", "stands_for", "reading")


def choices_lines(found: Choices, style: Style) -> list[str]:
    """How many of the published layouts are the best or near it; then each with what it is beside, and why."""
    text = block("CHOICES", _answer(found), style)
    for row in found.rows:
        text += ["", *_lines(row, style)]
    return text


def _answer(found: Choices) -> str:
    rows = found.rows
    fitting = [row for row in rows if verdict_of(row.published) == VERDICTS["fits"]]
    near = [row for row in fitting if inside_band(row)]
    other = Counter(verdict_of(row.published).lower() for row in rows if row not in fitting)
    said = [f"{counted(len(rows), 'published layout')} counted{f' of {found.total}' if found.stopped else ''}"]
    said += [_within(len(near), len(fitting))] if fitting else []
    said += [f"{number} {word}" for word, number in other.items()]
    return "; ".join(said)


def _within(near: int, fitting: int) -> str:
    """How many of those that fit are as good as the best."""
    if fitting == 1:
        return f"the 1 that fits {'lies' if near else 'does not lie'} within the band of the best"
    return f"{near} of the {fitting} that fit {'lies' if near == 1 else 'lie'} within the band of the best"


def verdict_of(bill: Bill) -> str:
    """The verdict in words; an illegal layout has none."""
    return VERDICTS[bill.memory.verdict] if bill.memory.verdict else NOT_LEGAL


def inside_band(row: Compared) -> bool:
    """Whether the published layout may take as long as the best: its count lies in the band of the best's step."""
    return row.best is not None and row.published.step.seconds <= row.best.step.band_seconds[1]


def _lines(row: Compared, style: Style) -> list[str]:
    choice, bill = row.choice, row.published
    text = [style.paint(choice.name, "1")]
    parts = {"run": f"{bill.model.name} on {bill.cluster.name}, {bill.engine.name}; {choice.source}"}
    parts |= {"published": _side(bill, f", {measured(row)} measured" if choice.step_seconds else "")}
    if choice.stands_for:
        parts["counted"] = choice.stands_for
    among = "" if row.inside else ", the published one not among them"
    parts["searched"] = f"{row.legal:,} layouts{among}: {row.says}"
    parts["best"] = f"{_side(row.best)}, {row.ratio:.3f} x" if row.best and row.ratio else "none fits for sure"
    if why := why_of(row):
        parts["why"] = why
    if said := reading_of(row):
        parts["reading"] = said
    return text + [line for key, said in parts.items() for line in wrapped(f"{key:<10}{said}", style, 2, 12)]


def _side(bill: Bill, more: str = "") -> str:
    memory = bill.memory
    held = f"{verdict_of(bill).lower()}, {figure(memory.peak_bytes / GIB)} of {gib(memory.usable_bytes)}"
    return f"{flags(bill)}: {figure(bill.step.seconds)} s{more}; {held}"


def flags(bill: Bill) -> str:
    """The layout as flags; the split of many chunks is not said."""
    words = layout_flags(bill.layout, bill.model, bill.engine)
    before, _, split = words.partition(" --split ")
    listed, _, after = split.partition(" ")
    return f"{before} --split ..{' ' + after if after else ''}" if len(listed) > LONGEST_SPLIT else words


def measured(row: Compared) -> str:
    """The published time of a step, and what it is from where it is not printed."""
    choice = row.choice
    return f"{figure(choice.step_seconds)} s" + (f" (from {choice.step_from})" if choice.step_from else "")


def why_of(row: Compared) -> str:
    """What the best saves and pays, by the largest items; empty where it is the published layout."""
    if row.best is None or row.best.layout == row.published.layout:
        return ""
    more = row.best.memory.peak_bytes - row.published.memory.peak_bytes
    items = largest(row.published, row.best)
    return f"{items or 'no item differs'}; {'+' if more >= 0 else '-'}{gib(abs(more))} of memory"


def reading_of(row: Compared) -> str:
    """What the difference means: that there is none, and what the table says of it."""
    said = ""
    if row.best is not None and row.best.layout == row.published.layout:
        said = "the published layout is the best of its space"
    elif inside_band(row):
        said = "the same within the band"
    return "; ".join(filter(None, (said, row.choice.reading)))


def choices_page(found: Choices) -> list[str]:
    """Tables of a page: both layouts and both times, then why, and what the search was narrowed to."""
    top = "| published choice | layout | measured, s | counted, s | fits | outlay's best | s | best / published |"
    text = [f"{_answer(found)}.", "", top, "| --- | --- | ---: | ---: | --- | --- | ---: | ---: |"]
    text += [_row(row) for row in found.rows]
    text += ["", "| published choice | largest items, from published to best | reading |", "| --- | --- | --- |"]
    for row in found.rows:
        said = why_of(row) or "the same layout" if row.best else "none fits for sure"
        text.append(f"| {_cell(row.choice.name)} | {_cell(said)} | {_cell(reading_of(row))} |")
    text += ["", "| searched | choices |", "| --- | --- |"]
    spaces = dict.fromkeys(row.says for row in found.rows)
    for says in spaces:
        names = "; ".join(row.choice.name for row in found.rows if row.says == says)
        text.append(f"| {_cell(says)} | {_cell(names)} |")
    text += ["", "| published choice | what of it is not counted, or assumed | its time is from | source |"]
    text += ["| --- | --- | --- | --- |"]
    facts = ((of.name, of.stands_for, of.step_from, of.source) for of in (row.choice for row in found.rows))
    text += [f"| {' | '.join(map(_cell, each))} |" for each in facts]
    return [*text, ""]


def _row(row: Compared) -> str:
    bill, best = row.published, row.best
    time = figure(row.choice.step_seconds) if row.choice.step_seconds else ""
    cells = [row.choice.name, f"`{flags(bill)}`", time, figure(bill.step.seconds), verdict_of(bill).lower()]
    if best is None or row.ratio is None:
        cells += ["none fits for sure", "", ""]
    elif best.layout == bill.layout:
        cells += ["the same", figure(best.step.seconds), "1"]
    else:
        cells += [f"`{flags(best)}`", figure(best.step.seconds), f"{row.ratio:.3f}"]
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "/")


def choices_record(found: Choices) -> Record:
    """Each choice with both layouts as they were counted, their times, peaks and verdicts, and every difference."""
    return head("choices") | {
        "total": found.total,
        "stopped": found.stopped,
        "choices": [_record(row) for row in found.rows],
    }


def _record(row: Compared) -> Record:
    choice = row.choice
    return {name: getattr(choice, name) for name in FIELDS} | {
        "searched": row.says,
        "legal": row.legal,
        "inside": row.inside,
        "measured_step_time_s": choice.step_seconds or None,
        "published": _bill(row.published),
        "best": _bill(row.best) if row.best else None,
        "ratio": row.ratio,
        "why": why_of(row),
    }


def _bill(bill: Bill) -> Record:
    return {
        "layout": plain(bill.layout),
        "flags": layout_flags(bill.layout, bill.model, bill.engine),
        "seconds": bill.step.seconds,
        "band_seconds": list(bill.step.band_seconds),
        "peak_bytes": bill.memory.peak_bytes,
        "usable_bytes": bill.memory.usable_bytes,
        "verdict": bill.memory.verdict,
        "violations": [one.code for one in bill.violations],
    }

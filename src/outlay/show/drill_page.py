"""One exercise of a set as HTML: the question, a box for each answer, and for each that was given its grade and why.

What was not answered stays open, and nothing here says what would be right.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from urllib.parse import urlencode

from ..drill.exercise import Exercise, Part
from ..drill.grading import Grade
from ..drill.pipeline import stairs
from ..drill.reading import UnreadableError, read_rows
from ..drill.sets import AT, LEVELS, TOPICS
from ..quantities import show
from .drill import shown
from .stairs import figure, is_drawn

LISTED = 20  # exercises of a set that are listed by their numbers
MARKS = {"right": "\u2713 RIGHT", "wrong": "\u2717 WRONG", "again": "! AGAIN", "waits": "\u2026 WAITS"}
WAITS = "it is graded once the one above is: why it is right may say that one"
GIVEN: Mapping[str, tuple[str, str]] = {
    "pp": ("P, stages", ""),
    "micro_batches": ("M, micro-batches", ""),
    "slot": ("slot", "s"),
    "share": ("idle share, at most", "share"),
    "parameters": ("N, parameters", "N"),
    "ranks": ("ranks", ""),
    "trained": ("trained share", "share"),
    "hidden": ("d, width", ""),
    "layers": ("L, layers", ""),
    "tokens": ("tokens", ""),
    "card": ("memory of a rank", "B"),
    "bandwidth": ("link", "B/s"),
    "compute": ("arithmetic", "s"),
}


@dataclass(frozen=True)
class Sheet:
    """One exercise as it stands: the words of its set, and what was typed into each box, with its grade."""

    words: Mapping[str, str]  # of the set, without the number
    count: int
    number: int
    one: Exercise
    typed: tuple[str, ...]
    grades: tuple[Grade | None, ...]  # none where nothing was typed, or where one above is open

    def address(self, number: int) -> str:
        """The address of one exercise of this set."""
        return f"/drill?{urlencode({**self.words, 'number': number})}"


def address(words: Mapping[str, str]) -> str:
    """The address of a set."""
    return f"/drill?{urlencode(words)}"


def controls_html(typed: Mapping[str, str], count: int) -> str:
    """The fields that choose a set, with what was typed."""
    topic, level = typed.get("topic", "").lower(), typed.get("level", "1")
    topics = "".join(
        f'<option value="{each}" data-levels="{" ".join(str(at) for at in AT if each in AT[at])}"'
        f"{' selected' if each == topic else ''}>{each}</option>"
        for each in TOPICS
    )
    levels = "".join(
        f'<option value="{at}"{" selected" if str(at) == level else ""}>{at}: {escape(said)}</option>'
        for at, said in LEVELS.items()
    )
    more = "".join(_unknown(value) for value in [topic] if value and value not in TOPICS)
    odd = "".join(_unknown(value) for value in [level] if value not in map(str, LEVELS))
    return (
        '<div class="field"><label for="s-topic">topic</label><select id="s-topic" name="topic">'
        f'<option value="">all in turns</option>{topics}{more}</select></div>'
        f'<div class="field"><label for="s-level">level</label><select id="s-level" name="level">{levels}{odd}</select>'
        "</div>"
        + _field("seed", "seed: equal seeds give equal sets", typed.get("seed", ""))
        + _field("count", "exercises", typed.get("count", str(count)))
    )


def _unknown(value: str) -> str:
    return f'<option value="{escape(value[:60])}" selected>{escape(value[:60])}</option>'


def _field(name: str, label: str, value: str) -> str:
    return (
        f'<div class="field"><label for="s-{name}">{label}</label><input id="s-{name}" name="{name}"'
        f' value="{escape(value[:60])}" inputmode="numeric" autocomplete="off"></div>'
    )


def numbers_html(sheet: Sheet) -> str:
    """The exercises of a set, to go to; of a long set the one before and the one after."""
    last = max(sheet.count, sheet.number)
    if last > LISTED:
        near = [(each, said) for each, said in ((sheet.number - 1, "Previous"), (sheet.number + 1, "Next"))]
        links = [(each, f"{said}: {each}", "") for each, said in near if 1 <= each <= last]
    else:
        here = ' aria-current="page"'
        links = [(each, str(each), here if each == sheet.number else "") for each in range(1, last + 1)]
    listed = "".join(
        f'<li><a href="{escape(sheet.address(each))}" data-number="{each}"{now}><span class="unseen">exercise </span>'
        f"{said}<span></span></a></li>"
        for each, said, now in links
    )
    return f'<nav class="numbers" aria-label="Exercises of this set"><ol>{listed}</ol></nav>'


def exercise_html(sheet: Sheet) -> str:
    """The exercise with its boxes, its grades, and the way on."""
    one, last = sheet.one, max(sheet.count, sheet.number)
    given = "" if one.picture else _given(one)
    picture = figure(one.picture, "The staircase") if one.picture else ""
    boxes = "".join(_part(sheet, at, part) for at, part in enumerate(one.parts))
    done = all(each is not None and each.readable for each in sheet.grades)
    hidden = "".join(
        f'<input type="hidden" name="{escape(word)}" value="{escape(text)}">'
        for word, text in {**sheet.words, "number": str(sheet.number)}.items()
    )
    kept = f"{one.level}/{sheet.words.get('topic', '')}/{sheet.words['seed']}"
    button = "" if done else '<button class="main">Grade</button> '
    return (
        f'<section class="card exercise" id="exercise" tabindex="-1" aria-labelledby="h-exercise" data-set="{kept}"'
        f' data-number="{sheet.number}" data-topic="{one.topic}">'
        f'<h1 id="h-exercise">Exercise {sheet.number} of {last}: {one.topic}</h1>'
        f'<p class="question" id="question">{escape(one.text)}</p>{given}{picture}'
        f'<form id="answers" method="get" action="/drill">{hidden}{boxes}'
        f'<p class="row-of-buttons">{button}{_on(sheet, last, done)}</p></form></section>'
    )


def _on(sheet: Sheet, last: int, done: bool) -> str:
    main = " main" if done else ""
    if sheet.number < last:
        to = escape(sheet.address(sheet.number + 1))
        return f'<a class="button{main}" id="next" href="{to}">Next exercise</a>'
    rest = {word: text for word, text in sheet.words.items() if word != "seed"}
    return f'<a class="button{main}" id="next" href="{escape(address(rest))}">Another set</a>'


def _given(one: Exercise) -> str:
    rows = "".join(
        f"<div><dt>{GIVEN[name][0]}</dt><dd>{_figure(name, value)}</dd></div>" for name, value in one.given.items()
    )
    return f'<dl class="given">{rows}</dl>'


def _figure(name: str, value: Fraction) -> str:
    unit = GIVEN[name][1]
    return f"{float(value / 10**9):g} billion" if unit == "N" else show(float(value), unit)


# --- one part -------------------------------------------------------------------------------------------------------


def _part(sheet: Sheet, at: int, part: Part) -> str:
    typed, grade = sheet.typed[at], sheet.grades[at]
    mark = _mark(typed, grade)
    box = _said(part, typed) if mark in ("right", "wrong") else _box(at, part, typed, mark)
    verdict = "".join(_verdict(at, part, typed, mark, grade.said if grade else WAITS)) if mark else ""
    return f'<div class="asked" data-part="{at}" data-mark="{mark}">{box}{verdict}</div>'


def _mark(typed: str, grade: Grade | None) -> str:
    if grade is None:
        return "waits" if typed else ""
    return "again" if not grade.readable else "right" if grade.right else "wrong"


def _box(at: int, part: Part, typed: str, mark: str) -> str:
    """The label, the box, and what an answer looks like."""
    told = f"question wanted-{at}" + (f" verdict-{at}" if mark else "")
    names = f'id="answer-{at}" name="answer" aria-describedby="{told}"' + (
        ' aria-invalid="true"' if mark == "again" else ""
    )
    if part.words:
        words = "".join(f"<option{' selected' if each == typed else ''}>{each}</option>" for each in part.words)
        box = f'<select {names}><option value="">choose</option>{words}</select>'
    elif isinstance(part.answer, tuple):
        box = f'<textarea {names} rows="{len(part.answer)}" spellcheck="false" data-rows>{escape(typed)}</textarea>'
    else:
        box = f'<input {names} value="{escape(typed)}" autocomplete="off" spellcheck="false" autocapitalize="off">'
    more = "; one a line, too" if part.unit == "rows" else ""
    return (
        f'<label for="answer-{at}">{escape(part.ask)}</label>{box}'
        f'<p class="hint" id="wanted-{at}">{escape(part.wanted)}{more}</p>'
    )


def _said(part: Part, typed: str) -> str:
    """What was asked, and what was answered, which goes on with the other answers."""
    said = " / ".join(typed.splitlines())
    return (
        f'<p class="said"><span class="faint">{escape(part.ask)}</span> <b>{escape(said)}</b></p>'
        f'<input type="hidden" name="answer" value="{escape(typed)}">'
    )


def _verdict(at: int, part: Part, typed: str, mark: str, said: str) -> Iterator[str]:
    """The grade, what may have gone wrong, the right answer, and how it is derived."""
    word = f'<p class="verdict line" id="verdict-{at}"><b class="key" data-grade="{mark}">{MARKS[mark]}</b> '
    if mark in ("again", "waits"):
        yield f"{word}<span>{escape(said)}</span></p>"
        return
    slip = f"{escape(said)}; right is " if said else "right is " if mark == "wrong" else ""
    yield f"{word}<span>{slip}<b>{escape(shown(part))}</b></span></p>"
    if part.unit != "rows":
        yield f'<div class="derivation">{"".join(map(_why, part.why))}</div>'
    yield _drawn(part, typed, mark)


def _why(line: str) -> str:
    """A line of a derivation: the arithmetic, and the formula's sentence under it."""
    sums, _, sentence = line.strip().partition("  # ")
    deep = " deep" if line.startswith(" ") else ""
    return f'<p class="sums{deep}">{escape(sums)}</p>' + (
        f'<p class="hint{deep}">{escape(sentence)}</p>' * bool(sentence)
    )


def _drawn(part: Part, typed: str, mark: str) -> str:
    """The staircase that shows the answer, beside the one that was drawn where that is another."""
    if part.stairs is None:
        return ""
    pp, many = part.stairs
    rows = stairs(pp, many)
    if not is_drawn(rows):
        return ""
    share = Fraction(pp - 1, many + pp - 1)
    idle = f"{pp - 1} of {many + pp - 1} slots idle on every rank: {show(float(share), 'share')}."
    said = idle if part.unit == "share" else ""  # a share may be asked after this
    made = figure(rows, _title(pp, many), said, reads=True)
    own = _typed_rows(typed) if part.unit == "rows" and mark == "wrong" else ()
    return (figure(own, "Yours", "Framed: not as it should be.", right=rows) if is_drawn(own) else "") + made


def _title(pp: int, many: int) -> str:
    if pp == 1:
        return "One stage"
    return "One micro-batch" if many == 1 else f"{pp} stages, {many} micro-batches"


def _typed_rows(typed: str) -> Sequence[str]:
    try:
        return read_rows(typed)
    except UnreadableError:
        return ()

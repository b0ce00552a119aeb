"""Exercises as a terminal shows them, and as objects: the question, what an answer looks like, the grade and why."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ..drill.exercise import Exercise, Part
from ..drill.grading import Grade
from ..drill.sets import LEVELS, TOPICS
from ..quantities import GIB, show
from .record import Record, head
from .schema import DRAFT, NUMBER, TEXT, WHOLE, Schema, list_of, record_of
from .text import BAD, GOOD, WARN, Style, block, counted, wrapped

LONGEST = 10_000  # denominator of a fraction that is still read
Numbered = tuple[int, Exercise]


def title_lines(level: int, seed: int, count: int, style: Style) -> list[str]:
    """What a set is, and how to have the same one again."""
    again = f"seed {seed}: the same set again with --seed {seed}"
    return block("DRILL", f"{counted(count, 'exercise')}, level {level} ({LEVELS[level]}); {again}", style)


def exercise_lines(number: int, count: int, one: Exercise, style: Style) -> Iterator[str]:
    """An exercise without its answers."""
    yield from ["", *block(f"{number} of {count}", one.text, style)]
    yield from (f"          {row}" for row in one.picture)


def question(part: Part) -> str:
    """What is asked, before the place where the answer is typed."""
    return f"          {part.ask} ({part.wanted})? "


def grade_lines(part: Part, grade: Grade, style: Style) -> Iterator[str]:
    """RIGHT or WRONG, what may have gone wrong, and how the right answer is derived."""
    if not grade.readable:
        yield from block("AGAIN", grade.said, style, f"1;{WARN}")
        return
    word, colour = ("RIGHT", GOOD) if grade.right else ("WRONG", BAD)
    said = shown(part) if not grade.said or grade.right else f"{shown(part)}; {grade.said}"
    yield from block(word, said, style, f"1;{colour}")
    yield from _why(part, style)


def answer_lines(part: Part, style: Style) -> Iterator[str]:
    """The right answer and its derivation."""
    yield from block("ANSWER", shown(part), style, f"1;{GOOD}")
    yield from _why(part, style)


def _why(part: Part, style: Style) -> Iterator[str]:
    yield from (line for why in part.why for line in wrapped(why, style, 10 + _indent(why), 12 + _indent(why)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def score_lines(marks: Sequence[tuple[str, bool]], style: Style) -> list[str]:
    """How many answers were right, and the topics of the others."""
    right = sum(good for _, good in marks)
    missed = dict.fromkeys(topic for topic, good in marks if not good)
    more = f"; to practise: {', '.join(missed)}" if missed else ""
    return ["", *block("SCORE", f"{right} of {len(marks)}{more}", style, f"1;{WARN if missed else GOOD}")]


def shown(part: Part) -> str:
    """The right answer in the units that people write."""
    of = part.answer
    if not isinstance(of, Fraction):
        return of if isinstance(of, str) else " / ".join(of)
    if part.unit == "share":
        return show(float(of), "share") + (f" = {of}" if of.denominator <= LONGEST else "")
    if part.unit == "bytes":
        return f"{show(float(of), 'B')} ({float(of) / GIB:.4g} GiB)"
    return show(float(of), "s" if part.unit == "seconds" else "")


# --- objects --------------------------------------------------------------------------------------------------------


def drill_record(
    level: int, seed: int, found: Iterable[Numbered], solved: bool, grades: Sequence[Grade] = ()
) -> Record:
    """A set as one object; with the answers where they are asked for, or were graded."""
    return head("drill") | {
        "level": level,
        "seed": seed,
        "exercises": [_exercise(number, one, solved or bool(grades)) for number, one in found],
        "grades": [{"right": one.right, "readable": one.readable, "said": one.said} for one in grades],
    }


def _exercise(number: int, one: Exercise, solved: bool) -> Record:
    return {
        "number": number,
        "topic": one.topic,
        "level": one.level,
        "text": one.text,
        "given": {name: float(value) for name, value in one.given.items()},
        "picture": list(one.picture),
        "parts": [_part(part, solved) for part in one.parts],
    }


def _part(part: Part, solved: bool) -> Record:
    of = part.answer
    answer = {"answer": float(of) if isinstance(of, Fraction) else of if isinstance(of, str) else list(of)}
    asked: Record = {"ask": part.ask, "unit": part.unit, "wanted": part.wanted, "words": list(part.words)}
    return asked | (answer | {"shown": shown(part), "why": list(part.why)} if solved else {})


def schema() -> Schema:
    """What `outlay drill --json` prints."""
    part = {"ask": TEXT, "unit": TEXT, "wanted": TEXT, "words": list_of(TEXT)}
    answers: Schema = {"answer": {}, "shown": TEXT, "why": list_of(TEXT)}
    parts = record_of(part) | {"properties": part | answers}
    numbers = {"type": "object", "additionalProperties": NUMBER}
    one = {"number": WHOLE, "topic": {"enum": list(TOPICS)}, "level": {"enum": list(LEVELS)}, "text": TEXT}
    one |= {"given": numbers, "picture": list_of(TEXT), "parts": list_of(parts)}
    grade = {"right": {"type": "boolean"}, "readable": {"type": "boolean"}, "said": TEXT}
    keys = {"schema": {"const": "outlay.drill.1"}, "version": TEXT, "level": {"enum": list(LEVELS)}, "seed": WHOLE}
    keys |= {"exercises": list_of(record_of(one)), "grades": list_of(record_of(grade))}
    return {"$schema": DRAFT, **record_of(keys)}

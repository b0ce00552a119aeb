"""outlay drill: exercises on the four counts, asked one after the other, or graded one by one."""

import random
import re
import sys
from dataclasses import dataclass

from ..drill.exercise import Exercise, Part
from ..drill.grading import Grade, grade, grade_all
from ..drill.sets import AT, LEVELS, exercise, exercises
from ..errors import Fault, InputError, nearest, quoted
from ..show.drill import answer_lines, drill_record, exercise_lines, grade_lines, question, score_lines, title_lines
from ..show.text import Style
from .drilling_flags import COUNT
from .flags import Given
from .output import Told, style_of
from .streams import answering, say
from .values import Faults, count

MOST = 1_000  # exercises of a set
LARGEST = 10**9  # seed
TRIES = 3  # of an answer that cannot be read


@dataclass(frozen=True)
class Asked:
    """A set of exercises: one topic or, without one, all in turns."""

    topic: str
    level: int
    seed: int
    count: int
    number: int  # 0: all of them

    def numbered(self) -> list[tuple[int, Exercise]]:
        """The exercises that are asked, each with its number."""
        if self.number:
            return [(self.number, exercise(self.topic, self.level, self.seed, self.number))]
        return list(enumerate(exercises(self.topic, self.level, self.seed, self.count), 1))


def drill(given: Given) -> Told | int:
    """Ask, or print, or grade. Exit 0: all is right, or nothing was asked; 1: an answer is wrong or missing."""
    faults = Faults()
    asked = asked_of(given, faults)
    faults.stop()
    if given.text("answer") is not None:
        return _graded(given, asked)
    solved = given.on("solutions")
    if solved or given.on("as_json"):
        return Told(
            lambda: drill_record(asked.level, asked.seed, asked.numbered(), solved),
            lambda style: [line for number, one in asked.numbered() for line in _solved(asked, number, one, style)],
        )
    return _asked_in_turn(asked, style_of(sys.stdout, given.on("plain")))


def asked_of(given: Given, faults: Faults) -> Asked:
    """The set that some words name; a seed that they leave out is drawn."""
    level = given.text("level") or "1"
    if level not in map(str, LEVELS):
        words = "; ".join(f"{each} {said}" for each, said in LEVELS.items())
        faults.add(Fault("DRL001", "there is no such level", words, quoted(level), "--level 1"))
        level = "1"
    topic = (given.text("topic") or "").lower()
    if topic and topic not in AT[int(level)]:
        close = nearest(topic, AT[int(level)]) or AT[int(level)]
        at = next((str(each) for each in AT if topic in AT[each]), "")
        fix = f"outlay drill {topic} --level {at}" if at else f"outlay drill {close[0]}"
        rule = f"topics of level {level}: {', '.join(AT[int(level)])}"
        faults.add(Fault("DRL001", "there is no such topic at this level", rule, quoted(topic), fix))
    many = count(given.text("count") or str(COUNT), "--count", faults, MOST) or COUNT
    number = count(given.text("number") or "1", "--number", faults, MOST) or 1
    alone = given.text("number") is not None or given.text("answer") is not None
    return Asked(topic, int(level), _seed(given, faults), many, number if alone else 0)


def _seed(given: Given, faults: Faults) -> int:
    text = given.text("seed")
    if text is None:
        if given.text("answer") is not None:
            rule = "an answer is to one exercise of one set"
            faults.add(Fault("DRL002", "no seed is given", rule, "--answer alone", "--seed 7 --number 1 --answer ..."))
        return random.SystemRandom().randrange(100_000)
    if re.fullmatch(r"\d{1,10}", text, re.ASCII) and int(text) <= LARGEST:
        return int(text)
    rule = f"a whole number from 0 to {LARGEST:,}, without commas"
    faults.add(Fault("DRL002", "--seed is not a seed", rule, quoted(text), "--seed 7"))
    return 0


def _graded(given: Given, asked: Asked) -> Told:
    """One exercise, and the answer that is given. Raises InputError (DRL003) where that cannot be read."""
    ((number, one),) = asked.numbered()
    grades = grade_all(given.text("answer") or "", one)
    parts = list(zip(one.parts, grades, strict=True))
    if unread := [(part, each) for part, each in parts if not each.readable]:
        examples = "; ".join(part.example for part in one.parts)
        raise InputError(*(_unread(part, each, given.text("answer"), examples) for part, each in unread))

    def lines(style: Style) -> list[str]:
        graded = [line for part, each in parts for line in grade_lines(part, each, style)]
        return [*title_lines(asked.level, asked.seed, 1, style), *exercise_lines(number, number, one, style), *graded]

    right = all(each.right for each in grades)
    return Told(lambda: drill_record(asked.level, asked.seed, [(number, one)], True, grades), lines, right)


def _unread(part: Part, found: Grade, text: str | None, examples: str) -> Fault:
    why = found.said.partition(";")[0]
    what = f"the answer to {quoted(part.ask)} cannot be read: {why}"
    return Fault("DRL003", what, part.wanted, quoted(text), f'--answer "{examples}"')


def _solved(asked: Asked, number: int, one: Exercise, style: Style) -> list[str]:
    head = title_lines(asked.level, asked.seed, len(asked.numbered()), style) if number in (1, asked.number) else []
    found = [*head, *exercise_lines(number, max(number, asked.count), one, style)]
    for part in one.parts:
        found += [question(part).rstrip(), *answer_lines(part, style)]
    return found


def _asked_in_turn(asked: Asked, style: Style) -> int:
    """Each exercise and its parts, graded at once. The end of the input, or Ctrl-C, ends it with the score so far."""
    marks: list[tuple[str, bool]] = []
    left = sum(len(one.parts) for _, one in asked.numbered())
    say("\n".join(title_lines(asked.level, asked.seed, len(asked.numbered()), style)))
    try:
        for number, one in asked.numbered():
            say("\n".join(exercise_lines(number, max(number, asked.count), one, style)))
            for part in one.parts:
                right = _answered(part, style)
                marks.append((one.topic, right))
    except (EOFError, KeyboardInterrupt):
        say("")
    say("\n".join(score_lines(marks, style)))
    return 0 if len(marks) == left and all(right for _, right in marks) else 1


def _answered(part: Part, style: Style) -> bool:
    """Ask for one part until its answer can be read, three times at most. Raises EOFError at the end of the input."""
    found = Grade(False)
    for _ in range(TRIES):
        with answering():
            sys.stdout.write(question(part))
        typed = sys.stdin.readline()
        if not sys.stdin.isatty():
            say(typed.rstrip("\n"))  # a terminal has shown it already
        if not typed:
            raise EOFError
        found = grade(typed, part)
        if found.readable:
            break
        say("\n".join(grade_lines(part, found, style)))
    say("\n".join(grade_lines(part, Grade(found.right, found.said if found.readable else ""), style)))
    return found.right

"""Settings as `key=value` words, as people put them behind a script's name or paste them by themselves."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .script import Script, Word, parted
from .setting import Setting
from .shell import read_script

PAIR = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=")


@dataclass(frozen=True)
class Pairs:
    """The pairs of a text, how they were written, and the other words of their command."""

    form: str
    settings: dict[str, Setting]
    script: Script
    others: tuple[Word, ...] = ()


def read_pairs(text: str, known: Callable[[str], bool]) -> Pairs:
    """The pairs of the command that has the most known keys; else those of lines that are pasted, or of variables."""
    script = read_script(text)
    scored = [(sum(_is_known(word, known) for word in words), words) for words in script.commands]
    best = max((score for score, _ in scored), default=0)
    chosen = next((words for score, words in scored if score == best and best), [])
    if chosen and PAIR.match(chosen[0].text):
        words = [word for score, line in scored if score and PAIR.match(line[0].text) for word in line]
        return Pairs("key=value words", dict(_of_variables(script, known)) | _held(words, script), script)
    if chosen:
        others = tuple(word for word in chosen if not PAIR.match(word.text))
        return Pairs("a shell script", _held(chosen, script), script, others)
    inner = [word for value in script.variables.values() for one in value for word in parted(one)]
    if any(_is_known(word, known) for word in inner):
        return Pairs("a shell script", _held(inner, script), script)
    return Pairs("key=value words", dict(_of_variables(script, known)), script)


def _is_known(word: Word, known: Callable[[str], bool]) -> bool:
    match = PAIR.match(word.text)
    return match is not None and known(match[1])


def _of_variables(script: Script, known: Callable[[str], bool]) -> Iterator[tuple[str, Setting]]:
    """Lines of `key=value` alone, which a shell takes for its variables."""
    for name, words in script.variables.items():
        if known(name) and words:
            unknown = next((word.unknown for word in words if word.unknown), "")
            text = " ".join(word.text for word in words)
            yield name, Setting(name, (text,), words[0].line, words[0].column, unknown)


def _held(words: list[Word], script: Script) -> dict[str, Setting]:
    """One setting a key: the last one counts, and an earlier other value is said."""
    held = dict[str, Setting]()
    for word in words:
        match = PAIR.match(word.text)
        if match is None:
            continue
        one = Setting(match[1], (word.text[match.end() :].strip("'\""),), word.line, word.column, word.unknown)
        before = held.pop(one.name, None)
        if before is not None and before.values != one.values:
            script.note(f"{one.name} stands twice ({before.place}, {one.place}): the last one counts")
        held[one.name] = one
    return held

"""Words as what a command was given: names of flags without dashes, and texts as they would be typed.

Nothing here reaches the file system: what would be a path on a command line is refused.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.catalogue import accelerator_names, node_names
from ...errors import Fault, nearest, quoted
from ...model.catalogue import is_name, names
from ..commands import COMMANDS, Command
from ..flags import FACE, Flag, Given
from ..values import BOOLEANS, Faults

Words = Mapping[str, Any]
FILES = ("config", "profile", "times", "order", "svg", "html", "perfetto", "csv", "md", "output", "force", "fix",
         "markdown", "format")  # fmt: skip
PATH = re.compile(r"[/\\\0]|\.(toml|json)\s*$|^\s*~", re.IGNORECASE)
LONGEST = 2_000  # characters of one word's value
MOST = 200  # words


def command_of(name: str) -> Command:
    """One command of the list."""
    return next(one for one in COMMANDS if one.name == name)


def given_of(name: str, words: Words, config: Any = None) -> Given:
    """What a command is given by some words; a config stands for standard input. Raises every fault of the words."""
    faults, command = Faults(), command_of(name)
    if len(words) > MOST:
        faults.add(_fault("WEB003", "too many words", f"{MOST} or less", f"{len(words):,}", "leave some out"))
        faults.stop()
    values: dict[str, Any] = {"as_json": True}
    for word, value in words.items():
        for field, read in _read(command, str(word), value, faults):
            if field in values and field != "as_json":
                what = f"--{word} is given several times"
                faults.add(_fault("CLI002", what, f"--{word} is given once", quoted(value), "leave one of them out"))
            values[field] = read
    content = None
    if config is not None:
        values["model"] = "-"
        content = json.dumps(config, ensure_ascii=False).encode("utf-8", "surrogatepass")
    faults.stop()
    return Given(values, content)


def _read(command: Command, word: str, value: Any, faults: Faults) -> Iterator[tuple[str, Any]]:
    """The field that a word is of, and its value; none where it cannot be used."""
    if any(one.name == word for one in command.positionals):
        yield from _text(word, word, value, faults)
        return
    form = f"--{word.replace('_', '-')}"
    flag = next((one for one in command.flags() if form in one.forms), None)
    if flag is None:
        faults.add(_unknown(word, command))
    elif flag.name in FILES or flag in FACE:
        rule = "over HTTP nothing is read from a file or written to one; an answer is always one JSON object"
        faults.add(_fault("WEB002", f"{form} is not taken here", rule, form, "leave it out"))
    elif flag.switch:
        yield from _switch(flag, form, value, faults)
    else:
        yield from _text(flag.name, form, value, faults)


def _switch(flag: Flag, form: str, value: Any, faults: Faults) -> Iterator[tuple[str, bool]]:
    read = BOOLEANS.get(str(value).strip().lower())
    if read is None:
        rule = f"{form} is a switch: it takes no value, or true or false"
        faults.add(_fault("CLI002", f"{form} cannot be read", rule, quoted(value), f"{form} true"))
        return
    said = read if form in flag.names else not read
    if said or flag.negative:
        yield flag.name, said


def _text(name: str, form: str, value: Any, faults: Faults) -> Iterator[tuple[str, str]]:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) > LONGEST:
        rule, got = f"a text of {LONGEST:,} characters or less", f"{len(text):,} characters"
        faults.add(_fault("WEB003", f"{form} is too long", rule, got, "a shorter one"))
    elif fault := _path(name, form, text):
        faults.add(fault)
    elif text.strip():
        yield name, text


def _path(name: str, form: str, text: str) -> Fault | None:
    """What stands against a text that a command line would take for a path."""
    if name == "model":
        if all(is_name(part) or not part.strip() for part in text.split(",")):
            return None
        rule = "MODEL is a name of the catalogue, or a config.json in the body"
        close = nearest(text, names())
        fix = " or ".join(close) if close else "llama-3.1-70b"
        return _fault(
            "MOD007", f"no model is called {quoted(text)}", rule, quoted(text), f"{fix}   (list: /api/models)"
        )
    known_names = {"on": (*accelerator_names(), *node_names()), "beside": names()}.get(name)
    if known_names is None or not (PATH.search(text) if name == "on" else _is_beside_file(text)):
        return None
    close = nearest(text, known_names)
    rule = f"{form} takes names of the catalogue, and no file"
    return _fault("WEB002", f"{form} cannot be a file", rule, quoted(text), close[0] if close else known_names[0])


def _is_beside_file(text: str) -> bool:
    """Whether a model in MODEL:ROLE, .. is no name of the catalogue, and so may be a path."""
    return any(not is_name(part.partition(":")[0]) for part in text.split(",") if part.strip())


def _unknown(word: str, command: Command) -> Fault:
    known = {one[2:]: one for flag in command.flags() for one in flag.names}
    close = nearest(word, known, 2)
    fix = f"did you mean {' or '.join(known[one] for one in close)}?" if close else "leave it out"
    rule = f"words are the flags of outlay {command.name} without dashes"
    return _fault("CLI001", f"there is no flag {quoted('--' + word)}", rule, quoted(word), fix)


def _fault(*parts: str) -> Fault:
    return Fault(*parts)

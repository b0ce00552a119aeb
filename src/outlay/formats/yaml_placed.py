"""YAML as values with their places, from the events of PyYAML: no object is made, no alias is followed."""

import re
from collections.abc import Iterator
from typing import Any

from .json_comments import WORDS, Placed
from .setting import as_number, unreadable
from .source import short

DEEPEST, MOST_EVENTS = 20, 50_000
NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
NOTHING = ("", "~", "null", "none")


def read_yaml(text: str) -> Placed:
    """The one document of a text. Raises InputError (FMT003) with line and column."""
    import yaml

    try:
        events = _counted(yaml.parse(short(text).expandtabs(4), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        return _document(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise unreadable("this is not YAML", str(error.problem or error.context)[:80], *place) from None
    except yaml.YAMLError as error:
        raise unreadable("this is not YAML", " ".join(str(error).split())[:80]) from None


def _counted(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        if count > MOST_EVENTS:
            raise unreadable("the file holds too much", f"more than {MOST_EVENTS:,} entries", *_place(event))
        if type(event).__name__ == "AliasEvent" or getattr(event, "anchor", None):
            fix = "write the value out"
            raise unreadable("anchors and aliases are not read", f"&{event.anchor}", *_place(event), fix)
        yield event


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _document(events: Iterator[Any]) -> Placed:
    for event in events:
        if type(event).__name__ in ("MappingStartEvent", "SequenceStartEvent"):
            found = _value(event, events, 1)
            for _ in events:  # so that what stands behind is YAML too
                pass
            return found
        if type(event).__name__ == "ScalarEvent":
            break
    raise unreadable("this is not YAML of settings", "no key with a value", 1, 1, "name: value, a line each")


def _value(event: Any, events: Iterator[Any], depth: int) -> Placed:
    """One value, whose first event has come."""
    kind, place = type(event).__name__, _place(event)
    if kind == "ScalarEvent":
        return Placed(_scalar(event), *place)
    if depth > DEEPEST:
        raise unreadable("the file is nested too deep", f"more than {DEEPEST} levels", *place)
    if kind == "SequenceStartEvent":
        return Placed([_value(one, events, depth + 1) for one in _until(events, "SequenceEndEvent")], *place)
    return Placed(_mapping(events, depth), *place)


def _mapping(events: Iterator[Any], depth: int) -> dict[str, Placed]:
    found = dict[str, Placed]()
    for key in _until(events, "MappingEndEvent"):
        if type(key).__name__ != "ScalarEvent":
            raise unreadable("a key is not a name", "a list or a mapping as a key", *_place(key))
        if key.value in found:
            raise unreadable(f"{key.value[:40]} stands twice", "the same key again", *_place(key), "remove one")
        value = _value(next(events), events, depth + 1)
        simple = not isinstance(value.value, dict | list)
        found[key.value] = Placed(value.value, *_place(key)) if simple else value
    return found


def _until(events: Iterator[Any], end: str) -> Iterator[Any]:
    for event in events:
        if type(event).__name__ == end:
            return
        yield event


def _scalar(event: Any) -> Any:
    """The value of a scalar: what stands in quotes is text."""
    text: str = event.value
    if event.style in ("'", '"', "|", ">"):
        return text
    plain = text.strip()
    if plain.lower() in NOTHING:
        return None
    if plain in WORDS or plain.lower() in SWITCHES:
        return WORDS.get(plain, SWITCHES.get(plain.lower()))
    return as_number(plain) if NUMBER.fullmatch(plain) and as_number(plain) is not None else text

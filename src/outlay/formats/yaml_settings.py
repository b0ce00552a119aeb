"""YAML as settings with their places, from the events of PyYAML: no object is made, no alias is followed."""

from collections.abc import Iterator
from typing import Any

from .setting import Setting, unreadable
from .source import short

DEEPEST, MOST_EVENTS = 20, 50_000


def read_yaml(text: str) -> dict[str, Setting]:
    """The settings of a mapping by their last key; a list of scalars is several values. Raises InputError (FMT003)."""
    import yaml

    found: dict[str, Setting] = {}
    try:
        events = _counted(yaml.parse(short(text).expandtabs(4), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        _document(events, found)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise unreadable("this is not YAML", str(error.problem or error.context)[:80], *place) from None
    except yaml.YAMLError as error:
        raise unreadable("this is not YAML", " ".join(str(error).split())[:80]) from None
    return found


def _counted(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        place = event.start_mark.line + 1, event.start_mark.column + 1
        if count > MOST_EVENTS:
            raise unreadable("the file holds too much", f"more than {MOST_EVENTS:,} entries", *place)
        if type(event).__name__ == "AliasEvent" or getattr(event, "anchor", None):
            raise unreadable("anchors and aliases are not read", f"&{event.anchor}", *place, "write the value out")
        yield event


def _document(events: Iterator[Any], found: dict[str, Setting]) -> None:
    """Walk one document: `seen` holds the keys of each mapping that is open, None for a list."""
    path, depth, key, listed = list[str](), 0, None, list[str]()
    seen: list[set[str] | None] = []
    for event in events:
        kind = type(event).__name__
        place = event.start_mark.line + 1, event.start_mark.column + 1
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            if depth > DEEPEST:
                raise unreadable("the file is nested too deep", f"more than {DEEPEST} levels", *place)
            path.append(key.value if key is not None else "")
            seen.append(set() if kind == "MappingStartEvent" else None)
            key, listed = (None, listed) if kind == "MappingStartEvent" else (key, [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
            name, was_list = path.pop(), seen.pop() is None
            if was_list and key is not None and name == key.value:
                _keep(found, key, tuple(listed))
            key = None
        elif kind == "ScalarEvent":
            inside = seen[-1] if seen else None
            if inside is None:
                listed.append(event.value)
            elif key is None:
                if event.value in inside:
                    raise unreadable(f"{event.value[:40]} stands twice", "the same key again", *place, "remove one")
                inside.add(event.value)
                key = event
            else:
                _keep(found, key, (event.value,))
                key = None
    if not found:
        raise unreadable("this is not YAML of settings", "no key with a value", 1, 1, "name: value, a line each")


def _keep(found: dict[str, Setting], key: Any, values: tuple[str, ...]) -> None:
    name = key.value.strip().replace("-", "_")
    line = key.start_mark.line + 1
    again = (
        name in found
    )  # in another section: the first one counts, and this one is kept as a setting that is not read
    found[f"{name} line {line}" if again else name] = Setting(name, values, line, key.start_mark.column + 1)

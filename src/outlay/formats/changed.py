"""A change of a layout as the settings of a framework: what its writer writes otherwise."""

from types import ModuleType
from typing import Any

from ..errors import InputError
from .json_comments import Placed, read_json
from .sections import flattened
from .setting import Run


def settings_of(form: ModuleType, before: Run, after: Run) -> tuple[str, ...] | None:
    """The settings that a format writes otherwise for another layout, one text each, and what goes as `no NAME`.

    None where the format has no word for the change, or it changes what stands in no file of it.
    """
    try:
        old, new = form.write(before), form.write(after)
    except InputError:
        return None
    lost = {(one.path, one.value) for one in old.lost}
    if any((one.path, one.value) not in lost for one in new.lost):
        return None
    then, now = _settings(old.text), _settings(new.text)
    made = [f"{name} {value}".strip() for name, value in now.items() if then.get(name) != value]
    gone = [f"no {name}" for name in then if name not in now]
    return tuple(made + gone) or None


def _settings(text: str) -> dict[str, str]:
    """Settings by name: dotted paths of JSON, else a line each, without comments and what stands around."""
    if text.lstrip().startswith("{"):
        return {path: _json(one) for path, one in flattened(read_json(text)).items() if not isinstance(one.value, dict)}
    return dict(_lines(text))


def _json(one: Placed) -> str:
    value: Any = one.plain()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(text: str) -> list[tuple[str, str]]:
    """Lines of flags, and of `key: value` or `key = value` under their sections."""
    made, above = list[tuple[str, str]](), list[tuple[int, str]]()
    for line in text.split("\n"):
        plain = line.strip()
        indent = len(line) - len(line.lstrip())
        if not plain or plain.startswith("#"):
            continue
        if plain.startswith("--"):
            name, _, value = plain.partition("=" if "=" in plain.split(" ")[0] else " ")
            made.append((name, value.rstrip(" \\")))
            continue
        if plain.startswith("[") and plain.endswith("]"):
            above = [(-1, plain.strip("[]"))]
            continue
        mark = ":" if ":" in plain else "="
        name, _, value = (piece.strip() for piece in plain.partition(mark))
        above = [one for one in above if one[0] < indent]
        if not value and mark == ":":
            above.append((indent, name))
        else:
            made.append((".".join([*(one for _, one in above), name]), value))
    return made

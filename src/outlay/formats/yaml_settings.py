"""YAML as flat settings by their last key, in sections or not: megatron-core's fields as people keep them."""

from .json_comments import Placed
from .setting import Setting, unreadable
from .yaml_placed import read_yaml


def read_settings(text: str) -> dict[str, Setting]:
    """The settings of a mapping by their last key; a list of scalars is several values. Raises InputError (FMT003)."""
    found = dict[str, Setting]()
    _walk(read_yaml(text), found)
    if not found:
        raise unreadable("this is not YAML of settings", "no key with a value", 1, 1, "name: value, a line each")
    return found


def _walk(one: Placed, found: dict[str, Setting]) -> None:
    if isinstance(one.value, list):
        for item in one.value:
            _walk(item, found)
    for key, value in one.value.items() if isinstance(one.value, dict) else ():
        inner = value.value
        if isinstance(inner, dict) or (isinstance(inner, list) and any(_nests(item) for item in inner)):
            _walk(value, found)
        else:
            texts = [item.value for item in inner] if isinstance(inner, list) else [inner]
            _keep(found, key, tuple(map(_text, texts)), value)


def _nests(one: Placed) -> bool:
    return isinstance(one.value, dict | list)


def _text(value: object) -> str:
    return "" if value is None else f"{value}"


def _keep(found: dict[str, Setting], key: str, values: tuple[str, ...], at: Placed) -> None:
    name = key.strip().replace("-", "_")
    # In another section: the first one counts, and this one is kept as a setting that is not read.
    again = name in found
    found[f"{name} line {at.line}" if again else name] = Setting(name, values, at.line, at.column)

"""Lists of names that a framework has, kept as texts with their source in a first line."""

from functools import cache
from importlib.resources import files


@cache
def keys_of(package: str) -> frozenset[str]:
    """The names in `keys.txt` of a format."""
    text = files(package).joinpath("keys.txt").read_text(encoding="utf-8")
    return frozenset(text.partition("\n")[2].split())

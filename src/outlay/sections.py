"""Data files of many entries, each parsed when it is asked for: to parse them all takes longer than to count.

An entry begins with a line `[name]` or `["name"]`; a table inside it has a dot in its line.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

HEADER = re.compile(r'^\["?([^"\].]+|(?<=")[^"\]]+)"?\]$', re.MULTILINE)  # of an entry, not of a table inside one


@cache
def sections(package: str, file: str) -> dict[str, str]:
    """The text of each entry of a file beside a package's modules, by name, in order."""
    _, *parts = HEADER.split(files(package).joinpath(file).read_text("utf-8"))
    return {name: f'["{name}"]\n{body}' for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def section(package: str, file: str, name: str) -> dict[str, Any]:
    """One entry, parsed. Raises KeyError where the file has no such name."""
    read: dict[str, Any] = tomllib.loads(sections(package, file)[name])[name]
    return read

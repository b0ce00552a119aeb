"""Settings as YAML, and comments that stay comments."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

PLAIN = re.compile(r"[A-Za-z_/][\w./+-]*")
WORDS = ("true", "false", "yes", "no", "on", "off", "null", "none")


def comment(text: str) -> str:
    """A comment of one line, whatever a name in it holds: what stands behind a line's end would be a setting."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def yaml_lines(made: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The lines of a mapping; what is empty is left out."""
    for key, value in made.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from yaml_lines(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}: [{', '.join(map(scalar, value))}]"
        else:
            yield f"{indent}{key}: {scalar(value)}"


def scalar(value: object) -> str:
    """One value of YAML: a text in quotes where it could be read as something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value.lower() not in WORDS else json.dumps(value)
    return f"{value}"

"""Where a question is read from beside its flags: the TOML file of --config, and standard input."""

import sys
import tomllib
from pathlib import Path
from typing import Any

from ..errors import Fault, InputError, quoted

LARGEST_FILE = 64 * 2**20  # bytes


def config_of(path: str | None) -> dict[str, Any]:
    """The tables of a --config file."""
    if path is None:
        return {}
    fix = "give the path of a TOML file"
    if not path.strip():
        raise InputError(Fault("CFG001", "--config names no file", "--config is a TOML file", "an empty text", fix))
    try:
        with Path(path).open("rb") as file:
            read = tomllib.loads(file.read(LARGEST_FILE).decode("utf-8"))
    except OSError as error:
        raise InputError(
            Fault("CFG001", f"{quoted(path)} cannot be read", "--config is a TOML file", error.strerror or "?", fix)
        ) from None
    except (ValueError, RecursionError) as error:  # also what is not UTF-8, and what is not TOML
        fix = "correct it there"
        raise InputError(
            Fault("CFG002", f"{quoted(path)} is not TOML", "--config is a TOML file, in UTF-8", str(error)[:90], fix)
        ) from None
    return read


def standard_input() -> bytes:
    """All of standard input."""
    stream = getattr(sys.stdin, "buffer", None)
    return stream.read(LARGEST_FILE) if stream else sys.stdin.read().encode("utf-8", "surrogatepass")

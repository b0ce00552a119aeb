"""Files that a command writes: whole or not at all, and never over another one unless asked to."""

import contextlib
import os
import sys
from pathlib import Path

from ..errors import Fault, InputError, quoted
from .flags import Given
from .streams import answering
from .values import Faults

STDOUT = "-"


def check(path: str, force: bool) -> Fault | None:
    """What stands against writing this file, before any work is done; None where nothing does."""
    if path == STDOUT:
        return None
    where = Path(path)
    try:
        if where.is_dir() or not where.parent.is_dir():
            return _unwritable(path, "a folder" if where.is_dir() else "its folder does not exist")
        return _exists(path) if os.path.lexists(where) and not force else None
    except (OSError, ValueError) as error:
        return _unwritable(path, str(error))


def picture(given: Given, faults: Faults) -> str | None:
    """The file that --svg names, which can be written as far as can be seen; None without the flag."""
    path = given.text("svg")
    if path is None:
        return None
    if path.startswith("--"):
        rule = "--svg needs the name of a file, or - for standard output"
        faults.add(Fault("CLI002", "--svg cannot be read", rule, quoted(path), "--svg f.svg"))
    elif path == STDOUT and given.on("as_json"):
        rule = "standard output holds one answer: the object of --json, or a file"
        faults.add(Fault("DRW002", "two answers go to standard output", rule, "--json and -", "write one to a file"))
    elif fault := check(path, given.on("force")):
        faults.add(fault)
    return path


def write(path: str, content: bytes, force: bool) -> None:
    """Write a file at once: readers see the old one, or all of the new one. Raises InputError (OUT001, OUT002)."""
    if path == STDOUT:
        stream = getattr(sys.stdout, "buffer", None)
        with answering():
            sys.stdout.flush()
            if stream is None:
                sys.stdout.write(content.decode())
            else:
                stream.write(content)
        return
    where = Path(path)
    part = where.with_name(f".{where.name[:100]}.{os.getpid()}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
        if force:
            os.replace(part, where)
        else:
            os.link(part, where)  # unlike a rename, it fails where the name is taken meanwhile
    except FileExistsError:
        raise InputError(_exists(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(_unwritable(path, getattr(error, "strerror", None) or str(error))) from None
    finally:
        with contextlib.suppress(OSError, ValueError):
            part.unlink()


def _exists(path: str) -> Fault:
    rule = "a file that exists is never written over unasked"
    return Fault("OUT001", f"{quoted(path)} exists", rule, quoted(path), "another name, or --force")


def _unwritable(path: str, why: str) -> Fault:
    return Fault("OUT002", f"{quoted(path)} cannot be written", "a file in a folder that exists", why, "another name")

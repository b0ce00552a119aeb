"""A printed bill, out of a file or standard input."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ..errors import Fault, InputError, quoted
from ..show.restore import Asked, is_bill, restore
from .configuring import LARGEST_FILE, standard_input


def text_of(path: str) -> bytes | None:
    """A .json file that may be a bill; anything else is left to the reader of models."""
    if not path.endswith(".json") or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_FILE)
    except OSError:
        return None


def bill_in(text: bytes | None) -> Mapping[str, Any] | None:
    """The printed bill that a text is, if it is one."""
    try:
        value = json.loads(text) if text and b'"outlay.' in text else None
    except (ValueError, RecursionError):
        return None
    return value if is_bill(value) else None


def read_bill(path: str) -> Asked:
    """The question in a printed bill: a file, or `-`."""
    text = standard_input() if path == "-" else text_of(path)
    value = bill_in(text)
    if value is None:
        got = "nothing there" if text is None else "no JSON of outlay"
        rule = "a bill is what `outlay count --json` prints"
        raise InputError(
            Fault("CFG004", f"{quoted(path)} is not a bill", rule, got, "outlay count ... --json > bill.json")
        )
    return restore(value)

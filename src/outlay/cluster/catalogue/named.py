"""What `--on` means: so many accelerators or nodes by name, a TOML file, or a list of counts."""

import os
import re
from dataclasses import dataclass

from ...errors import Fault, InputError, quoted
from ..accelerator import Cluster
from .own import MOST, mixed, own_cluster
from .tables import (  # fmt: skip
    accelerator,
    accelerator_names,
    all_names,
    closest,
    find,
    host_bytes,
    links,
    node,
    node_names,
    price,
    unknown,
    used_figures,
)


def cluster(text: str) -> Cluster:
    """What `--on` names: `64xh100-sxm` (accelerators), `8xp5.48xlarge` (nodes), a bare name for one of it, or a file.

    A text that ends in .toml is a file: see `own.py`. `64xFILE.toml` is the file with so many accelerators.
    """
    parsed = _parse(str(text), str(text))
    if parsed.faults:
        raise InputError(*parsed.faults)
    return _build(parsed)


def clusters(text: str) -> tuple[Cluster, ...]:
    """A scaling table: `8,16,32,64xh100-sxm` is four clusters; a part may also name its own accelerator."""
    parts = [part.strip() for part in str(text).split(",")]
    _, name = _split(parts[-1])
    parsed = [_parse(f"{part}x{name}" if _is_number(part) else part, str(text)) for part in parts]
    faults = {(fault.code, fault.what): fault for one in parsed for fault in one.faults}
    if faults:
        raise InputError(*faults.values())
    return tuple(_build(one) for one in parsed)


@dataclass(frozen=True)
class _Parsed:
    """One reading of `--on`: its name and count, or what is wrong with them; a file is read at once."""

    name: str
    count: int
    faults: tuple[Fault, ...]
    own: Cluster | None = None


def _split(text: str) -> tuple[str, str]:
    """The count and the name in `COUNTxNAME`; a count of "1" where none was written.

    Names hold an x too (rtx4090, p5.48xlarge), so a count is split off only where it looks like a number, or
    where what follows is a name that is known.
    """
    whole = text.strip()
    before, *rest = (part.strip() for part in re.split("[xX\u00d7]", whole, maxsplit=1))
    if rest and not find(whole, all_names()) and (_is_number(before) or find(rest[0], all_names())):
        return before, rest[0]
    return ("", "") if _is_number(whole) else ("1", whole)


def _is_number(text: str) -> bool:
    """Whether a text is meant as a number, of any kind: `8`, `-3`, `8.5`, `1e400`, `nan`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(part: str, text: str) -> _Parsed:
    """One reading of one part of the text; `text` is the whole, as the user wrote it."""
    if part.strip().lower().endswith(".toml"):
        return _parse_file(part.strip(), text)
    if _is_mixed(part):
        return _Parsed("", 0, (mixed(f"--on {quoted(part)}", "--on " + part.split("+")[0].strip()),))
    count, name = _split(part)
    if not name.strip("xX, "):
        return _Parsed("", 0, (_unreadable(text),))
    found = find(name, all_names())
    close = [found] if found else closest(name, all_names())
    most = MOST // node(found).accelerators if found in node_names() else MOST
    number = _whole(count, most)
    faults = [] if number else [_bad_count(count, text, most, (close or ["h100-sxm"])[0])]
    if not found:
        faults.append(unknown(name, text, close, _corrected(name, text, number, (close or [""])[0])))
    return _Parsed(found, number, tuple(faults))


def _parse_file(part: str, text: str) -> _Parsed:
    """A file by itself, or COUNTxFILE; a file whose own name looks like that is taken by itself."""
    count, name = ("", part) if os.path.exists(part) else _split(part)
    counted = name != part
    number = _whole(count, MOST) if counted else 0
    if counted and not number:
        return _Parsed("", 0, (_bad_count(count, text, MOST, name),))
    try:
        return _Parsed(name, number, (), own_cluster(name, number))
    except InputError as error:
        return _Parsed(name, number, error.faults)


def _is_mixed(part: str) -> bool:
    pieces = part.split("+")
    return len(pieces) > 1 and all(find(_split(piece)[1], all_names()) for piece in pieces)


def _corrected(name: str, text: str, number: int, right: str) -> str:
    """The user's own text with the right name, where its count is good and it is safe to print."""
    plain = number and text.isprintable() and len(text) <= 60
    return f"--on {text.strip().replace(name, right)}" if plain else f"--on {number or 8}x{right}"


def _whole(text: str, most: int) -> int:
    """A count from 1 to `most`; 0 where the text is not one. Long texts are not turned into numbers at all."""
    digits = text.lstrip("0")
    plain = text.isascii() and text.isdigit() and 0 < len(digits) <= len(str(MOST))
    return int(digits) if plain and int(digits) <= most else 0


def _bad_count(count: str, text: str, most: int, name: str) -> Fault:
    what = f"{quoted(count)} is not a count of accelerators or nodes"
    return Fault("HW002", what, f"the count is a whole number from 1 to {most:,}", quoted(text), f"--on 8x{name}")


def _unreadable(text: str) -> Fault:
    rule = "--on is COUNTxNAME, or a NAME by itself for one of it; or a TOML file"
    return Fault("HW003", "--on names no hardware", rule, quoted(text), "--on 8xh100-sxm or --on 8xp5.48xlarge")


def _build(parsed: _Parsed) -> Cluster:
    """The cluster of a reading without faults: a node's own figures stand in for those of its accelerator."""
    if parsed.own:
        return parsed.own
    name = parsed.name
    each = 1 if name in accelerator_names() else node(name).accelerators
    card = name if name in accelerator_names() else node(name).accelerator
    ranks = parsed.count * each
    inside, outside, *spine = links(name, ranks)
    used = used_figures(name)
    return Cluster(
        name=f"{parsed.count}x{name}",
        accelerator=accelerator(card),
        ranks=ranks,
        inside=inside,
        outside=outside,
        unverified=tuple(figure for figure in used if used[figure].unverified and figure != "price"),
        spine=spine[0] if spine else None,
        price=price(name),
        host_bytes=host_bytes(name),
    )

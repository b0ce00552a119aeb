"""The folder of a sweep: parts that are whole or not there, a manifest, and a lock that ends with its owner."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outlay import __version__

from ...errors import Fault, InputError, quoted
from ...formats.sweep_parquet import whole
from .study import Read

MANIFEST, LOCK, PART, UNDONE = "sweep.json", ".lock", "part-*.parquet", ".*.undone"
SCHEMA = "outlay.sweep_folder.1"


def part_name(part: int) -> str:
    """The file of a part; names sort as parts do."""
    return f"part-{part:07d}.parquet"


def manifest_of(read: Read) -> dict[str, Any]:
    """What the folder says of itself."""
    study = read.study
    return {
        "schema": SCHEMA,
        "version": __version__,
        "fingerprint": read.fingerprint,
        "kind": study.kind,
        "questions": study.questions,
        "parts": study.parts,
        "part_questions": study.part_questions,
        "axes": {axis.name: list(axis.texts) for axis in study.axes},
        "limits": {limit.name: [str(limit.low), str(limit.high)] for limit in study.limits},
        "study": read.text,
    }


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made where it does not exist, while its parts are written. The system lets go of the
    lock when its owner ends, however it ends.

    Raises InputError (SWP007 where another sweep holds it, SWP008 where other files are in it).
    """
    import fcntl

    _own(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / LOCK, "a")  # noqa: SIM115
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            rule, fix = "one sweep at a time writes to a folder", "wait for it, stop it, or --output another folder"
            what = "another sweep writes to this folder"
            raise InputError(Fault("SWP007", what, rule, quoted(folder), fix)) from None
        yield


def _own(folder: Path) -> None:
    """Refuse a folder with files that are not of a sweep, before anything is written to it."""
    if not folder.is_dir() or (folder / MANIFEST).exists():
        return
    others = [each for each in sorted(folder.iterdir()) if each.name != LOCK and not each.match(UNDONE)]
    if others:
        rule, fix = "the folder of a sweep is its own", "--output another folder"
        raise InputError(Fault("SWP008", "the folder holds other files", rule, quoted(others[0]), fix))


def prepare(folder: Path, manifest: dict[str, Any]) -> list[int]:
    """The parts that are still missing. Raises InputError (SWP008) where the folder holds another study."""
    held_by = read_manifest(folder) if (folder / MANIFEST).exists() else None
    if held_by is None:
        write(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    else:
        check_same(folder, held_by, manifest)
    with writing(folder):
        for left in folder.glob(UNDONE):
            left.unlink()
    return [part for part in range(manifest["parts"]) if not _there(folder / part_name(part))]


def check_same(folder: Path, held_by: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Refuse a folder that holds another study than this one."""
    if held_by["fingerprint"] == manifest["fingerprint"]:
        return
    another = held_by["version"] != manifest["version"]
    got = f"counted by outlay {held_by['version']}" if another else f"{held_by['questions']:,} other questions"
    rule = "a folder holds one study, with the files that it names, counted by one version"
    fix = "--output another folder, or remove this one"
    raise InputError(Fault("SWP008", f"{quoted(folder)} holds another study", rule, got, fix))


def _there(file: Path) -> bool:
    """Whether a part is there and whole."""
    try:
        with file.open("rb") as content:
            head = content.read(4)
            content.seek(-4, os.SEEK_END)
            return whole(head + content.read(4))
    except OSError:
        return False


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder. Raises InputError (SWP013) where there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_text("utf-8"))
        if found["schema"] == SCHEMA:
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    rule, fix = (
        f"the folder of a sweep has a file {MANIFEST}",
        "outlay sweep STUDY.toml, then outlay sweep FOLDER --show",
    )
    raise InputError(Fault("SWP013", f"{quoted(folder)} holds no sweep", rule, quoted(folder / MANIFEST), fix))


def parts_in(folder: Path) -> list[str]:
    """The files of the parts that are there, in order."""
    return [str(file) for file in sorted(folder.glob(PART)) if _there(file)]


def write(file: Path, content: bytes) -> None:
    """Write a file: whole on the disk, then under its name. Raises InputError (SWP009)."""
    undone = file.with_name(f".{file.name}.undone")
    with writing(file.parent):
        try:
            with open(undone, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            os.replace(undone, file)
        finally:
            with contextlib.suppress(OSError):
                undone.unlink()
        where = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(where)
        finally:
            os.close(where)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Around what writes to a folder: a full disk or a read-only folder is a fault, and what was written stays."""
    try:
        yield
    except OSError as error:
        rule = "parts are written whole or not at all: those that are there can be read, and are not counted again"
        fix = "make room, or --output a folder that can be written; the same command goes on"
        what = f"{quoted(folder)} cannot be written"
        raise InputError(Fault("SWP009", what, rule, error.strerror or str(error), fix)) from None

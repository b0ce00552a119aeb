"""A check as lines for other programs: `FILE:LINE:COL: CODE what`, and workflow commands of GitHub Actions.

Source of the commands and their escapes: GitHub Docs, "Workflow commands for GitHub Actions"; actions/toolkit,
packages/core/src/command.ts.
"""

import re
from collections.abc import Iterable, Iterator

from ...errors import Fault
from ..answer import says_yes, verdict_of
from ..text import gib, safe
from .answer import Answer, counts

PLACE = re.compile(r"^(?P<file>[^\n]*?)line (?P<line>\d+) column (?P<column>\d+): ")


def concise_lines(answer: Answer) -> Iterator[str]:
    """A line a finding, in the order of the answer, then one line of it all."""
    for one in answer.placed:
        at = one.finding
        yield safe(f"{one.file.path}:{at.line or 1}:{at.column or 1}: {at.code} {at.what}")
    for each in answer.broken:
        yield safe(f"{answer.files[0].path}:1:1: {each.code} {each.what} ({each.got})")
    verdict = f"; {_verdict(answer)}" if answer.bill else ""
    yield safe(f"{counts([one.finding for one in answer.placed])}{verdict}")


def _verdict(answer: Answer) -> str:
    assert answer.bill is not None
    memory = answer.bill.memory
    return f"{verdict_of(answer.bill)}: {gib(memory.peak_bytes)} of {gib(memory.usable_bytes)} usable"


def github_lines(answer: Answer) -> Iterator[str]:
    """A command a finding; one for the verdict where it is no."""
    for one in answer.placed:
        at = one.finding
        text = f"{at.what}\nrule: {at.rule}\ngot: {at.got}\nfix: {at.fix}"
        kind = "error" if at.serious else "warning"
        yield _command(kind, one.file.path, at.line or 1, at.column or 1, f"{at.code} {at.what}", text)
    for each in answer.broken:
        text = f"{each.what}\nrule: {each.rule}\ngot: {each.got}\nfix: {each.fix}"
        yield _command("error", answer.files[0].path, 1, 1, f"{each.code} {each.what}", text)
    if answer.bill and not answer.bill.violations:
        kind = "notice" if says_yes(answer.bill) else "error"
        yield _command(kind, answer.files[0].path, 1, 1, verdict_of(answer.bill), _verdict(answer))


def fault_commands(faults: Iterable[Fault], path: str, github: bool) -> Iterator[str]:
    """Files that cannot be read, in the same ways; a place is what the message begins with."""
    for one in faults:
        place = PLACE.match(one.got)
        line, column = (int(place["line"]), int(place["column"])) if place else (1, 1)
        named = place["file"].removesuffix(", ") if place and place["file"] else path
        if github:
            text = f"{one.what}\nrule: {one.rule}\ngot: {one.got}\nfix: {one.fix}"
            yield _command("error", named, line, column, f"{one.code} {one.what}", text)
        else:
            yield safe(f"{named}:{line}:{column}: {one.code} {one.what}")


def _command(kind: str, path: str, line: int, column: int, title: str, text: str) -> str:
    """One workflow command on one line."""
    plain = "\n".join(safe(row) for row in text.split("\n"))
    where = f"file={_property(path)},line={line},col={column},title={_property(title)}"
    return f"::{kind} {where}::{_data(plain)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(safe(text)).replace(":", "%3A").replace(",", "%2C")

"""What the findings of a check cost, and the corrected copies: each file with the edits that mend it, read again."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Fault, InputError, quoted
from ...formats.edited import UnmendableError, edited
from ...formats.joining import Part
from ...formats.setting import Finding
from ...formats.source import text_of
from ...show.check.answer import Cost, File, Fixed
from ..files import STDOUT, check, write
from ..flags import Given
from .files import Held, part_of

if TYPE_CHECKING:
    from ...bill import Bill

Count = Callable[[Sequence[Part]], "Bill | None"]  # the bill of some files, None where it cannot be counted
Findings = Mapping[str, Sequence[Finding]]  # of each file by its title


def mended(held: Held, findings: Sequence[Finding]) -> Part | None:
    """A file after the edits of some findings, where they can be made and it can be read again."""
    try:
        return part_of(held.title, edited(held.content, findings), held.several)
    except (UnmendableError, InputError):
        return None


def cost_of(one: Finding, held: Held, files: Sequence[Held], bill: "Bill", count: Count) -> Cost | None:
    """The bill as the files are, less the bill with the edits of one finding."""
    part = mended(held, [one]) if one.edits else None
    if part is None or _alike(part, held.part):
        return None
    after = count([part if other is held else other.part for other in files])
    if after is None or after.violations != bill.violations:
        return None
    memory = bill.memory.peak_bytes - after.memory.peak_bytes
    time = bill.step.seconds - after.step.seconds
    return Cost(memory, time) if memory or time else None


def _alike(one: Part, other: Part) -> bool:
    """Whether two readings make the same run."""
    made = (one.found, other.found)
    a, b = ((found.model, found.job, found.layout, found.engine, found.ranks) for found in made)
    return a == b and one.said == other.said


def fixable(held: Held, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """The findings that edits mend, and those whose edits do it: one after another each goes, and no other comes."""
    own = {one.code for one in held.part.found.findings}
    gone, made = list[Finding](), list[Finding]()
    before = held.part
    for one in sorted(findings, key=lambda each: each.code not in own):
        if _went(one, before, [each for each in findings if each not in gone], one.code in own):
            gone.append(one)  # the edits of another one did it
            continue
        part = mended(held, [*made, one]) if one.edits else None
        if part is not None and _helps(one, before, part, one.code in own):
            gone.append(one)
            made.append(one)
            before = part
    return gone, made


def _went(one: Finding, now: Part, waiting: Sequence[Finding], own: bool) -> bool:
    """Whether a finding is gone from a file as it is now; one from outside, whether all that it adds is there."""
    if own:
        left = sum(each.code == one.code for each in now.found.findings)
        return left < sum(each.code == one.code for each in waiting)
    text = now.text.replace("-", "_")
    return bool(one.edits) and all(not each.line and f"{each.name} {each.value}".strip() in text for each in one.edits)


def _helps(one: Finding, before: Part, after: Part, own: bool) -> bool:
    """Whether a finding of the file itself is gone, and no error is new; one between files has no code of its own."""
    old, new = (Counter(each.code for each in part.found.findings) for part in (before, after))
    errors = Counter(each.code for each in after.found.findings if each.serious)
    worse = any(count > old[code] for code, count in errors.items())
    return not worse and (not own or new[one.code] < old[one.code])


def outputs(given: Given, files: Sequence[Held]) -> dict[str, str]:
    """The path of each corrected copy; faults of those that cannot be written. Never a file that was read."""
    path = given.text("output")
    if path is None and any(held.path == STDOUT for held in files):
        rule = "a copy of standard input has no place of its own"
        raise InputError(Fault("OUT002", "the corrected copy has no name", rule, "-", "-o train.fixed.sh"))
    if path is not None and (len(files) > 1 or path == STDOUT):
        rule = "-o names the copy of one file; copies of several stand beside them"
        raise InputError(Fault("OUT002", "-o cannot be used here", rule, quoted(path), "leave it out"))
    made = {held.title: path or beside(held.path) for held in files}
    faults = [fault for one in made.values() if (fault := check(one, given.on("force")))]
    read = {os.path.realpath(held.path) for held in files}
    for one in made.values():
        if os.path.realpath(one) in read:
            rule = "--fix writes a copy; the file itself stays as it is"
            faults.append(Fault("OUT001", f"{quoted(one)} is the file that is checked", rule, one, "another name"))
    if faults:
        raise InputError(*faults)
    return made


def beside(path: str) -> str:
    """`train.fixed.sh` for `train.sh`."""
    where = Path(path)
    return str(where.with_name(f"{where.stem}.fixed{where.suffix}"))


def corrected(held: Held, findings: Sequence[Finding]) -> tuple[bytes | None, list[Finding]]:
    """The corrected text of one file and the findings that it mends; None where nothing can be mended."""
    gone, mends = fixable(held, findings)
    return (edited(held.content, mends) if mends else None), gone


def fixed(held: Held, file: File, findings: Sequence[Finding], output: str, force: bool) -> tuple[Fixed, Part]:
    """Write the corrected copy of one file, where anything can be mended; what it says then."""
    content, gone = corrected(held, findings)
    left = tuple(one for one in findings if one not in gone)
    if content is None:
        return Fixed(file, "", (), (), left), held.part
    write(output, content, force)
    before, after = (text_of(one).split("\n") for one in (held.content, content))
    lines = unified_diff(before, after, file.title, Path(output).name, n=1, lineterm="")
    return Fixed(file, output, tuple(lines), tuple(gone), left), part_of(held.title, content, held.several)

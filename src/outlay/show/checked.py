"""What a file of a framework says, what is wrong with it, and the bill of the run that it makes."""

from collections.abc import Iterator, Sequence

from ..bill import Bill
from ..errors import Fault
from ..formats.setting import Finding, Found
from ..undivided import parameters
from .answer import binds_line, headline, idle_line, step_line
from .export import finding_lines, finding_record, found_lines, found_record
from .export_schema import FINDING, READ
from .record import Record, head, record
from .schema import DRAFT, TEXT, Schema, list_of, record_of
from .terminal import subject_lines, violation_lines
from .text import Style, block, counted, safe, short

AXES = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp_replicate", "dp_shard", "zero")


def words_of(found: Found) -> str:
    """The run of a file in one sentence; what the file leaves open is left out."""
    model = (
        f"a model of {short(parameters(found.model).total)} parameters"
        if found.model
        else "a model that it does not name"
    )
    degrees = [
        f"{name} {value}" for name in AXES if (value := getattr(found.layout, name)) and (value > 1 or name == "zero")
    ]
    job = found.job
    said = [
        f"micro-batch {found.layout.micro_batch}" if found.layout.micro_batch else "",
        f"batch {job.global_batch:,}" if job.global_batch else "",
        f"sequences of {job.sequence_length:,}" if job.sequence_length else "",
        job.precision or "",
        f"on {counted(found.ranks, 'rank')}" if found.ranks else "",
    ]
    return f"runs {model} with {', '.join([*degrees, *filter(None, said)])}"


def counts(found: Sequence[Finding]) -> str:
    """How many errors and warnings: `2 errors, 1 warning`."""
    serious = sum(one.serious for one in found)
    return f"{counted(serious, 'error')}, {counted(len(found) - serious, 'warning')}"


def checked_lines(found: Found, bill: Bill | None, needs: Sequence[Fault], title: str, style: Style) -> Iterator[str]:
    """The answer of `outlay check`."""
    yield from block("SAYS", safe(f"{title} {words_of(found)}; {counts(found.findings)}"), style)
    yield from found_lines(found, style, title)
    yield from finding_lines(found, style)
    yield ""
    if bill is None:
        for one in needs:
            yield from block("NEEDS", safe(f"{one.what}: {one.got}; {one.fix}"), style)
        return
    yield from violation_lines(bill.violations, style)
    for part in (headline, step_line, idle_line, binds_line, subject_lines):
        yield from part(bill, style)


def checked_record(found: Found, bill: Bill | None, needs: Sequence[Fault]) -> Record:
    """The same as one object."""
    missing = [{"code": one.code, "what": one.what, "got": safe(one.got), "fix": one.fix} for one in needs]
    findings = [finding_record(one) for one in found.findings]
    said = {"says": safe(words_of(found)), "read": found_record(found), "findings": findings, "needs": missing}
    return head("check") | said | {"bill": record(bill) if bill else None}


def schema() -> Schema:
    """What `outlay check --json` prints."""
    keys = {
        "schema": {"const": "outlay.check.1"},
        "version": TEXT,
        "says": TEXT,
        "read": READ,
        "findings": list_of(FINDING),
        "needs": list_of(record_of(dict.fromkeys(("code", "what", "got", "fix"), TEXT))),
        "bill": {"type": ["object", "null"]},
    }
    return {"$schema": DRAFT, **record_of(keys)}

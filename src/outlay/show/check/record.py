"""A check as one object, and its schema."""

from ..export import finding_record, found_record
from ..export_schema import READ, SAID
from ..record import Record, head, record
from ..schema import DRAFT, NUMBER, TEXT, WHOLE, Schema, list_of, record_of
from ..text import safe
from .answer import Answer, Fixed, Placed, words_of

EDIT = record_of({"setting": TEXT, "value": {"type": ["string", "null"]}, "line": WHOLE, "column": WHOLE})
COST = {"anyOf": [record_of({"peak_bytes": NUMBER, "seconds": NUMBER}), {"type": "null"}]}
FOUND = record_of(SAID | {"line": WHOLE, "column": WHOLE, "file": TEXT, "edits": list_of(EDIT), "cost": COST})
NEAR = record_of({"change": TEXT, "flags": TEXT, "settings": list_of(TEXT), "peak_bytes": NUMBER, "seconds": NUMBER})
FIXED = record_of({"file": TEXT, "output": TEXT, "diff": list_of(TEXT), "mended": list_of(TEXT), "left": list_of(TEXT)})
MAYBE = {"type": ["object", "null"]}


def check_record(answer: Answer) -> Record:
    """The answer, the bill in full."""
    missing = [{"code": one.code, "what": one.what, "got": safe(one.got), "fix": one.fix} for one in answer.needs]
    return head("check") | {
        "says": safe(words_of(answer.found)),
        "files": [{"path": safe(one.path), "read": found_record(one.found)} for one in answer.files],
        "read": found_record(answer.found),
        "findings": [_finding(one) for one in answer.placed],
        "needs": missing,
        "bill": record(answer.bill) if answer.bill else None,
        "better": [
            {"change": one.change, "flags": one.flags, "settings": [safe(text) for text in one.settings],
             "peak_bytes": one.peak_bytes, "seconds": one.seconds}
            for one in answer.near
        ],
        "fixed": [_fixed(one) for one in answer.fixed],
        "after": record(answer.after) if answer.after else None,
    }  # fmt: skip


def _finding(one: Placed) -> Record:
    edits = [
        {"setting": each.name, "value": each.value, "line": each.line, "column": each.column}
        for each in one.finding.edits
    ]
    cost = {"peak_bytes": one.cost.peak_bytes, "seconds": one.cost.seconds} if one.cost else None
    return finding_record(one.finding) | {"file": safe(one.file.path), "edits": edits, "cost": cost}


def _fixed(one: Fixed) -> Record:
    codes = {name: [each.code for each in getattr(one, name)] for name in ("mended", "left")}
    return {"file": safe(one.file.path), "output": safe(one.output), "diff": [safe(line) for line in one.diff]} | codes


def schema() -> Schema:
    """What `outlay check --json` prints."""
    keys = {
        "schema": {"const": "outlay.check.1"},
        "version": TEXT,
        "says": TEXT,
        "files": list_of(record_of({"path": TEXT, "read": READ})),
        "read": READ,
        "findings": list_of(FOUND),
        "needs": list_of(record_of(dict.fromkeys(("code", "what", "got", "fix"), TEXT))),
        "bill": MAYBE,
        "better": list_of(NEAR),
        "fixed": list_of(FIXED),
        "after": MAYBE,
    }
    return {"$schema": DRAFT, **record_of(keys)}

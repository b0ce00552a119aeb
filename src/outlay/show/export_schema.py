"""The JSON Schema of an export or a conversion."""

from ..formats.known import FORMATS
from .schema import DRAFT, TEXT, WHOLE, Schema, list_of, record_of

SAID = dict.fromkeys(("severity", "code", "what", "rule", "got", "fix"), TEXT)
FINDING = record_of(SAID | {"line": WHOLE, "column": WHOLE})
READ = record_of(
    {
        "framework": TEXT,
        "form": TEXT,
        "ranks": WHOLE,
        "missing": list_of(record_of({"field": TEXT, "why": TEXT})),
        "kept": list_of(record_of({"setting": TEXT, "line": WHOLE, "column": WHOLE})),
        "notes": list_of(TEXT),
        "findings": list_of(FINDING),
    }
)


def schema() -> Schema:
    """What `outlay export --json` prints; a conversion says what it read besides."""
    maybe_text = {"type": ["string", "null"]}
    made = {
        "schema": {"const": "outlay.export.1"},
        "version": TEXT,
        "framework": {"enum": list(FORMATS)},
        "files": list_of(TEXT),
        "file": maybe_text,
        "text": maybe_text,
        "lost": list_of(record_of({"field": TEXT, "value": TEXT, "why": TEXT})),
        "notes": list_of(TEXT),
        "violations": list_of({"type": "object"}),
    }
    whole = {"type": "object", "properties": made | {"read": READ}, "additionalProperties": False}
    return {"$schema": DRAFT, **whole, "required": list(made)}

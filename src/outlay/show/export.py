"""What an export or a conversion says beside the file: what was read, what is lost, what stands in code."""

from collections.abc import Iterator, Sequence

from ..formats.setting import Finding, Found, Lost, Setting, Written
from .record import Record, head, plain
from .terminal import fault_lines
from .text import Style, block, counted, safe

MOST = 12  # settings that are named one by one


def export_record(
    framework: str, written: Written | None, files: Sequence[str], violations: Sequence[object]
) -> Record:
    """The file and what it leaves out, or the rules that stand against it."""
    made = head("export") | {"framework": framework, "files": list(files)}
    return made | {
        "file": written.name if written else None,
        "text": written.text if written else None,
        "lost": [_lost(one) for one in written.lost] if written else [],
        "notes": list(written.notes) if written else [],
        "violations": plain(list(violations)),
    }


def _lost(one: Lost) -> Record:
    return {"field": one.path, "value": one.value, "why": one.why}


def found_record(found: Found) -> Record:
    """What a file said, beside the question that it made."""
    return {
        "framework": found.framework,
        "form": found.form,
        "ranks": found.ranks,
        "missing": [{"field": one.field, "why": one.why} for one in found.missing],
        "kept": [{"setting": safe(one.text), "line": one.line, "column": one.column} for one in found.kept],
        "notes": [safe(note) for note in found.notes],
        "findings": [finding_record(one) for one in found.findings],
    }


def finding_record(one: Finding) -> Record:
    """One finding, an error or a warning."""
    kept = {name: safe(str(getattr(one, name))) for name in ("code", "what", "rule", "got", "fix")}
    return {"severity": "error" if one.serious else "warning", **kept, "line": one.line, "column": one.column}


def found_lines(found: Found, style: Style, title: str) -> Iterator[str]:
    """What was read, what of it no count needs, and what there is to say about it."""
    yield from block("READ", safe(f"{title} as {found.form} of {found.framework}"), style)
    if found.kept:
        yield from block("NOT READ", _named(found.kept), style)
    for note in found.notes:
        yield from block("NOTE", safe(note), style)


def finding_lines(found: Found, style: Style) -> Iterator[str]:
    """What the framework refuses, and then what does not do what it seems to."""
    for one in sorted(found.findings, key=lambda one: not one.serious):
        yield ""
        yield from fault_lines(one.fault, style, "error: " if one.serious else "warning: ")


def _named(kept: Sequence[Setting]) -> str:
    shown = ", ".join(safe(one.text[:40]) for one in kept[:MOST])
    more = f", and {len(kept) - MOST} more" if len(kept) > MOST else ""
    return f"{counted(len(kept), 'setting')} that no count needs: {shown}{more}"


def written_lines(written: Written, style: Style, files: Sequence[str] = ()) -> Iterator[str]:
    """What the file does not hold, and what else there is to do."""
    for one in written.lost:
        yield from block("LOST", safe(str(one)), style)
    for note in written.notes:
        yield from block("NOTE", safe(note), style)
    if files:
        yield from block("FILES", ", ".join(map(safe, files)), style)


def notes_page(written: Written) -> str:
    """The page beside a file that has no comments."""
    lines = [f"# {written.name}", "", *(f"- {note}" for note in written.notes), ""]
    lines += ["## Not in that file", "", *(f"- {one}" for one in written.lost), ""] if written.lost else []
    return "\n".join(lines)

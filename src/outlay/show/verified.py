"""What PyTorch says to the counts of one layout: the answer first, one line a comparison, then notes and what was not
run."""

from collections.abc import Iterator

from ..bill import Bill
from ..verify.comparison import Banded
from ..verify.subject import KINDS, ROUNDING, Checked
from ..verify.verified import Verified
from ..verify.versions import WANTED
from .labels import NOT_LEGAL
from .pipeline import pipeline_lines, pipeline_record, pipeline_schema
from .record import Record, head, model, plain
from .schema import DRAFT, MAYBE, TEXT, VIOLATION, WHOLE, Schema, list_of, record_of
from .stepped import stepped_lines, stepped_record, stepped_schema
from .terminal import subject_lines, violation_lines
from .text import BAD, GOOD, WARN, Style, block, counted, percent, safe, table

ENGINES = " and ".join(f"{name} {version}" for name, version in WANTED.items())


def agrees_all(found: Verified) -> bool:
    """Whether something agrees, and nothing disagrees."""
    return any(one.agrees for one in found.checked) and not found.wrong


def verified_lines(bill: Bill, found: Verified, style: Style, files: tuple[str, ...] = ()) -> Iterator[str]:
    """The answer of `outlay verify`."""
    yield from _headline(found, style)
    for said in found.scaled:
        yield from block("SCALED", said, style)
    yield from subject_lines(bill, style)
    if found.pipeline:
        yield from pipeline_lines(found.pipeline, style)
    if found.checked:
        heads = ("compared", "outlay", "engine", "ratio", "agrees")
        yield from ["", *table(heads, [_row(one) for one in found.checked], style, "lrrrl"), ""]
    if found.step:
        yield from stepped_lines(found.step, style)
    for one in found.checked:
        notes = dict.fromkeys(filter(None, (one.comparison.note, one.reason if one.agrees is None else "")))
        if notes:
            yield from block("NOTE", safe(f"{one.comparison.name}: {'; '.join(notes)}"), style)
    for left in found.not_run:
        yield from block("NOT RUN", safe(f"{', '.join(left.kinds)}: {left.reason}"), style)
    for file in files:
        yield from block("WROTE", safe(file), style)


def illegal_lines(bill: Bill, style: Style) -> Iterator[str]:
    """A layout that breaks rules is not run."""
    yield from block(NOT_LEGAL, "a layout that breaks rules is not run", style, f"1;{BAD}")
    yield ""
    yield from violation_lines(bill.violations, style)
    yield from subject_lines(bill, style)


def _headline(found: Verified, style: Style) -> list[str]:
    many, wrong = len(found.checked), found.wrong
    meant = sum(one.agrees is None for one in found.checked)
    more = f"; {meant} otherwise, as noted" if meant else ""
    left = sum(len(one.kinds) for one in found.not_run)
    more += f"; {counted(left, 'kind')} not run" if left else ""
    if not many:
        return block("NOT RUN", f"nothing is compared with {ENGINES}{more}", style, f"1;{WARN}")
    if wrong:
        named = ", ".join(one.comparison.name for one in wrong)
        text = f"{len(wrong)} of {many} comparisons with {ENGINES}: {named}{more}"
        return block("DISAGREES", text, style, f"1;{BAD}")
    text = f"{many - meant} of {many} comparisons with {ENGINES}{more}"
    word, colour = ("AGREES", GOOD) if many > meant else ("NOT JUDGED", WARN)
    return block(word, text, style, f"1;{colour}")


def _row(one: Checked) -> tuple[str, ...]:
    of = one.comparison
    name = f"{of.name}, {of.unit}" if of.unit in ("B", "operations", "ms", "s") else of.name
    form = {"ms": ",.1f", "s": ".4g"}.get(of.unit, ",.0f")
    return (name, format(of.counted, form), format(of.measured, form), f"{of.ratio:.6f}", _word(one))


def _word(one: Checked) -> str:
    if one.agrees is None:
        return "see note"
    of = one.comparison
    if isinstance(of, Banded):
        return f"{'inside' if one.agrees else 'OUTSIDE'} {of.low:,.4g} .. {of.high:,.4g}"
    if not one.agrees:
        return "DIFFERS"
    if one.comparison.least:
        return "not below"
    return f"within {percent(one.within)}" if one.within > ROUNDING else "exact"


def verified_record(bill: Bill, found: Verified | None, files: tuple[str, ...] = ()) -> Record:
    """The same as one object; of a layout that breaks rules, its violations and no comparison."""
    checked = found.checked if found else ()
    return head("verify") | {
        "engines": dict(WANTED),
        "agrees": bool(found) and agrees_all(found),  # type: ignore[arg-type]
        "model": model(bill),
        "job": plain(bill.job),
        "cluster": plain(bill.cluster),
        "layout": plain(bill.layout),
        "engine": bill.engine.name,
        "scaled": list(found.scaled) if found else [],
        "comparisons": [_comparison(one) for one in checked],
        "step": stepped_record(found.step) if found else None,
        "not_run": [{"kinds": list(one.kinds), "reason": one.reason} for one in found.not_run] if found else [],
        "pipeline": pipeline_record(found.pipeline) if found and found.pipeline else None,
        "files": list(files),
        "violations": plain(bill.violations),
        "assumptions": list(bill.assumptions),
    }


def _comparison(one: Checked) -> Record:
    of = one.comparison
    figures = {"counted": plain(of.counted), "measured": plain(of.measured), "ratio": plain(of.ratio)}
    said = {"within": one.within, "least": of.least, "agrees": one.agrees, "note": of.note, "reason": one.reason}
    band = [plain(of.low), plain(of.high)] if isinstance(of, Banded) else None
    return {"kind": one.kind, "name": of.name, "unit": of.unit, **figures, **said, "band": band}


def schema() -> Schema:
    """What `outlay verify --json` prints."""
    figures = {"counted": {"type": "number"}, "measured": {"type": "number"}, "ratio": MAYBE}
    maybe = {"type": ["boolean", "null"], "description": "null where both differ for a known reason"}
    one = {"kind": {"enum": list(KINDS)}, "name": TEXT, "unit": TEXT, **figures}
    bound = {"type": "boolean", "description": "the counted figure is a bound that the measured one is not below"}
    one |= {"within": {"type": "number", "minimum": 0}, "least": bound, "agrees": maybe, "note": TEXT, "reason": TEXT}
    one |= {"band": {"type": ["array", "null"], "items": {"type": "number"}}}
    counts = dict.fromkeys(("total", "active", "embedding", "mtp"), WHOLE)
    whole = {"type": "object", "description": "as given, every field filled"}
    keys = {
        "schema": {"const": "outlay.verify.1"},
        "version": TEXT,
        "engines": {"type": "object", "additionalProperties": TEXT},
        "agrees": {"type": "boolean"},
        "model": record_of({"name": TEXT, "parameters": record_of(counts), "shape": {"type": "object"}}),
        **dict.fromkeys(("job", "cluster", "layout"), whole),
        "engine": TEXT,
        "scaled": list_of(TEXT),
        "comparisons": list_of(record_of(one)),
        "step": stepped_schema(),
        "not_run": list_of(record_of({"kinds": list_of({"enum": list(KINDS)}), "reason": TEXT})),
        "pipeline": pipeline_schema(),
        "files": list_of(TEXT),
        "violations": list_of(record_of(VIOLATION)),
        "assumptions": list_of(TEXT),
    }
    return {"$schema": DRAFT, **record_of(keys)}

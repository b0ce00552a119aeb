"""The whole answer of `outlay check`: what the files run, what is wrong and what it costs, the bill, what is near."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ...bill import Bill
from ...errors import Fault
from ..answer import binds_line, colour_of, headline, idle_line, step_line, verdict_of
from ..export import found_lines
from ..labels import NOT_LEGAL
from ..terminal import fault_lines, subject_lines
from ..text import Style, block, both, counted, duration, gib, safe, wrapped
from .answer import SAME, Answer, Fixed, Near, Placed, counts, words_of

MOST = 10  # findings in full


def full_lines(answer: Answer, style: Style) -> Iterator[str]:
    """Every part, in the order in which it matters."""
    findings = [one.finding for one in answer.placed]
    words = words_of(answer.found)
    words = words if len(answer.files) == 1 else words.replace("runs", "run", 1)
    yield from block("SAYS", safe(f"{answer.title} {words}; {counts(findings)}"), style)
    for file in answer.files:
        yield from found_lines(file.found, style, file.title)
    for one in answer.placed[:MOST]:
        yield ""
        yield from finding_lines(one, answer, style)
    yield from _rest(answer.placed[MOST:], style)
    yield ""
    yield from _rules(answer, style)
    yield from _bill(answer, style)
    for fixed in answer.fixed:
        yield from _fixed(fixed, style)
    yield from _after(answer, style)
    yield from block("MORE", _more(answer), style)


def finding_lines(one: Placed, answer: Answer, style: Style) -> Iterator[str]:
    """One finding: what, the line that it stands on, rule, got, fix, and what it costs."""
    at = one.finding
    also = [] if answer.bill is None else [each.code for each in answer.bill.violations]
    same = [code for code in SAME.get(at.code, ()) if code in also]
    rule = f"{at.rule} ({', '.join(same)})" if same else at.rule
    lines = fault_lines(Fault(at.code, at.what, rule, at.got, at.fix), style, "error: " if at.serious else "warning: ")
    head = next(index for index, line in enumerate(lines) if line.startswith("  rule "))
    yield from lines[:head]
    yield from _frame(one, style)
    yield from lines[head:]
    if one.cost:
        yield f"  cost  {_cost(one)}"


def _cost(one: Placed) -> str:
    assert one.cost is not None
    memory, time = one.cost.peak_bytes, one.cost.seconds
    said = [both(abs(memory)) + (" more" if memory > 0 else " less") if memory else ""]
    said += [f"{duration(abs(time))} a step {'longer' if time > 0 else 'shorter'}" if time else ""]
    return ", ".join(filter(None, said)) + " than with the fix"


def _frame(one: Placed, style: Style) -> Iterator[str]:
    """The line of the file, and under it the setting."""
    at, rows = one.finding, one.file.text.split("\n")
    place = f"  {safe(one.file.title)}"
    if not 0 < at.line <= len(rows):
        yield place
        return
    row = rows[at.line - 1].expandtabs(1)
    begin = len(row) - len(row.lstrip())
    shown = safe(row[begin:].rstrip())
    head = f"{place}:{at.line}:{at.column}  "
    room, start = style.width - len(head), max(0, at.column - 1 - begin)
    if room < 20:
        yield head.rstrip()
        return
    skipped = max(0, start - room // 2) if len(shown) > room else 0
    yield (head + shown[skipped : skipped + room]).rstrip()
    mark = re.match(r"[\w.\"'-]+(?:[ =:]+(?!-)[^\s\\,}]+)?", row[at.column - 1 :])
    length = min(len(mark[0]) if mark else 1, room - (start - skipped))
    yield " " * (len(head) + start - skipped) + style.paint("^" * max(1, length), "31")


def _rest(left: Sequence[Placed], style: Style) -> Iterator[str]:
    """Beyond the first ones a line each, and how often each code stands there."""
    if not left:
        return
    yield ""
    for one in left:
        kind = "error" if one.finding.serious else "warning"
        text = f"{kind} {one.finding.code} {one.file.title}:{one.finding.line} {one.finding.what}"
        yield from wrapped(safe(text), style, 2, 4)
    found = Counter(one.finding.code for one in left)
    yield from wrapped(", ".join(f"{code} x {count}" for code, count in sorted(found.items())), style, 2, 4)


def _rules(answer: Answer, style: Style) -> Iterator[str]:
    """Rules of the layout; many of them a framework finds only at run time."""
    for each in answer.broken:
        fault = Fault(each.code, each.what, each.rule, each.got, each.fix)
        yield from (*fault_lines(fault, style, "broken: "), "")
    near = answer.bill.violations[0].nearest if answer.bill and answer.bill.violations else ()
    if near:
        yield from (*block("NEAREST", "legal layouts: " + ";  ".join(near), style), "")


def _bill(answer: Answer, style: Style) -> Iterator[str]:
    for need in answer.needs:
        yield from block("NEEDS", safe(f"{need.what}: {need.got}; {need.fix}"), style)
    bill = answer.bill
    if bill is None:
        return
    if answer.serious:
        text = f"does not run as written: {counted(answer.serious, 'error')} above; what it would be is counted"
        yield from block("BILL", text, style)
    for part in (_verdict, step_line, idle_line, binds_line, subject_lines):
        yield from part(bill, style)
    for near in answer.near:
        yield from block("NEAR", _near(near, bill), style)


def _verdict(bill: Bill, style: Style) -> list[str]:
    """The headline; rules that are broken stand above it."""
    if bill.memory.verdict is not None:
        return headline(bill, style)
    memory, count = bill.memory, len(bill.violations)
    text = f"{counted(count, 'rule')} of the layout {'are' if count > 1 else 'is'} broken, as said above; as it is"
    text += f" written, rank {memory.worst_rank.rank} needs {both(memory.peak_bytes)} of {both(memory.usable_bytes)}"
    return block(NOT_LEGAL, f"{text} usable", style, f"1;{colour_of(bill)}")


def _near(near: Near, bill: Bill) -> str:
    what = " ".join(near.settings) if near.settings else near.flags
    fits = "" if bill.memory.verdict == "fits" else "fits: "
    less = f", {duration(bill.step.seconds - near.seconds)} less" if near.seconds < bill.step.seconds else ""
    return safe(f"{what}   {fits}{gib(near.peak_bytes)}, {duration(near.seconds)} a step{less}")


def _fixed(fixed: Fixed, style: Style) -> Iterator[str]:
    """The copy, its difference from the file, and what is left to the reader."""
    yield ""
    if fixed.output:
        mended = ", ".join(one.code for one in fixed.mended)
        yield from block("FIXED", safe(f"{fixed.output} is {fixed.file.title} without {mended}"), style)
        for line in fixed.diff:
            yield style.paint(safe(line), {"+": "32", "-": "31", "@": "36"}.get(line[:1], ""))
    else:
        why = "no finding has a fix without a choice" if fixed.left else "there is no finding"
        yield from block("FIXED", safe(f"nothing in {fixed.file.title}: {why}"), style)
    for one in fixed.left:
        yield from block("LEFT", safe(f"{one.code} {one.what}: {one.fix}"), style)


def _after(answer: Answer, style: Style) -> Iterator[str]:
    """The run of the corrected copies."""
    after = answer.after
    if after is None:
        return
    memory = after.memory
    text = f"the corrected run: {verdict_of(after)}, {gib(memory.peak_bytes)} of {gib(memory.usable_bytes)} usable,"
    yield from block("AFTER", f"{text} {duration(after.step.seconds)} a step", style)


def _more(answer: Answer) -> str:
    codes = list(dict.fromkeys(one.finding.code for one in answer.placed))
    mends = any(one.finding.edits for one in answer.placed) and not answer.fixed
    said = [f"outlay explain {codes[0]}" if codes else "", "--fix writes a corrected copy" if mends else ""]
    return "   |   ".join(filter(None, [*said, "--format concise, github or json"]))

"""outlay check: what a file of a framework says, what is wrong with it, and the bill of its run."""

from dataclasses import replace
from pathlib import Path

from ..errors import Fault, InputError
from ..formats.setting import Finding, Found
from ..model.catalogue import find
from ..show.answer import says_yes
from ..undivided import parameters
from .exporting import asked_of, read_file
from .flags import Given
from .output import tell

ASKED = ("FMT006",)  # what the question lacks, and not what is wrong with it


def check(given: Given) -> int:
    """Read a file, say what it says and what is wrong with it, then count what it runs."""
    from ..show.checked import checked_lines, checked_record

    path = given.text("file")
    if path is None:
        rule = "check FILE [MODEL]"
        raise InputError(Fault("CLI004", "no file is given", rule, "nothing", "outlay check train.sh --on 64xh100-sxm"))
    found = read_file(path)
    found = replace(found, findings=(*found.findings, *_other_model(given, found)))
    own = found.model is not None and not any(one.field == "model" for one in found.missing)
    bill, needs = None, tuple[Fault, ...]()
    try:
        bill = asked_of(Given({**given.values, "model": None}) if own else given, found).bill()
    except InputError as error:
        if any(fault.code not in ASKED for fault in error.faults):
            raise
        needs = error.faults
    title = "standard input" if path == "-" else Path(path).name
    tell(
        given, lambda: checked_record(found, bill, needs), lambda style: checked_lines(found, bill, needs, title, style)
    )
    serious = any(one.serious for one in found.findings)
    return 1 if serious or (bill is not None and not says_yes(bill)) else 0


def _other_model(given: Given, found: Found) -> tuple[Finding, ...]:
    """An error where the model of the file is not the one that is named."""
    named = given.text("model")
    if named is None or found.model is None:
        return ()
    model = find(named, family=given.text("family"), part=given.text("part"))
    here, there = parameters(found.model).total, parameters(model).total
    if here == there:
        return ()
    own, other = found.model.blocks[0].attention, model.blocks[0].attention
    heads = own and other and own.kv_heads != other.kv_heads
    fix = f"--group-query-attention --num-query-groups {other.kv_heads}" if heads and other else "compare their sizes"
    rule, got = f"{model.name} has {there:,} parameters", f"{here:,} in the file"
    return (Finding("MEG007", True, f"the file's model is not {model.name}", rule, got, fix),)

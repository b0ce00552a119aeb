"""outlay check: what the files of a run say, what is wrong with them and between them, what it costs, and the bill."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Fault, InputError, quoted
from ..formats.contradictions import across, settled
from ..formats.joining import Part, in_order, joined
from ..formats.setting import Edit, Finding, Found
from ..formats.source import place_of
from ..formats.wrapping import wrong_classes
from ..model.catalogue import find
from ..show.answer import says_yes
from ..show.check.answer import Answer, Cost, File, Fixed, Placed
from ..show.text import Style
from ..undivided import parameters
from .check.files import Held, read_words
from .check.mending import cost_of, fixed, mended, outputs
from .exporting import asked_of
from .flags import Given
from .output import Told
from .streams import say

if TYPE_CHECKING:
    from ..bill import Bill

ASKED = ("FMT006",)  # what the question lacks, and not what is wrong with it
HEADS = re.compile(r"^[^#\n]*?(?P<name>(?:--)?num[-_]attention[-_]heads)", re.MULTILINE)
FORMS = ("full", "concise", "json", "github")


def check(given: Given) -> int:
    """Read the files of a run, say what they say and what is wrong, then count what they run."""
    form = _form(given)
    if form not in ("concise", "github"):
        return _checked(given, form)
    try:
        return _checked(given, form)
    except InputError as error:
        from ..show.check.lines import fault_commands

        path = next(iter(given.texts("files")), "-")
        say("\n".join(fault_commands(error.faults, path, form == "github")))
        return 2


def _form(given: Given) -> str:
    name = given.text("format") or ("json" if given.on("as_json") else "full")
    if name not in FORMS:
        rule = f"one of {', '.join(FORMS)}"
        raise InputError(Fault("CLI002", "--format cannot be read", rule, quoted(name), "--format concise"))
    return name


def _checked(given: Given, form: str) -> int:
    held, model = read_words(given)
    asked = Given({**given.values, "files": None, "file": held[0].path, "model": model})
    copies = outputs(given, held) if given.on("fix") else {}
    answer = answer_of(asked, held, copies)
    return _told(answer, form).print(Given({**given.values, "as_json": form == "json"}))


def _told(answer: Answer, form: str) -> Told:
    from ..show.check import full, lines, record

    forms: dict[str, Callable[[Style], Iterable[str]]] = {
        "concise": lambda _: lines.concise_lines(answer),
        "github": lambda _: lines.github_lines(answer),
    }
    yes = not answer.serious and (answer.bill is None or says_yes(answer.bill))
    in_lines = forms.get(form, lambda style: full.full_lines(answer, style))
    return Told(lambda: record.check_record(answer), in_lines, yes)


def answer_of(given: Given, held: Sequence[Held], copies: dict[str, str]) -> Answer:
    """Everything that is found, the dearest first."""
    from .check.near import near

    parts = [one.part for one in held]
    files = tuple(File(one.path, one.title, one.part.text, one.part.found) for one in held)
    found = joined(parts)
    bill, needs = _bill(given, found)
    by_title = {one.title: (one, file) for one, file in zip(held, files, strict=True)}
    pairs = list(_findings(given, held, found, bill))
    placed = []
    for title, one in pairs:
        cost = cost_of(one, by_title[title][0], held, bill, partial(_counted, given)) if bill else None
        placed.append(Placed(by_title[title][1], one, cost))
    placed.sort(key=lambda one: _order(one, bill))
    mends, after = _fixed(given, held, placed, copies)
    better = near(bill, in_order(parts)[0].text) if bill else ()
    return Answer(files, found, tuple(placed), bill, needs, better, mends, after)


def _order(one: Placed, bill: "Bill | None") -> tuple[bool, float]:
    """Errors first; then by what it costs, of the peak or the step."""
    cost: Cost | None = one.cost
    return not one.finding.serious, -cost.share(bill) if cost and bill else 0.0


def _findings(given: Given, held: Sequence[Held], found: Found, bill: "Bill | None") -> Iterator[tuple[str, Finding]]:
    """The findings of each file, between them, and beside the command line."""
    parts = [one.part for one in held]
    for part in parts:
        yield from ((part.title, one) for one in part.found.findings if not settled(parts, one))
    yield from across(parts)
    yield from _other_model(given, held)
    yield from _wrapping(given, parts)
    if bill and found.ranks and bill.cluster.ranks != found.ranks:
        title = next((part.title for part in parts if part.found.ranks), parts[0].title)
        what = "the launch is not for the cluster of --on"
        rule, fix = "data parallelism follows --on here, and the launch on the machine", f"--on with {found.ranks:,}"
        got = f"{found.ranks:,} ranks in the files, {bill.cluster.ranks:,} in --on"
        yield title, Finding("CHK010", False, what, rule, got, fix, 1, 1)


def _counted(given: Given, parts: Sequence[Part]) -> "Bill | None":
    """The bill of some files, where it can be counted."""
    try:
        return _bill(given, joined(parts))[0]
    except InputError:
        return None


def _bill(given: Given, found: Found) -> tuple["Bill | None", tuple[Fault, ...]]:
    """The bill of the run, or what it needs for one."""
    own = found.model is not None and not any(one.field == "model" for one in found.missing)
    try:
        return asked_of(Given({**given.values, "model": None}) if own else given, found).bill(), ()
    except InputError as error:
        if any(fault.code not in ASKED for fault in error.faults):
            raise
        return None, error.faults


def _fixed(
    given: Given, held: Sequence[Held], placed: Sequence[Placed], copies: dict[str, str]
) -> tuple[tuple[Fixed, ...], "Bill | None"]:
    """The corrected copies, and the bill of their run."""
    if not copies:
        return (), None
    made, parts = list[Fixed](), list[Part]()
    for one in held:
        own = [each for each in placed if each.file.title == one.title]
        file = File(one.path, one.title, one.part.text, one.part.found)
        result, part = fixed(one, file, [each.finding for each in own], copies[one.title], given.on("force"))
        made.append(result)
        parts.append(part)
    if not any(each.output for each in made):
        return tuple(made), None
    return tuple(made), _counted(given, parts)


def _wrapping(given: Given, parts: Sequence[Part]) -> Iterator[tuple[str, Finding]]:
    """Classes to wrap that the model does not have."""
    if not any("cls_to_wrap" in part.text for part in parts):
        return
    named = given.text("model")
    model = find(named, family=given.text("family"), part=given.text("part")) if named else joined(parts).model
    if model is not None:
        for part in parts:
            yield from ((part.title, one) for one in wrong_classes(part.text, model.family, model.name))


def _other_model(given: Given, held: Sequence[Held]) -> Iterator[tuple[str, Finding]]:
    """An error where the model of a file is not the one that is named; mended where it is key/value heads alone."""
    named, holder = given.text("model"), next((one for one in held if one.part.found.model), None)
    if named is None or holder is None or holder.part.found.model is None:
        return
    model, own = find(named, family=given.text("family"), part=given.text("part")), holder.part.found.model
    here, there = parameters(own).total, parameters(model).total
    if here == there:
        return
    ours, theirs = own.blocks[0].attention, model.blocks[0].attention
    heads = theirs.kv_heads if ours and theirs and ours.kv_heads != theirs.kv_heads else 0
    megatron = holder.part.found.framework == "megatron"
    fix = f"--group-query-attention --num-query-groups {heads}" if heads else "compare their sizes"
    rule, got = f"{model.name} has {there:,} parameters", f"{here:,} in the file"
    made = Finding("MEG007" if megatron else "CHK006", True, f"the file's model is not {model.name}", rule, got, fix)
    at = HEADS.search(holder.part.text)
    if megatron and heads and at:
        line, column = place_of(holder.part.text, at.start("name"))
        edits = (Edit("group_query_attention", ""), Edit("num_query_groups", str(heads)))
        made = replace(made, line=line, column=column, edits=edits)
        after = mended(holder, [made])
        right = after and after.found.model and parameters(after.found.model).total == there
        made = made if right else replace(made, edits=())
    yield holder.title, made

"""outlay export and outlay convert: a layout as the files of a framework, and the files of one as those of another."""

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import Fault, InputError, quoted
from ..formats.known import FORMATS, format_of, read
from ..formats.setting import Found, Run, Written
from ..formats.source import LARGEST_FILE
from ..job import AUTO
from ..ranges import out_of_range
from ..show.restore import Asked
from ..show.text import counted, safe
from .configuring import config_of
from .files import STDOUT, check, write
from .flags import Given
from .output import Told, style_of
from .question import Question, read_clusters, read_question
from .streams import complain
from .values import Faults

if TYPE_CHECKING:
    from ..bill import Bill

LIKE = "outlay export megatron llama-3.1-8b --on 8xh100-sxm --tp 2"


def export(given: Given) -> Told | int:
    """One layout as a file of a framework."""
    faults = Faults()
    form = faults.attempt(_format, given)
    files = _files(given, form, faults)
    question = faults.attempt(read_question, given, None, None, form.ENGINE if form else "megatron")
    faults.stop()
    return _tell(given, form, question, files, None)


def convert(given: Given) -> Told | int:
    """The file of one framework as that of another."""
    faults = Faults()
    path = given.text("file")
    form = faults.attempt(_format, given)
    files = _files(given, form, faults)
    if path is None:
        rule, fix = "convert FILE FRAMEWORK", "outlay convert train.sh deepspeed --on 64xh100-sxm"
        faults.add(Fault("CLI004", "no file is given", rule, "nothing", fix))
    found = faults.attempt(read_file, path) if path is not None else None
    faults.stop()
    assert found is not None
    return _tell(given, form, asked_of(given, found), files, found)


def _format(given: Given) -> ModuleType:
    name = given.text("framework")
    if name is None:
        raise InputError(Fault("CLI004", "no framework is given", f"one of {', '.join(FORMATS)}", "nothing", LIKE))
    return format_of(name)


def read_file(path: str) -> Found:
    """What a file says; `-` is standard input. Raises InputError (FMT001 .. FMT005)."""
    return read(content_of(path))


def content_of(path: str) -> bytes:
    """The bytes of a file, or of standard input, as far as one may be read. Raises InputError (FMT002)."""
    try:
        if path == STDOUT:
            stream = getattr(sys.stdin, "buffer", None)
            content: bytes = (
                stream.read(LARGEST_FILE + 1) if stream else sys.stdin.read().encode("utf-8", "surrogatepass")
            )
        else:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        rule = "a launch script, a log, a YAML or a JSON file of a framework"
        raise InputError(Fault("FMT002", f"{quoted(path)} cannot be read", rule, why, "the path of a file")) from None
    return content


def asked_of(given: Given, found: Found) -> Question:
    """The question in a file: what flags say stands over it, and what neither says is asked for by name."""
    from ..bill import MOST_CHUNKS
    from ..model.catalogue import find, names

    faults, flags = Faults(), given.values
    file: Mapping[str, Any] = faults.attempt(config_of, given.text("config")) or {}
    said = {name for name, value in flags.items() if value is not None} | set(file)
    said |= {name for table in ("job", "layout") if isinstance(file.get(table), dict) for name in file[table]}
    named = given.text("model") or file.get("model")
    model = faults.attempt(find, named, family=given.text("family"), part=given.text("part")) if named else found.model
    model = replace(model, name=_name(given)) if model is found.model and model and model.name not in names() else model
    faults.add(*(_missing(one.field, one.why) for one in found.missing if one.field not in said))
    on = given.text("on") or file.get("on")
    if on is None:
        said_ranks = (
            f"the file is for {counted(found.ranks, 'rank')}" if found.ranks else "the file does not say how many"
        )
        rule, fix = "a file of a framework does not say the hardware", f"--on {found.ranks or 8}xh100-sxm"
        faults.add(Fault("FMT006", "no hardware is given", rule, said_ranks, fix))
    clusters = read_clusters(on, None, faults) if on is not None else ()
    faults.add(*out_of_range(found.job, "JOB000"), *out_of_range(found.layout, "LAY000"))
    chunks = (found.layout.pp or 1) * (found.layout.vpp or 1)
    if chunks > MOST_CHUNKS:
        rule, got = f"stages x chunks is {MOST_CHUNKS:,} or less", f"{chunks:,}"
        faults.add(Fault("FMT005", "the pipeline of the file has too many chunks", rule, got, "fewer of them"))
    faults.stop()
    assert model is not None
    job = replace(found.job, global_batch=_batch(given, found, clusters[0].ranks))
    base = Asked(model, job, clusters[0], found.layout, found.engine)
    return read_question(given, {"on": str(on)}, base)


def _batch(given: Given, found: Found, ranks: int) -> Any:
    """The global batch of a file, which where it leaves it to the ranks is what those of data parallelism make."""
    if not found.accumulated:
        return found.job.global_batch
    said = {name: given.text(name) or "" for name in ("tp", "cp", "pp")}
    cut = (int(said[name]) if said[name].isdigit() else getattr(found.layout, name) or 1 for name in said)
    return found.accumulated * max(1, ranks // max(1, prod(cut)))


def _name(given: Given) -> str:
    """The model of a file is called as the file is."""
    return safe(Path(given.text("file") or STDOUT).stem[:60]) or "model"


def _missing(field: str, why: str) -> Fault:
    from ..layout.complete import flag

    name = "MODEL" if field == "model" else flag(field)
    fix = "its name behind the file: llama-3.1-8b (list: outlay models)" if field == "model" else f"{name} VALUE"
    rule = "what a run needs and a file does not say is given beside it"
    return Fault("FMT006", f"{name} is missing", rule, why, fix)


def _files(given: Given, form: ModuleType | None, faults: Faults) -> tuple[str, ...]:
    """The files to write: that of -o, and a page of notes where the format has no comments."""
    path = given.text("output")
    if path is None or path == STDOUT:
        return ()
    paths = (path, f"{path}.notes.md") if form is not None and not form.COMMENTS else (path,)
    faults.add(*(fault for one in paths if (fault := check(one, given.on("force")))))
    return paths


def _tell(
    given: Given, form: ModuleType, question: Question, files: tuple[str, ...], found: Found | None
) -> Told | int:
    """Write the file, or say which rules stand against it; exit 1 where they do."""
    from ..show.export import export_record, finding_lines, found_lines, found_record, notes_page, written_lines
    from ..show.terminal import violation_lines

    framework = next(name for name, one in FORMATS.items() if one is form)
    bill = question.bill()
    broken = bill.violations or _under(question, bill, form).violations
    written = None if broken else _said(form.write(_run(bill)), bill, form, found)
    style = style_of(sys.stderr, given.on("plain"))
    if written:
        for path, text in zip(files, (written.text, notes_page(written)), strict=False):
            write(path, text.encode("utf-8"), given.on("force"))
    if given.on("as_json"):
        also = {"read": found_record(found)} if found else {}
        return Told(lambda: export_record(framework, written, files, broken) | also, lambda _: (), not broken)
    lines = [*found_lines(found, style, given.text("file") or "-"), *finding_lines(found, style)] if found else []
    if written is None:
        _complain(lines)
        return Told(dict, lambda out: violation_lines(broken, out), yes=False)
    _complain([*lines, *written_lines(written, style, files)])
    if not files:
        write(STDOUT, written.text.encode("utf-8"), force=True)
    return 0


def _complain(lines: list[str]) -> None:
    if lines:
        complain("\n".join(lines))


def _run(bill: "Bill") -> Run:
    return Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)


def _under(question: Question, bill: "Bill", form: ModuleType) -> "Bill":
    """The bill of the same layout under the framework that it is written for, whose rules then hold.

    What that framework has no setting for is as it has it, and is said to be lost.
    """
    from ..bill import count

    if bill.engine.name in form.ENGINES:
        return bill
    foreign = {field.name: AUTO for field in fields(bill.layout) if field.name not in form.HELD}
    return count(bill.model, bill.job, bill.cluster, replace(bill.layout, **foreign), form.ENGINE)


def _said(written: Written, bill: "Bill", form: ModuleType, found: Found | None) -> Written:
    """With what the command knows beside the writer: another engine's bill, another number of ranks."""
    notes = list(written.notes)
    if found is None and bill.engine.name not in form.ENGINES:
        notes.append(f"the bill was counted with the kernels and bytes of {bill.engine.name}, not of {form.ENGINE}")
    if found and found.ranks and found.ranks != bill.cluster.ranks:
        notes.append(
            f"the file is for {found.ranks:,} ranks, --on has {bill.cluster.ranks:,}: data parallelism follows --on"
        )
    return replace(written, notes=tuple(notes))

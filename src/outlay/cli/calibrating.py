"""outlay calibrate: this machine measured into a profile, and into a file for --on where the catalogue lacks it."""

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from ..cluster.accelerator import Cluster
from ..errors import Fault, InputError, quoted
from ..job import Job
from ..layout.axes import Layout
from ..layout.case import Case
from ..verify.calibration.calibrated import Around, Asked, Calibrated, calibrated, subject_of, tasks_of
from ..verify.calibration.machine_file import Names
from ..verify.calibration.tasks import BYTES, KINDS, Measured, Task
from ..verify.calibration.working import Working, unwritable, working_path
from ..verify.versions import versions_fault
from .files import check, write
from .flags import Given, field_names
from .output import Told
from .streams import complain
from .values import Faults, chosen, count

if TYPE_CHECKING:
    from ..verify.calibration.machine import Machine

OUTPUT, ENGINE, ANY = "calibrated.toml", "fsdp2-uncompiled", "h100-sxm"
MOST_RANKS = 1_024
LONGEST_NAME = 60
SEQUENCE = {False: "1024", True: "4096"}  # tokens of a model's sequence unless told otherwise, by whether it is a GPU
PACE = 0.3  # s that a task is repeated, where five times take no longer
LOOKED = 0.5  # s between two looks at the working file


def calibrate(given: Given) -> Told | int:
    """Measure, and write. Exit 130 where it was interrupted: the same command goes on."""
    faults = Faults()
    output = given.text("output") or OUTPUT
    asked = _asked(given, output, faults)
    ranks = count(text, "--ranks", faults, MOST_RANKS) if (text := given.text("ranks")) is not None else 0
    if fault := versions_fault(("torch",), "outlay calibrate"):
        faults.add(fault)
    names = Names(asked.name, f"{Path(output).stem}-machine.toml", Path(output).name)
    beside = str(Path(output).with_name(names.file))
    if first_rank():
        found = (check(path, given.on("force")) for path in (output, beside))
        faults.add(*(fault for fault in found if fault))
    faults.stop()
    return _measured(given, asked, ranks or 0, names, output, beside)


def first_rank() -> bool:
    """Whether this process writes: of torchrun's ranks the first one alone does."""
    return os.environ.get("RANK", "0") == "0"


def _measured(given: Given, asked: Asked, ranks: int, names: Names, output: str, beside: str) -> Told | int:
    from ..verify.calibration.machine import machine

    here = machine(ranks)
    around = Around(here.where, here.gpu, here.ranks, here.local, here.rank)
    asked = _on_what(given, asked, here)
    tasks, said = tasks_of(asked, around)
    working = Working(working_path(output), subject_of(asked, around, tasks))
    if given.on("force") and first_rank():
        _forget_another(working, tasks)
    loaded = _load()
    times = _run(tasks, working, around.ranks)
    if not times:
        return 0
    busy = f"load of the machine (one minute): {loaded} before, {_load()} after"
    date = datetime.now(UTC).date().isoformat()
    found = calibrated(asked, around, times, names, date, (busy, *said))
    if found.machine:
        write(beside, found.machine.encode(), given.on("force"))
    write(output, found.text.encode(), given.on("force"))
    working.path.unlink(missing_ok=True)
    on = given.text("on") or f"{here.ranks}x{here.accelerator or beside}"
    return _told(found, output, beside, on)


def _told(found: Calibrated, output: str, beside: str, on: str) -> Told:
    from ..show.calibrated import calibrated_lines, calibrated_record

    return Told(
        lambda: calibrated_record(found, output, beside),
        lambda style: calibrated_lines(found, output, beside, on, style),
    )


def _forget_another(working: Working, tasks: list[Task]) -> None:
    """Remove a working file that is of no use to this run."""
    try:
        working.done(tasks)
    except InputError:
        try:
            working.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(unwritable(working.path, error)) from None


def _load() -> str:
    with contextlib.suppress(OSError, AttributeError):
        return f"{os.getloadavg()[0]:.1f}"
    return "not known"


# ---- the question


def _asked(given: Given, output: str, faults: Faults) -> Asked:
    only = faults.attempt(kinds, given.text("only")) or KINDS
    name = given.text("name") or Path(output).stem
    if not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
        rule = f"a text of 1 to {LONGEST_NAME} letters, without control characters"
        faults.add(Fault("CAL002", "--name is no name of a profile", rule, quoted(name), "--name my-machine"))
    precision = given.text("precision") or "bf16"
    if precision not in BYTES:
        faults.add(_unmeasured(precision))
    if given.text("model") is None:
        own = {field.name for record in (Job, Layout) for field in fields(record)} - {"precision"}
        for each in sorted(own & {key for key, value in given.values.items() if value is not None}):
            flag = field_names(each)[0]
            rule = "the standard set is of no model; MODEL gives operations, and flags its layout"
            faults.add(
                Fault("CAL002", f"{flag} stands without a MODEL", rule, flag, f"outlay calibrate MODEL {flag} ..")
            )
    return Asked(name, precision, only)


def kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of measurement that are asked for; all by default."""
    return KINDS if text is None else chosen(text, KINDS, "CAL001", "measured")


def _on_what(given: Given, asked: Asked, here: "Machine") -> Asked:
    """The accelerator that the shares are of, and the operations of the model. Raises every fault."""
    on = given.text("on")
    known = on or (f"{here.ranks}x{here.accelerator}" if here.accelerator else "")
    if not known and (left := [kind for kind in KINDS if kind not in asked.only and _needs(kind, here)]):
        rule = "the catalogue does not have this machine, and a description of it needs every kind of measurement"
        fix = "without --only; or --on FILE-machine.toml of an earlier run, whose rates the shares are then of"
        raise InputError(Fault("CAL002", "--only leaves out what is needed", rule, ", ".join(left), fix))
    cluster = _cluster(known, here) if known else None
    if given.text("model") is None:
        return replace(asked, cluster=cluster)
    case = _case(given, on, here)
    if case.job.precision not in BYTES:
        raise InputError(_unmeasured(case.job.precision))
    return replace(asked, cluster=cluster, case=case, precision=case.job.precision)


def _unmeasured(precision: str) -> Fault:
    rule = f"multiplies and attention are measured in one of {', '.join(BYTES)}"
    return Fault("CAL002", "--precision is not measured", rule, quoted(precision), "--precision bf16")


def _needs(kind: str, here: "Machine") -> bool:
    return kind != "elementwise" and (kind != "collectives" or here.ranks > 1)


def _cluster(on: str, here: "Machine") -> Cluster:
    """The cluster whose accelerator is measured. Raises InputError where it is another device than this one."""
    from ..cluster.catalogue import accelerator_names
    from .question import read_clusters

    faults = Faults()
    found = read_clusters(on, None, faults)
    faults.stop()
    card = found[-1].accelerator
    known = here.accelerator and card.name in accelerator_names()
    if card.name != here.accelerator if known else not here.gpu and card.vendor != here.rank.vendor:
        rule = "the shares are of the accelerator that --on names, and this one is measured"
        own = f"--on 8x{here.accelerator}" if here.accelerator else "--on FILE-machine.toml of this machine"
        got = f"{card.title}, here {here.title}"
        raise InputError(Fault("CAL002", "--on names another device", rule, got, f"without --on, or {own}"))
    return found[-1]


def _case(given: Given, on: str | None, here: "Machine") -> Case:
    """The model on a rank of its layout. Without --on the cluster is as large as the degrees that are given; of which
    card it is changes no size of an operation."""
    from ..bill import case_of
    from .question import read_question

    degrees = [given.text(name) or "" for name in ("tp", "cp", "pp", "dp_replicate", "dp_shard")]
    world = prod(int(degree) for degree in degrees if degree.isdecimal() and 0 < int(degree) <= MOST_RANKS)
    usual = {"on": on or f"{world}x{here.accelerator or ANY}"}
    usual["sequence_length"] = given.text("sequence_length") or SEQUENCE[here.gpu]
    bill = read_question(Given({**given.values, **usual}), engine=ENGINE).bill()
    if bill.violations:
        raise InputError(*(Fault(one.code, one.what, one.rule, one.got, one.fix) for one in bill.violations))
    return case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]


# ---- the run


def _run(tasks: list[Task], working: Working, ranks: int) -> list[Measured]:
    """All measurements; an empty list on any but the first rank of torchrun. What is done is kept, whatever ends it."""
    from ..verify.calibration.run import Pace, measure
    from ..verify.together import together

    if first_rank():
        working.begin(working.done(tasks))
    try:
        with warnings.catch_warnings(), _watched(working, len(tasks)):
            warnings.simplefilter("ignore")  # of torch, about groups and threads
            found = together(measure, (tasks, working, Pace(PACE)), ranks)
    except (InputError, KeyboardInterrupt, SystemExit):
        _says_how_to_go_on(working, len(tasks))
        raise
    return found[0] if found else []


def _says_how_to_go_on(working: Working, most: int) -> None:
    if first_rank():
        kept = f"{working.count()} of {most} measurements are kept in {quoted(str(working.path))}"
        complain(f"{kept}: the same command goes on from there")


@contextlib.contextmanager
def _watched(working: Working, most: int) -> Iterator[None]:
    """Progress with the time that is left, read off the working file: its ranks are other processes."""
    if not (first_rank() and sys.stderr.isatty()):
        yield
        return
    from ..validate.progress import Progress

    progress = Progress(sys.stderr.write, words="measurements")
    ended = threading.Event()
    watch = threading.Thread(target=_look, args=(working, most, progress, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()
        progress.close()


def _look(working: Working, most: int, progress: Callable[[int, int], None], ended: threading.Event) -> None:
    """What was kept of an earlier run took no time of this one."""
    before = working.count()
    progress(0, most)
    while not ended.wait(LOOKED):
        done = working.count() - before
        if done:
            progress(done, most - before)

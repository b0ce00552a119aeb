"""outlay sweep: many questions into Parquet, and the best of them in a table and a chart."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from ..formats import sweep_parquet
from ..search.narrow import NAMES as NARROWED
from ..search.sweep.rows import SEARCHED_BY, schema
from ..search.sweep.study import JOB, SITE
from ..search.sweep.summary import Summary, Wanted, together
from ..show.sweep.answer import OBJECTIVES, Swept, sweep_lines, sweep_record
from ..validate.progress import Progress
from .files import STDOUT, check
from .files import write as write_file
from .flags import Given
from .output import Told
from .sweep.folder import check_same, held, manifest_of, part_name, parts_in, prepare, read_manifest, write
from .sweep.study import Read, read_study, spellings
from .sweep.workers import Counted, cores, counted_beside, counted_by_ray, counted_here, prepare_workers
from .values import Faults, count

MOST_WORKERS, MOST_BEST, RAY = 1024, 1000, "ray"
USUAL = "tokens_per_second"


@dataclass(frozen=True)
class Asked:
    """What is shown of a sweep, checked as far as it can be before anything is counted."""

    objective: str
    by: tuple[str, ...]  # empty: what the study varies beside layouts
    best: int
    svg: str | None
    html: str | None


def sweep(given: Given) -> Told | int:
    """Count what is missing, and show the best. Exit 1: nothing fits. Exit 130: stopped; what was written stays."""
    faults = Faults()
    asked, how = _asked(given, faults), _workers(given, faults)
    where = given.text("study") or ""
    if not where:
        rule = "STUDY is a TOML file; with --show, also the folder of a sweep"
        faults.add(Fault("CLI004", "no study is given", rule, "nothing", "outlay sweep study.toml"))
    if isinstance(how, int) and not given.on("show"):
        prepare_workers(how)
    shown = given.on("show") and Path(where).is_dir()
    read = None if shown or not where else read_study(where, faults)
    faults.stop()
    sweep_parquet.library()
    folder = Path(where) if shown else Path(given.text("output") or Path(where).with_suffix(".sweep"))
    _check_by(asked.by, list(schema(read.study)) if read else sweep_parquet.columns(parts_in(folder)))
    if read and given.on("show"):
        check_same(folder, read_manifest(folder), manifest_of(read))
    manifest = manifest_of(read) if read else read_manifest(folder)
    wanted = _wanted(manifest, asked)
    if read and not given.on("show"):
        whole, summary = _count(folder, read, manifest, wanted, how)
    else:
        whole, summary = True, sweep_parquet.summary_of(parts_in(folder), wanted)
    swept = Swept(str(folder), manifest, summary, wanted)
    files = [path for path in (asked.svg, asked.html) if path]
    _pictures(swept, asked, given.on("force"))
    told = Told(
        lambda: sweep_record(swept, files),
        lambda style: sweep_lines(swept, style, files),
        bool(swept.fitting),
        stopped=not whole,
    )
    return told.code if STDOUT in files else told


def _wanted(manifest: dict[str, Any], asked: Asked) -> Wanted:
    """What is asked of the rows of a sweep."""
    by = asked.by or sweep_groups(manifest, asked.objective)
    prices = len(manifest["axes"].get("price", [""]))
    return Wanted(by, asked.objective, OBJECTIVES[asked.objective], asked.best, prices)


def _count(
    folder: Path, read: Read, manifest: dict[str, Any], wanted: Wanted, how: int | str
) -> tuple[bool, Summary]:  # fmt: skip
    """Count the parts that are missing, and write each as it comes; whether none is missing now, and what is shown."""
    with held(folder):
        missing = prepare(folder, manifest)
        made = [sweep_parquet.summary_of(parts_in(folder), wanted)]
        counted = _counted(read, missing, wanted, how)
        progress = Progress(sys.stderr.write, words="questions") if sys.stderr.isatty() else None
        left, done, whole = sum(len(read.study.span(part)) for part in missing), 0, True
        try:
            for part, content, summary in counted:
                write(folder / part_name(part), content)
                made.append(summary)
                done += len(read.study.span(part))
                if progress:
                    progress(done, left)
        except KeyboardInterrupt:
            whole = False
        finally:
            if progress:
                progress.close()
            close: Callable[[], None] = getattr(counted, "close", lambda: None)
            close()  # lets go of the workers now
    return whole, together(made, wanted)


def _counted(read: Read, missing: list[int], wanted: Wanted, how: int | str) -> Counted:
    if isinstance(how, str):
        return counted_by_ray(read.study, missing, wanted, how.partition(" ")[2] or None) if missing else iter(())
    workers = min(how, len(missing))
    if workers > 1:
        return counted_beside(read.study, missing, wanted, workers)
    return counted_here(read.study, missing, wanted)


def _workers(given: Given, faults: Faults) -> int | str:
    """How many processes, or `ray` and the address of its cluster."""
    text, address = given.text("workers") or str(cores()), given.text("address")
    if text == RAY:
        return f"{RAY} {address or ''}"
    if address is not None:
        rule = "--address is of a Ray cluster"
        faults.add(
            Fault("SWP014", "--address is given without Ray", rule, quoted(address), "--workers ray, or leave it out")
        )
    return count(text, "--workers", faults, MOST_WORKERS) or 1


def _asked(given: Given, faults: Faults) -> Asked:
    """What is to be shown."""
    objective = given.text("objective") or USUAL
    if objective not in OBJECTIVES:
        close = nearest(objective, OBJECTIVES)
        fix = f"--objective {(close or [USUAL])[0]}"
        rule = f"one of {', '.join(OBJECTIVES)}"
        faults.add(Fault("SWP014", f"--objective cannot be {quoted(objective)}", rule, quoted(objective), fix))
    best = count(given.text("best") or "1", "--best", faults, MOST_BEST) or 1
    svg, html = given.text("svg"), given.text("html")
    for path in filter(None, (svg, html)):
        if path == STDOUT and (given.on("as_json") or svg == html):
            rule = "standard output holds one answer: the object of --json, or a file"
            faults.add(Fault("DRW002", "two answers go to standard output", rule, "-", "write one to a file"))
        elif fault := check(path, given.on("force")):
            faults.add(fault)
    known = spellings("count")
    parts = [part.strip() for part in (given.text("by") or "").split(",") if part.strip()]
    by = tuple(dict.fromkeys(known.get(part.replace("-", "_"), part) for part in parts))
    return Asked(objective, by, best, svg, html)


def _check_by(by: tuple[str, ...], names: list[str]) -> None:
    """Refuse groups by what is no column."""
    unknown = [name for name in by if names and name not in names]
    if unknown:
        close = nearest(unknown[0], names)
        rule = f"columns of the rows: {', '.join(names)}"
        fix = f"--by {(close or ['model'])[0]}"
        raise InputError(Fault("SWP014", f"there is no column {quoted(unknown[0])}", rule, quoted(",".join(by)), fix))


def sweep_groups(manifest: dict[str, Any], objective: str) -> tuple[str, ...]:
    """What a study varies beside layouts: the usual groups."""
    varied = [name for name, texts in manifest["axes"].items() if len(texts) > 1]
    paid = ("price",) if objective.startswith("dollars") else ()
    plan = manifest["kind"] == "plan"
    own = (SEARCHED_BY + name if plan and name in NARROWED else name for name in varied)
    kept = tuple(name for name in own if name in (*SITE, *JOB, *paid) or name.startswith(SEARCHED_BY))
    return kept or ("model", "on")


def _pictures(swept: Swept, asked: Asked, force: bool) -> None:
    if asked.svg:
        from ..show.sweep.svg import sweep_svg

        write_file(asked.svg, sweep_svg(swept).encode(), force)
    if asked.html:
        from ..show.sweep.html import sweep_html

        write_file(asked.html, sweep_html(swept).encode(), force)

"""outlay validate: predicted against measured runs; a profile of one's own from them; the tables without a third."""

import sys
from pathlib import Path

from ..engines.profile import Profile
from ..errors import Fault, InputError
from .files import STDOUT, check, picture, write
from .flags import Given
from .output import Told
from .profiling import read_profile_of
from .values import Faults


def validate(given: Given) -> Told | int:
    """Compare rows with their predictions: of the files given, or of the project's own table."""
    from ..validate import OWN
    from ..validate.page import markdown
    from ..validate.predict import compare_files
    from ..validate.progress import Progress
    from ..validate.report import as_json, lines

    if given.on("hold_out"):
        return _hold_out(given)
    if given.on("choices"):
        from .choosing import choosing

        return choosing(given)
    if given.on("fit"):
        return _fit(given)
    faults = Faults()
    path = picture(given, faults)
    profile, engine = _read(given, faults)
    files = given.texts("files") or [OWN]
    progress = Progress(sys.stderr.write) if sys.stderr.isatty() else None
    found = compare_files(files, progress, profile, engine)
    if progress:
        progress.close()
    page = bool(given.values.get("markdown"))
    if path:
        from ..show.validation.accuracy_svg import accuracy_svg

        write(path, accuracy_svg(found).encode(), given.on("force"))
    told = Told(
        lambda: as_json(found),
        lambda style: markdown(found) if page else lines(found, style.width),
        stopped=found.stopped,
    )
    return told.code if path == STDOUT else told


def _read(given: Given, faults: Faults) -> tuple[Profile | None, str]:
    """The profile to count with, and the engine of rows whose source is not known. Raises every fault."""
    from ..engines.tables import engine

    profile, name = read_profile_of(given.text("profile"), None, faults), given.text("engine") or ""
    if name:
        faults.attempt(engine, name)
    without = [flag for flag in ("output", "date") if given.text(flag) is not None and not given.on("fit")]
    for flag in without:
        rule = f"--{flag} is of the profile that --fit makes"
        faults.add(Fault("FIT003", f"--{flag} is given without --fit", rule, f"--{flag}", "--fit, or leave it out"))
    faults.stop()
    return profile, name


def _fit(given: Given) -> Told:
    """Fit the constants that rows fix. Exit 130: stopped, with the best so far."""
    from ..show.fit import fit_lines, fit_record, fit_text
    from ..validate.fit import fit_files
    from ..validate.progress import Progress

    faults, path = Faults(), given.text("output") or STDOUT
    if fault := check(path, given.on("force")):
        faults.add(fault)
    files = given.texts("files")
    if not files:
        rule, fix = "--fit takes files of your own rows", "outlay validate FILE.csv --fit -o my.toml"
        faults.add(Fault("FIT001", "there are no rows to fit on", rule, "no file", fix))
    profile, engine = _read(given, faults)
    name = Path(path if path != STDOUT else files[0]).stem
    progress = Progress(sys.stderr.write, words="steps") if sys.stderr.isatty() else None
    found = fit_files(files, name[:60], profile, engine, _date(given), progress)
    if progress:
        progress.close()
    if path != STDOUT:
        write(path, fit_text(found).encode(), given.on("force"))
    alone = path == STDOUT
    return Told(
        lambda: fit_record(found),
        lambda style: fit_text(found).splitlines() if alone else fit_lines(found, style, path),
        stopped=found.stopped,
    )


def _hold_out(given: Given) -> Told:
    """Fit the constants of the tables again without a third of the configurations, and say how far off each side is."""
    from ..show.validation.hold_out import hold_out_lines, hold_out_page, hold_out_record
    from ..validate import OWN
    from ..validate.hold_out import hold_out_files
    from ..validate.progress import Progress

    faults = Faults()
    for flag in ("fit", "svg", "profile", "engine", "output", "date"):
        if given.values.get(flag):
            rule = "--hold-out judges the constants of the tables"
            faults.add(Fault("VAL005", f"--{flag} stands beside --hold-out", rule, f"--{flag}", f"leave --{flag} out"))
    faults.stop()
    waits = [Progress(sys.stderr.write, words=words) for words in ("rows", "steps")] if sys.stderr.isatty() else []
    found = hold_out_files(given.texts("files") or [OWN], *waits)
    for progress in waits:
        progress.close()
    page = bool(given.values.get("markdown"))
    return Told(
        lambda: hold_out_record(found),
        lambda style: hold_out_page(found) if page else hold_out_lines(found, style),
    )


def _date(given: Given) -> str:
    """When the rows ran, as it is said."""
    text = (given.text("date") or "").strip()
    if len(text) > 60 or not text.isprintable():
        rule, fix = "when the rows ran, in 60 letters or less", "--date 2026-11-30"
        raise InputError(Fault("FIT003", "--date is not a date", rule, text[:60], fix))
    return text

"""outlay validate --choices: layouts that papers and teams chose, beside the best that their engine had then."""

import sys

from ..errors import Fault, InputError
from .flags import Given
from .output import Told

OF_RUNS = ("svg", "profile", "engine", "fit", "output", "date", "force")  # flags of measured runs alone


def choosing(given: Given) -> Told:
    """Every published choice, or those with a word of the command line in their name. Exit 130: stopped."""
    from ..show.validation.choices import choices_lines, choices_page, choices_record
    from ..validate.choices import compare_choices
    from ..validate.progress import Progress

    if others := [f"--{flag}" for flag in OF_RUNS if given.values.get(flag)]:
        rule, got = "--choices goes with words of names, --markdown and --json", " ".join(others)
        raise InputError(Fault("VAL011", f"{got} is not of --choices", rule, got, "leave it out"))
    progress = Progress(sys.stderr.write, words="choices") if sys.stderr.isatty() else None
    found = compare_choices(given.texts("files"), progress)
    if progress:
        progress.close()
    page = given.on("markdown")
    return Told(
        lambda: choices_record(found),
        lambda style: choices_page(found) if page else choices_lines(found, style),
        stopped=found.stopped,
    )

"""outlay validate: predicted against measured runs."""

import sys

from ..errors import Fault, InputError
from .flags import Given
from .output import tell

INTERRUPTED = 130


def validate(given: Given) -> int:
    """Compare every row of some files with its prediction; a comparison that was stopped keeps what is done."""
    from ..validate.predict import compare_files
    from ..validate.progress import Progress
    from ..validate.report import as_json, lines

    files = given.texts("files")
    if not files:
        rule = "validate takes CSV files with the header of measured runs"
        raise InputError(Fault("CLI004", "no file is given", rule, "nothing", "outlay validate runs.csv"))
    progress = Progress(sys.stderr.write) if sys.stderr.isatty() else None
    found = compare_files(files, progress)
    if progress:
        progress.close()
    tell(given, lambda: as_json(found), lambda style: lines(found, style.width))
    return INTERRUPTED if found.stopped else 0

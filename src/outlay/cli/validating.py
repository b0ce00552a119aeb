"""outlay validate: predicted against measured runs."""

import sys

from .flags import Given
from .output import tell

INTERRUPTED = 130


def validate(given: Given) -> int:
    """Compare rows with their predictions: of the files given, or of the project's own table."""
    from ..validate import OWN
    from ..validate.page import markdown
    from ..validate.predict import compare_files
    from ..validate.progress import Progress
    from ..validate.report import as_json, lines

    files = given.texts("files") or [OWN]
    progress = Progress(sys.stderr.write) if sys.stderr.isatty() else None
    found = compare_files(files, progress)
    if progress:
        progress.close()
    page = bool(given.values.get("markdown"))
    tell(given, lambda: as_json(found), lambda style: markdown(found) if page else lines(found, style.width))
    return INTERRUPTED if found.stopped else 0

"""outlay validate: predicted against measured runs."""

import sys

from .files import STDOUT, picture, write
from .flags import Given
from .output import tell
from .values import Faults

INTERRUPTED = 130


def validate(given: Given) -> int:
    """Compare rows with their predictions: of the files given, or of the project's own table."""
    from ..validate import OWN
    from ..validate.page import markdown
    from ..validate.predict import compare_files
    from ..validate.progress import Progress
    from ..validate.report import as_json, lines

    faults = Faults()
    path = picture(given, faults)
    faults.stop()
    files = given.texts("files") or [OWN]
    progress = Progress(sys.stderr.write) if sys.stderr.isatty() else None
    found = compare_files(files, progress)
    if progress:
        progress.close()
    page = bool(given.values.get("markdown"))
    if path:
        from ..show.accuracy_svg import accuracy_svg

        write(path, accuracy_svg(found).encode(), given.on("force"))
    if path != STDOUT:
        tell(given, lambda: as_json(found), lambda style: markdown(found) if page else lines(found, style.width))
    return INTERRUPTED if found.stopped else 0

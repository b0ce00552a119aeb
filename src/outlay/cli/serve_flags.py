"""The flags of outlay report and outlay serve."""

from .file_flags import FORCE
from .flags import Flag, question_flags

SERVED = (
    Flag("port", ("--port",), "the port to listen on; default: 8000"),
    Flag("host", ("--host",), "the address to listen on; default: 127.0.0.1, which this machine alone reaches"),
)
WRITTEN = (
    Flag("html", ("--html",), "write a page that asks for nothing outside; - is standard output", dash=True),
    Flag("md", ("--md",), "write Markdown, for a pull request", dash=True),
    Flag("csv", ("--csv",), "write every figure, a line each, in bytes and seconds", dash=True),
    FORCE,
)


def serve_flags() -> tuple[Flag, ...]:
    """The flags of outlay serve."""
    return SERVED


def report_flags() -> tuple[Flag, ...]:
    """The flags of outlay report."""
    return (*WRITTEN, *question_flags())

"""The flags of a pipeline that `outlay verify` runs."""

from .file_flags import FORCE
from .flags import Flag

PIPELINE = (
    Flag("operation", ("--operation",), "pipeline: how long an operation lasts in the mean; default: 100ms"),
    Flag("stages", ("--stages",), "pipeline: what a stage does meanwhile, sleep or compute; default: sleep"),
    Flag("svg", ("--svg",), "pipeline: write predicted above measured as a picture; - is standard output", dash=True),
    Flag("html", ("--html",), "pipeline: write a page with both, and a table of the ranks", dash=True),
    Flag("perfetto", ("--perfetto",), "pipeline: write both as a trace for ui.perfetto.dev", dash=True),
    FORCE,
)

"""The flags of outlay sweep: who counts, where rows go, and what is shown of them."""

from ..flags import Flag

SWEEP = (
    Flag("output", ("--output", "-o"), "the folder of the rows; default: STUDY.sweep beside the study"),
    Flag("workers", ("--workers",), "how many processes count, or ray: a Ray cluster; default: one a core"),
    Flag(
        "address",
        ("--address",),
        "with --workers ray: HOST:PORT of a running cluster, or auto; default: one of its own",
    ),
    Flag("show", ("--show",), "count nothing: show what the folder holds", switch=True),
    Flag("objective", ("--objective",), "the column that is best: tokens_per_second, mfu, seconds, dollars, .."),
    Flag("by", ("--by",), "columns of a group, such as model,on; default: what the study varies beside layouts"),
    Flag("best", ("--best",), "rows of each group; default: 1"),
    Flag("svg", ("--svg",), "write a chart of the best of each group to a file; - is standard output", dash=True),
    Flag("html", ("--html",), "write a page: the chart, and the table of the best", dash=True),
    Flag("force", ("--force",), "write over files that exist", switch=True),
)


def sweep_flags() -> tuple[Flag, ...]:
    """All flags of the command."""
    return SWEEP

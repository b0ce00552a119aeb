"""What `outlay watch` takes."""

from .flags import Flag, Positional, question_flags

LOG = (
    Positional("log", "of Megatron-LM, torchtitan, the Trainer, nanotron, DeepSpeed, ..; - is standard input"),
    Positional("model", "a config.json or a name from the catalogue, where the log does not hold its arguments"),
)


def watch_flags() -> tuple[Flag, ...]:
    """How a log is read, and all that describes the bill beside it."""
    return (
        Flag("follow", ("--follow",), "read on as the log grows, until the last step or Ctrl-C", switch=True),
        Flag("every", ("--every",), "steps from one line of --follow to the next; default: 10"),
        *question_flags(),
    )

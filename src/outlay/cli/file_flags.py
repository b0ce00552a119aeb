"""The flags and words of the commands that read and write files of frameworks."""

from .flags import Flag, Positional, question_flags

FORCE = Flag("force", ("--force",), "write over files that exist", switch=True)
FILES = (
    "the files of one run: a launch script, a log, YAML, JSON; - is standard input. A name of the catalogue, a"
    " config.json or its folder among them is the MODEL"
)
CHECKED = Positional("files", FILES, many=True, dash=True)
FILE = Positional("file", "a launch script, log or configuration of a framework; - is standard input")
FRAMEWORK = Positional(
    "framework",
    "whose file: accelerate, axolotl, deepspeed, llama-factory, maxtext, megatron, megatron-bridge, nanotron, "
    "torchtitan or trainer",
)


def check_flags() -> tuple[Flag, ...]:
    """The flags of outlay check."""
    return (
        Flag("format", ("--format",), "full; concise: a line a finding; json; github: commands of a workflow"),
        Flag("fix", ("--fix",), "write a corrected copy beside each file, train.fixed.sh for train.sh", switch=True),
        Flag("output", ("--output", "-o"), "the file of the corrected copy"),
        FORCE,
        *question_flags(),
    )


def written_flags() -> tuple[Flag, ...]:
    """The flags of outlay export and outlay convert."""
    return (Flag("output", ("--output", "-o"), "the file to write; default: standard output"), FORCE, *question_flags())

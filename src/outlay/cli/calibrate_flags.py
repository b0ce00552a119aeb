"""The flags of outlay calibrate."""

from dataclasses import replace

from .file_flags import FORCE
from .flags import Flag, question_flags

BESIDE = ("profile", "storage", "mtbf", "restart", "pue", "extra_parameters")  # what changes no operation
ABOUT = {
    "on": "the accelerator that the shares are of, and with MODEL the ranks of its layout; default: this machine",
    "engine": "by what MODEL's layout is cut; default: fsdp2-uncompiled, which is what runs here",
}


def calibrate_flags() -> tuple[Flag, ...]:
    """Its own, and those of a question with a MODEL."""
    output = "the profile; default: calibrated.toml. Beside it -machine.toml, where the catalogue lacks this machine"
    ranks = "processes that measure at once; default: the GPUs here, or a CPU's cores, 2 to 8; under torchrun its ranks"
    question = (flag for flag in question_flags() if flag.name not in BESIDE)
    return (
        Flag("output", ("--output", "-o"), output),
        Flag("ranks", ("--ranks",), ranks),
        Flag("only", ("--only",), "some of matmul, attention, memory, elementwise, launch, collectives; default: all"),
        Flag("name", ("--name",), "what the profile is called; default: as its file"),
        FORCE,
        *(replace(flag, help=ABOUT.get(flag.name, flag.help)) for flag in question),
    )

"""`--mixed recompute,tp`: what each layer chooses by itself."""

from ..errors import Fault, InputError, quoted
from .flags import Flag, Given

WORDS = ("recompute", "tp")
MIXED = Flag(
    "mixed",
    ("--mixed",),
    "recompute, tp, or both: chosen layer by layer within each stage, beside the best that treats all alike",
)


def read_mixed(given: Given) -> tuple[str, ...]:
    """The words of --mixed, each once; none where it is not given. Raises InputError (MIX001) for others."""
    text = given.text("mixed")
    if text is None:
        return ()
    names = tuple(dict.fromkeys(text.lower().replace(",", " ").split()))
    if not names or any(name not in WORDS for name in names):
        rule = f"--mixed is of {' and '.join(WORDS)}, with a comma between them"
        raise InputError(Fault("MIX001", "--mixed names something else", rule, quoted(text), "--mixed recompute,tp"))
    return tuple(name for name in WORDS if name in names)

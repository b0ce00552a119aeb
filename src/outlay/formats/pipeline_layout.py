"""How Megatron-LM shares layers among the stages of a pipeline: its layout string, and its flags of first and last."""

import re
from collections.abc import Sequence
from itertools import groupby

LONGEST, MOST = 5_000, 100_000
BRACKETS, REPEAT = re.compile(r"\(([^)]+)\)\*(\d{1,6})"), re.compile(r"(.)\*(\d{1,6})")


def print_layout(sizes: Sequence[int], mtp: int = 0) -> str:
    """The layers of each chunk, along the model, as Megatron-LM's `--pipeline-model-parallel-layout`.

    E is the embedding, t a layer, m a multi-token layer, L the loss; a bar ends a stage, `x*n` and `(..)*n` repeat,
    commas mean nothing.

    >>> print_layout((7, 9, 9, 7))
    'Et*7|(t*9|)*2t*7,L'
    """
    *stages, last = (_repeated("t", size) for size in sizes)
    first = "".join(f"{stage}|" for stage in stages[:1])
    runs = ((f"{stage}|", len(list(run))) for stage, run in groupby(stages[1:]))
    middle = "".join(f"({stage})*{times}" if times > 1 else stage for stage, times in runs)
    return f"E{first}{middle}" + ",".join(filter(None, (last, _repeated("m", mtp) + "L")))


def _repeated(letter: str, times: int) -> str:
    return letter * times if times < 2 else f"{letter}*{times}"


def parse_layout(text: str) -> list[int] | None:
    """The layers of each chunk along the model, or None where the string is not a layout."""
    plain = text.strip("'\" ").replace(",", "").replace(" ", "")
    if len(plain) > LONGEST:
        return None
    for pattern in (BRACKETS, REPEAT):
        size = len(plain) + sum(len(match[1]) * int(match[2]) for match in pattern.finditer(plain))
        if size > MOST:
            return None
        plain = pattern.sub(lambda match: match[1] * int(match[2]), plain)
    if not re.fullmatch(r"Et*(\|t*)*[|m]*L", plain):
        return None
    return [stage.count("t") for stage in plain.split("|")]


def ends_counted(layers: int, pp: int, vpp: int, embedding: bool, loss: bool) -> list[int] | None:
    """Layers of each chunk where embedding and loss count as a layer each; None where they do not share out."""
    each, rest = divmod(layers + embedding + loss, pp * vpp)
    if rest or each < 1:
        return None
    made = [each] * (pp * vpp)
    made[0] -= embedding
    made[-1] -= loss
    return made


def ends_given(layers: int, pp: int, vpp: int, first: int, last: int) -> list[int] | None:
    """Layers of each chunk where those of the first or the last stage are given; 0: not given."""
    others = pp - (first > 0) - (last > 0)
    left = layers - first - last
    if left < 0 or (left % others if others > 0 else left):
        return None
    stages = ([first] if first else []) + [left // others] * max(0, others) + ([last] if last else [])
    if any(stage % vpp for stage in stages):
        return None
    return [stage // vpp for _ in range(vpp) for stage in stages]

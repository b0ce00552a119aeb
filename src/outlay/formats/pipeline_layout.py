"""How Megatron-LM shares layers among the stages of a pipeline: its layout string, and its flags of first and last."""

import re

LONGEST, MOST = 5_000, 100_000
BRACKETS, REPEAT = re.compile(r"\(([^)]+)\)\*(\d{1,6})"), re.compile(r"(.)\*(\d{1,6})")


def print_layout(chunks: list[int], mtp: int = 0) -> str:
    """The layout string of chunks along the model: `Et*19|t*20|t*20|t*19mL`."""
    last = len(chunks) - 1
    pieces = []
    for place, layers in enumerate(chunks):
        held = f"t*{layers}" if layers > 1 else "t" * layers
        ends = ("m" if mtp == 1 else f"m*{mtp}" if mtp else "") + "L" if place == last else ""
        pieces.append(("E" if place == 0 else "") + held + ends)
    return "|".join(pieces)


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

"""What the rules ask of a case, or of each of a grid of them."""

from ..formula import ceil, maximum
from ..quantities import Count, Flag
from .case import Case


def widths(case: Case) -> list[int]:
    """Dense and shared feed-forward widths."""
    parts = [block.feed_forward for block in case.model.blocks]
    return sorted({width for part in parts for width in (part.width, part.shared_width) if width})


def heads(case: Case) -> list[int]:
    """Attention heads of each kind of layer."""
    return sorted({block.attention.heads for block in case.model.blocks})


def kv_heads(case: Case) -> list[int]:
    """Key/value heads of each kind of layer that has them."""
    return sorted({block.attention.kv_heads for block in case.model.blocks if not block.attention.latent_rank})


def experts(case: Case) -> int:
    """Experts of a layer; 0 without."""
    return max(block.feed_forward.experts for block in case.model.blocks)


def expert_width(case: Case) -> int:
    """Width of one expert."""
    return max(block.feed_forward.expert_width for block in case.model.blocks)


def all_divide(values: list[int], by: Count) -> Flag:
    """Whether a degree divides every one of some sizes."""
    result: Flag = True
    for value in values:
        result = result & (value % by == 0)
    return result


def kv_fit(case: Case) -> Flag:
    """Whether key/value heads are a multiple or a divisor of tp."""
    result: Flag = True
    for count in kv_heads(case):
        result = result & ((count % case.layout.tp == 0) | (case.layout.tp % count == 0))
    return result


def longest_stage(case: Case) -> Count:
    """Layers of the longest chunk."""
    return ceil(case.model.layers / (case.layout.pp * case.layout.vpp))


def no_empty_chunk(case: Case) -> Flag:
    """Whether every chunk has a layer."""
    chunks = case.layout.pp * case.layout.vpp
    return (chunks <= case.model.layers) & (longest_stage(case) * (chunks - 1) < case.model.layers)


def split_fits(case: Case) -> Flag:
    """Whether a split has a number a stage, and holds all layers."""
    split = case.layout.split
    return not split or (
        len(split) == case.layout.pp and sum(split) == case.model.layers and min(split) >= case.layout.vpp
    )


def rounds(case: Case) -> Flag:
    """Whether interleaving has whole rounds."""
    rounds = maximum(1, case.micro_batches // case.layout.pp)
    return (case.layout.vpp == 1) | (case.micro_batches % rounds == 0)


def spelled(values: list[int]) -> str:
    """Sizes in words."""
    return ", ".join(f"{value:,}" for value in values)

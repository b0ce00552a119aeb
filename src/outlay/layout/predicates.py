"""What the rules ask of a case, or of each of a grid of them."""

from typing import Any

import numpy as np

from ..formula import ceil, maximum
from ..quantities import Count, Flag
from .case import Case
from .stages import candidates


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


def longest_stage(case: Case) -> Any:
    """Layers of the longest stage, all its chunks together."""
    found = candidates(case.model, case.layout, case.engine.counts_ends)
    return maximum(*(sum(stage.counts[1:], stage.counts[0]) for stage in found))


def no_empty_chunk(case: Case) -> Flag:
    """Whether every chunk has a layer, or at least an end of the model where those count as layers."""
    chunks = case.layout.pp * case.layout.vpp
    if case.engine.counts_ends:
        return chunks <= case.model.layers + 2
    longest = ceil(case.model.layers / chunks)
    return (chunks <= case.model.layers) & (longest * (chunks - 1) < case.model.layers)


def split_fits(case: Case) -> Flag:
    """Whether a split has a number a chunk, or a stage that its chunks share equally, none empty, and all layers."""
    split, pp, vpp = case.layout.split, case.layout.pp, case.layout.vpp
    if not split:
        return True
    even = len(split) == pp * vpp or (len(split) == pp and all(share % vpp == 0 for share in split))
    return even and sum(split) == case.model.layers and min(split) >= 1


def recompute_fits(case: Case) -> Flag:
    """Whether no stage is asked to recompute more layers than it has; a split that does not fit is another rule's."""
    if not bool(np.all(split_fits(case))):
        return True
    some: Flag = case.layout.recompute_layers > 0
    fits: Flag = (case.layout.recompute_layers <= longest_stage(case)) & (some == (case.layout.recompute == "full"))
    return fits


def whole_expert_shards(case: Case) -> Flag:
    """Whether every replica group holds whole shards of the experts."""
    whole: Flag = case.layout.edp % case.layout.dp_replicate == 0
    return whole


def heads_swap(case: Case) -> Flag:
    """Whether Ulysses can deal the heads, and those of keys and values, to its ranks."""
    return all_divide(heads(case) + kv_heads(case), case.layout.tp * case.layout.cp)


def has_zero(case: Case) -> Flag:
    """Whether the engine has the ZeRO stage."""
    result: Flag = False
    for stage in case.engine.zero_stages:
        result = result | (case.layout.zero == stage)
    return result


def factors(case: Case) -> str:
    """The degrees that make the world, those above 1: `tp 8 x pp 4 x dp_shard 2`."""
    names = ("tp", "cp", "pp", "dp_replicate", "dp_shard")
    return " x ".join(f"{name} {degree}" for name in names if (degree := getattr(case.layout, name)) > 1) or "1"


def rounds(case: Case) -> Flag:
    """Whether interleaving has whole rounds."""
    rounds = maximum(1, case.micro_batches // case.layout.pp)
    return (case.layout.vpp == 1) | (case.micro_batches % rounds == 0)


def spelled(values: list[int]) -> str:
    """Sizes in words."""
    return ", ".join(f"{value:,}" for value in values)

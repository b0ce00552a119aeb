"""What the rules ask of a case, or of each of a grid of them."""

from typing import Any

import numpy as np

from ..formula import ceil, maximum, minimum, where
from ..model.model import of_kind
from ..model.parts import Attention, CompressedAttention, Experts
from ..model.parts.mamba import Mamba2
from ..quantities import Count, Flag
from .case import Case
from .sizes import deals_scan
from .stages import candidates

MOST_SIZES = 10_000  # of a growing batch


def widths(case: Case) -> list[int]:
    """Widths, and heads and channels of recurrent parts, that tensor parallelism cuts; attention has its own rules."""
    return sorted({width for found in widths_by_kind(case).values() for width in found})


def widths_by_kind(case: Case) -> dict[str, list[int]]:
    """The same, by the kind of the part."""
    found: dict[str, set[int]] = {}
    for part in case.model.parts:
        pieces = () if isinstance(part, Attention) else (piece for them in part.dimensions().values() for piece in them)
        cut = {int(piece.units) for piece in pieces if piece.cut == "tp" and not piece.copied and piece.units}
        found.setdefault(part.kind, set()).update(cut)
    return {kind: sorted(cut) for kind, cut in found.items() if cut}


def scan_heads(case: Case) -> list[int]:
    """Heads of recurrent parts, or their channels where they have none."""
    pieces = [piece for part in case.model.parts for piece in part.dimensions().get("scan_heads", ())]
    return sorted({int(piece.units) for piece in pieces})


def heads(case: Case) -> list[int]:
    """Attention heads of each kind of layer."""
    return sorted({part.heads for part in case.model.parts if isinstance(part, Attention | CompressedAttention)})


def kv_heads(case: Case) -> list[int]:
    """Key/value heads of each kind of layer that has them."""
    return sorted({part.kv_heads for part in of_kind(Attention, case.model.parts) if not part.latent_rank})


def experts(case: Case) -> int:
    """Experts of a layer; 0 without."""
    return case.model.experts


def expert_width(case: Case) -> int:
    """Width of one expert."""
    return max((part.expert_width for part in of_kind(Experts, case.model.parts)), default=0)


def all_divide(values: list[int], by: Count) -> Flag:
    """Whether a degree divides every one of some sizes."""
    result: Flag = True
    for value in values:
        result = result & (value % by == 0)
    return result


def kv_fit(case: Case) -> Flag:
    """Whether key/value heads are a multiple of tp, or a divisor where the engine copies them."""
    result: Flag = True
    for count in kv_heads(case):
        copied = (case.layout.tp % count == 0) & case.engine.copies_kv_heads
        result = result & ((count % case.layout.tp == 0) | copied)
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
    """Whether a split has a number a chunk, or a stage that its chunks share equally, and all layers.

    None is empty but the first and the last, which have the embedding and the head.
    """
    split, pp, vpp = case.layout.split, case.layout.pp, case.layout.vpp
    if not split:
        return True
    even = len(split) == pp * vpp or (len(split) == pp and all(share % vpp == 0 for share in split))
    return even and sum(split) == case.model.layers and min(split) >= 0 and all(split[1:-1])


def recompute_fits(case: Case) -> Flag:
    """Whether no stage is asked to recompute more layers than it has; a split that does not fit is another rule's."""
    if not bool(np.all(split_fits(case))):
        return True
    some: Flag = case.layout.recompute_layers > 0
    fits: Flag = (case.layout.recompute_layers <= longest_stage(case)) & (some == (case.layout.recompute == "full"))
    return fits


def has_recompute(case: Case) -> Flag:
    """Whether the engine has this kind of recompute."""
    has: Flag = np.isin(case.layout.recompute, case.engine.recomputes)
    return has


def recompute_part(case: Case) -> Flag:
    """Whether the engine recomputes so many layers of a stage; what is too many is another rule's.

    Every n-th layer of L is ceil(L / n) of them, and k is such a number where n = ceil(L / k) gives it.
    """
    some, part = case.layout.recompute_layers, case.engine.recompute_part
    if part == "any" or not bool(np.all(split_fits(case))):
        return True
    held = longest_stage(case)
    nth = ceil(held / maximum(1, ceil(held / maximum(1, some)))) == some
    fits: Flag = (some == 0) | (some >= held) | (nth if part == "every_nth" else False)
    return fits


def whole_expert_shards(case: Case) -> Flag:
    """Whether every replica group holds whole shards of the experts."""
    whole: Flag = case.layout.edp % case.layout.dp_replicate == 0
    return whole


def heads_swap(case: Case) -> Flag:
    """Whether context parallelism can deal what it deals: heads under Ulysses, and those of recurrent parts."""
    ranks = case.layout.tp * case.layout.cp
    swaps: Flag = (case.layout.cp_kind != "ulysses") | all_divide(heads(case) + kv_heads(case), ranks)
    if not scan_heads(case):
        return swaps
    return swaps & (np.logical_not(deals_scan(case.layout, case.engine)) | all_divide(scan_heads(case), ranks))


def dealt_heads(case: Case) -> list[int]:
    """Heads that context parallelism deals."""
    return [
        *(heads(case) if case.layout.cp_kind == "ulysses" else ()),
        *(scan_heads(case) if deals_scan(case.layout, case.engine) else ()),
    ]


def scan_groups(case: Case) -> list[int]:
    """Groups of the heads of Mamba-2."""
    return sorted({part.groups for part in of_kind(Mamba2, case.model.parts)})


def groups_deal(case: Case) -> Flag:
    """Whether tensor-parallel ranks have whole groups, and context parallelism deals them, or heads of each."""
    result: Flag = True
    for count in scan_groups(case):
        here = maximum(count // case.layout.tp, 1)
        dealt = where(here < case.layout.cp, case.layout.cp % here, here % case.layout.cp)
        result = result & (count % case.layout.tp == 0) & (dealt == 0)
    return result


def has_zero(case: Case) -> Flag:
    """Whether the engine has the ZeRO stage."""
    result: Flag = False
    for stage in case.engine.zero_stages:
        result = result | (case.layout.zero == stage)
    return result


def factors(case: Case) -> str:
    """The degrees that make the world, those above 1: `tp 8 x pp 4 x dp_shard 2`."""
    names = ("tp", "cp", "pp", "dp_replicate", "dp_shard")
    return " x ".join(f"{name} {degree:,}" for name in names if (degree := getattr(case.layout, name)) > 1) or "1"


def rounds(case: Case) -> Flag:
    """Whether interleaving has whole rounds."""
    rounds = maximum(1, case.micro_batches // case.layout.pp)
    return (case.layout.vpp == 1) | (case.micro_batches % rounds == 0)


def by_kind(found: dict[str, list[int]]) -> str:
    """Sizes in words, by what has them: `feed_forward 11,008; mamba2 8, 80`."""
    return "; ".join(f"{kind} {spelled(values)}" for kind, values in found.items())


def spelled(values: list[int]) -> str:
    """Sizes in words."""
    return ", ".join(f"{value:,}" for value in values)


def has_axis(case: Case, axis: str) -> Flag:
    """Whether the engine has the axis, or the layout leaves it at 1."""
    unused: Flag = getattr(case.layout, axis) == 1
    return unused | (axis in case.engine.axes)


def most_zero(case: Case) -> Count:
    """The highest ZeRO stage that runs with the optimizer and beside the layout's pipeline and tensor parallelism."""
    piped: Count = where(case.layout.pp > 1, case.engine.zero_with_pp, 3)
    cut: Count = where(case.layout.tp > 1, case.engine.zero_with_tp, 3)
    return minimum(piped, cut, case.optimizer_zero)


def has_schedule(case: Case) -> Flag:
    """Whether the engine runs the order of the pipeline."""
    runs: Flag = (case.layout.pp == 1) | np.isin(case.layout.schedule, case.engine.schedules)
    return runs


def shards_deal_experts(case: Case) -> Flag:
    """Whether the experts are dealt inside one group of shards; without ZeRO every data-parallel rank is a copy."""
    at = case.layout
    inside = at.tp * at.cp * where(at.zero > 0, at.dp_shard, 1)
    deals: Flag = (at.ep == 1) | (inside % at.ep == 0)
    return deals


def has_cp_kind(case: Case) -> Flag:
    """Whether the engine's context parallelism is of this kind."""
    has: Flag = (case.layout.cp == 1) | np.isin(case.layout.cp_kind, case.engine.cp_kinds)
    return has


def grows(case: Case) -> Flag:
    """Whether a growing batch reaches the global batch in whole increments."""
    if not case.job.batch_rampup:
        return True
    start, increment, samples = (*case.job.batch_rampup, 0, 0, 0)[:3]
    if len(case.job.batch_rampup) != 3 or not start or not increment or not samples:
        return False
    rise = case.job.global_batch - start
    return 0 <= rise <= MOST_SIZES * increment and rise % increment == 0


def shares_ramp(case: Case) -> Flag:
    """Whether every size of a growing batch is whole micro-batches, and whole rounds of them with chunks."""
    rounds = where(case.layout.vpp > 1, case.layout.pp, 1)
    return all_divide(list(case.job.batch_rampup[:2]), case.layout.dp * case.layout.micro_batch * rounds)

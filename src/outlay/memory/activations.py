"""Activations: the tapes of the passes in flight, what recompute leaves of them, and the logits."""

from ..formula import ceil, divide, minimum, sqrt, total, where
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bytes, Count, Share, Tokens
from ..stage import StageCosts


def coarse_activation_bytes(tokens: Tokens, layers: Count, hidden: Count, values: Count, value: Bytes) -> Bytes:
    """The textbook's tape: about c d values a token a layer, c near 10.

    Block input, three projections, attention output, d and 4d in the feed-forward. Real tapes are 1.6 to 1.9 times it.
    """
    return tokens * layers * hidden * values * value


def best_segments(layers: Count) -> Count:
    """Checkpoint segments that store least by the textbook, g = sqrt(L). Source: Chen et al. 2016."""
    return sqrt(layers)


def checkpoint_share(layers: Count, segments: Count) -> Share:
    """What g checkpoint segments store, over what L layers store: (g + L/g) / L; 2 / sqrt(L) at the best g."""
    return (segments + layers / segments) / layers


def checkpoint_units(layers: Count, segments: Count, tape: Count) -> Count:
    """What g segments store, in layer inputs, a layer's tape being c of them: g + (L/g) c; least at g = sqrt(c L)."""
    return segments + layers / segments * tape


def recomputed_share(stage: StageCosts, layout: Layout) -> Share:
    """Share of a stage's layers that are recomputed in full; of the whole model's, where it stands for all stages.

    Where no backward pass runs through them, none is.
    """
    return minimum(divide(layout.recompute_layers * stage.stages, stage.differentiated), 1)


def grouped_layers(stage: StageCosts, layout: Layout) -> Count:
    """Layers of one chunk, which groups of several share; 1 where every layer runs again by itself."""
    layers: Count = where(layout.recompute_group > 1, stage.differentiated, 1)
    chunks: Count = where(layout.recompute_group > 1, layout.vpp, 1)
    stages: Count = where(layout.recompute_group > 1, stage.stages, 1)
    return layers / (chunks * stages)


def kept_entries(stage: StageCosts, layout: Layout) -> Bytes:
    """Inputs that a stage keeps of one micro-batch where its layers run again: one in each group of a chunk's layers.

    Source: Megatron-Core, transformer_block.py, --recompute-method uniform.
    """
    layers: Count = grouped_layers(stage, layout)
    return stage.entry * divide(ceil(layers / layout.recompute_group), layers)


def pass_bytes(stage: StageCosts, recomputed: Share, layout: Layout) -> Bytes:
    """What the layers of a stage keep of one micro-batch: whole tapes, or inputs alone where recomputed in full."""
    tapes: Bytes = where(layout.selective, stage.kept_selective, stage.kept)
    return (1 - recomputed) * tapes + recomputed * kept_entries(stage, layout)


def in_flight(stage: StageCosts, case: Case) -> Count:
    """Micro-batches whose activations a stage holds at its peak, in stages; of unequal chunks the largest, a bound."""
    flying: Count = case.schedule.in_flight(
        stage.rank, case.layout.pp, case.layout.vpp, case.micro_batches, case.round_size
    )
    return minimum(stage.unevenness * flying, case.micro_batches)


def mask_bytes(stage: StageCosts) -> Bytes:
    """What the embedding keeps of one micro-batch: its dropout mask."""
    return stage.ends[0].layers * stage.ends[0].costs.kept


def one_pass_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What a stage keeps on the accelerator of one micro-batch, from its forward to its backward pass."""
    recomputed: Share = recomputed_share(stage, case.layout)
    tapes: Bytes = pass_bytes(stage, recomputed, case.layout)
    stays: Share = 1 - case.layout.offload_activations
    return stays * total(layers=tapes, embedding=mask_bytes(stage))


def activation_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Tapes of all passes in flight on one rank of a stage, less what is offloaded."""
    return in_flight(stage, case) * one_pass_bytes(stage, case)


def group_tapes(stage: StageCosts, layout: Layout) -> Bytes:
    """The tapes of the layers that run again together, each as the largest: of a group, or of all that a chunk has."""
    return minimum(layout.recompute_group, grouped_layers(stage, layout)) * stage.largest_tape


def recompute_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The tape of the layers, or of the module, that are being recomputed: one group at a time. Its input stands."""
    module: Bytes = where(case.layout.selective, stage.largest_freed, 0)
    again: Bytes = group_tapes(stage, case.layout) - stage.largest_entry
    return where(case.layout.recompute_layers > 0, again, module)

"""Activations: the tapes of the passes in flight, what recompute leaves of them, and the logits."""

from ..formula import divide, minimum, sqrt, total, where
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


def pass_bytes(stage: StageCosts, recomputed: Share, layout: Layout) -> Bytes:
    """What the layers of a stage keep of one micro-batch: whole tapes, or inputs alone where recomputed in full."""
    tapes: Bytes = where(layout.selective, stage.kept_selective, stage.kept)
    return (1 - recomputed) * tapes + recomputed * stage.entry


def in_flight(stage: StageCosts, case: Case) -> Count:
    """Micro-batches whose activations a stage holds at its peak, in stages; of unequal chunks the largest, a bound."""
    flying: Count = case.schedule.in_flight(
        stage.rank, case.layout.pp, case.layout.vpp, case.micro_batches, case.round_size
    )
    return minimum(stage.unevenness * flying, case.micro_batches)


def mask_bytes(stage: StageCosts) -> Bytes:
    """What the embedding keeps of one micro-batch: its dropout mask."""
    return stage.ends[0].layers * stage.ends[0].costs.kept


def activation_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Tapes of all passes in flight on one rank of a stage, less what is offloaded."""
    recomputed: Share = recomputed_share(stage, case.layout)
    tapes: Bytes = pass_bytes(stage, recomputed, case.layout)
    stays: Share = 1 - case.layout.offload_activations
    return in_flight(stage, case) * stays * total(layers=tapes, embedding=mask_bytes(stage))


def recompute_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The tape of the layer, or of the attention core, that is being recomputed: one at a time."""
    core: Bytes = where(case.layout.selective, stage.largest_core, 0)
    return where(case.layout.recompute_layers > 0, stage.largest_tape, core)

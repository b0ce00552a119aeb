"""Activations: the tapes of the passes in flight, what recompute leaves of them, and the logits."""

from ..formula import divide, each, maximum, minimum, sqrt, total, where
from ..layer import Held, StageCosts
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bytes, Count, Share, Tokens


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


def held_layers(held: Held) -> Count:
    """Layers of one kind."""
    return held.layers


def recomputed_share(stage: StageCosts, layout: Layout) -> Share:
    """Share of a stage's layers that are recomputed in full."""
    return minimum(divide(layout.recompute_layers, total(each(held_layers, stage.layers))), 1)


def tape_bytes(held: Held, layout: Layout) -> Bytes:
    """What one layer keeps of one micro-batch when it is not recomputed in full."""
    return where(layout.selective, held.costs.kept_selective, held.costs.kept)


def pass_bytes(held: Held, recomputed: Share, layout: Layout) -> Bytes:
    """What the layers of one kind keep of one micro-batch: tapes, or inputs alone where recomputed in full."""
    return held.layers * ((1 - recomputed) * tape_bytes(held, layout) + recomputed * held.costs.entry)


def in_flight(stage: StageCosts, case: Case) -> Count:
    """Micro-batches whose activations a stage holds at its peak, in stages."""
    return case.schedule.in_flight(stage.rank, case.layout.pp, case.layout.vpp, case.micro_batches)


def mask_bytes(stage: StageCosts) -> Bytes:
    """What the embedding keeps of one micro-batch: its dropout mask."""
    return stage.ends[0].layers * stage.ends[0].costs.kept


def activation_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Tapes of all passes in flight on one rank of a stage, less what is offloaded."""
    recomputed: Share = recomputed_share(stage, case.layout)
    one_pass: Bytes = total(each(pass_bytes, stage.layers, recomputed, case.layout), embedding=mask_bytes(stage))
    return in_flight(stage, case) * one_pass * (1 - case.layout.offload_activations)


def one_tape(held: Held, layout: Layout) -> Bytes:
    """One layer's tape, where the stage has such layers."""
    return tape_bytes(held, layout) * minimum(held.layers, 1)


def recompute_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The tape of the layer that is being recomputed: one at a time."""
    return where(case.layout.recompute_layers > 0, maximum(each(one_tape, stage.layers, case.layout)), 0)


def logits_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Final norm, logits and loss on the stage with the head: what waits for the backward pass, and a workspace."""
    passes: Count = case.schedule.head_in_flight(stage.rank, case.layout.pp, case.layout.vpp, case.micro_batches)
    kept: Bytes = passes * stage.ends[1].costs.kept
    return stage.head * total(kept=kept, workspace=stage.ends[1].costs.workspace)

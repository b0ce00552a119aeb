"""The textbook's counts of the same quantities: the lowest rung of the ladder, right to tens of percent.

Source: Rajbhandari et al. 2020 (16 bytes a parameter); Kaplan et al. 2020 (6 FLOPs a parameter and token).
"""

from .bill import Loaded
from .cluster.efficiency import counted_rate
from .formula import where
from .layout.case import Case
from .memory.activations import best_segments, checkpoint_share, coarse_activation_bytes, in_flight
from .memory.peak import peak_of
from .memory.states import resident_bytes
from .quantities import Bytes, Count, FlopRate, Flops, Params, Seconds, Share
from .schedule.bubble import bubble_share
from .stage import StageCosts
from .step.traffic import coarse_gradient_bytes
from .undivided import parameters, state_of

COARSE_BYTES: Bytes = 16  # a parameter: mixed-precision Adam
COARSE_REPLICATED: Bytes = 4  # of them, what ZeRO-1 leaves on every rank: weights and gradients
COARSE_WEIGHTS: Bytes = 2  # what ZeRO-2 leaves there
COARSE_FLOPS: Flops = 6  # a parameter and token
COARSE_VALUES = 10  # a token a layer


def coarse_state(parameters_total: Params, trained: Share, case: Case) -> Bytes:
    """The textbook's state of a rank: 16 B a trained parameter, 2 a frozen one, over tp x pp and, sharded, replicas."""
    divided: Params = parameters_total / (case.layout.tp * case.layout.pp)
    some: Bytes = where(case.layout.zero >= 3, 0, where(case.layout.zero >= 2, COARSE_WEIGHTS, COARSE_REPLICATED))
    kept: Bytes = where(case.layout.zero >= 1, some, COARSE_BYTES)
    state: Bytes = kept + (COARSE_BYTES - kept) / case.layout.shard
    weights: Bytes = where(case.layout.zero >= 3, COARSE_WEIGHTS / case.layout.shard, COARSE_WEIGHTS)
    return resident_bytes(divided, trained, weights, state)


def coarse_activations(stage: StageCosts, case: Case) -> Bytes:
    """The textbook's activations of one rank: 10 values a token a layer over tp, of the passes in flight.

    Under full recompute sqrt(L) checkpoints keep 2 / sqrt(L) of them.
    """
    tokens: Count = case.layout.micro_batch * case.job.sequence_length / case.layout.cp
    layers: Count = case.model.layers / case.layout.pp
    tape: Bytes = coarse_activation_bytes(tokens, layers, case.model.hidden, COARSE_VALUES, case.job.activation_bytes)
    kept: Share = where(case.layout.recompute == "full", checkpoint_share(layers, best_segments(layers)), 1)
    return in_flight(stage, case) * kept * tape / case.layout.tp


def coarse_step(active: Params, rate: FlopRate, case: Case) -> Seconds:
    """The textbook's step: 6 N FLOPs a token at the specified rate, over what the bubble leaves."""
    work: Flops = COARSE_FLOPS * active * case.job.global_batch * case.job.sequence_length
    return work / (case.cluster.ranks * rate) / (1 - bubble_share(case.layout.pp, case.micro_batches))


def worst_stage(loaded: Loaded) -> StageCosts:
    """The stage whose peak is the largest."""
    return max(loaded.stages, key=lambda stage: float(peak_of(stage, loaded.case)))


def textbook_peak(loaded: Loaded) -> float:
    """Peak memory of a rank: state and activations, nothing else."""
    return textbook_state(loaded) + textbook_tape(loaded)


def textbook_state(loaded: Loaded) -> float:
    """State of a rank."""
    case = loaded.case
    state = state_of(case.model, case.recipe, case.job)
    return float(coarse_state(parameters(case.model).total, min(1.0, state.trained / state.parameters), case))


def textbook_tape(loaded: Loaded) -> float:
    """Activations of a rank."""
    return float(coarse_activations(worst_stage(loaded), loaded.case))


def textbook_step(loaded: Loaded) -> float:
    """Seconds of a step."""
    case = loaded.case
    rate = counted_rate(case.cluster.accelerator, case.job.number)
    return float(coarse_step(parameters(case.model).active, rate, case))


def textbook_bubble(loaded: Loaded) -> float:
    """The bubble's share: the staircase."""
    return float(bubble_share(loaded.case.layout.pp, loaded.case.micro_batches))


def textbook_data(loaded: Loaded) -> float:
    """Bytes that data parallelism sends: gradients of 2 bytes, all-reduced."""
    layout = loaded.case.layout
    divided = parameters(loaded.case.model).total / (layout.tp * layout.pp)
    return float(coarse_gradient_bytes(divided, 2)) if layout.replicas > 1 else 0.0

"""MFU and HFU back from what a run measured, under each convention that published figures use."""

from dataclasses import dataclass, replace
from typing import Literal

from .bill import Bill
from .cluster.efficiency import counted_rate
from .job import Job, Measured
from .layout.case import Case
from .model.model import Model
from .step.compute import flops_share
from .undivided import attention_flops, layer_flops, parameters, sequence_flops


@dataclass(frozen=True)
class Convention:
    """How somebody counts model FLOPs, and what of them runs again under full recompute."""

    name: str
    parameters: str  # all; without_embedding: of the input; matrices: what is multiplied, head included
    attention: Literal["causal", "full"]  # full: every token sees all keys; causal: those up to its own
    again: str  # rows: what runs again; third: of all model FLOPs, where every layer runs again
    source: str
    modules_again: int = 1  # how often a module that runs again is added; 3 where its backward pass is counted too


CONVENTIONS = (
    Convention("palm", "all", "full", "rows", "Chowdhery et al. 2022, appendix B: 6 N + 12 L H Q T; torchtitan, 2024"),
    Convention("llm_foundry", "all", "full", "third", "mosaicml/llm-foundry, scripts/train/benchmarking/README.md"),
    Convention("nemo", "without_embedding", "full", "rows", "NVIDIA/NeMo 24.07, performance_summary.md"),
    Convention("megatron", "matrices", "full", "rows", "Narayanan et al. 2021; Korthikanti et al. 2022, appendix A", 3),
    Convention("megatron_bridge", "without_embedding", "causal", "rows", "NVIDIA-NeMo/Megatron-Bridge, 25.09 on"),
)


@dataclass(frozen=True)
class Utilisation:
    """MFU and HFU under one convention: measured, and predicted."""

    convention: str
    flops_per_token: float
    mfu: float
    hfu: float
    predicted_mfu: float
    predicted_hfu: float


@dataclass(frozen=True)
class Reached:
    """What a run measured beside the bill of its layout."""

    tokens_per_second_per_device: float
    step_seconds: float
    step_time_error: float  # predicted over measured, less 1
    step_time_in_band: bool
    utilisation: tuple[Utilisation, ...]


def flops_of(convention: Convention, model: Model, job: Job) -> float:
    """Model FLOPs of a token, forward and backward, as a convention counts them: 6 a parameter, and attention."""
    seen = _seen(convention, job)
    if convention.parameters == "matrices":
        return 3 * sequence_flops(model, seen) / job.sequence_length
    owned = parameters(model)
    heads = 0 if model.tied else (model.embedding_width or model.hidden) * model.vocab
    left_out = owned.embedding - heads if convention.parameters == "without_embedding" and not model.tied else 0
    return 6 * (owned.active - left_out) + 3 * attention_flops(model, seen) / job.sequence_length


def _seen(convention: Convention, job: Job) -> Job:
    return replace(job, attention_flops=convention.attention)


def _tokens(job: Job, ranks: int) -> float:
    """Tokens of one accelerator in a step, without padding."""
    return job.global_batch * job.sequence_length * job.useful_share / ranks


def _seconds(said: Measured, tokens: float) -> float | None:
    rate = said.tokens_per_second_per_device
    return said.step_seconds or (tokens / rate if rate else None)


def measured_seconds(case: Case) -> float | None:
    """The step that a run took, from what its job says; None where it says nothing."""
    said = case.job.measured
    return None if said is None else _seconds(said, _tokens(case.job, case.cluster.ranks))


def reached_of(bill: Bill) -> Reached | None:
    """What was measured beside a bill; None where nothing was, or where the layout breaks a rule."""
    job, said = bill.job, bill.job.measured
    each = _tokens(job, bill.cluster.ranks)
    seconds = None if said is None or bill.violations else _seconds(said, each)
    if seconds is None:
        return None
    low, high = bill.step.band_seconds
    return Reached(
        tokens_per_second_per_device=each / seconds,
        step_seconds=seconds,
        step_time_error=bill.step.seconds / seconds - 1,
        step_time_in_band=low <= seconds <= high,
        utilisation=(_own(bill, seconds), *(_by(one, bill, seconds) for one in CONVENTIONS if job.training.whole)),
    )


def _own(bill: Bill, seconds: float) -> Utilisation:
    """Under the bill's own convention: matrices, and attention as the job counts it."""
    step, slower = bill.step, bill.step.seconds / seconds
    tokens = bill.job.global_batch * bill.job.sequence_length * bill.job.useful_share
    name = f"outlay, {bill.job.attention_flops}"
    return Utilisation(name, step.model_flops / tokens, step.mfu * slower, step.hfu * slower, step.mfu, step.hfu)


def _by(convention: Convention, bill: Bill, seconds: float) -> Utilisation:
    """Under somebody else's: the same tokens in the same time, other FLOPs."""
    job, model = bill.job, bill.model
    flops = flops_of(convention, model, job)
    rows = _again(_seen(convention, job), bill) * (convention.modules_again if bill.layout.selective else 1)
    again = flops / 3 if convention.again == "third" else rows
    tokens = job.global_batch * job.sequence_length
    rate = counted_rate(bill.cluster.accelerator, job.number)
    hardware = flops + _repeated(bill) * again

    def share(each: float, time: float) -> float:
        return float(flops_share(each * tokens, time, bill.cluster.ranks, rate))

    predicted = bill.step.seconds
    return Utilisation(
        convention.name,
        flops,
        share(flops * job.useful_share, seconds),
        share(hardware, seconds),
        share(flops * job.useful_share, predicted),
        share(hardware, predicted),
    )


def _again(job: Job, bill: Bill) -> float:
    """FLOPs a token of what recompute may run again: all layers, or the modules of selective recompute."""
    layers, modules = layer_flops(bill.model, job, bill.layout.recompute_modules)
    return (modules if bill.layout.selective else layers) / job.sequence_length


def _repeated(bill: Bill) -> float:
    """Share of it that runs again, from the bill's own HFU and MFU."""
    step, job = bill.step, bill.job
    own = _again(job, bill) * job.global_batch * job.sequence_length
    more = step.hfu / step.mfu * step.model_flops - step.model_flops / job.useful_share if step.mfu else 0.0
    return more / own if own else 0.0

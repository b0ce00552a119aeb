"""Rules of what runs part by part, or takes no more than so much: the loss, and experts."""

import numpy as np

from ..engines.engine import MEGATRON, Engine
from ..errors import Fault
from ..job import Job
from ..model.model import Model
from ..quantities import Flag
from .case import Case
from .rule import Rule


def hides_experts(case: Case) -> Flag:
    """Whether Megatron-Core runs the exchange between experts beside other passes, where it is told to.

    Forks with schedules of their own, such as DualPipe, hide it in their own way.
    """
    at = case.layout
    if not np.any(at.overlap_ep):
        return True
    alone = case.model.mtp_layers <= 1 and "moe" not in at.recompute_modules
    chunks = (at.pp == 1) | (at.vpp > 1)
    able = (at.ep > 1) & chunks & (at.recompute != "full") & (at.moe_dispatch != "all_gather") & alone
    legal: Flag = np.logical_not(at.overlap_ep) | able | np.isin(at.schedule, case.engine.schedules, invert=True)
    return legal


PART_RULES: tuple[Rule, ...] = (
    Rule(
        "LAY047",
        "the engine does not run the loss by chunks",
        "torchtitan's ChunkedLossWrapper and MaxText's num_vocab_tiling do; with others loss_chunks is 1",
        "loss_chunks",
        lambda at: (at.layout.loss_chunks == 1) | at.engine.chunks_loss,
        lambda at: f"loss_chunks {at.layout.loss_chunks:,}, {at.engine.name}",
    ),
    Rule(
        "LAY048",
        "the chunks of the loss are not equal",
        "loss_chunks divides the tokens of a sequence on a rank",
        "loss_chunks",
        lambda at: at.job.sequence_length % (at.layout.cp * at.layout.loss_chunks) == 0,
        lambda at: f"{at.job.sequence_length:,} tokens / ({at.layout.cp:,} x {at.layout.loss_chunks:,})",
    ),
    Rule(
        "LAY055",
        "the exchange between experts cannot be hidden here",
        "Megatron-Core: overlap_ep needs ep > 1, chunks (vpp > 1) with a pipeline, no full recompute nor that of moe,"
        " a dispatch other than all_gather, and one multi-token prediction module at most",
        "overlap_ep",
        hides_experts,
        lambda at: (
            f"ep {at.layout.ep}, pp {at.layout.pp}, vpp {at.layout.vpp}, recompute {at.layout.recompute},"
            f" {at.layout.moe_dispatch}"
        ),
        MEGATRON,
        couples=True,
    ),
)


def uncapped(model: Model, job: Job, engine: Engine) -> list[Fault]:
    """Every fault in a capacity of experts."""
    ways, found = engine.expert_capacity, list[Fault]()
    leave = "leave --expert-capacity out"
    if job.pad_to_capacity and not job.expert_capacity:
        rule, got = "--pad-to-capacity pads to --expert-capacity", "no --expert-capacity"
        found.append(Fault("JOB012", "there is no capacity to pad to", rule, got, "--expert-capacity 1"))
    if job.expert_capacity and not model.experts:
        rule, got = "--expert-capacity is for models with experts", f"{model.name} has none"
        found.append(Fault("JOB012", "a capacity of experts that are not there", rule, got, leave))
    elif job.expert_capacity and not ways:
        rule = "Megatron-Core and MaxText have a capacity; others send every token to its experts"
        found.append(Fault("JOB013", "the engine has no capacity of experts", rule, engine.name, leave))
    elif job.expert_capacity and ("pad" if job.pad_to_capacity else "drop") not in ways:
        rule, got = f"with a capacity {engine.name} pads every expert to it", "no --pad-to-capacity"
        found.append(Fault("JOB013", "the engine pads to the capacity", rule, got, "--pad-to-capacity"))
    return found

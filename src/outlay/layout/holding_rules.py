"""Who can hold tapes, gathered inputs, gradients and weights as a layout says: one row a rule."""

from functools import reduce

import numpy as np

from ..engines.engine import MEGATRON
from ..engines.tables import kernel_set
from ..job import AUTO
from ..quantities import Flag
from .case import Case
from .engine_rules import DEEPSPEED, MAXTEXT
from .predicates import longest_stage
from .rule import Rule

KINDS = ("optimizer", "parameters", "activations")
OF_TRAINERS = ("deepspeed", "deepspeed-liger", "nanotron", *MAXTEXT)
ONE_LAYER = ("fsdp2-torchtitan", "fsdp2-llm-foundry", "hf_trainer", *OF_TRAINERS)
NO_UNITS = (*MEGATRON, "megatron_deepspeed", *OF_TRAINERS)


def groups_all(case: Case) -> Flag:
    """Whether a stage recomputes all its layers, where it does so in groups of several."""
    several = case.layout.recompute_group > 1
    if not np.any(several):
        return True
    legal: Flag = np.logical_not(several) | (case.layout.recompute_layers >= longest_stage(case))
    return legal


def keeps_as_it_can(case: Case) -> Flag:
    """Whether gathered inputs wait, or are gathered again, as the engine's kernels do, where it has no choice."""
    asked = case.layout.keep_gathered
    if asked is AUTO or case.engine.chooses_gathered:
        return True
    own: Flag = asked == kernel_set(case.engine.kernels).keeps_gathered
    return own


def offloads_what_it_can(case: Case) -> Flag:
    """Whether nothing is moved to the host that the engine does not move there."""
    never = [kind for kind in KINDS if kind not in case.engine.offloads]
    parts = [getattr(case.layout, f"offload_{kind}") == 0 for kind in never]
    return reduce(np.logical_and, parts) if parts else True


def offloads_where_it_can(case: Case) -> Flag:
    """Whether DeepSpeed's stage holds what leaves: the optimizer is cut from ZeRO-1 on, weights under ZeRO-3."""
    at = case.layout
    optimizer: Flag = (at.offload_optimizer == 0) | (at.zero >= 1)
    parameters: Flag = (at.offload_parameters == 0) | (at.zero >= 3)
    return np.logical_and(optimizer, parameters)


HOLDING_RULES: tuple[Rule, ...] = (
    Rule(
        "LAY050",
        "a group of layers runs again where some layers do not",
        "recompute_group above 1 needs --recompute full of all layers of a stage (Megatron-Core's uniform method)",
        "recompute_group",
        groups_all,
        lambda at: (
            f"groups of {at.layout.recompute_group:,}; {at.layout.recompute_layers:,} of {longest_stage(at)} layers"
        ),
    ),
    Rule(
        "LAY051",
        "the engine keeps the input of every layer that it recomputes",
        "torchtitan, llm-foundry, the transformers Trainer, DeepSpeed, nanotron and MaxText recompute layer by layer",
        "recompute_group",
        lambda at: at.layout.recompute_group == 1,
        lambda at: f"groups of {at.layout.recompute_group:,}, {at.engine.name}",
        ONE_LAYER,
    ),
    Rule(
        "LAY052",
        "the engine has no choice about gathered inputs",
        "nanotron alone has one (tp_recompute_allgather): Megatron-Core gathers again, PyTorch keeps",
        "keep_gathered",
        keeps_as_it_can,
        lambda at: f"{'kept' if at.layout.keep_gathered else 'gathered again'}, {at.engine.name}",
    ),
    Rule(
        "LAY053",
        "the engine has no units that are wrapped",
        "FSDP alone wraps units (an auto-wrap policy, fully_shard of each layer); others gather layer by layer",
        "gather_unit",
        lambda at: at.layout.gather_unit == "layer",
        lambda at: f"{at.layout.gather_unit}, {at.engine.name}",
        NO_UNITS,
    ),
    Rule(
        "LAY054",
        "the engine scatters gradients in every micro-batch",
        "DeepSpeed: no_sync is refused from ZeRO-2 on",
        "accumulate_whole",
        lambda at: (at.layout.zero < 2) | np.logical_not(at.layout.accumulate_whole),
        lambda at: f"zero {at.layout.zero}, gradients whole until the last micro-batch; {at.engine.name}",
        DEEPSPEED,
    ),
    Rule(
        "LAY056",
        "the engine does not move this to the host",
        "nanotron and Megatron-LM of 2022 move nothing; others optimizer states, weights and activations",
        "offload_optimizer",
        offloads_what_it_can,
        lambda at: f"{_moved(at)}, {at.engine.name}",
    ),
    Rule(
        "LAY057",
        "weights in host memory do not go with a pipeline or recompute",
        "Megatron-Core: cpu_offloading has pp 1 and no recompute",
        "offload_parameters",
        lambda at: (at.layout.offload_parameters == 0) | ((at.layout.pp == 1) & (at.layout.recompute == "none")),
        lambda at: f"{_moved(at)}; pp {at.layout.pp}, recompute {at.layout.recompute}",
        MEGATRON,
        couples=True,
    ),
    Rule(
        "LAY058",
        "this ZeRO stage does not move this to the host",
        "DeepSpeed: the optimizer moves from ZeRO-1 on, weights under ZeRO-3",
        "zero",
        offloads_where_it_can,
        lambda at: f"{_moved(at)}; zero {at.layout.zero}",
        DEEPSPEED,
        couples=True,
    ),
)


def _moved(case: Case) -> str:
    shares = {kind: getattr(case.layout, f"offload_{kind}") for kind in KINDS}
    return ", ".join(f"offload of {kind} {share:g}" for kind, share in shares.items() if share)

"""The ladder of fidelity: any quantity of a bill derived, and its rungs side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .bill import Loaded, case_of, countable, load
from .cluster.accelerator import Cluster
from .derivation import Step, explain
from .engines.engine import Engine
from .engines.rates import rates
from .engines.tables import kernels_of, precision
from .errors import Fault, InputError, nearest, quoted
from .formula import total
from .items import busiest_stage, slowest_stage
from .job import Job
from .layout.axes import Layout
from .layout.case import Case
from .layout.sizes import sizes
from .measured import measured_seconds
from .memory.activations import (
    activation_bytes,
    recompute_bytes,
    recomputed_share,
)
from .memory.blocks import behind_bytes, blocks_bytes, ends_moment, whole_gradient_bytes
from .memory.moments import backward_bytes, logits_bytes, moment_bytes
from .memory.peak import peak
from .memory.saved import saved_bytes, saved_parts
from .memory.states import (
    beside_bytes,
    bucket_bytes,
    dummy_bytes,
    gathered_bytes,
    gradient_bytes,
    optimizer_bytes,
    replica_bytes,
    unit_bytes,
    weight_bytes,
)
from .model.blocks import rows
from .model.model import Model
from .model.operations import Row, Sizes
from .quantities import Bytes
from .schedule.bubble import schedule_share
from .stage import StageCosts
from .step.goodput import goodput_share
from .step.offload import shown_seconds
from .step.total import idle_parts, pass_seconds, slowest_pass, step_seconds
from .step.traffic import axis_bytes, data_bytes, pipeline_bytes
from .sums import split_moves, sum_forward, sum_kept
from .textbook import (
    textbook_bubble,
    textbook_data,
    textbook_peak,
    textbook_step,
    textbook_tape,
    worst_stage,
)
from .whole_run import failing

if TYPE_CHECKING:
    from .over_time import RankOverTime
    from .simulated import Simulated  # a bill by itself does not wait for it


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder. `value` is None where the rung was not climbed; `note` says how to."""

    name: str
    value: float | None
    unit: str
    note: str


@dataclass(frozen=True)
class Quantity:
    """What can be explained: its formula, what it is given, and the textbook's count of the same thing."""

    name: str
    unit: str
    formula: Callable[..., Any]
    inputs: Callable[[Loaded], tuple[Any, ...]]
    coarse: Callable[[Loaded], float] | None
    coarse_note: str = ""


def _worst_case(loaded: Loaded) -> tuple[Any, ...]:
    return worst_stage(loaded), loaded.case


def _axis(axis: str) -> Callable[[Loaded], tuple[Any, ...]]:
    return lambda loaded: (slowest_stage(loaded.stages, loaded.case), axis, loaded.case)


def sent_in_step(busy: StageCosts, heavy: StageCosts, case: Case) -> Bytes:
    """Bytes that one rank sends in a step, by axis: tokens on tp, cp, ep, etp and pp; parameters on dp."""
    return total(
        tp=axis_bytes(busy, "tp", case),
        cp=axis_bytes(busy, "cp", case),
        ep=axis_bytes(busy, "ep", case),
        etp=axis_bytes(busy, "etp", case),
        pp=pipeline_bytes(case),
        dp=data_bytes(heavy, case),
    )


def _traffic(loaded: Loaded) -> tuple[Any, ...]:
    return slowest_stage(loaded.stages, loaded.case), busiest_stage(loaded.stages, loaded.case), loaded.case


def _bubble(loaded: Loaded) -> tuple[Any, ...]:
    return loaded.case.layout.pp, idle_parts(*_passes(loaded)), loaded.case.micro_batches


def _passes(loaded: Loaded) -> tuple[Any, ...]:
    return pass_seconds(loaded.whole, loaded.case), loaded.whole, loaded.case


def _rows(loaded: Loaded) -> tuple[tuple[Row, ...], Sizes]:
    """Kernels of the last kind of layer (the experts, where there are any), and its sizes on a rank."""
    case = loaded.case
    kernels = kernels_of(case.engine)
    block = case.model.blocks[-1]
    work, _ = split_moves(rows(case.model, block, kernels))
    return work, sizes(case.model, block, case.job, case.layout, case.engine, kernels)


def _speed(loaded: Loaded) -> tuple[Any, ...]:
    kernels = kernels_of(loaded.case.engine)
    speed = rates(loaded.case.cluster.accelerator, precision(loaded.case.job.precision), kernels, loaded.case.recipe)
    return *_rows(loaded), speed


def _offload(loaded: Loaded) -> tuple[Any, ...]:
    stage = slowest_stage(loaded.stages, loaded.case)
    return stage, recomputed_share(stage, loaded.case.layout), loaded.case


TAPE = "10 values a token a layer"
STATE = "16 bytes a parameter, 2 where it is frozen"

_TABLE = (
    Quantity("memory", "B", peak, lambda at: (at.stages, at.case), textbook_peak, f"{STATE}, {TAPE}"),
    Quantity("memory.weights", "B", weight_bytes, _worst_case, None),
    Quantity("memory.gradients", "B", gradient_bytes, _worst_case, None),
    Quantity("memory.unit", "B", unit_bytes, _worst_case, None),
    Quantity("memory.optimizer", "B", optimizer_bytes, _worst_case, None),
    Quantity("memory.gathered", "B", gathered_bytes, _worst_case, None),
    Quantity("memory.activations", "B", activation_bytes, _worst_case, textbook_tape, TAPE),
    Quantity("memory.tape", "B", sum_kept, _rows, None),
    Quantity("memory.recomputed", "B", recompute_bytes, _worst_case, None),
    Quantity("memory.logits", "B", logits_bytes, _worst_case, None),
    Quantity("memory.backward", "B", backward_bytes, _worst_case, None),
    Quantity("memory.blocks", "B", blocks_bytes, lambda at: (*_worst_case(at), at.case.engine.gathered_blocks), None),
    Quantity("memory.whole", "B", whole_gradient_bytes, _worst_case, None),
    Quantity("memory.behind", "B", behind_bytes, _worst_case, None),
    Quantity("memory.ends", "B", ends_moment, _worst_case, None),
    Quantity("memory.kernels", "B", dummy_bytes, _worst_case, None),
    Quantity("memory.buckets", "B", bucket_bytes, _worst_case, None),
    Quantity("memory.beside", "B", beside_bytes, lambda at: (at.case,), None),
    Quantity("memory.copies", "B", replica_bytes, _worst_case, None),
    Quantity("memory.moment", "B", moment_bytes, _worst_case, None),
    Quantity("bubble", "share", schedule_share, _bubble, textbook_bubble, "the staircase"),
    Quantity("bubble.parts", "", idle_parts, _passes, None),
    Quantity("step", "s", step_seconds, lambda at: (at.stages, at.whole, at.case), textbook_step, "6 N, full rate"),
    Quantity("step.pass", "s", slowest_pass, lambda at: (at.stages, at.case), None),
    Quantity("step.forward", "s", sum_forward, _speed, None),
    Quantity("step.offload", "s", shown_seconds, _offload, None),
    Quantity("saved", "B", saved_bytes, lambda at: saved_parts(at.case), None),
    Quantity("goodput", "share", goodput_share, failing, None),
    Quantity("traffic", "B", sent_in_step, _traffic, None),
    Quantity("traffic.tp", "B", axis_bytes, _axis("tp"), None),
    Quantity("traffic.cp", "B", axis_bytes, _axis("cp"), None),
    Quantity("traffic.ep", "B", axis_bytes, _axis("ep"), None),
    Quantity("traffic.pp", "B", pipeline_bytes, lambda at: (at.case,), None),
    Quantity("traffic.dp", "B", data_bytes, lambda at: _traffic(at)[1:], textbook_data, "2 N bytes"),
)  # fmt: skip

QUANTITIES = {quantity.name: quantity for quantity in _TABLE}


def find_quantity(name: str) -> Quantity:
    """The quantity of a name. Raises InputError (EXP001) for one that cannot be explained."""
    if name not in QUANTITIES:
        close = nearest(name, QUANTITIES)
        rule = f"one of {', '.join(QUANTITIES)}"
        raise InputError(
            Fault("EXP001", f"{quoted(name)} cannot be explained", rule, quoted(name), close[0] if close else "memory")
        )
    return QUANTITIES[name]


def derive(name: str, loaded: Loaded) -> Step:
    """The derivation of a quantity of one layout, its numbers and formulas read from the formulas themselves."""
    quantity = find_quantity(name)
    return explain(quantity.formula, *quantity.inputs(loaded))


def explain_count(
    quantity: str, model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str = "megatron"
) -> Step:
    """The derivation of one quantity of a bill, such as `memory` or `traffic.dp`; takes what `count()` takes."""
    case, _ = case_of(model, job, cluster, layout, engine)
    return derive(quantity, load(countable(case)))


SIMULATED: dict[str, Callable[["Simulated", Loaded], float]] = {
    "step": lambda run, loaded: run.seconds,
    "bubble": lambda run, loaded: run.bubble_share,
    "memory": lambda run, loaded: _largest(run, loaded).peak.bytes + _largest(run, loaded).buffers,
    "memory.activations": lambda run, loaded: _largest(run, loaded).peak.parts["activations"],
}


def _largest(run: "Simulated", loaded: Loaded) -> "RankOverTime":
    from .over_time import over_time

    return over_time(loaded, run).worst


def _simulated(name: str, loaded: Loaded, run: "Simulated | None") -> Rung:
    quantity = find_quantity(name)
    if name not in SIMULATED:
        return Rung("simulated", None, quantity.unit, "as refined: no schedule in it")
    if run is None:
        return Rung("simulated", None, quantity.unit, "not simulated (--simulate)")
    return Rung("simulated", SIMULATED[name](run, loaded), quantity.unit, "every pass, with the stages as they are")


def rungs(name: str, loaded: Loaded, run: "Simulated | None" = None) -> tuple[Rung, ...]:
    """The same quantity as the textbook counts it, as outlay's formulas do, simulated if it was, and measured."""
    quantity = find_quantity(name)
    coarse = quantity.coarse(loaded) if quantity.coarse else None
    reached = measured_seconds(loaded.case) if name == "step" else None
    return (
        Rung("coarse", coarse, quantity.unit, quantity.coarse_note or "no textbook count"),
        Rung("refined", float(quantity.formula(*quantity.inputs(loaded))), quantity.unit, "this derivation"),
        _simulated(name, loaded, run),
        Rung("measured", reached, quantity.unit, "not measured" if reached is None else "--measured"),
    )

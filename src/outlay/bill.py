"""count(): the bill of one layout, with what it assumed, what it breaks, and what binds."""

from dataclasses import dataclass, replace
from typing import Any

from .cluster.accelerator import Cluster
from .cluster.efficiency import counted_rate
from .engines.engine import Engine
from .engines.tables import engine as find_engine
from .engines.tables import kernel_set
from .errors import Fault, InputError
from .formula import total
from .holding import Memory, memory_of
from .items import Bubble, Step, Timed, TrafficItem, bubble_of, step_items, traffic_of
from .job import Job, recipe_of
from .layer import costs_of
from .layout.axes import Layout
from .layout.case import Case
from .layout.complete import complete, flag
from .layout.module_rules import unrecomputable
from .layout.nearest import few, legal_values, nearest_layouts
from .layout.part_rules import uncapped
from .layout.predicates import split_fits
from .layout.recipe_rules import contradictions
from .layout.rules import Rule, rules_of
from .layout.stages import candidates, chunk_sizes, every_stage, whole
from .layout.training_rules import unaccompanied, untrainable
from .memory.activations import recomputed_share
from .memory.hosted import hosted, unhosted
from .memory.loading import Loading, loading_of
from .memory.peak import Stages
from .memory.saved import Saved, saved_of
from .model.model import Model
from .rampup import Ramp, ramp_of
from .ranges import out_of_range
from .remarks import remarks
from .schedule.laws import SCHEDULES
from .shown import Shown
from .stage import StageCosts, stage_costs
from .step.compute import flops_share, recomputed_flops
from .step.offload import Offload, offload_of
from .undivided import Parameters, backward_flops, layer_flops, parameters, sequence_flops, state_of


@dataclass(frozen=True)
class Violation:
    """A rule that the layout breaks: the four parts of a fault, and the ways out."""

    code: str
    what: str
    rule: str
    got: str
    fix: str
    legal_values: tuple[str, ...]
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class Derived:
    """What follows from the layout and is never a field of it."""

    dp: int
    edp: float
    micro_batches: float


@dataclass(frozen=True)
class Binds:
    """What binds now, and so what to attack next."""

    term: str  # memory or step
    item: str
    share: float


@dataclass(frozen=True)
class Bill(Shown):
    """What one layout costs."""

    model: Model
    parameters: Parameters
    job: Job
    cluster: Cluster
    layout: Layout
    engine: Engine
    memory: Memory
    step: Step
    derived: Derived
    bubble: Bubble
    traffic: tuple[TrafficItem, ...]
    saved: Saved
    offload: tuple[Offload, ...]
    loading: Loading | None  # where the whole model stands somewhere as it loads
    binds: Binds
    violations: tuple[Violation, ...]
    assumptions: tuple[str, ...]
    conventions: dict[str, str]
    rampup: Ramp | None = None  # where the batch grows


@dataclass(frozen=True)
class Loaded:
    """A case with the costs of its stages: all that the formulas of peak and step take."""

    case: Case
    stages: Stages
    whole: StageCosts
    every: tuple[StageCosts, ...]


def load(case: Case) -> Loaded:
    """Walk the rows once, and join them to the stages."""
    costs = costs_of(case)
    ends = case.engine.counts_ends
    every = tuple(stage_costs(stage, costs) for stage in every_stage(case.model, case.layout, ends))
    few = tuple(every[int(stage.rank)] for stage in candidates(case.model, case.layout, ends))
    return Loaded(case, few, stage_costs(whole(case.model), costs, case.layout.pp), every)


def case_of(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str = "megatron"
) -> tuple[Case, tuple[str, ...]]:
    """The complete question, and what was assumed to complete it. Raises InputError for values outside their ranges."""
    faults: list[Fault] = [*out_of_range(job, "JOB000"), *out_of_range(layout, "LAY000"), *_too_long(layout)]
    if faults:
        raise InputError(*faults)
    driver = engine if isinstance(engine, Engine) else find_engine(engine)
    full_job, full_layout, assumptions = complete(model, job, cluster, layout, driver)
    wrong = [*contradictions(full_job, driver), *untrainable(model, full_job, kernel_set(driver.kernels))]
    wrong += [*unaccompanied(full_job, cluster), *unrecomputable(model, full_layout, driver)]
    wrong += uncapped(model, full_job, driver)
    if wrong:
        raise InputError(*wrong)
    recipe = recipe_of(full_job, driver, cluster.accelerator)
    return Case(model, full_job, cluster, driver, recipe, SCHEDULES[full_layout.schedule], full_layout), assumptions


MOST_CHUNKS = 4_096  # a pipeline is laid out chunk by chunk, and no model has so many layers


def _too_long(layout: Layout) -> list[Fault]:
    chunks = (layout.pp or 1) * (layout.vpp or 1) if isinstance(layout.pp or layout.vpp or 1, int) else 0
    if not isinstance(chunks, int) or chunks <= MOST_CHUNKS:
        return []
    return [
        Fault(
            "LAY000",
            "the pipeline has too many chunks",
            f"pp x vpp is {MOST_CHUNKS:,} or less",
            f"{chunks:,}",
            "--pp 8",
        )
    ]


def countable(case: Case) -> Case:
    """The case itself, or without its split where that cannot be counted since it does not fit the layers."""
    return case if split_fits(case) else replace(case, layout=replace(case.layout, split=()))


def count(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str = "megatron") -> Bill:
    """The bill of one layout; rules that it breaks stand in `violations`. Raises InputError for values out of range."""
    case, assumptions = case_of(model, job, cluster, layout, engine)
    counted = countable(case)
    loaded = load(counted)
    held = float(hosted(loaded.stages, counted))
    violations = (*violations_of(case), *_unhosted(held, case))
    owned = parameters(model)
    memory = memory_of(loaded.stages, loaded.every, counted, not violations)
    timed = Timed(loaded.stages, loaded.whole, counted)
    step = step_of(loaded, timed)
    return Bill(
        model=model,
        parameters=owned,
        job=case.job,
        cluster=cluster,
        layout=case.layout,
        engine=case.engine,
        memory=memory,
        step=step,
        derived=Derived(int(case.layout.dp), float(case.layout.edp), float(case.micro_batches)),
        bubble=bubble_of(timed),
        traffic=traffic_of(timed),
        saved=saved_of(loaded.every, counted),
        offload=offload_of(loaded.stages, timed.slowest, counted),
        loading=loading_of(loaded.every, memory.allocated_bytes, counted),
        binds=binds_of(memory, step),
        violations=violations,
        assumptions=(*assumptions, *remarks(case, held)),
        conventions=conventions_of(case),
        rampup=None if violations else ramp_of(loaded.stages, loaded.whole, counted),
    )


def step_of(loaded: Loaded, timed: Timed) -> Step:
    """Time, rates and utilisation of one step."""
    case = loaded.case
    seconds = float(total(timed.step))
    tokens = case.job.global_batch * case.job.sequence_length * case.job.useful_share / seconds
    forward = sequence_flops(case.model, case.job) * case.job.global_batch
    works = layer_flops(case.model, case.job, case.layout.recompute_modules, case.engine.drops_unread)
    again = recomputed_flops(*works, _recomputed(loaded), case.layout)
    again_step = float(again) * case.job.global_batch
    flops = forward + backward_flops(case.model, case.job) * case.job.global_batch
    useful = flops * case.job.useful_share
    rate = counted_rate(case.cluster.accelerator, case.job.number)
    ranks = case.cluster.ranks
    return Step(
        seconds=seconds,
        band_seconds=(seconds * (1 - timed.band), seconds * (1 + timed.band)),
        items=step_items(timed),
        tokens_per_second=tokens,
        tokens_per_second_per_device=tokens / ranks,
        mfu=float(flops_share(useful, seconds, ranks, rate)),
        hfu=float(flops_share(flops + again_step, seconds, ranks, rate)),
        model_flops=useful,
    )


def _recomputed(loaded: Loaded) -> float:
    """Share of all layers that are recomputed in full: the mean over the stages."""
    layers = [sum(float(held.layers) for held in stage.layers) for stage in loaded.every]
    again = [float(recomputed_share(stage, loaded.case.layout)) for stage in loaded.every]
    return sum(a * b for a, b in zip(layers, again, strict=True)) / max(1.0, sum(layers))


def binds_of(memory: Memory, step: Step) -> Binds:
    """The largest item of what fails: of memory where it does not fit, else of the step. All state where none could."""
    if memory.verdict == "impossible":
        return Binds("memory", "state", memory.state_bytes / memory.peak_bytes)
    if memory.verdict == "does_not_fit":
        largest = max(memory.items, key=lambda item: item.value)
        return Binds("memory", largest.name, largest.value / memory.peak_bytes)
    largest = max(step.items, key=lambda item: item.value)
    return Binds("step", largest.name, largest.value / step.seconds)


def conventions_of(case: Case) -> dict[str, str]:
    """The conventions a reader must know before comparing these figures with others."""
    seen = "the keys a token sees (causal)" if case.job.attention_flops == "causal" else "all keys (full)"
    state = state_of(case.model, case.recipe, case.job)
    once = "" if case.job.training.whole else " (once through frozen matrices)"
    of_each = ", ".join(f"{name} {state.each(name):.6g}" for name in ("weights", "gradients", "optimizer"))
    return {
        "bytes_per_parameter": f"{state.each('bytes'):.6g}: {of_each}",
        "flops": f"2 a multiply-add, backward twice forward{once}, attention over {seen}, recompute not counted",
        "mfu": f"model FLOPs over the dense {case.job.precision} rate of {case.cluster.accelerator.name};"
        " hfu adds recompute",
        "bubble": "over the makespan, equal stages, a slot is one forward and one backward pass",
        "units": "GB = 10^9 B, GiB = 2^30 B",
    }


def violations_of(case: Case) -> tuple[Violation, ...]:
    """Every rule the layout breaks, each with its legal values and the nearest legal layouts."""
    broken = [rule for rule in rules_of(case.engine.name) if not bool(rule.legal(case))]
    if not broken:
        return ()
    nearest = tuple(" ".join(f"{flag(name)} {value}" for name, value in each.items()) for each in nearest_layouts(case))
    return tuple(_violation(rule, case, nearest) for rule in broken)


def _unhosted(held: float, case: Case) -> tuple[Violation, ...]:
    """The rule of the host's memory, which needs the stages, where it is broken."""
    fault = unhosted(held, case)
    return (Violation(fault.code, fault.what, fault.rule, fault.got, fault.fix, (), ()),) if fault else ()


def _violation(rule: Rule, case: Case, nearest: tuple[str, ...]) -> Violation:
    values = legal_values(rule, case)
    pasted = few(rule, case, legal_values(rule, case, also=("LAY001",)) or values)  # those that still make this cluster
    ways = [f"{flag(rule.axis)} {' or '.join(_spelled(pasted))}"] if pasted else []
    fix = _fix(rule, case, ways, nearest)
    return Violation(rule.code, rule.what, rule.rule, rule.got(case), fix, _spelled(values), nearest)


def _spelled(values: list[Any]) -> tuple[str, ...]:
    return tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _fix(rule: Rule, case: Case, ways: list[str], nearest: tuple[str, ...]) -> str:
    """Ways out of one broken rule, in words that can be pasted."""
    if rule.code == "LAY001":
        ways.append(f"--on {case.layout.world}x{case.cluster.accelerator.name}")
    if rule.code == "LAY009" and case.layout.pp * case.layout.vpp <= case.model.layers:
        sizes = chunk_sizes(case.model.layers, case.layout.pp, case.layout.vpp)
        ways.append(f"--split {','.join(map(str, sizes))} or best")
    if not nearest and not ways:
        ways.append("no layout of this job on this cluster obeys every rule: change the batch or the cluster")
    return "; or ".join(ways) or "see the nearest legal layouts"

"""The best strategy of each layer of a layout, beside the best plan that treats all layers alike.

Each rank is a program by itself: a step is no longer where a pass through one stage is shorter. Between degrees of
tensor parallelism the exchange of gradients changes too, and the slowest of either may stand on different ranks: then
several weights of the two are tried, and the plans counted whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ...bill import case_of, violations_of
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...engines.tables import engine as find_engine
from ...errors import Fault, InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...layout.case import Case
from ...layout.stages import stage_layers
from ...model.model import Model
from ...step.overlap import exposed_data
from ...step.total import straggler_seconds
from ..fitting import allocatable
from ..progress import Progress
from ..split.best import MOST_LAYERS, in_reach
from .ground import Ground
from .program import Program, Weight
from .stages import Counted, Mixing, Plan
from .strategies import Strategy, strategies
from .uniform import Uniform, best_uniform, worth
from .whole import alike, counted, fastest, value

SIDES = (0.0, 0.5, 1.0)  # between the two sides of what of an exchange hides
How = Literal["proved", "searched"]


@dataclass(frozen=True)
class Mixed:
    """A strategy for each layer, and what that costs."""

    mixing: Mixing
    plans: tuple[Plan, ...]  # of each rank, along its chunks
    seconds: float
    peak_bytes: float
    how: How

    @property
    def case(self) -> Case:
        """The question, with the cut that all strategies share."""
        return self.mixing.case

    @cached_property
    def stages(self) -> tuple[Counted, ...]:
        """Each rank, counted."""
        return counted(self.mixing, self.plans)

    @property
    def ways(self) -> tuple[Strategy, ...]:
        """The strategies that some layer has."""
        return tuple(sorted({way for plan in self.plans for way in plan}))


@dataclass(frozen=True)
class Mixes:
    """What mixing gives: the best mix, beside the best uniform plan of all that were looked at."""

    what: tuple[str, ...]
    best: Mixed | None  # None where no mix fits
    uniform: Uniform | None  # None where none fits
    cuts: int  # that were tried

    @property
    def gain(self) -> float | None:
        """Seconds that mixing saves; 0 where the best uniform plan is as fast, None where no uniform plan fits."""
        if self.uniform is None:
            return None
        return max(0.0, self.uniform.seconds - self.best.seconds) if self.best else 0.0


def best_mixes(
    model: Model,
    job: Job,
    cluster: Cluster,
    layout: Layout,
    engine: Engine | str,
    what: Sequence[str],
    beat: float = float("inf"),
    progress: Progress | None = None,
) -> Mixes:
    """The mix of one cut with the shortest step of which every stage fits: `what` is recompute, tp or both.

    Never slower than the best uniform plan of the same cut, which is one of the choices; nothing where the layout
    breaks a rule. What cannot be faster than `beat` seconds is left out; `progress` is told each degree of the ends.
    Proved where one degree is used and stages have one chunk; else searched.

    Raises InputError: MIX002 where degrees are mixed in an engine that gathers weights block by block, MIX003 where a
    part of the layers is recomputed and recompute is not chosen, MIX004 for more than 512 layers.
    """
    case = case_of(model, job, cluster, plain(layout) if "recompute" in what else layout, engine)[0]
    takes_mixed(case.engine, what)
    if not in_reach(model):
        rule, got = f"--mixed chooses for up to {MOST_LAYERS:,} layers", f"{model.layers:,} layers"
        raise InputError(Fault("MIX004", "too many layers to choose for", rule, got, "leave --mixed out"))
    if violations_of(case):
        return Mixes(tuple(what), None, None, 0)
    _treats_alike(case)
    ground = Ground(case, strategies(case, what))
    mixings = [Mixing(ground, Strategy(tp)) for tp in dict.fromkeys(way.tp for way in ground.strategies)]
    uniform = min(filter(None, map(best_uniform, mixings)), key=worth, default=None)
    found: list[Mixed] = []
    for done, mixing in enumerate(mixings, 1):
        found += _counted(mixing, len(mixings) == 1) if fastest(mixing) < beat else []
        if progress:
            progress(done, len(mixings), min((each.seconds for each in found), default=float("inf")))
    best = min(found, key=lambda each: (each.seconds, each.peak_bytes), default=None)
    return Mixes(tuple(what), best, uniform, 1)


def _counted(mixing: Mixing, alone: bool) -> list[Mixed]:
    """The mixes of one degree of the ends, counted whole; proved where it is the only degree."""
    return [
        Mixed(mixing, plans, *value(mixing, plans), "proved" if proved and alone else "searched")
        for plans, proved in _mixes(mixing)
    ]


def plain(layout: Layout) -> Layout:
    """The same cut where nothing is computed again."""
    return replace(layout, recompute="none", recompute_layers=AUTO, recompute_modules=AUTO, recompute_group=AUTO)


def takes_mixed(engine: Engine | str, what: Sequence[str]) -> None:
    """Raises InputError (MIX002) for degrees mixed in an engine whose gathered blocks are counted one by one."""
    driver = engine if isinstance(engine, Engine) else find_engine(engine)
    if "tp" in what and driver.scatters_blocks:
        rule = "--mixed tp is for engines whose data-parallel ranks hold or gather layers alike"
        got = f"tp, {driver.name}"
        raise InputError(Fault("MIX002", "the engine gathers block by block", rule, got, "--mixed recompute"))


def _treats_alike(case: Case) -> None:
    """Raises InputError (MIX003) where a part of a stage's layers is recomputed: no layer follows one strategy then."""
    layers = case.layout.recompute_layers
    if case.layout.recompute == "full" and layers < max(map(len, _stages(case))):
        rule = "--mixed tp keeps the recompute of the layout, the same in every layer"
        got = f"--recompute full --recompute-layers {layers}"
        raise InputError(Fault("MIX003", "some layers are recomputed, some are not", rule, got, "--mixed recompute,tp"))


def _stages(case: Case) -> list[list[int]]:
    at = case.layout
    return stage_layers(
        case.model.layers, at.pp, at.vpp, tuple(at.split or ()), case.engine.counts_ends, bool(at.folded)
    )


def _mixes(mixing: Mixing) -> Iterator[tuple[tuple[Plan, ...], bool]]:
    """The best plan under each weight of the two times, and every plan that treats all layers alike; those that fit."""
    limit = allocatable(mixing.case)
    programs = [Program(mixing, place, limit) for place in mixing.places]
    for weight in _weights(mixing):
        best = [min(program.plans(weight), key=lambda one: _cost(one, weight), default=None) for program in programs]
        plans = tuple(one.plan for one in best if one)
        if len(plans) == len(best):
            yield plans, _proved(mixing)
    for plans in alike(mixing):
        if all(one.allocated <= limit for one in counted(mixing, plans)):
            yield plans, False


def _cost(one: Counted, weight: Weight) -> tuple[float, float]:
    return weight[0] * one.one_pass + weight[1] * one.data + one.wire + one.optimizer, one.allocated


def _weights(mixing: Mixing) -> Iterator[Weight]:
    """What a second of a pass and of the exchange adds to a step: what hides grows with the pass, or does not."""
    case, far = mixing.case, 1e9
    micro_batches = float(case.micro_batches)
    work = micro_batches + float(straggler_seconds(micro_batches, case))
    hidden = float(exposed_data(far, 0.0, case) - exposed_data(far, 1.0, case))
    shown = float(exposed_data(1.0, far, case))
    sides = SIDES if hidden > 0 and len({way.tp for way in mixing.strategies}) > 1 else SIDES[:1]
    for side in sides:
        yield max(work - side * hidden, 0.5), shown + side * (1 - shown)


def _proved(mixing: Mixing) -> bool:
    """Whether the shortest pass of each stage makes the shortest step, and what a stage holds is a sum over layers."""
    case = mixing.case
    far = 1e9  # s of an exchange that nothing hides whole
    hidden = float(exposed_data(far, 0.0, case) - exposed_data(far, 1.0, case))
    one = len({way.tp for way in mixing.strategies}) == 1
    return one and case.layout.vpp == 1 and float(case.micro_batches) - 1 >= hidden and not case.engine.scatters_blocks

"""All comparisons of one layout, scaled down where it must be."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from ..schedule.orders import names
from . import limits
from .comparison import Comparison
from .comparisons.flops import BY_VALUE, OTHERWISE, compare_flops
from .comparisons.memory import TABLE, compare_memory
from .comparisons.parameters import compare_parameters
from .comparisons.schedule import LONGEST, compare_schedule
from .comparisons.traffic import compare_traffic
from .pipelines.run import PipelineRun, not_started, run_order
from .pipelines.stages import piped
from .scaled import Scaled
from .steps.run import Stepped, compared, run_step
from .subject import KINDS, PEAK, ROUNDING, USUAL, Checked, Found, NotRun, Subject
from .verified import Verified

STATES = ("weights", "gradients", "optimizer")
PLACE = "place of the peak"
COPIED = "FSDP2 copies experts that are cut inside, being fewer than ranks, once more: that is not counted"
UNEQUAL = "layers of several kinds: those that stand at one moment are all counted as the largest"


def verify(
    subject: Subject, only: tuple[str, ...] = USUAL, layers: int = 0, began: Callable[[str], object] = lambda kind: None
) -> Verified:
    """Run what can be run. `layers`: how many of them, 0 for as many as take seconds; `began` hears of each run."""
    run = Run(small := Scaled(subject, layers, began), only)
    usual = [*run.parameters(), *run.flops(), *run.memory(), *run.traffic(), *run.schedule()]
    found = [*usual, *run.pipeline(), *run.step()]
    checked = sorted((one for one in found if isinstance(one, Checked)), key=lambda one: KINDS.index(one.kind))
    left = tuple(one for one in found if isinstance(one, NotRun))
    return Verified(tuple(checked), left, tuple(small.said), run.ran, run.trained)


@dataclass
class Run:
    """One run of the comparisons: each kind by itself."""

    small: Scaled
    only: tuple[str, ...]
    ran: PipelineRun | None = None
    trained: Stepped | None = None

    def parameters(self) -> Found:
        """Of the whole model: nothing is scaled."""
        if "parameters" not in self.only:
            return
        of = self.small.subject
        if of.config is None:
            yield NotRun(("parameters",), of.missing)
            return
        self.small.began("parameters")
        found = attempted(compare_parameters, of.model, of.config)
        yield from _each("parameters", found, within=0)

    def flops(self) -> Found:
        """Of one sequence through the model code of transformers."""
        if "flops" not in self.only:
            return
        of = self.small.subject
        model, config = self.small.cut_config()
        by_value = of.model.family in BY_VALUE
        if config is None or by_value:
            why = "the class splits tokens as its router says, which needs data" if by_value else of.missing
            yield NotRun(("flops",), why)
            return
        self.small.began("flops")
        found = attempted(compare_flops, model, config, of.job.sequence_length)
        yield from _each("flops", found, reason=OTHERWISE.get(of.model.family, ""))

    def memory(self) -> Found:
        """States, tape and peak of one rank: one run for all three."""
        kinds = tuple(kind for kind in ("states", "tape", "peak") if kind in self.only)
        if not kinds:
            return
        if self.small.subject.layout.pp > 1:
            yield from piped(self.small, kinds)
            return
        case = self.small.case(self.small.subject.layout.accumulate_whole)
        why = limits.cut_otherwise(case) or limits.kept_otherwise(case) or limits.built_otherwise(case.model, case)
        left = {kind: limits.measured_otherwise(kind, case) for kind in kinds}
        if why or all(left.values()):
            yield NotRun(kinds, why or left[kinds[0]])
            return
        yield from (NotRun((kind,), reason) for kind, reason in left.items() if reason)
        self.small.shrinks(case, "memory")
        self.small.began("memory")
        found = compare_memory(case.model, case.job, case.cluster, case.layout, case.engine)
        fewer = case.layout.zero and 0 < case.model.experts < case.layout.dp_shard
        known = COPIED if fewer else UNEQUAL if len(set(case.model.pattern)) > 1 else ""
        place = next((f"where it stands, {one.note.replace('; ', ', ')}" for one in found if one.name == PLACE), "")
        for one in found:
            kind = "states" if one.name in STATES else one.name
            if kind in left and not left[kind]:
                shown = replace(one, note="; ".join(filter(None, (one.note, place)))) if kind == "peak" else one
                reason = TABLE if one.note == TABLE else known if kind == "peak" else ""
                yield Checked(kind, shown, PEAK if kind == "peak" else ROUNDING, reason)

    def traffic(self) -> Found:
        """What a rank sends on each axis that is cut."""
        if "traffic" not in self.only:
            return
        if self.small.subject.layout.pp > 1:
            yield from piped(self.small, ("traffic",))
            return
        case, config = self.small.case(several=True), None
        why = limits.cut_otherwise(case) or limits.moved_otherwise(case)
        if other := limits.built_otherwise(case.model, case):
            model, config = self.small.cut_config()
            case = replace(case, model=model)  # as the class has it: a config may be whole, where none of fewer can be
        if other and not why:
            why = limits.classes_otherwise(case, config is not None) or (other if case.model.family in BY_VALUE else "")
        if why:
            yield NotRun(("traffic",), why)
            return
        self.small.shrinks(case, "traffic")
        self.small.began("traffic")
        if config is None:
            yield from _each("traffic", compare_traffic(case))
            return
        from .models.build import of_transformers

        yield from _each("traffic", attempted(compare_traffic, case, of_transformers(config)))

    def schedule(self) -> Found:
        """The order of a pipeline's passes."""
        if "schedule" not in self.only:
            return
        if why := self.unordered():
            yield NotRun(("schedule",), why)
            return
        self.small.began("schedule")
        found = compare_schedule(self.small.order("schedule", LONGEST), int(self.small.subject.layout.vpp))
        yield from _each("schedule", found, within=0)

    def pipeline(self) -> Found:
        """That order run for real, by ranks that last as long as they are asked to."""
        if "pipeline" not in self.only:
            return
        if why := self.unordered() or not_started(self.small.order("pipeline", 0)):
            yield NotRun(("pipeline",), why)
            return
        for outcome in run_order(self.small.subject, self.small.order("pipeline", 0), self.small.began):
            self.ran = outcome.run
            yield from outcome.comparisons

    def step(self) -> Found:
        """A real step, and the bill of exactly that."""
        if "step" not in self.only:
            return
        found = run_step(self.small)
        if isinstance(found, NotRun):
            yield found
        elif found:
            self.trained = found
            yield from compared(found)

    def unordered(self) -> str:
        """Why there is no order that PyTorch could take."""
        at = self.small.subject.layout
        if at.pp == 1:
            return "one stage is no pipeline"
        return "" if at.schedule in names() else f"no order of {at.schedule} is known"


def attempted(compare: Any, *inputs: Any) -> tuple[Comparison, ...] | str:
    """A comparison on a class of transformers; its complaint where it cannot be run."""
    try:
        found: tuple[Comparison, ...] = compare(*inputs)
        return found
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of another's class, which may refuse a config in any way
        return f"transformers does not run it here: {type(error).__name__}: {' '.join(str(error).split())[:150]}"


def _each(kind: str, found: tuple[Comparison, ...] | str, within: float = ROUNDING, reason: str = "") -> Found:
    if isinstance(found, str):
        yield NotRun((kind,), found)
        return
    for one in found:
        yield Checked(kind, one, within, reason)

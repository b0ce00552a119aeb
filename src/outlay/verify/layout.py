"""All comparisons of one layout, scaled down where it must be: layers cut, widths kept, fewer micro-batches."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..bill import case_of
from ..errors import InputError
from ..job import AUTO
from ..layout.case import Case
from ..model.model import Model
from ..schedule.orders import names
from ..schedule.passes import Order
from ..simulated import order_of
from . import limits
from .comparison import Comparison
from .configs import Config, with_layers
from .flops import BY_VALUE, OTHERWISE, compare_flops
from .memory import TABLE, compare_memory
from .parameters import compare_parameters
from .piped import piped
from .pipeline import PipelineRun, not_started, run_order
from .scaled import seen_by
from .schedule import LONGEST, compare_schedule
from .subject import KINDS, PEAK, ROUNDING, USUAL, Checked, Found, NotRun, Subject, Verified
from .traffic import compare_traffic

if TYPE_CHECKING:
    from .step import Stepped

STATES = ("weights", "gradients", "optimizer")
PLACE = "place of the peak"
COPIED = "FSDP2 copies experts that are cut inside, being fewer than ranks, once more: that is not counted"
UNEQUAL = "layers of several kinds: those that stand at one moment are all counted as the largest"
MOST_LAYERS, MOST_WHOLE = 32, 4  # that are run by themselves; torch's tracker of what nothing shards is slow
SOME = 2  # micro-batches of a step: one, and one more after it


def verify(
    subject: Subject, only: tuple[str, ...] = USUAL, layers: int = 0, began: Callable[[str], object] = lambda kind: None
) -> Verified:
    """Run what can be run. `layers`: how many of them, 0 for as many as take seconds; `began` hears of each run."""
    run = Run(subject, only, layers, began)
    usual = [*run.parameters(), *run.flops(), *run.memory(), *run.traffic(), *run.schedule()]
    found = [*usual, *run.pipeline(), *run.step()]
    checked = sorted((one for one in found if isinstance(one, Checked)), key=lambda one: KINDS.index(one.kind))
    left = tuple(one for one in found if isinstance(one, NotRun))
    return Verified(tuple(checked), left, tuple(run.scaled), run.ran, run.trained)


@dataclass
class Run:
    """One run of the comparisons, and what it scales down on its way."""

    subject: Subject
    only: tuple[str, ...]
    asked: int
    began: Callable[[str], object]
    ran: PipelineRun | None = None
    trained: "Stepped | None" = None
    scaled: dict[str, None] = field(default_factory=dict)  # in order, each once

    def parameters(self) -> Found:
        """Of the whole model: nothing is scaled."""
        if "parameters" not in self.only:
            return
        of = self.subject
        if of.config is None:
            yield NotRun(("parameters",), of.missing)
            return
        self.began("parameters")
        found = attempted(compare_parameters, of.model, of.config)
        yield from _each("parameters", found, within=0)

    def flops(self) -> Found:
        """Of one sequence through the model code of transformers."""
        if "flops" not in self.only:
            return
        of = self.subject
        model, config = self.cut_config()
        by_value = of.model.family in BY_VALUE
        if config is None or by_value:
            why = "the class splits tokens as its router says, which needs data" if by_value else of.missing
            yield NotRun(("flops",), why)
            return
        self.began("flops")
        found = attempted(compare_flops, model, config, of.job.sequence_length)
        yield from _each("flops", found, reason=OTHERWISE.get(of.model.family, ""))

    def memory(self) -> Found:
        """States, tape and peak of one rank: one run for all three."""
        kinds = tuple(kind for kind in ("states", "tape", "peak") if kind in self.only)
        if not kinds:
            return
        if self.subject.layout.pp > 1:
            yield from piped(self, kinds)
            return
        case = self.case(self.subject.layout.accumulate_whole)
        why = limits.cut_otherwise(case) or limits.kept_otherwise(case) or limits.built_otherwise(case.model, case)
        left = {kind: limits.measured_otherwise(kind, case) for kind in kinds}
        if why or all(left.values()):
            yield NotRun(kinds, why or left[kinds[0]])
            return
        yield from (NotRun((kind,), reason) for kind, reason in left.items() if reason)
        self.shrinks(case, "memory")
        self.began("memory")
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
        if self.subject.layout.pp > 1:
            yield from piped(self, ("traffic",))
            return
        case, config = self.case(several=True), None
        why = limits.cut_otherwise(case) or limits.moved_otherwise(case)
        if other := limits.built_otherwise(case.model, case):
            model, config = self.cut_config()
            case = replace(case, model=model)  # as the class has it: a config may be whole, where none of fewer can be
        if other and not why:
            why = limits.classes_otherwise(case, config is not None) or (other if case.model.family in BY_VALUE else "")
        if why:
            yield NotRun(("traffic",), why)
            return
        self.shrinks(case, "traffic")
        self.began("traffic")
        if config is None:
            yield from _each("traffic", compare_traffic(case))
            return
        from .build import of_transformers

        yield from _each("traffic", attempted(compare_traffic, case, of_transformers(config)))

    def schedule(self) -> Found:
        """The order of a pipeline's passes."""
        if "schedule" not in self.only:
            return
        if why := self.unordered():
            yield NotRun(("schedule",), why)
            return
        self.began("schedule")
        yield from _each("schedule", compare_schedule(self.order(), int(self.subject.layout.vpp)), within=0)

    def pipeline(self) -> Found:
        """That order run for real, by ranks that last as long as they are asked to."""
        if "pipeline" not in self.only:
            return
        if why := self.unordered() or not_started(self.order("pipeline", 0)):
            yield NotRun(("pipeline",), why)
            return
        for outcome in run_order(self.subject, self.order("pipeline", 0), self.began):
            self.ran = outcome.run
            yield from (Checked("pipeline", *held) for held in outcome.comparisons)

    def step(self) -> Found:
        """A real step, and the bill of exactly that."""
        if "step" not in self.only:
            return
        from .step import compared, run_step

        found = run_step(self.subject, self.asked, self.began, self.scaled)
        if isinstance(found, NotRun):
            yield found
        elif found:
            self.trained = found
            yield from compared(found)

    # --- scaled down ------------------------------------------------------------------------------------------------

    def unordered(self) -> str:
        """Why there is no order that PyTorch could take."""
        at = self.subject.layout
        if at.pp == 1:
            return "one stage is no pipeline"
        return "" if at.schedule in names() else f"no order of {at.schedule} is known"

    def order(self, kind: str = "schedule", most: int = LONGEST) -> Order:
        """The order that the engine runs, of fewer micro-batches where PyTorch would take long."""
        of = self.subject
        case = case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]
        many, pp = int(case.micro_batches), int(of.layout.pp)
        each = 2 * int(of.layout.vpp) * pp
        if many * each > most and (few := max(2 * pp, most // each // pp * pp)) < many:
            self.scaled[f"{kind}: {few:,} of {many:,} micro-batches, whose order repeats"] = None
            many = few
        return order_of(case, many)

    def layers(self) -> int:
        """How many layers are run: at least one of each kind, and two of the last, which stand gathered together; three
        in a row of each kind that the model has so."""
        model, at = self.subject.model, self.subject.layout
        kinds = max(map(partial(seen_by, model.pattern), set(model.pattern))) if len(model.blocks) > 1 else 1
        most = MOST_WHOLE if at.zero == 0 and at.dp == 1 else MOST_LAYERS
        return min(model.layers, max(kinds, self.asked or most))

    def cut_config(self) -> tuple[Model, Config | None]:
        """The model with its first layers, and the config that says the same; whole where no config can."""
        of, layers = self.subject, self.layers()
        if of.config is None or layers == of.model.layers:
            return of.model, of.config
        config = with_layers(of.config, layers)
        if config is None:
            return of.model, of.config
        self.says_layers(layers)
        return replace(of.model, pattern=of.model.pattern[:layers]), config

    def says_layers(self, layers: int) -> None:
        """Say how many layers are run, if not all."""
        whole = self.subject.model.layers
        if layers < whole:
            said = "FLOPs, states, tape and traffic are linear in them, ends apart; the peak may stand elsewhere"
            self.scaled[f"{layers} of {whole} layers, widths as they are (--layers): {said}"] = None

    def case(self, several: bool) -> Case:
        """The case that is run: fewer layers and micro-batches."""
        of, at = self.subject, self.subject.layout
        layers = self.layers()
        many = of.job.global_batch // (at.dp * at.micro_batch)
        batch = int(at.dp * at.micro_batch * min(many, SOME if several else 1))
        job = replace(of.job, global_batch=batch)
        all_again = at.recompute == "full" and at.pp == 1 and at.recompute_layers == of.model.layers
        layout: Any = replace(at, recompute_layers=AUTO) if all_again else at
        model = replace(of.model, pattern=of.model.pattern[:layers])
        return case_of(model, job, of.cluster, layout, of.engine)[0]

    def whole(self) -> Case:
        """The case as it is asked."""
        of = self.subject
        return case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]

    def shrinks(self, case: Case, kind: str) -> None:
        """Say what is smaller in a case that is run."""
        self.says_layers(case.model.layers)
        many = self.subject.job.global_batch // (case.layout.dp * case.layout.micro_batch)
        if (few := int(case.micro_batches)) < many:
            lost = "no gradients of one before stand beside its tape" if few == 1 else "the others are alike"
            self.scaled[f"{kind}: {few} of {many} micro-batches a step, {lost}"] = None


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

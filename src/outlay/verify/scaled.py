"""How a layout is scaled down before it is run: fewer layers and micro-batches, widths kept; and what is said of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..bill import case_of
from ..job import AUTO
from ..layout.case import Case
from ..model.model import Model
from ..schedule.passes import Order
from ..simulated import order_of
from .models.configs import Config, with_layers
from .subject import Subject

MOST_LAYERS, MOST_WHOLE = 32, 4  # that are run by themselves; torch's tracker of what nothing shards is slow
SOME = 2  # micro-batches of a step: one, and one more after it


@dataclass
class Scaled:
    """One subject as it is run: what is scaled down on the way is said, each thing once."""

    subject: Subject
    asked: int  # layers; 0: as many as take seconds
    began: Callable[[str], object]  # hears of each run
    said: dict[str, None] = field(default_factory=dict)  # in order

    def order(self, kind: str, most: int) -> Order:
        """The order that the engine runs; of fewer micro-batches where it has more than so many operations."""
        of = self.subject
        case = case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]
        many, pp = int(case.micro_batches), int(of.layout.pp)
        each = 2 * int(of.layout.vpp) * pp
        if many * each > most and (few := max(2 * pp, most // each // pp * pp)) < many:
            self.said[f"{kind}: {few:,} of {many:,} micro-batches, whose order repeats"] = None
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
            self.said[f"{layers} of {whole} layers, widths as they are (--layers): {said}"] = None

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
            self.said[f"{kind}: {few} of {many} micro-batches a step, {lost}"] = None


def seen_by(pattern: tuple[int, ...], kind: int) -> int:
    """After how many layers a kind has stood as the whole model has it: three in a row, or two where it has no three.

    At one moment of the backward pass a layer stands gathered, the one before it too, and the gradients of the one
    behind it are scattered.
    """
    rows = (place + 3 for place in range(len(pattern) - 2) if pattern[place : place + 3] == (kind,) * 3)
    return next(rows, min(len(pattern), pattern.index(kind) + 2))

"""What one layer may do: compute nothing again, some modules, or all of itself; cut over more or fewer ranks.

A stage keeps its ranks: a layer at another tensor-parallel degree t' has t/t' times the data-parallel ranks, and t'/t
times the sequences in a micro-batch, so M and the tokens of a step stay. Source: Miao et al. 2022 (Galvatron), layers
of one stage at degrees of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeVar

from ...bill import case_of, load, violations_of
from ...engines.engine import MEGATRON
from ...errors import InputError
from ...job import AUTO
from ...layout.axes import Layout
from ...layout.case import Case
from ...layout.degrees import powers
from ...layout.module_rules import apart
from ...memory.ways import curve
from ..recompute.offered import effect, present
from ..recompute.room import Rooms, plain, rooms
from ..recompute.stages import PARTS

Kind = Literal["none", "selective", "full"]
MOST_MODULES, MOST_OPERATIONS = 4, 8  # choices that are tried; the others lie between them on the same curve


Point = TypeVar("Point")


@dataclass(frozen=True, order=True)
class Strategy:
    """What one layer does."""

    tp: int
    recompute: Kind = "none"
    modules: tuple[str, ...] = ()  # of selective, in Megatron's engines
    operations: tuple[str, ...] = ()  # of selective, in PyTorch: rows of a layer that run again

    @property
    def said(self) -> str:
        """The recompute, in words."""
        again = ",".join((*self.modules, *self.operations))
        return f"selective {again}" if again else self.recompute


def under(layout: Layout, strategy: Strategy) -> Layout:
    """A layout whose layers all follow one strategy; the stage keeps its ranks, and a step its tokens."""
    at, one = strategy.tp, strategy.tp == 1 or layout.tp == 1
    return replace(
        layout,
        tp=at,
        sp=AUTO if one and at != layout.tp else layout.sp,
        dp_shard=layout.dp_shard * layout.tp // at,
        micro_batch=layout.micro_batch * at // layout.tp,
        overlap_tp=layout.overlap_tp and at > 1,
        recompute=strategy.recompute,
        recompute_modules=strategy.modules,
        recompute_layers=AUTO,
        recompute_group=1,
    )


def degrees(case: Case) -> tuple[int, ...]:
    """Tensor-parallel degrees that layers of a stage may have, that of the layout first: those that keep the stage's
    ranks and a micro-batch of whole sequences, and break no rule where every layer has them."""
    at = case.layout
    found = [at.tp]
    for tp in powers(min(case.cluster.inside.size, at.tp * at.dp_shard)):
        whole = at.micro_batch * tp % at.tp == 0 and at.dp_shard * at.tp % tp == 0
        if tp != at.tp and whole and _legal(case, under(at, Strategy(tp))):
            found.append(tp)
    return tuple(found)


def _legal(case: Case, layout: Layout) -> bool:
    try:
        return not violations_of(complete_case(case, layout))
    except InputError:
        return False


def complete_case(case: Case, layout: Layout) -> Case:
    """The same question with another layout."""
    return case_of(case.model, case.job, case.cluster, layout, case.engine)[0]


def selective(case: Case, found: Rooms) -> Iterator[Strategy]:
    """What a layer may compute again in part, as its engine does: modules of Megatron, or operations in PyTorch, from
    the curves of `outlay recompute`. Of all choices those that no other beats in bytes and time; few of them."""
    tp = case.layout.tp
    if case.engine.name in MEGATRON:
        modules = _spread(list(_modules(case, found)), MOST_MODULES)
        yield from (Strategy(tp, "selective", modules=names) for names in modules)
        return
    curves = [curve(layer.operations, layer.entry / PARTS)[1:] for layer in found.layers]
    for layer, points in zip(found.layers, curves, strict=True):
        for point in _spread(points, MOST_OPERATIONS):
            names = tuple(layer.operations[place].name for place in point.again)
            yield Strategy(tp, "selective", operations=names)


def _modules(case: Case, found: Rooms) -> Iterator[tuple[str, ...]]:
    """The choices of an engine's modules that no other beats in what they free, over all layers, and in time."""
    had = [name for name in present(found) if name in case.engine.recompute_modules]
    every = [names for count in range(1, len(had) + 1) for names in combinations(had, count) if apart(names)]
    points = []
    for names in every:
        effects = [effect(layer, names) for layer in found.whole.layers]
        points.append((sum(each.seconds for each in effects), -sum(each.freed for each in effects), names))
    most = 0.0
    for _, freed, names in sorted(points):
        if -freed > most:
            most = -freed
            yield names


def _spread(points: Sequence[Point], most: int) -> Iterator[Point]:
    """At most so many, spread evenly along a curve, both ends among them."""
    last, count = len(points) - 1, min(len(points), most)
    yield from (points[place] for place in sorted({round(at * last / max(1, count - 1)) for at in range(count)}))


def strategies(case: Case, what: Sequence[str]) -> tuple[Strategy, ...]:
    """Every strategy of a layer: that of the layout first where nothing else is asked for."""
    tps = degrees(case) if "tp" in what else (case.layout.tp,)
    if "recompute" not in what:
        kind, modules = case.layout.recompute, tuple(case.layout.recompute_modules or ())
        return tuple(Strategy(tp, kind, modules) for tp in tps)
    every = tuple(dict.fromkeys(selective(case, rooms(load(plain(case))))))
    return tuple(
        way for tp in tps for way in (Strategy(tp), *(replace(each, tp=tp) for each in every), Strategy(tp, "full"))
    )

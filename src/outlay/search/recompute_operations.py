"""The rows of a layer as operations that may run again: what each keeps, what others keep of it, what it needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..cluster.efficiency import Rates
from ..engines.engine import KernelSet
from ..engines.recipe import Recipe
from ..formula import where
from ..layer import LayerCosts
from ..layout.case import Case
from ..memory.ways import Operation
from ..model.operations import Attention, Linear, Move, Pointwise, Row, Sizes
from ..model.scan import Scan
from ..model.weights import input_spared

INPUT = -1  # the layer's own input, as a place among its operations
BRANCHES = ("none", "W")  # what a linear's input waits along where another row keeps the same input
BEHIND = ("scatter_", "combine")  # exchanges of what came out of the row before them
STREAM = ("S", "G", "W")  # the same where a row reads the layer's own tokens, not those sent to its experts
MIXERS = ("rotate", "residual")  # rows that read all that was produced and not read yet; so do the cores


@dataclass(frozen=True)
class Layer:
    """The operations of one kind of layer, who reads whose output, and what is kept whatever runs again."""

    name: str
    operations: tuple[Operation, ...]
    readers: tuple[frozenset[int], ...]
    kept: float  # bytes of the whole tape
    entry: float  # bytes of its input

    @property
    def reads(self) -> float:
        """Bytes of its input that its own backward pass reads."""
        return min(self.entry, max(0.0, self.kept - sum(operation.freed for operation in self.operations)))

    @property
    def forward(self) -> float:
        """Seconds of its forward pass."""
        return sum(operation.seconds for operation in self.operations)


@dataclass(frozen=True)
class Timed:
    """A row with the exchanges that run again with it, and what it keeps."""

    row: Row
    seconds: float
    reads: float  # bytes of its input that it keeps
    inside: float


def layer_of(
    costs: LayerCosts, rows: Sequence[Row], here: Sizes, case: Case, speed: Rates, kernels: KernelSet
) -> Layer:
    """One kind of layer on one rank."""
    timed = list(_timed(costs, rows, here, case, speed, kernels))
    sources = list(_sources([one.row for one in timed]))
    kept: dict[frozenset[int], float] = {}
    for one, source in zip(timed, sources, strict=True):
        kept[source] = kept.get(source, 0.0) + one.reads
    outputs = [0.0] * len(timed)
    together: list[set[int]] = [set() for _ in timed]
    for source, size in kept.items():
        if size > 0 and INPUT not in source:
            outputs[max(source)] += size
            together[max(source)] |= source - {max(source)}
    made = tuple(
        Operation(
            one.row.name,
            one.seconds,
            one.inside,
            outputs[place],
            tuple(sorted(together[place] | (set() if kept[source] > 0 else source - {INPUT}))),
        )
        for place, (one, source) in enumerate(zip(timed, sources, strict=True))
    )
    readers = tuple(
        frozenset(at for at, source in enumerate(sources) if place in source) for place in range(len(timed))
    )
    return Layer(costs.name, made, readers, float(costs.kept), float(costs.entry))


def _timed(
    costs: LayerCosts, rows: Sequence[Row], here: Sizes, case: Case, speed: Rates, kernels: KernelSet
) -> Iterator[Timed]:
    """The kernels, each with its exchanges: before it, or behind it."""
    shown = float(where(case.layout.overlap_tp, 1 - case.engine.tp_hidden, 1))
    waiting, found = 0.0, list[Timed]()
    ring = float(costs.context_forward)
    for row in rows:
        if isinstance(row, Move):
            taken = 0.0 if row.axis == "cp" else float(row.time_forward(here, case.cluster))
            taken *= shown if row.axis == "tp" else 1.0
            if found and (row.name.startswith(BEHIND) or (kernels.keeps_gathered and row.axis == "tp")):
                found[-1] = replace(found[-1], seconds=found[-1].seconds + taken)
            else:
                waiting += taken
            continue
        own = float(row.forward(here, speed))
        if found and not own:  # no kernel of its own: what it keeps, the one before keeps
            found[-1] = replace(found[-1], inside=found[-1].inside + float(row.kept(here)))
            continue
        own += waiting
        if isinstance(row, Attention):
            own, ring = own + ring, 0.0
        found.append(Timed(row, own, *_split(row, here, case.recipe)))
        waiting = 0.0
    yield from found


def _split(row: Row, here: Sizes, recipe: Recipe) -> tuple[float, float]:
    """What a row keeps: of its input, and beside it."""
    whole = float(row.kept(here)) if row.differentiated else 0.0
    if not whole:
        return 0.0, 0.0
    if isinstance(row, Linear):
        return whole - float(input_spared(row, here, recipe.spares, recipe.output_again)), 0.0
    if isinstance(row, Attention):
        core = float(row.kept_core(here))
        return whole - core, core
    if isinstance(row, Pointwise):
        values = 0.0 if row.shared_input else min(1.0, row.kernel.keeps) * float(here["value"])
        read = values * float(here[row.tokens] * here[row.width])
        return read, whole - read
    if isinstance(row, Scan):
        read = float(here[row.tokens] * here["value"] * here[row.keeps])
        return read, whole - read
    return 0.0, whole


def _sources(rows: Sequence[Row]) -> Iterator[frozenset[int]]:
    """What each row reads: the row before it, but for rows that share an input and those that read several.

    What rows do not say is taken as a chain: then more runs again than must, never less.
    """
    sources: list[frozenset[int]] = []
    open_outputs: set[int] = set()
    for place, row in enumerate(rows):
        shared = _same_input(row, rows[:place])
        if shared is not None:
            source = sources[shared]
        elif place == 0:
            source = frozenset({INPUT})
        elif row.name.startswith(MIXERS) or isinstance(row, Attention | Scan):
            source = frozenset(open_outputs or {place - 1})
        else:
            source = frozenset({place - 1})
        open_outputs = (open_outputs - source) | {place}
        sources.append(source)
        yield source


def _same_input(row: Row, before: Sequence[Row]) -> int | None:
    """An earlier row that reads the same tensor."""
    for place in range(len(before) - 1, -1, -1):
        other = before[place]
        if isinstance(row, Linear) and row.waits in BRANCHES:
            if isinstance(other, Linear) and other.ins == row.ins and other.waits in STREAM:
                return place
        elif isinstance(row, Pointwise) and row.shared_input:
            if isinstance(other, Pointwise) and other.width == row.width and not other.shared_input:
                return place
        else:
            return None
    return None

"""What an engine itself offers: nothing again, modules in every layer, whole layers of a block, one input in k layers.

Modules are those of Megatron-LM's --recompute-modules. Some keep their output (core_attn, mlp, moe, shared_experts),
as a plain checkpoint does; the others discard it, and compute it again before the backward pass of what reads it.
Source: Megatron-Core, transformer_config.py, recompute_modules.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import ceil

from ...errors import InputError
from ...layout.module_rules import apart, misnamed
from ...model.model import Model
from ...model.modules import MODULES
from .operations import Layer
from .room import Rooms, StageRoom


@dataclass(frozen=True)
class Effect:
    """What computing some of a layer again frees, takes, and holds for a moment."""

    freed: float  # B
    seconds: float
    again: float  # B


def effect(layer: Layer, modules: tuple[str, ...]) -> Effect:
    """What some modules do to a layer."""
    chosen = [(MODULES[name], places) for name in modules for places in layer.modules[name]]
    every = frozenset[int]().union(*(places for _, places in chosen))
    freed, most = 0.0, 0.0
    for module, places in chosen:
        inside = sum(
            layer.operations[place].inside
            + (layer.operations[place].output if module.discards or layer.readers[place] <= places else 0.0)
            for place in places
        )
        freed, most = freed + inside, max(most, inside)
    return Effect(freed, sum(layer.operations[place].seconds for place in every), most)


def known_modules(names: tuple[str, ...], model: Model, rooms: Rooms) -> tuple[str, ...]:
    """The modules in their order. Raises InputError for a name that is none, and for one that the model lacks."""
    faults = list(misnamed(names, present(rooms), model, rooms.whole.case.engine, "--modules"))
    if faults:
        raise InputError(*faults)
    return tuple(name for name in MODULES if name in names)


def present(rooms: Rooms) -> list[str]:
    """The modules that some layer has, and that something runs again of."""
    return [name for name in MODULES if any(layer.modules[name] for layer in rooms.layers)]


@dataclass(frozen=True)
class Choice:
    """One choice of an engine on one layout."""

    name: str
    flags: str
    needed: float  # B for tapes, on the stage that has least left, or lacks most
    peak: float  # B
    extras: Mapping[str, float]  # s that a backward pass takes longer, by stage
    through: float  # s, through the whole model
    fits: bool

    @property
    def extra(self) -> float:
        """Seconds a pass, on the stage where it is most."""
        return max(self.extras.values())


Use = tuple[float, float, float]  # bytes that a pass keeps, bytes that stand while some run again, seconds


def choice(name: str, flags: str, rooms: Rooms, use: Callable[[StageRoom], Use], budget: float | None) -> Choice:
    """A choice on every stage."""
    used = [(room, *use(room)) for room in rooms.stages]
    over = [room.needed(kept, again) - (room.room if budget is None else budget) for room, kept, again, _ in used]
    worst, kept, again, _ = used[max(range(len(used)), key=over.__getitem__)]
    return Choice(
        name,
        flags,
        worst.needed(kept, again),
        max(room.peak(kept, again) for room, kept, again, _ in used),
        {room.stage.name: seconds for room, *_, seconds in used},
        use(rooms.whole)[2],
        max(over) <= 0,
    )


def with_modules(modules: tuple[str, ...]) -> Callable[[StageRoom], Use]:
    """Some modules again, in every layer."""

    def use(room: StageRoom) -> Use:
        done = [effect(layer, modules) for layer in room.layers]
        kept = sum(layer.kept for layer in room.layers) - sum(each.freed for each in done)
        return kept, max(each.again for each in done), sum(each.seconds for each in done)

    return use


def with_block(count: int) -> Callable[[StageRoom], Use]:
    """The first layers of every chunk in full."""

    def use(room: StageRoom) -> Use:
        whole = [layer for chunk in room.chunks for layer in chunk[:count]]
        rest = [layer for chunk in room.chunks for layer in chunk[count:]]
        kept = sum(layer.entry for layer in whole) + sum(layer.kept for layer in rest)
        again = max((layer.kept - layer.entry for layer in whole), default=0.0)  # its input stands
        return kept, again, sum(layer.forward - layer.unread for layer in whole)

    return use


def with_uniform(length: int) -> Callable[[StageRoom], Use]:
    """One input kept in so many layers."""

    def use(room: StageRoom) -> Use:
        parts = [chunk[at : at + length] for chunk in room.chunks for at in range(0, len(chunk), length)]
        again = max(sum(layer.kept for layer in part) - part[0].entry for part in parts)
        seconds = sum(layer.forward for layer in room.layers) - sum(part[-1].unread for part in parts)
        return sum(part[0].entry for part in parts), again, seconds

    return use


SELECTIVE = "--recompute-granularity selective --recompute-modules"
FULL = "--recompute-granularity full --recompute-method"


def choices(rooms: Rooms, budget: float | None) -> Iterator[Choice]:
    """All choices of an engine: none, selective, modules, blocks, uniform segments."""
    yield choice("none", "", rooms, with_modules(()), budget)
    had = [name for name in present(rooms) if name in rooms.whole.case.engine.recompute_modules]
    for count in range(1, len(had) + 1):
        for names in combinations(had, count):
            if apart(names):
                yield choice(
                    f"selective: {', '.join(names)}",
                    f"{SELECTIVE} {' '.join(names)}",
                    rooms,
                    with_modules(names),
                    budget,
                )
    longest = max(len(chunk) for room in rooms.stages for chunk in room.chunks)
    for count in range(1, longest + 1):
        said = "full" if count == longest else f"full: {count} of {longest} layers"
        yield choice(said, f"{FULL} block --recompute-num-layers {count}", rooms, with_block(count), budget)
    for length in range(2, ceil(longest / 2) + 1):
        said = f"full: an input every {length} layers"
        yield choice(said, f"{FULL} uniform --recompute-num-layers {length}", rooms, with_uniform(length), budget)

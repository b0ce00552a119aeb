"""What the textbook's closed forms make of the layers of a stage, as if they were equal, beside the program's plan.

L layers in g segments, or s slots for inputs; the tape of a layer is c inputs. "Inputs alone" takes a layer to need
nothing but its input. The forms are of one pass in flight; with several, what is kept stands as often.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

from ...memory.activations import best_segments, checkpoint_units
from ...memory.recompute import advances, best_tape_segments, extra_forwards, slots_for, uniform_extra, uniform_slots
from .stages import Recompute

TWICE = 2  # runs of a layer before the one that makes its tape, in the plan with fewest slots
SAID = {
    "uniform": "segments, g = sqrt(L), inputs alone",
    "revolve": "Revolve in as many inputs",
    "tapes": "segments, g = sqrt(L), whole tapes",
    "best": "segments, g = sqrt(c L), whole tapes",
    "binomial": "Revolve in as much memory",
    "twice": "Revolve, no layer more than twice again",
    "program": "the program in as much memory",
}


@dataclass(frozen=True)
class ClosedForm:
    """One way to serve the chain."""

    name: str  # of SAID
    held: float | None  # segments, or slots for inputs; None of the program
    inputs: float  # that stand at the most in one pass, in inputs of a layer
    bytes: float  # that the tapes need
    runs: float  # forward passes of the whole chain that it adds


@dataclass(frozen=True)
class Textbook:
    """The chain, and its closed forms."""

    layers: int  # L
    tape: float  # c
    forms: tuple[ClosedForm, ...]


def textbook(found: Recompute) -> Textbook:
    """The closed forms for the stage that binds, and the program in the memory of the best segments."""
    plan, room = found.plan, found.plan.room
    layers = len(room.layers)
    entry = sum(layer.entry for layer in room.layers) / layers
    tape = sum(layer.kept for layer in room.layers) / layers / entry
    forms = [
        ClosedForm(name, held, total, room.needed(held * entry, (total - held) * entry), steps / layers)
        for name, held, total, steps in _forms(layers, tape)
    ]
    point = plan.best(next(form.bytes for form in forms if form.name == "best"))
    if point:
        inputs = (plan.kept_bytes(point) + point.spare * plan.unit) / entry
        runs = point.extra / sum(layer.forward for layer in room.layers)
        forms.append(ClosedForm("program", None, inputs, plan.needed(point), runs))
    return Textbook(layers, tape, tuple(forms))


def _forms(layers: int, tape: float) -> Iterator[tuple[str, float, float, float]]:
    """Of each form its name, segments or slots, the inputs that stand, and the steps of one layer that it adds."""
    root = float(best_segments(layers))
    few = float(uniform_slots(layers, root))
    yield "uniform", root, few, float(uniform_extra(layers, root))
    yield "revolve", floor(few), floor(few), extra_forwards(layers, floor(few))
    yield "tapes", root, float(checkpoint_units(layers, root, tape)), layers
    best = min(layers, max(1.0, float(best_tape_segments(layers, tape))))  # beyond c = L a segment a layer
    most = float(checkpoint_units(layers, best, tape))
    yield "best", best, most, layers
    slots = max(1, floor(most - tape))
    yield "binomial", slots, slots + tape, advances(layers, slots)
    few = slots_for(layers, TWICE)
    yield "twice", few, few + tape, advances(layers, few)

"""Exercises on memory: state and its shares, frozen parts, activations, checkpoints, and which term binds."""

from fractions import Fraction
from random import Random

from ..memory.activations import best_segments, coarse_activation_bytes
from ..memory.states import resident_bytes, state_bytes
from .counts import both_bytes, each_bytes, saved_factor, stored_layers
from .derived import derived
from .exercise import Exercise, Part, Slip

BILLIONS = (1, 3, 7, 8, 13, 30, 34, 50, 70, 180)
RANKS = (8, 16, 32, 64, 128, 256)
CARDS = (24, 40, 80, 96, 141, 192)  # GB
MODELS = ((1, 2048, 16), (7, 4096, 32), (13, 5120, 40), (33, 6656, 60), (70, 8192, 80))  # billions, width, layers
TOKENS = (2048, 4096, 8192, 16384, 32768)
SQUARES = (16, 36, 64, 100, 144)  # layers whose root is whole
ADAM, WEIGHT, VALUES, HALF = 16, 2, 10, 2  # bytes a parameter and of a weight; values a token a layer; bytes of one
GB = 10**9
BINDS = ("state", "activations", "nothing")
AGAIN = "the weights are counted twice: of the 16 bytes, 2 are the weights"


def _billions(draw: Random) -> Fraction:
    return Fraction(draw.choice(BILLIONS) * GB)


def _stock(parameters: Fraction) -> Part:
    slips = (
        Slip(18 * parameters, AGAIN),
        Slip(8 * parameters, "the two moments of Adam are left out, 4 bytes each"),
        Slip(2 * parameters, "that is the weights alone"),
    )
    return derived("state in all", "bytes", ADAM * parameters, state_bytes, parameters, ADAM, slips=slips)


def state(draw: Random, level: int) -> Exercise:
    """The stock; and the share of one rank beside it."""
    parameters, ranks = _billions(draw), draw.choice(RANKS)
    text = f"A model of {int(parameters / GB)} billion parameters trains with mixed-precision Adam."
    given = {"parameters": parameters}
    parts: tuple[Part, ...] = (_stock(parameters),)
    if level > 1:
        text += f" All of its state is sharded evenly over {ranks} ranks."
        given |= {"ranks": Fraction(ranks)}
        stock, each = ADAM * parameters, ADAM * parameters / ranks
        slips = (Slip(2 * parameters + 14 * parameters / ranks, "the weights are sharded too, all 16 bytes are"),)
        parts += (derived("state of one rank", "bytes", each, each_bytes, stock, ranks, slips=slips),)
    return Exercise("state", level, text, given, parts)


def frozen(draw: Random, level: int) -> Exercise:
    """What stays resident when most parameters are frozen; and the factor that this saves."""
    parameters, trained = _billions(draw), Fraction(draw.choice((1, 2, 5, 10, 20)), 100)
    kept = trained * parameters * ADAM + (1 - trained) * parameters * WEIGHT
    text = (
        f"A model of {int(parameters / GB)} billion parameters is fine-tuned with Adam: {int(trained * 100)} % of them"
        " are trained with 16 bytes each, and of the others the weight alone is kept, in 2 bytes."
    )
    slips: tuple[Slip, ...] = (
        Slip(trained * parameters * ADAM, "the frozen weights are left out: the forward pass reads them"),
        Slip(ADAM * parameters, "that is all of it trained"),
        Slip(trained * parameters * ADAM + parameters * WEIGHT, "a trained weight is in its 16 bytes already"),
    )
    inputs = (parameters, trained, WEIGHT, ADAM)
    parts: tuple[Part, ...] = (derived("resident state", "bytes", kept, resident_bytes, *inputs, slips=slips),)
    if level > 1:
        why = (
            f"16 x N / resident = {float(ADAM * parameters / GB):.4g} GB / {float(kept / GB):.4g} GB"
            f" = {float(ADAM * parameters / kept):.4g}; never more than 16 / 2 = 8",
        )
        slips = (Slip(1 / trained, "that is of what is trained; the frozen weights stay"),)
        parts += (Part("times less than with all trained", "number", ADAM * parameters / kept, why, slips),)
    return Exercise("frozen", level, text, {"parameters": parameters, "trained": trained}, parts)


def _tape(hidden: int, layers: int, tokens: int) -> Part:
    tape = Fraction(VALUES * HALF * hidden * layers * tokens)
    slips = (
        Slip(tape / 2, "a value in half precision has 2 bytes"),
        Slip(tape / layers, "that is one layer"),
        Slip(tape / VALUES, "each token keeps about 10 values for each of the width, not one"),
    )
    inputs = (tokens, layers, hidden, VALUES, HALF)
    return derived("activations", "bytes", tape, coarse_activation_bytes, *inputs, slips=slips)


def activations(draw: Random, level: int) -> Exercise:
    """The tape; and state and tape together."""
    (billions, hidden, layers), tokens = draw.choice(MODELS), draw.choice(TOKENS)
    text = (
        f"A model of {layers} layers, {hidden:,} wide, runs {tokens:,} tokens through one rank in half precision."
        " A layer keeps 10 d values a token, and nothing runs again."
    )
    given = {"hidden": Fraction(hidden), "layers": Fraction(layers), "tokens": Fraction(tokens)}
    tape = _tape(hidden, layers, tokens)
    parts: tuple[Part, ...] = (tape,)
    if level > 1:
        parameters = Fraction(billions * GB)
        text += f" It has {int(parameters / GB)} billion parameters, all on this rank, trained with Adam."
        given |= {"parameters": parameters}
        held, kept = ADAM * parameters, tape.answer
        assert isinstance(kept, Fraction)
        slips = (Slip(held + kept + WEIGHT * parameters, AGAIN), Slip(kept, "that is the tape alone"))
        parts += (derived("state and activations", "bytes", held + kept, both_bytes, held, kept, slips=slips),)
    return Exercise("activations", level, text, given, parts)


def checkpoints(draw: Random, level: int) -> Exercise:
    """The best number of segments; what is stored then, and how many times less that is."""
    layers = draw.choice(SQUARES)
    segments = Fraction(round(layers**0.5))
    text = f"A model of {layers} equal layers keeps checkpoints of g segments: g + L/g layers are stored, not L."
    slips = (Slip(Fraction(layers, 2), "at half of L, g + L/g is far from its least"),)
    best = derived("the best g", "whole", segments, best_segments, layers, slips=slips)
    parts: tuple[Part, ...] = (best,)
    if level > 1:
        slips = (Slip(segments, "the inside of one segment stands too: g + L/g"),)
        stored = derived("layers stored then", "number", 2 * segments, stored_layers, layers, segments, slips=slips)
        factor = Fraction(layers) / (2 * segments)
        slips = (Slip(2 * factor, "that is L / g: the inside of one segment is left out"),)
        parts += (stored, derived("times less", "number", factor, saved_factor, layers, segments, slips=slips))
    return Exercise("checkpoints", level, text, {"layers": Fraction(layers)}, parts)


def binds(draw: Random, level: int) -> Exercise:
    """State and tape before the card's memory; at the last level once more, with checkpoints."""
    (billions, hidden, layers), tokens = draw.choice(MODELS), draw.choice(TOKENS)
    parameters, ranks, card = Fraction(billions * GB), draw.choice(RANKS), Fraction(draw.choice(CARDS) * GB)
    held, tape = ADAM * parameters / ranks, Fraction(VALUES * HALF * hidden * layers * tokens)
    text = (
        f"{int(parameters / GB)} billion parameters, mixed-precision Adam, all state sharded over {ranks} ranks of"
        f" {int(card / GB)} GB. Each rank runs {tokens:,} tokens through {layers} layers, {hidden:,} wide, 10 d"
        " values a token in half precision."
    )
    given = {"parameters": parameters, "ranks": Fraction(ranks), "card": card, "hidden": Fraction(hidden)}
    given |= {"layers": Fraction(layers), "tokens": Fraction(tokens)}
    slips = (Slip(ADAM * parameters + tape, "the state is sharded: a rank holds its share"),)
    whole = derived("memory of one rank", "bytes", held + tape, both_bytes, held, tape, slips=slips)
    parts: tuple[Part, ...] = (whole, _binding("what does not fit", held, tape, card))
    if level > 2:
        text += " Then sqrt(L) checkpoints are kept, as if g need not be whole."
        stored = tape * Fraction(2 / layers**0.5)
        less = derived("memory of one rank then", "bytes", held + stored, both_bytes, held, stored)
        parts += (less, _binding("what does not fit then", held, stored, card))
    return Exercise("binds", level, text, given, parts)


def _binding(ask: str, held: Fraction, tape: Fraction, card: Fraction) -> Part:
    word = "nothing" if held + tape <= card else "state" if held >= tape else "activations"
    shown = (
        f"state {float(held / GB):.4g} GB + activations {float(tape / GB):.4g} GB = {float((held + tape) / GB):.4g} GB"
    )
    beside = "fits in" if word == "nothing" else "is more than"
    larger = (
        "" if word == "nothing" else f"; the larger part is {'the state' if word == 'state' else 'the activations'}"
    )
    return Part(ask, "word", word, (f"{shown} {beside} {float(card / GB):.4g} GB{larger}",), words=BINDS)

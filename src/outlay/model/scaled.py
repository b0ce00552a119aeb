"""The same model with more layers, or fewer: widths, vocabulary and kinds of layer stay."""

from dataclasses import replace

from .model import Model
from .parts import AnyPart
from .parts.per_layer import PerLayerTable

MOST_LAYERS = 4_096


def with_layers(model: Model, layers: int) -> Model:
    """The model with so many layers, one or more. They follow the model's own order; behind its end, that order goes
    on with its period: the shortest run of kinds that it repeats behind its first layers, or all of them together.

    What is beside the layers stays: embedding, head, and modules of multi-token prediction.
    """
    if layers == model.layers:
        return model
    period = period_of(model.pattern)
    pattern = list(model.pattern[:layers])
    while len(pattern) < layers:
        pattern.append(pattern[-period])
    said = (
        f"{layers:,} layers of {model.name}, which has {model.layers:,}: widths, vocabulary and the order of its kinds"
        " of layer stay"
    )
    return replace(
        model,
        name=f"{model.name}-{layers}-layers",
        pattern=tuple(pattern),
        before=tuple(_sized(part, layers) for part in model.before),
        notes=(*model.notes, said),
    )


def _sized(part: AnyPart, layers: int) -> AnyPart:
    """A part beside the layers that has something for each of them."""
    return replace(part, layers=layers) if isinstance(part, PerLayerTable) else part


def period_of(pattern: tuple[int, ...]) -> int:
    """Layers after which the kinds come again: the fewest, of those that stand at least twice at the end of the
    pattern and leave fewest layers before them; else all layers."""
    every = len(pattern)
    best, left = every, every
    for period in range(1, every // 2 + 1):
        start = every - period
        while start > 0 and pattern[start - 1] == pattern[start - 1 + period]:
            start -= 1
        if every - start >= 2 * period and start < left:
            best, left = period, start
    return best

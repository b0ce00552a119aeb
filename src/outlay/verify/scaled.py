"""How far a model can be cut so that what stands at one moment is what stands in the whole model."""


def seen_by(pattern: tuple[int, ...], kind: int) -> int:
    """After how many layers a kind has stood as the whole model has it: three in a row, or two where it has no three.

    At one moment of the backward pass a layer stands gathered, the one before it too, and the gradients of the one
    behind it are scattered.
    """
    rows = (place + 3 for place in range(len(pattern) - 2) if pattern[place : place + 3] == (kind,) * 3)
    return next(rows, min(len(pattern), pattern.index(kind) + 2))

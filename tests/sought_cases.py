"""Random questions for the best order: small ones, of every shape, with caps from tight to loose."""

import random
from collections.abc import Iterator

from outlay.schedule.synthesis.best import problem_of
from outlay.schedule.synthesis.problem import Problem
from outlay.schedule.times import Times


def sought(chunks: int, pp: int, micro_batches: int, costs: tuple[int, int, int], cap: float, send: int = 0) -> Problem:
    """One question; two chunks stand on a V."""
    return problem_of(Times(*costs, send=send), pp, micro_batches, chunks, "snake" if chunks == 2 else "loop", cap)


def questions(many: int) -> Iterator[Problem]:
    """The same ones each time."""
    draw = random.Random(5)
    for _ in range(many):
        pp, micro_batches, chunks = draw.randint(2, 4), draw.randint(2, 8), draw.choice((1, 1, 2))
        costs = (draw.randint(1, 12), draw.randint(1, 12), draw.randint(1, 12))
        send = draw.choice((0, 0, 1, 3))
        yield sought(chunks, pp, micro_batches, costs, draw.randint(chunks, 2 * pp * chunks) / chunks, send)

"""Sets of exercises: equal seeds give equal sets, so that a class can share one."""

from collections.abc import Callable, Mapping
from random import Random

from . import memory, pipeline, traffic
from .exercise import Exercise

Maker = Callable[[Random, int], Exercise]

MAKERS: Mapping[str, Maker] = {
    "bubble": pipeline.bubble,
    "needed": pipeline.needed,
    "boundary": pipeline.boundary,
    "staircase": pipeline.staircase,
    "state": memory.state,
    "frozen": memory.frozen,
    "activations": memory.activations,
    "checkpoints": memory.checkpoints,
    "binds": memory.binds,
    "traffic": traffic.traffic,
}
TOPICS = tuple(MAKERS)
LEVELS: Mapping[int, str] = {
    1: "one formula",
    2: "two counts together",
    3: "the staircase drawn with both boundary cases, and what binds",
}
AT: Mapping[int, tuple[str, ...]] = {
    1: tuple(topic for topic in TOPICS if topic != "binds"),
    2: TOPICS,
    3: ("staircase", "binds"),
}
"""The topics of each level."""


def exercise(topic: str, level: int, seed: int, number: int) -> Exercise:
    """One exercise of a set; `topic` may be empty: then they take turns, in an order that the seed draws."""
    topics = (topic,) if topic else _turns(level, seed)
    here = topics[(number - 1) % len(topics)]
    return MAKERS[here](Random(f"{seed}/{level}/{here}/{number}"), level)


def exercises(topic: str, level: int, seed: int, count: int) -> tuple[Exercise, ...]:
    """A set of so many exercises, numbered from 1."""
    return tuple(exercise(topic, level, seed, number) for number in range(1, count + 1))


def _turns(level: int, seed: int) -> tuple[str, ...]:
    topics = list(AT[level])
    Random(f"{seed}/{level}").shuffle(topics)
    return tuple(topics)

"""What `outlay drill` takes."""

from .flags import Flag

COUNT = 5
TOPIC = (
    "bubble, needed, boundary, staircase, state, frozen, activations, checkpoints, binds or traffic; default: all in"
    " turns"
)


def drill_flags() -> tuple[Flag, ...]:
    """Which set, and how it is answered."""
    return (
        Flag("level", ("--level",), "1 one formula, 2 two counts together, 3 the staircase drawn and what binds"),
        Flag("seed", ("--seed",), "a whole number: equal seeds give equal sets; default: drawn, and printed"),
        Flag("count", ("--count",), f"how many exercises; default: {COUNT}"),
        Flag("number", ("--number",), "one exercise of the set alone, by its number"),
        Flag(
            "answer", ("--answer",), 'grade an answer of it: "7/39"; of several parts with ; between: "17.9 %; 210 ms"'
        ),
        Flag("solutions", ("--solutions",), "print the answers too, each with its derivation; nothing is asked", True),
    )

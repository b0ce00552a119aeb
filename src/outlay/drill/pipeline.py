"""Exercises on idle time: shares, the micro-batches that a share needs, boundary cases, the staircase."""

from fractions import Fraction
from random import Random

from ..schedule.bubble import bubble_share
from .counts import idle_seconds, step_slots
from .derived import derived, told_apart
from .exercise import Exercise, Part, Slip

STAGES = (2, 3, 4, 6, 8, 12, 16)
FEW = (2, 3, 4, 5)  # stages, and
SHORT = (3, 4, 5, 6, 7)  # micro-batches of a staircase that is drawn by hand
OF_ALL = "idle slots over useful ones: a share is over all slots, M + P - 1"


def share_of(pp: int, micro_batches: int) -> Fraction:
    """The idle share, exactly."""
    return Fraction(pp - 1, micro_batches + pp - 1)


def _shares(draw: Random) -> tuple[int, int]:
    pp = draw.choice(STAGES)
    return pp, pp * draw.randint(1, 8) + draw.choice((0, 0, 1, 3))


def _share_part(pp: int, micro_batches: int) -> Part:
    slips = (
        Slip(Fraction(pp - 1, micro_batches), OF_ALL),
        Slip(1 - share_of(pp, micro_batches), "that is the share that works"),
        Slip(Fraction(pp, micro_batches + pp), "P - 1 stages wait for the first micro-batch, not P"),
    )
    share = share_of(pp, micro_batches)
    stairs = (pp, micro_batches)
    return derived("idle share", "share", share, bubble_share, pp, micro_batches, slips=slips, stairs=stairs)


def bubble(draw: Random, level: int) -> Exercise:
    """The share; and beside it the duration, which does not follow the share."""
    pp, many = _shares(draw)
    text = f"A pipeline of {pp} equal stages runs {many} micro-batches a step (1F1B, sends are free)."
    given = {"pp": Fraction(pp), "micro_batches": Fraction(many)}
    parts: tuple[Part, ...] = (_share_part(pp, many),)
    if level > 1:
        slot = Fraction(draw.choice((5, 10, 15, 20, 30, 40)), 1000)
        given |= {"slot": slot}
        text += f" One forward and backward pass of a micro-batch takes {int(slot * 1000)} ms on each stage."
        slips = (
            Slip(slot * (many + pp - 1), "that is the whole step"),
            Slip(slot * many, "that is the time that a rank works"),
        )
        parts += (derived("idle time of a rank", "seconds", (pp - 1) * slot, idle_seconds, pp, slot, slips=slips),)
    return Exercise("bubble", level, text, given, parts)


def needed(draw: Random, level: int) -> Exercise:
    """The least number of micro-batches for a share; and how long the step then is, in slots."""
    pp = draw.choice(STAGES)
    most = Fraction(draw.choice((2, 3, 4, 5, 8, 10, 12, 15, 20)), 100)
    least = -(-((pp - 1) * (1 - most)) // most)
    many = Fraction(max(1, int(least)))
    text = f"A pipeline of {pp} equal stages (1F1B) may idle for at most {int(most * 100)} % of the time."
    bound = (pp - 1) * (1 - most) / most
    why = (
        "(P - 1) / (M + P - 1) <= s  means  M >= (P - 1)(1 - s) / s",
        f"M >= ({pp} - 1) x (1 - {float(most):g}) / {float(most):g} = {float(bound):.6g}, so M = {int(many):,}",
        f"M {int(many):,} idles {_percent(share_of(pp, int(many)))}"
        + (f", and one less {_percent(share_of(pp, int(many) - 1))}" if many > 1 else ""),
    )
    slips: tuple[Slip, ...] = (
        Slip(many - 1, "one too few: with it the share is above the bound"),
        Slip(many + 1, "one too many: one less is enough"),
        Slip(Fraction(-(-(pp - 1) // most)), "that is M + P - 1, all slots of a rank"),
    )
    slips = tuple(slip for slip in slips if slip.answer != many)
    parts: tuple[Part, ...] = (Part("least number of micro-batches", "whole", many, why, slips),)
    given = {"pp": Fraction(pp), "share": most}
    if level > 1:
        slots = many + pp - 1
        parts += (derived("slots of the step then", "whole", slots, step_slots, pp, int(many)),)
    return Exercise("needed", level, text, given, parts)


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.4g} %"


def boundary(draw: Random, level: int) -> Exercise:
    """One micro-batch, one stage, and as many as one likes."""
    pp, many = draw.choice(STAGES), draw.choice((2, 4, 8, 16, 32))
    one = _share_part(pp, 1)
    alone = derived("idle share of one stage", "share", Fraction(0), bubble_share, 1, many, stairs=(1, many))
    if level == 1 and draw.random() < 1 / 2:
        text = f"One stage, so no pipeline at all, runs {many} micro-batches."
        return Exercise("boundary", level, text, {"pp": Fraction(1), "micro_batches": Fraction(many)}, (alone,))
    text = f"A pipeline of {pp} equal stages runs a single micro-batch: naive model parallelism."
    given = {"pp": Fraction(pp), "micro_batches": Fraction(1)}
    if level == 1:
        return Exercise("boundary", level, text, given, (one,))
    text += " More and more micro-batches of the same size are added."
    return Exercise("boundary", level, text, given, (one, _limit()))


def _limit() -> Part:
    why = ("(P - 1) / (M + P - 1) tends to 0 as M grows: P - 1 slots stay, and all slots grow",)
    return Part("the share that it tends to", "share", Fraction(0), why)


def stairs(pp: int, micro_batches: int) -> tuple[str, ...]:
    """Each rank's slots in order: the digit is the micro-batch, a dot idles."""
    order = "".join(str(each % 10) for each in range(1, micro_batches + 1))
    return tuple("." * rank + order + "." * (pp - 1 - rank) for rank in range(pp))


def staircase(draw: Random, level: int) -> Exercise:
    """Read off its slots; read off the share; draw it, with both boundary cases."""
    pp, many = draw.choice(FEW), draw.choice(SHORT)
    rows = stairs(pp, many)
    given = {"pp": Fraction(pp), "micro_batches": Fraction(many)}
    if level > 2:
        text = f"Draw {pp} equal stages and {many} micro-batches, a slot each: one row a rank, a dot where it idles."
        drawn = (
            Part("the staircase", "rows", rows, rows, stairs=(pp, many)),
            _one_micro_batch(pp),
            derived("idle share with one stage", "share", Fraction(0), bubble_share, 1, many, stairs=(1, many)),
        )
        return Exercise("staircase", level, text, given, drawn)
    text = "Each row is a rank, each column a slot, each digit a micro-batch, and a dot idles."
    slips = (Slip(Fraction(many), "that is M, the slots that a rank works"), Slip(Fraction(pp + many), "P - 1, not P"))
    slots = Fraction(many + pp - 1)
    parts: tuple[Part, ...] = (
        derived("slots of the step", "whole", slots, step_slots, pp, many, slips=slips, stairs=(pp, many)),
    )
    return Exercise("staircase", level, text, given, parts + ((_share_part(pp, many),) if level > 1 else ()), rows)


def _one_micro_batch(pp: int) -> Part:
    slips = told_apart(share_of(pp, 1), (Slip(Fraction(1, pp), "that is the share that works"),))
    share = share_of(pp, 1)
    return derived("idle share with one micro-batch", "share", share, bubble_share, pp, 1, slips=slips, stairs=(pp, 1))

"""Why the first layout of a plan is first: beside the next, and one that was asked about; and what more is worth."""

from collections.abc import Sequence
from typing import Any

from ...bill import Bill
from ...layout.complete import flag
from ...quantities import GIB
from ...search.plan import Plan, Ranked
from ...search.retimed import Simulation
from ...search.why import Reason
from ...search.worth import Worth
from ..compare import differences
from ..labels import label
from ..layouts import layout_flags, mesh, mesh_words
from ..text import Style, block, counted, duration, figure, gib, percent, table, wrapped

LEAST_GAIN = 5e-4  # of tokens a second, that is a gain or a loss: 0.05 %
MOST_ITEMS, LEAST_SHARE = 3, 0.1  # items of a difference in words; smaller ones are left out


def why_part(found: Plan, style: Style) -> list[str]:
    """Why the first beats the second, and the best of another cut: the largest differences in seconds."""
    if len(found.best) < 2:
        return []
    first = found.best[0]
    places = [1]
    other = next((place for place, each in enumerate(found.best) if mesh(each.layout) != mesh(first.layout)), 0)
    places += [other] if other > 1 else []
    texts = [_beats(first, found.best[place], place + 1) for place in places]
    lines = block("WHY", texts[0], style)
    return lines + [line for text in texts[1:] for line in wrapped(text, style, 10, 10)]


def _beats(first: Ranked, second: Ranked, place: int) -> str:
    gap = second.bill.step.seconds - first.bill.step.seconds
    parts = largest(second.bill, first.bill)
    named = f"{place} ({mesh_words(second.layout)})" if mesh(first.layout) != mesh(second.layout) else str(place)
    how = f"beats {named} by {duration(gap)}" if gap > 0 else f"takes as long as {named}"
    return f"1 {how}" + (f": {parts}" if parts else "")


def largest(a: Bill, b: Bill) -> str:
    """The largest differences in seconds from one bill to another."""
    items = [each for each in differences(a, b)["step"] if each.differs]
    most = max((abs(each.difference) for each in items), default=0.0)
    shown = [each for each in items if abs(each.difference) >= LEAST_SHARE * most][:MOST_ITEMS]
    return ", ".join(f"{label(each.name[5:])} {_signed(each.difference)}" for each in shown)


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '-'}{duration(abs(seconds))}"


def asked_part(found: Plan, reason: Reason, style: Style) -> list[str]:
    """Why a layout that was asked about is not the best."""
    named = " ".join(_named(name, value) for name, value in reason.asked.items())
    first, *rest = _reason_texts(found, reason)
    lines = block("WHY NOT", f"{named}: {first}", style)
    return lines + [line for text in rest for line in wrapped(text, style, 10, 10)]


def _named(name: str, value: Any) -> str:
    """A value as a flag; a switch is on or off."""
    if isinstance(value, bool):
        return flag(name) if value else f"--no-{flag(name)[2:]}"
    return f"{flag(name)} {value:g}" if isinstance(value, float) else f"{flag(name)} {value}"


def _reason_texts(found: Plan, reason: Reason) -> list[str]:
    ranked = reason.ranked
    if reason.answer == "illegal":
        if ranked is None:
            return ["no legal layout of this space has these values together; --space wide declares the most"]
        return [f"not legal. {one.what} ({one.code}): {one.rule}; got {one.got}" for one in ranked.bill.violations]
    assert ranked is not None
    flags, bill = layout_flags(ranked.layout, found.model, found.engine), ranked.bill
    many = counted(reason.legal, "legal layout")
    if reason.answer in ("does_not_fit", "tight"):
        over = f"{gib(reason.bytes_over)} too much" if reason.bytes_over else "inside the band of the peak"
        held = f"{figure(bill.memory.peak_bytes / GIB)} of {figure(bill.memory.usable_bytes / GIB)} GiB usable, {over}"
        return [f"none of {many} fits for sure; the smallest is {flags}: {held}"]
    if reason.answer == "best":
        return [f"it is the best, or as fast: {flags}"]
    left = "the search left it out: narrowed by flags, stopped, or not tried with a split of its own"
    more = [] if reason.answer == "slower" else [left]
    return [_beside_best(found, bill), f"the best of {many} with it: {flags}", *more]


def _beside_best(found: Plan, bill: Bill) -> str:
    """How much slower or faster than the best, and where the time goes."""
    if not found.best:
        return f"it fits, {duration(bill.step.seconds)} a step"
    best = found.best[0].bill
    more, ratio = bill.step.seconds - best.step.seconds, bill.step.seconds / best.step.seconds
    how = "slower" if more > 0 else "faster"
    return f"{duration(abs(more))} {how} than the best ({ratio:.3f} x): {largest(best, bill)}"


def worth_part(found: Plan, worths: Sequence[Worth], style: Style) -> list[str]:
    """What more of each resource would give, the most first."""
    if not worths:
        return []
    rows = [
        (_amount(each), duration(each.seconds, 4), f"{each.tokens_per_second:,.0f}", _gain(each.gain))
        for each in worths
    ]
    lines = ["", *block("WORTH", "what more of each would give the best layout", style)]
    lines += table(("with", "step", "tokens/s", "gain"), rows, style, "lrrr")
    other = next((each.layout for each in worths if each.layout), None)
    used = f"more memory goes to {layout_flags(other, found.model, found.engine)}" if other else ""
    return [*lines, *(wrapped(used, style, 2, 4) if used else []), ""]


def _amount(each: Worth) -> str:
    return f"twice the {each.resource}" if each.times == 2 else f"{percent(each.times - 1)} more {each.resource}"


def _gain(share: float) -> str:
    """The share of tokens a second that is gained, or lost."""
    return "none" if abs(share) < LEAST_GAIN else f"{'+' if share > 0 else '-'}{percent(abs(share))}"


def simulated_part(found: Plan, simulation: Simulation, style: Style) -> list[str]:
    """The ranking by simulated time: the place each layout had, and both times."""
    if not simulation.ranking:
        return []
    first = simulation.ranking[0]
    if first.seconds is None:
        return block("SIMULATED", "the order of none of them takes its numbers", style)
    head = f"pass by pass, {first.place} is the first: {layout_flags(first.ranked.layout, found.model, found.engine)}"
    by = "" if simulation.gap is None else f" by {percent(simulation.gap)} at most, as it is counted"
    sure = "what is left out counts more than that" if simulation.proved else f"what is left out may be faster{by}"
    rows = [
        (
            str(each.place),
            figure(each.ranked.bill.step.seconds, 4),
            figure(each.seconds, 4) if each.seconds else "-",
            f"{each.seconds / first.seconds:.3f}" if each.seconds else "-",
        )
        for each in simulation.ranking
    ]
    return [
        *block("SIMULATED", f"{head}; {sure}", style),
        *table(("#", "counted s", "simulated s", "x"), rows, style, "r"),
    ]

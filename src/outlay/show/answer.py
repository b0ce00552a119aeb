"""The first lines of an answer: verdict, step, idle time, what binds, and what to attack next."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isfinite

from ..bill import Bill
from ..holding import Item
from ..quantities import GIB
from ..search.advice import Advice
from .labels import NOT_LEGAL, VERDICTS, attack, label
from .text import BAD, GOOD, WARN, Style, block, both, counted, duration, figure, gib, percent, short

CLOSE = 0.9  # two terms within 10 % of each other are both named
WORTH = 0.02  # a part below this share is not worth a change


def verdict_of(bill: Bill) -> str:
    """The first word of an answer."""
    return NOT_LEGAL if bill.memory.verdict is None else VERDICTS[bill.memory.verdict]


def colour_of(bill: Bill) -> str:
    """The one accent: of the verdict."""
    return {"fits": GOOD, "tight": WARN}.get(bill.memory.verdict or "", BAD)


def says_yes(bill: Bill) -> bool:
    """Whether the layout is legal and fits, if only just."""
    return bill.memory.verdict in ("fits", "tight")


def headline(bill: Bill, style: Style) -> list[str]:
    """The verdict in a word and the memory behind it: stock first, both units, the worst rank by name."""
    sentence = {
        "FITS": _fits,
        "TIGHT": _tight,
        "DOES NOT FIT": _too_much,
        "IMPOSSIBLE": _impossible,
        NOT_LEGAL: _illegal,
    }[verdict_of(bill)](bill)
    return block(verdict_of(bill), sentence, style, f"1;{colour_of(bill)}")


def _held(bill: Bill) -> str:
    memory = bill.memory
    return f"{both(memory.peak_bytes)} of {both(memory.usable_bytes)} usable"


def _band(bill: Bill) -> str:
    low, high = bill.memory.peak_band_bytes
    return f"between {figure(low / GIB)} and {figure(high / GIB)} GiB; {where(bill)}"


def where(bill: Bill) -> str:
    """The worst rank, by name."""
    worst = bill.memory.worst_rank
    return f"rank {worst.rank} is the heaviest: {worst.why}" if bill.cluster.ranks > 1 else "one rank"


def _fits(bill: Bill) -> str:
    return f"{_held(bill)}, {gib(bill.memory.usable_bytes - bill.memory.peak_bytes)} free; {_band(bill)}"


def _tight(bill: Bill) -> str:
    return f"{_held(bill)}; what is usable lies {_band(bill).replace('; ', ', so it may run out; ', 1)}"


def _too_much(bill: Bill) -> str:
    over = bill.memory.peak_band_bytes[0] - bill.memory.usable_bytes
    return f"{_held(bill)}; {gib(over)} too much even at the lower end; {_band(bill)}"


def _impossible(bill: Bill) -> str:
    memory, ranks = bill.memory, bill.cluster.ranks
    if not isfinite(memory.impossible_factor):
        return f"nothing of {both(memory.capacity_bytes)} is left: --reserved takes {both(bill.job.reserved_bytes)}"
    state = memory.impossible_factor * memory.usable_bytes
    cards = ceil(memory.impossible_factor * ranks)
    return (
        f"on {counted(ranks, 'card')}: the state alone is {both(state)} a card, of"
        f" {both(memory.usable_bytes)} usable: {figure(memory.impossible_factor)} times too much."
        f" Recompute and micro-batch do not touch state. State fits from {counted(cards, 'card')} on, or with offload"
    )


def _illegal(bill: Bill) -> str:
    count = len(bill.violations)
    over = bill.memory.peak_bytes > bill.memory.usable_bytes
    return (
        f"{counted(count, 'rule')} {'are' if count > 1 else 'is'} broken, listed below. Figures are of the layout as"
        f" it is written: {both(bill.memory.peak_bytes)} on rank {bill.memory.worst_rank.rank},"
        f" {'more than' if over else 'of'} {both(bill.memory.usable_bytes)} usable"
    )


def step_line(bill: Bill, style: Style) -> list[str]:
    """Seconds with their band, and the rates."""
    step = bill.step
    low, high = step.band_seconds
    again = f"   HFU {percent(step.hfu)}" if step.hfu > 1.0005 * step.mfu else ""
    return block(
        "STEP",
        f"{duration(step.seconds)} ({duration(low)} to {duration(high)})   {short(step.tokens_per_second)} tokens/s  "
        f" {step.tokens_per_second_per_device:,.0f} a card   MFU {percent(step.mfu)}{again}",
        style,
    )


def ramp_line(bill: Bill, style: Style) -> list[str]:
    """What the run costs before its batch is whole."""
    ramp = bill.rampup
    if not ramp or not ramp.sizes:
        return []
    first, last = ramp.sizes[0], ramp.sizes[-1]
    text = (
        f"batch {first.global_batch:,} to {last.global_batch:,} in {counted(len(ramp.sizes), 'size')}:"
        f" {ramp.steps:,} steps, {short(ramp.tokens)} tokens, {figure(ramp.seconds / 86400)} days,"
        f" idle {percent(ramp.idle_share)};"
        f" then {bill.job.global_batch:,}"
    )
    return block("RAMP", text, style)


def idle_line(bill: Bill, style: Style) -> list[str]:
    """Share beside seconds: the pipeline's fill and drain."""
    bubble = bill.bubble
    if bill.layout.pp == 1:
        return block("IDLE", "0 % = 0 s: no pipeline", style)
    idle = Fraction(bubble.slots).limit_denominator(10**6) - Fraction(
        bubble.useful_slots / bill.layout.pp
    ).limit_denominator(10**6)
    text = (
        f"{percent(bubble.share)} = {duration(bubble.seconds)} a step: pipeline fill and drain,"
        f" {float(idle):,g} of {bubble.slots:,g} slots"
    )
    return block("IDLE", text, style)


def binds_line(bill: Bill, style: Style) -> list[str]:
    """What binds now; two terms within a tenth of each other are both named."""
    if bill.memory.verdict == "impossible":
        return block(
            "BINDS",
            f"the state, {both(bill.memory.unsharded_state_bytes)} over {counted(bill.cluster.ranks, 'card')}",
            style,
        )
    items, total = _binding(bill)
    text = " and ".join(_amount(item, bill) for item in _leading(items))
    return block("BINDS", f"{text}, of {total}", style)


def unadvised_line(bill: Bill, style: Style) -> list[str]:
    """Why --advise names no faster layout; nothing where the ways to fit are said."""
    if bill.memory.verdict == "fits" and not bill.violations:
        return block("FASTER", "nothing: no single change of the layout saves time and fits for sure", style)
    sure = "a faster layout is sought beside one that is legal and fits for sure"
    return block("FASTER", sure, style) if bill.violations else []


def next_line(bill: Bill, advice: Sequence[Advice], style: Style) -> list[str]:
    """What to attack next: the changes that make it fit, else the largest part that a layout can change, and how."""
    if advice and bill.memory.verdict == "fits":
        return block("FASTER", "; ".join(_saving(each, bill) for each in advice), style)
    if advice:
        fitting = [f"{each.flag} fits: {both(each.peak_bytes)}, {duration(each.seconds)} a step" for each in advice]
        return block("NEXT", "; or ".join(fitting), style)
    if not isfinite(bill.memory.impossible_factor):
        return block("NEXT", "a smaller --reserved", style)
    if bill.memory.verdict == "impossible":
        ways = "the state: more cards, --offload-optimizer 1, fewer --bytes a parameter, or training less of the model"
        return block("NEXT", ways, style)
    items, total = _binding(bill)
    whole = bill.memory.peak_bytes if bill.binds.term == "memory" else bill.step.seconds
    able = [item for item in items if item.name not in ("arithmetic", "buffers")]
    able = [item for item in able if item.value >= WORTH * whole and item.value > 0]
    if not able:
        text = f"nothing: {_amount(items[0], bill)}; no part that a layout changes reaches 2 % of {total}"
        return block("NEXT", text, style)
    ways = attack(bill.binds.term, able[0].name, bill.layout, bill.engine)
    return block("NEXT", f"{_amount(able[0], bill)}: {ways}", style)


def _saving(each: Advice, bill: Bill) -> str:
    """One change, the step with it, and its peak."""
    less = percent(1 - each.seconds / bill.step.seconds)
    return f"{each.flag} {duration(each.seconds)} ({less} less), {gib(each.peak_bytes)}"


def _binding(bill: Bill) -> tuple[list[Item], str]:
    """Parts of what binds, largest first, and their total in words."""
    of_memory = bill.binds.term == "memory"
    items = sorted(bill.memory.items if of_memory else bill.step.items, key=lambda item: -item.value)
    total = gib(bill.memory.peak_bytes) if of_memory else duration(bill.step.seconds)
    return items, total


def _leading(items: list[Item]) -> list[Item]:
    return [item for item in items[:2] if item.value >= CLOSE * items[0].value]


def _amount(item: Item, bill: Bill) -> str:
    if bill.binds.term == "memory":
        return f"{label(item.name)} {gib(item.value)} ({percent(item.value / bill.memory.peak_bytes)})"
    return f"{label(item.name)} {duration(item.value)} ({percent(item.value / bill.step.seconds)})"

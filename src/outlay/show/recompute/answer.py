"""The best recompute of a layout in the terminal: what it costs, layer by layer, beside what the engine offers."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...bill import Bill
from ...engines.engine import MEGATRON
from ...quantities import GIB
from ...search.recompute.offered import Choice
from ...search.recompute.stages import SAME, Group, Recompute
from ..terminal import assumed_lines, loud_lines, subject_lines
from ..text import BAD, GOOD, Style, block, both, counted, duration, figure, gib, percent, table, wrapped
from .policy import policy_part
from .textbook import textbook_part

ROWS, LABEL, MOST_SPOTS, MOST_POINTS = 9, 10, 100, 8  # of the drawn curve, and of its table
CONVENTION = (
    "tapes are what all passes in flight keep and what stands while some of it runs again; a checkpoint stops when it"
    " has what it needs, but for layers in full, as the engine runs them; at most 16 layers from one input; kernel"
    " times are modelled"
)


@dataclass(frozen=True)
class Answer:
    """What is shown: the plan, the bill of the layout where nothing is computed again, and files that were written."""

    found: Recompute
    bill: Bill
    files: tuple[str, ...] = ()


def recompute_lines(answer: Answer, style: Style) -> list[str]:
    """The answer first, then how it is made, what the engine offers, and the curve."""
    found, bill = answer.found, answer.bill
    return [
        *headline(found, style),
        *loud_lines(bill, style),
        "",
        *subject_lines(bill, style),
        "",
        *layer_part(found, style),
        "",
        *engine_part(found, style),
        "",
        *(flag_part(found, style) if bill.engine.name in MEGATRON else policy_part(found, style)),
        "",
        *curve_part(found, style),
        "",
        *textbook_part(found, style),
        "",
        *room_part(found, style),
        *assumed_lines(bill.assumptions, style),
        *block("COUNTS", CONVENTION, style),
        *(block("WROTE", ", ".join(answer.files), style) if answer.files else []),
        *block("MORE", "--budget 40GiB   |   --modules mlp   |   --svg f.svg   |   --json", style),
    ]


def headline(found: Recompute, style: Style) -> list[str]:
    """One sentence: more time for less memory, or that none is needed, or that no plan is enough."""
    left = "of the budget" if found.budget is not None else "left"
    whole = found.choices[0].needed
    best = found.outcome
    if best is None:
        return block("BELOW THE FLOOR", f"{floor_words(found)}. {what_makes_it(found)}", style, f"1;{BAD}")
    if not best.seconds:
        text = f"nothing: all tapes take {both(whole)} of {both(found.room)} {left}"
        return block("RECOMPUTE", text, style, f"1;{GOOD}")
    more = best.seconds
    text = (
        f"{duration(more)} more a step, {percent(more / found.plain_seconds)} of {duration(found.plain_seconds)}: tapes"
        f" then take {both(best.needed)} of {both(found.room)} {left}; all of them would"
        f" take {both(whole)}"
    )
    return block("RECOMPUTE", text, style, f"1;{GOOD}")


def floor_words(found: Recompute) -> str:
    """That no plan is enough: the least memory, and what there is."""
    least, room = both(found.least.needed), found.room
    if room < 0:
        return f"no plan fits: without any tape {both(-room)} are lacking, and tapes need {least} at the least"
    left = "of the budget" if found.budget is not None else "left"
    return f"no plan needs less than {least} for tapes, and there are {both(room)} {left}"


def what_makes_it(found: Recompute) -> str:
    """What makes the least memory."""
    if found.least.choice:
        return f"That is the engine's own choice, {found.least.choice.name}"
    room, least = found.plan.room, found.floor
    kept = room.held(found.plan.kept_bytes(least), 0.0)
    again = found.needed(least) - kept
    tapes = sum(group.layers for group in found.plan.groups(least) if not group.length)
    also = f" and of what {counted(tapes, 'layer')} keep" if tapes else ""
    reason = "the head's logits stand" if room.standing > least.spare * found.plan.unit else "layers run again"
    more = f", and {gib(again)} while {reason}" if again else ""
    return f"It is {gib(kept)} of inputs{also}, for {passes_words(room.passes)} in flight{more}"


def passes_words(passes: float) -> str:
    """How many passes: `1 pass`, `4.6 passes`."""
    return f"{passes:.3g} {'pass' if passes == 1 else 'passes'}"


def layer_part(found: Recompute, style: Style) -> list[str]:
    """What is done with the layers of the stage that binds."""
    room = found.plan.room
    whole = room.case.layout.pp == 1
    where = "all layers" if whole else f"the {len(room.layers)} layers of {stage_name(found)}, which binds"
    lines = block("LAYERS", f"of {where}; others may keep more" if not whole else f"of {where}", style)
    own = (found.outcome or found.least).choice
    if own:
        return [*lines, *wrapped(f"as the engine's own choice, {own.name}", style, 2, 6)]
    for group in found.groups:
        lines += wrapped(group_words(group), style, 2, 6)
    return lines


def stage_name(found: Recompute) -> str:
    """The stage by its number."""
    return f"stage {int(found.plan.room.stage.rank)}"


def group_words(group: Group) -> str:
    """Some layers in words."""
    layers = f"{group.layers} {group.kind}"
    held = f"{figure(group.kept / GIB)} GiB a layer and pass"
    if not group.again:
        return f"{layers}: keep everything, {held}"
    if group.length:
        inputs = "its input" if group.length == 1 else f"one input in {group.length} layers"
        return f"{layers}: in full, keep {inputs}, {held}; {duration(group.seconds)} again"
    return f"{layers}: keep {held}; {duration(group.seconds)} again: {', '.join(group.again)}"


def engine_part(found: Recompute, style: Style) -> list[str]:
    """The engine's own choices beside the best."""
    rows = [
        _row(each.name, each.needed, each.peak, found.choice_seconds(each), found, each.fits) for each in shown(found)
    ]
    last, name = (found.outcome, "the best") if found.outcome else (found.least, "the floor")
    rows.append(_row(name, last.needed, last.peak, last.seconds, found, bool(found.outcome)))
    heads = ("choice", "tapes GiB", "peak GiB", "more a step", "of step", "")
    return [*block("BESIDE", "what the engine itself offers", style), *table(heads, rows, style, "l")]


def _row(name: str, needed: float, peak: float, more: float, found: Recompute, fits: bool) -> tuple[str, ...]:
    share = percent(more / found.plain_seconds)
    verdict = "" if fits else "does not fit"
    return name, figure(needed / GIB), figure(peak / GIB), duration(more), share, verdict


def shown(found: Recompute) -> list[Choice]:
    """The choices worth a line: none, selective, the asked, the fewest layers that fit, all, and the least memory."""
    by_name = {choice.name: choice for choice in found.choices}
    blocks = [choice for choice in found.choices if "block" in choice.flags]
    uniform = [choice for choice in found.choices if "uniform" in choice.flags]
    modules = [choice for choice in found.choices if choice.name.startswith("selective") and choice.fits]
    picked = [by_name.get("none"), by_name.get("selective: core_attn"), found.asked]
    picked += sorted(modules, key=lambda choice: choice.extra)[:1]
    picked += [next((choice for choice in blocks if choice.fits), None), blocks[-1]]
    picked += sorted(uniform, key=lambda choice: choice.needed)[:1]
    return list({choice.name: choice for choice in picked if choice}.values())


def flag_part(found: Recompute, style: Style) -> list[str]:
    """The answer as Megatron's flags: what they can say of it."""
    return block("FLAGS", flag_words(found), style)


def flag_words(found: Recompute) -> str:
    """The flags of the engine's choice that takes least time and fits, and what is lost by them."""
    offered = found.offered
    if offered is None:
        return "none of Megatron's own choices fits"
    flags = offered.flags or "none: leave --recompute-granularity out"
    lost = found.choice_seconds(offered) - (found.outcome.seconds if found.outcome else 0.0)
    said = f"; {duration(lost)} a step more than the best, which these flags cannot say" if lost > 0 else ""
    return f"{flags}{said}"


def room_part(found: Recompute, style: Style) -> list[str]:
    """Where the room for tapes comes from."""
    room = found.plan.room
    accelerator = room.case.cluster.accelerator
    usable = accelerator.memory_bytes - accelerator.context_bytes - room.case.job.reserved_bytes
    rest = f"the rest, less buffers, is {gib(room.room)}" if room.room >= 0 else f"{gib(-room.room)} too much"
    text = (
        f"{gib(usable)} usable, {gib(room.state)} of it state, {gib(room.beside)} gradients of values; {rest};"
        f" {passes_words(room.passes)} in flight"
    )
    return block("ROOM", text, style)


# --- the curve ------------------------------------------------------------------------------------------------------


Spot = tuple[float, float]  # bytes for tapes, and seconds that a step takes longer


def curve(found: Recompute) -> list[Spot]:
    """The least time under each memory, of the plans found and of the engine's own choices: every step of the stair.

    The bytes of a plan are rounded. One that costs no time is the choice `none`, whose bytes are not.
    """
    spots = [(point.needed, found.seconds(point)) for point in found.plan.points]
    spots = [(memory, more) for memory, more in spots if more > SAME]
    spots += [(choice.needed, found.choice_seconds(choice)) for choice in found.choices]
    front: list[Spot] = []
    for memory, more in sorted(spots):
        if not front or more < front[-1][1] - SAME:
            front.append((memory, more))
    return front


def thinned(spots: Sequence[Spot], most: int = MOST_SPOTS) -> list[Spot]:
    """Spots evenly over the range of memory, both ends among them."""
    if len(spots) <= most:
        return list(spots)
    low, high = spots[0][0], spots[-1][0]
    steps = [int((memory - low) / (high - low) * (most - 1)) for memory, _ in spots]
    picked: dict[int, int] = dict(zip(steps, range(len(spots)), strict=True))  # the last spot of each step
    return [spots[place] for place in sorted({0, *picked.values(), len(spots) - 1})]


def curve_part(found: Recompute, style: Style) -> list[str]:
    """The curve of memory against time: drawn for people at a terminal, a table elsewhere."""
    about = "memory for tapes against what a step takes longer; each point is the best under its memory"
    lines = block("CURVE", about, style)
    if not style.bars:
        rows = [
            (figure(memory / GIB), duration(more), percent(more / found.plain_seconds))
            for memory, more in thinned(curve(found), MOST_POINTS)
        ]
        return [*lines, *table(("tapes GiB", "more a step", "of step"), rows, style)]
    return [*lines, *drawn(thinned(curve(found)), found.room, style)]


def drawn(points: Sequence[tuple[float, float]], room: float, style: Style) -> list[str]:
    """The curve in characters, and the room as a line where it stands on the axis."""
    width = style.width - LABEL - 12
    left, right = 0.0, max(memory for memory, _ in points)
    high = max(more for _, more in points) or 1.0
    grid = [[" "] * (width + 1) for _ in range(ROWS)]
    at = round(room / right * width) if 0 < room <= right else None
    for row in grid:
        if at is not None:
            row[at] = "|"
    for memory, more in points:
        grid[ROWS - 1 - round(more / high * (ROWS - 1))][round((memory - left) / right * width)] = "*"
    lines = [f"{'more s':>{LABEL}}"]
    for place, cells in enumerate(grid):
        label = figure(high * (1 - place / (ROWS - 1))) if place % 2 == 0 else ""
        lines.append(f"{label:>{LABEL}} |{''.join(cells)}".rstrip())
    lines.append(f"{'':>{LABEL}} +{'-' * (width + 1)}")
    return [*lines, _axis(right, width, at, room)]


def _axis(right: float, width: int, at: int | None, room: float) -> str:
    text = [" "] * (width + 14)
    for place in (0, width // 2, width):
        mark = figure(right * place / width / GIB)
        text[place : place + len(mark)] = mark
    if at is not None:
        name = f"room {figure(room / GIB)} GiB"
        start = max(8, min(at, width - len(name)))
        text[start : start + len(name)] = name
    return (" " * (LABEL + 2) + "".join(text)).rstrip()

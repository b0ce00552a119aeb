"""The parts of a plan under its answer: ranking, baselines, clusters tried, why, what was rejected, the space."""

import re
import textwrap
from collections.abc import Sequence

from ...bill import Bill
from ...layout.axes import Layout
from ...layout.complete import flag
from ...layout.rules import RULES
from ...quantities import GIB
from ...search.plan import Plan, Ranked
from ...search.space import Space
from ..answer import says_yes
from ..labels import VERDICTS
from ..layouts import common_words, layout_flags, option_words
from ..text import Style, block, counted, duration, figure, percent, short, table, wrapped

MOST_COLUMNS = 10
ALWAYS = ("tp", "pp", "dp")
SOMETIMES = ("cp", "ep", "vpp", "micro_batch")
HEADS = {"micro_batch": "mbs"}
EXTRA = ("idle", "MFU")
UNSAID = ("vpp 1", "mbs 1")  # options that are 1 everywhere
LEAST_ROOM = 16  # columns of the options


def best_part(found: Plan, style: Style) -> list[str]:
    """The ranking: degrees, time and memory, and what differs besides. What all share is said once."""
    layouts = [each.layout for each in found.best]
    shown, common = _degrees(layouts), common_words(layouts, found.model)
    words = [option_words(layout, found.model) for layout in layouts]
    varied = [name for name in words[0] if name not in common and name not in shown]
    options = [", ".join(each[name] for name in varied if each[name]) for each in words]
    fixed = [text for name, text in common.items() if text and name not in shown and text not in UNSAID]
    lines = _ranking(found, shown, options, style)
    whole = "in all of them" if len(layouts) > 1 else "with"
    about = (
        "; recompute 10: so many layers of a stage, in full" if re.search(r"recompute \d", " ".join(options)) else ""
    )
    return [*lines, *(wrapped(f"{whole}: {', '.join(fixed)}{about}", style, 2, 4) if fixed else [])]


def _ranking(found: Plan, shown: Sequence[str], options: Sequence[str], style: Style) -> list[str]:
    """The rows. Options stand last, and fold beside their row; idle time and MFU are shown where there is room."""
    heads = ["#", *(HEADS.get(name, name) for name in shown), "step s", "x", "peak GiB"]
    fixed = [_ranked(place, each, shown, found.best[0]) for place, each in enumerate(found.best, 1)]
    longest, able = max(map(len, options)), MOST_COLUMNS - len(heads) - any(options)
    for count in range(max(0, min(able, len(EXTRA))), -1, -1):
        extra = EXTRA[:count]
        rows = [(*row, *(_extra(each.bill)[name] for name in extra)) for row, each in zip(fixed, found.best)]
        lines = table((*heads, *extra), rows, Style(10_000, style.colour), "r")
        width = max(len(line) for line in lines[1:])
        if width + (longest + 2 if longest else 0) <= style.width:
            break
    if longest:
        room = max(LEAST_ROOM, style.width - width - 2)
        folded = [textwrap.wrap(text, room) or [""] for text in options]
        head = lines[0] + "  " + style.paint("options", "2")
        lines = [head, *(line for row, more in zip(lines[1:], folded) for line in _beside(row, more, width))]
    left = [name for name in EXTRA[:able] if name not in extra]
    return [*lines, *(wrapped(f"(not shown at {style.width} columns: {', '.join(left)})", style, 2, 2) if left else [])]


def _beside(row: str, texts: Sequence[str], width: int) -> list[str]:
    """A row and its last column, folded."""
    return [f"{row if place == 0 else '':<{width}}  {text}".rstrip() for place, text in enumerate(texts)]


def _degrees(layouts: Sequence[Layout]) -> list[str]:
    """Columns of degrees: three always, others where one of the layouts has them."""
    room = MOST_COLUMNS - 5 - len(ALWAYS)
    used = [name for name in SOMETIMES if any(getattr(layout, name) > 1 for layout in layouts)][:room]
    return [name for name in ("tp", "cp", "pp", "ep", "vpp", "dp", "micro_batch") if name in (*ALWAYS, *used)]


def _ranked(place: int, each: Ranked, shown: Sequence[str], first: Ranked) -> tuple[str, ...]:
    degrees = (str(int(getattr(each.layout, name))) for name in shown)
    seconds = each.bill.step.seconds
    ratio, peak = f"{seconds / first.bill.step.seconds:.3f}", figure(each.bill.memory.peak_bytes / GIB)
    return (str(place), *degrees, figure(seconds, 4), ratio, peak)


def _extra(bill: Bill) -> dict[str, str]:
    return {"idle": _idle(bill), "MFU": percent(bill.step.mfu)}


def _idle(bill: Bill) -> str:
    return f"{percent(bill.bubble.share)} = {duration(bill.bubble.seconds)}" if bill.layout.pp > 1 else "0"


def baseline_part(found: Plan, style: Style) -> list[str]:
    """The best of each plainer kind; one that does not fit says by what factor."""
    base = found.best[0].bill.step.seconds if found.best else None
    rows = []
    for each in found.baselines:
        if each.ranked is None:
            rows.append((each.name, "-", "-", "-", "no legal layout"))
            continue
        bill = each.ranked.bill
        over = bill.memory.peak_bytes / bill.memory.usable_bytes if bill.memory.usable_bytes > 0 else float("inf")
        fits = says_yes(bill)
        times = f"{bill.step.seconds / base:.3f}" if base and fits else "-"
        seconds = figure(bill.step.seconds, 4) if fits else "-"
        verdict = VERDICTS[bill.memory.verdict or "fits"].lower() if fits else f"{figure(over)} times too much"
        rows.append((each.name, seconds, times, figure(bill.memory.peak_bytes / GIB), verdict))
    heads = ("", "step s", "x", "peak GiB", "")
    lines = [*block("BASELINES", "the best of plainer kinds of layout", style), *table(heads, rows, style, "lrrrl")]
    for each in found.baselines:
        if each.ranked is not None and says_yes(each.ranked.bill):
            lines += wrapped(f"{each.name}: {layout_flags(each.ranked.layout, found.model, found.engine)}", style, 2, 6)
    return lines


def rejected_part(found: Plan, style: Style) -> list[str]:
    """What the search left out, by rule, and how many."""
    search = found.search
    words = {rule.code: rule.what for rule in reversed(RULES)}
    rows = [(each.count, f"{words.get(each.rule, each.rule)} ({each.rule})") for each in found.rejected]
    rows.append((search.duplicates, "are another one under a second name"))
    rows.append((search.did_not_fit, "are legal and do not fit"))
    texts = [f"{short(count)} {text}" for count, text in sorted(rows, reverse=True) if count]
    return block("REJECTED", f"of {short(search.space)} combinations: " + "; ".join(texts), style) if texts else []


def space_part(found: Plan, width: str, style: Style) -> list[str]:
    """The declared values of every field."""
    space = found.space
    values = {name: _list(each) for name, each in space.degrees.items()}
    texts = [f"{flag(name)[2:]} {text}" for name, text in values.items() if len(space.degrees[name]) > 1]
    fixed = [f"{flag(name)[2:]} {text}" for name, text in values.items() if len(space.degrees[name]) == 1]
    texts += [f"schedule {_list(space.schedules)}", f"recompute {_recompute(space)}", f"zero {_zero(space)}"]
    texts += [f"{flag(name)[2:]} {_list(getattr(space, name))}" for name in ("overlap_tp", "overlap_dp")]
    texts.append(f"offload-optimizer {_list(space.offload_optimizer)}")
    more = ("overlap_ep", "offload_parameters", "offload_activations")
    texts += [f"{flag(name)[2:]} {_list(getattr(space, name))}" for name in more if len(getattr(space, name)) > 1]
    one = f"; only {', '.join(fixed)}" if fixed else ""
    said = f"{width}, {counted(space.size, 'combination')}: {'; '.join(texts)}{one}"
    return block("SPACE", said, style)


def _list(values: Sequence[object]) -> str:
    texts = [f"{value:g}" if isinstance(value, float) else str(value).lower() for value in values]
    return " ".join(texts)


def _recompute(space: Space) -> str:
    parts = [part for kind, part in space.recompute if kind == "full"]
    kinds = dict.fromkeys(kind for kind, _ in space.recompute)
    if space.recompute_modules not in ((), ("core_attn",)) and "selective" in kinds:
        kinds = kinds | {f"({', '.join(space.recompute_modules)})": None}
    share = f" ({parts[0]}/{space.parts} to {parts[-1]}/{space.parts} of a stage's layers)" if len(parts) > 1 else ""
    return " ".join(kinds) + share


def _zero(space: Space) -> str:
    inside = dict.fromkeys(str(stage) for stage, domains in space.zero if domains)
    stages = " ".join(str(stage) for stage, domains in space.zero if not domains)
    several = (
        f" {' '.join(map(str, space.domains))} scale-up domains" if space.domains != (1,) else " a scale-up domain"
    )
    return stages + (f" (and {' '.join(inside)} with shards inside{several})" if inside else "")

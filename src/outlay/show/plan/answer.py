"""A plan in the terminal: the best layout first, then what proves it, what is near it, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...model.model import Model
from ...search.plan import Plan, Ranked
from ...search.retimed import Simulation
from ...search.several import Several, Tried
from ...search.why import Reason
from ...search.worth import Worth
from ...undivided import parameters
from ..answer import binds_line, headline, step_line, where
from ..layouts import layout_flags, mesh
from ..parts import memory_part
from ..terminal import assumed_lines, closing_lines, loud_notes, model_words, subject_lines
from ..text import BAD, GOOD, WARN, Style, block, both, counted, duration, figure, gib, percent, short, wrapped
from ..whole_run import run_text
from .frontier import frontier_part
from .parts import baseline_part, best_part, rejected_part, space_part
from .sought import others_text, sought_text, tried_part
from .why import asked_part, simulated_part, why_part, worth_part

if TYPE_CHECKING:
    from ...search.mixed.best import Mixes
    from ...search.orders.plan import Orders


@dataclass(frozen=True)
class Answer:
    """A plan, and how it was asked for; with several clusters, those that were tried."""

    plan: Plan
    width: str
    objective: str = "time"
    several: Several | None = None  # searches, where there were several
    notes: tuple[str, ...] = ()
    worths: tuple[Worth, ...] = ()
    why: Reason | None = None  # of the values that were asked about
    simulation: Simulation | None = None  # of the ranking
    resplit: int | None = None  # layouts that have another split than the engine's own, where that was sought
    mixed: "Mixes | None" = None  # a strategy for each layer, where that was sought
    models: tuple[Model, ...] = ()  # as they were given
    orders: "Orders | None" = None  # of the passes of the best pipelines, where others were asked for

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The searches in short, where there were several."""
        return self.several.tried if self.several else ()


def plan_lines(answer: Answer, style: Style) -> list[str]:
    """The whole answer."""
    found = answer.plan
    loud = loud_notes((*answer.notes, *found.assumptions), style)
    front = _front(answer, style)
    tried = ["", *tried_part(answer, style)] if answer.tried else []
    asked = asked_part(found, answer.why, style) if answer.why else []
    return [*front, *asked, *loud, *tried, *_middle(answer, style), *_end(answer, style)]


def _front(answer: Answer, style: Style) -> list[str]:
    """The answer itself."""
    found = answer.plan
    if found.best:
        fewest = sought_text(answer)
        first = block(*fewest, style, f"1;{GOOD}") if fewest else []
        first += [*best_lines(found, style), *_proved_line(found, style), *_split_line(answer, style)]
        return [*first, *_mixed_part(answer, style), *_close_line(found, style)]
    if found.smallest:
        least = [*_smallest_lines(answer, found.smallest, style), *_proved_line(found, style)]
        return [*least, *_split_line(answer, style), *_mixed_part(answer, style)]
    return _empty_lines(found, style)


def best_lines(found: Plan, style: Style) -> list[str]:
    """The best layout as flags, then its time, memory and price."""
    first = found.best[0]
    bill = first.bill
    low, high = bill.step.band_seconds
    time = f"{duration(bill.step.seconds)} a step ({duration(low)} to {duration(high)})"
    rate = f"{short(bill.step.tokens_per_second)} tokens/s   MFU {percent(bill.step.mfu)}"
    memory = bill.memory
    held = f"{both(memory.peak_bytes)} of {both(memory.usable_bytes)} usable"
    free = f"{gib(memory.usable_bytes - memory.peak_bytes)} free; {where(bill)}"
    texts = [f"dp {bill.derived.dp}, {counted(bill.derived.micro_batches, 'micro-batch')} a pipeline"]
    texts += [f"{time}   {rate}", f"{held}, {free}", *run_text(bill)]
    lines = block("BEST", layout_flags(first.layout, found.model, found.engine), style, f"1;{GOOD}")
    return lines + [line for text in texts for line in wrapped(text, style, 10, 10)]


def _proved_line(found: Plan, style: Style) -> list[str]:
    """What the answer is the best of; or that the search was stopped."""
    search = found.search
    fit = search.counted - search.did_not_fit
    rate = f"{figure(search.seconds)} s, {short(search.layouts_per_second)} a second"
    if search.proved and search.pruned:
        legal, first = counted(search.legal, "legal layout"), "best of" if fit else "none fits for sure of"
        size = f"{search.counted:,} counted, the bounds of all others are above; of {short(search.space)} combinations"
        return block("PROVED", f"{first} {legal}; {size}; {rate}; gap 0", style)
    if search.proved:
        legal = counted(search.legal, "legal layout")
        best = f"best of {legal}, {fit:,} of which {'fits' if fit == 1 else 'fit'}"
        best = best if fit else f"none of {legal} fits for sure"
        size = f"every one counted, of {short(search.space)} combinations"
        return block("PROVED", f"{best}; {size}; {rate}; gap 0", style)
    left = f"{search.pruned:,} were not counted, and one of them may be better"
    text = f"stopped after {search.counted:,} of {search.legal:,} legal layouts, {fit:,} of which fit; {left}; {rate}"
    return block("NOT PROVED", text, style, f"1;{WARN}")


def split_text(answer: Answer) -> str:
    """What the best split of each layout changed, and what it leaves open; nothing where it was not sought."""
    if answer.resplit is None:
        return ""
    here = len(answer.plan.best)
    found = f"{answer.resplit} of the {here} here have one" if here else "none of them fits"
    return (
        "with the engine's own split; then the best again, and those that would be with 1.3 times the memory, each with"
        f" its best split: {found}. A layout that was not tried may be faster with its own (--best for more)"
    )


def _split_line(answer: Answer, style: Style) -> list[str]:
    text = split_text(answer)
    return block("SPLIT", text, style) if text else []


def _mixed_part(answer: Answer, style: Style) -> list[str]:
    if answer.mixed is None:
        return []
    from ..mixed import mixed_lines

    return mixed_lines(answer.mixed, style)


def _orders_part(answer: Answer, style: Style) -> list[str]:
    if answer.orders is None:
        return []
    from .orders import orders_part

    return ["", *orders_part(answer.plan, answer.orders, style)]


def _close_line(found: Plan, style: Style) -> list[str]:
    """Whether the second is as good within the bands, and whether the list shows different cuts at all."""
    if len(found.best) < 2:
        return []
    first, second = found.best[0].bill.step, found.best[1].bill.step
    texts = []
    if first.band_seconds[1] >= second.band_seconds[0]:
        inside = sum(each.bill.step.band_seconds[0] <= first.band_seconds[1] for each in found.best)
        which = "1 and 2" if inside == 2 else f"1 to {inside}"
        texts.append(f"{which} overlap within their bands: run the first ones for 20 steps before choosing")
    different = len({mesh(each.layout) for each in found.best})
    if different < len(found.best):
        same = len(found.best) - different
        texts.append(f"{same} of the {len(found.best)} differ from one above in options alone (recompute, ZeRO, ..)")
    return block("CLOSE", "; ".join(texts), style) if texts else []


def _smallest_lines(answer: Answer, smallest: Ranked, style: Style) -> list[str]:
    """Nothing fits: the verdict of the layout that needs least, and its bill."""
    bill = smallest.bill
    none = (
        f"no layout of the space fits for sure on {bill.cluster.name}{others_text(answer)}; the one that needs least is"
    )
    lines = headline(bill, style)
    lines += block("SMALLEST", f"{none} {layout_flags(smallest.layout, answer.plan.model, answer.plan.engine)}", style)
    return [*lines, *step_line(bill, style)]


def _empty_lines(found: Plan, style: Style) -> list[str]:
    """No layout is legal: the rule that empties the space, and the nearest that is not empty."""
    why = found.emptied
    lines = block("NO LAYOUT", "the space holds no legal layout", style, f"1;{BAD}")
    if why is None:
        return lines
    lines += block("RULE", f"{why.what} ({why.code}): {why.rule}", style)
    near = ";  ".join(why.nearest) or "none on this cluster with a batch near this one"
    return [*lines, *block("NEAREST", f"legal: {near}", style)]


def _middle(answer: Answer, style: Style) -> list[str]:
    """The evidence: the ranking, the baselines, the frontier, and why the first is the first."""
    found = answer.plan
    lines: list[str] = []
    if found.best:
        lines += ["", *best_part(found, style)]
        lines += ["", *simulated_part(found, answer.simulation, style)] if answer.simulation else []
    elif found.smallest:
        lines += ["", *subject_lines(found.smallest.bill, style), "", *memory_part(found.smallest.bill, style)]
    lines += _orders_part(answer, style)
    lines += ["", *baseline_part(found, style)] if found.search.legal else []
    lines += ["", *frontier_part(found, style)] if found.frontier else []
    lines += ["", *why_part(found, style)]
    shown = found.best[0] if found.best else found.smallest
    return [*lines, *(binds_line(shown.bill, style) if shown else []), *worth_part(found, answer.worths, style)]


def _end(answer: Answer, style: Style) -> list[str]:
    """What was searched, what was assumed, and where to go from here."""
    found = answer.plan
    job = found.job
    tokens = job.global_batch * job.sequence_length
    said = (
        f"batch {job.global_batch:,} x {job.sequence_length:,} tokens = {short(tokens)} tokens a step, {job.precision}"
    )
    lines = [*rejected_part(found, style), ""]
    if found.best or not found.smallest:
        lines += block("MODEL", model_words(found.model, parameters(found.model)), style)
        lines += block("JOB", f"{said}; {found.cluster.name}, engine {found.engine.name}", style)
    lines += [*space_part(found, answer.width, style), ""]
    assumed = assumed_lines((*answer.notes, *found.assumptions), style)
    shown = found.best[0] if found.best else found.smallest
    if shown is None:
        code = found.emptied.code if found.emptied else "LAY001"
        return [*lines, *assumed, *block("MORE", f"outlay explain {code}", style)]
    more = "--json > plan.json   |   outlay count plan.json: the whole bill   |   --no-offload, --pp 1..8, .. narrow"
    conventions = closing_lines(shown.bill, style, more)
    start = next(index for index, line in enumerate(conventions) if "COUNTS" in line)
    return [*lines, *assumed, *conventions[start:]]

"""Two bills item by item, the largest difference first."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..bill import Bill
from ..engines.profiled import said_of
from ..holding import Item
from ..quantities import GB, GIB
from .answer import colour_of, verdict_of
from .labels import AXES, degrees, label
from .record import Record, head, record
from .terminal import loud_lines, model_text, violation_lines
from .text import Style, block, both, duration, figure, gib, percent, table

SAME = 1e-12  # a relative difference below this is rounding


@dataclass(frozen=True)
class Difference:
    """One figure in both bills."""

    name: str
    unit: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """B less A."""
        return self.b - self.a

    @property
    def ratio(self) -> float | None:
        """B over A; none where A is nothing."""
        return self.b / self.a if self.a else None

    @property
    def differs(self) -> bool:
        """Whether the two are not the same figure."""
        return abs(self.difference) > SAME * max(abs(self.a), abs(self.b))


def _values(items: Iterable[Item]) -> dict[str, float]:
    return {item.name: item.value for item in items}


def _pairs(prefix: str, unit: str, a: dict[str, float], b: dict[str, float]) -> list[Difference]:
    names = dict.fromkeys([*a, *b])
    found = [Difference(f"{prefix}{name}", unit, a.get(name, 0.0), b.get(name, 0.0)) for name in names]
    return sorted(found, key=lambda pair: -abs(pair.difference))


def differences(a: Bill, b: Bill) -> dict[str, list[Difference]]:
    """Memory, time and traffic, each sorted by absolute difference; the totals stand apart."""
    sent = [{item.axis: item.bytes for item in bill.traffic} for bill in (a, b)]
    totals = [
        Difference("peak_bytes", "B", a.memory.peak_bytes, b.memory.peak_bytes),
        Difference("step_seconds", "s", a.step.seconds, b.step.seconds),
        Difference("tokens_per_second", "token/s", a.step.tokens_per_second, b.step.tokens_per_second),
        Difference("mfu", "share", a.step.mfu, b.step.mfu),
        Difference("bubble_share", "share", a.bubble.share, b.bubble.share),
        Difference("bubble_seconds", "s", a.bubble.seconds, b.bubble.seconds),
        Difference("unsharded_state_bytes", "B", a.memory.unsharded_state_bytes, b.memory.unsharded_state_bytes),
    ]
    return {
        "totals": totals,
        "memory": _pairs("memory.", "B", _values(a.memory.items), _values(b.memory.items)),
        "step": _pairs("step.", "s", _values(a.step.items), _values(b.step.items)),
        "traffic": _pairs("traffic.", "B", *sent),
    }


def compare_record(a: Bill, b: Bill) -> Record:
    """Both bills whole, and every difference."""
    items = [
        {
            "name": each.name,
            "unit": each.unit,
            "a": each.a,
            "b": each.b,
            "difference": each.difference,
            "ratio": each.ratio,
        }
        for group in differences(a, b).values()
        for each in group
    ]
    return head("comparison") | {"a": record(a), "b": record(b), "items": items}


def compare_lines(a: Bill, b: Bill, style: Style) -> list[str]:
    """Which is faster and by how much, what it costs in memory, and every item."""
    lines = _answer(a, b, style)
    for name, bill in (("A", a), ("B", b)):
        text = (
            f"{verdict_of(bill)}: {both(bill.memory.peak_bytes)}, {duration(bill.step.seconds)} a step; {_where(bill)}"
        )
        lines += block(name, text, style, f"1;{colour_of(bill)}") + loud_lines(bill, style) + _broken(bill, style)
    found = differences(a, b)
    lines += ["", *_total_lines(found["totals"], style)]
    lines += _group("MEMORY", "of the worst rank, GiB", found["memory"], GIB, style)
    lines += _group("TIME", "of one step, s", found["step"], 1.0, style)
    lines += _group("TRAFFIC", "of one rank in a step, GB", found["traffic"], GB, style)
    return [*lines, "", *block("MORE", "outlay count ...   |   outlay explain step ...   |   --json", style)]


def _where(bill: Bill) -> str:
    said = said_of(bill.cluster)
    text = f"{model_text(bill)}, {bill.cluster.name}, {degrees(bill.layout, bill.derived.dp)}, {bill.engine.name}"
    return f"{text}; {said}" if said else text


def _broken(bill: Bill, style: Style) -> list[str]:
    return ["", *violation_lines(bill.violations, style)] if bill.violations else []


def _answer(a: Bill, b: Bill, style: Style) -> list[str]:
    """By tokens a second, which two batches can be compared in."""
    slow, fast = sorted((a, b), key=lambda bill: bill.step.tokens_per_second)
    if abs(fast.step.tokens_per_second / slow.step.tokens_per_second - 1) <= SAME:
        word, text = "EQUAL", "both take the same time a token"
    else:
        word = "B FASTER" if fast is b else "A FASTER"
        text = f"{fast.step.tokens_per_second / slow.step.tokens_per_second:.3f} times the tokens a second"
        if a.job.global_batch * a.job.sequence_length == b.job.global_batch * b.job.sequence_length:
            text += f", {duration(slow.step.seconds - fast.step.seconds)} less a step"
    more = fast.memory.peak_bytes - slow.memory.peak_bytes
    text += f"; it holds {gib(abs(more))} {'more' if more > 0 else 'less'}" if more and word != "EQUAL" else ""
    low, high = fast.step.band_seconds
    close = low <= slow.step.seconds <= high
    text += ". The bands of the two overlap: run both before choosing" if close and word != "EQUAL" else ""
    return block(word, text, style)


def _total_lines(found: list[Difference], style: Style) -> list[str]:
    rows = [(each.name.replace("_", " "), *_shown(each), _ratio(each)) for each in found]
    return [*block("TOTALS", "", style), *table(("", "A", "B", "B - A", "B / A"), rows, style, "lrrrr", 4)]


def _shown(each: Difference) -> tuple[str, str, str]:
    text = {"B": gib, "s": duration, "share": percent}.get(each.unit, lambda value: f"{value:,.0f}")
    sign = "+" if each.difference > 0 else ""
    return text(each.a), text(each.b), sign + text(each.difference) if each.differs else "same"


def _ratio(each: Difference) -> str:
    return "" if each.ratio is None else f"{each.ratio:.3f}"


def _group(key: str, text: str, found: list[Difference], unit: float, style: Style) -> list[str]:
    rows = []
    for each in found:
        name = each.name.partition(".")[2]
        change = f"{each.difference / unit:+,.3f}" if each.differs else "same"
        rows.append(
            (AXES.get(name) or label(name), figure(each.a / unit, 4), figure(each.b / unit, 4), change, _ratio(each))
        )
    if not rows:
        return []
    return ["", *block(key, text, style), *table(("", "A", "B", "B - A", "B / A"), rows, style, "lrrrr", 4)]

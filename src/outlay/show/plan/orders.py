"""The best pipelines of a plan in other orders of passes: the fastest that fits, a table, and a record."""

from collections.abc import Sequence
from itertools import groupby

from ...engines.tables import engine, engine_names
from ...quantities import GIB
from ...search.orders.plan import SOUGHT, Orders, Reordered
from ...search.plan import Plan
from ..record import Record, plain
from ..text import GOOD, Style, block, counted, duration, figure, percent, table, wrapped

MOST = 12  # rows, beside those of the plan itself
LEAST_GAIN = 5e-4  # of the step's time, that is a gain


def orders_part(found: Plan, orders: Orders, style: Style) -> list[str]:
    """Which order is the fastest that fits, and all near it."""
    if not orders.ranking:
        pipelines = "no layout of the answer has a pipeline" if found.best else "no layout fits"
        return block("ORDERS", pipelines, style)
    fit = [each for each in orders.ranking if each.fits]
    lines = block("ORDERS", _first_text(orders, fit, found), style, f"1;{GOOD}" if fit else "1")
    shown = [each for place, each in enumerate(fit) if place < MOST or each.own]
    lines += table(
        ("#", "order", "chunks", "step s", "x", "peak GiB", "run by", ""), _rows(shown, found), style, "rlrrrrll"
    )
    for text in _texts(orders, shown):
        lines += wrapped(text, style, 2, 4)
    return lines


def _first_text(orders: Orders, fit: Sequence[Reordered], found: Plan) -> str:
    if not fit:
        return "none fits, pass by pass"
    first, own = fit[0], orders.own
    text = (
        f"pass by pass, {_name(first)} on layout {first.place} is the fastest that fits: {duration(first.seconds, 4)}"
    )
    if own is None:
        return f"{text}; in their own orders none does"
    gain = 1 - first.seconds / own.seconds
    if first.own or gain < LEAST_GAIN:
        return f"{text}; no other order gains {percent(LEAST_GAIN)}"
    who = _runners(first, found)
    words = f"--schedule {first.order} --vpp {first.way.chunks} --csv F"
    by_hand = f"no engine here runs it; `outlay draw MODEL .. {words}` writes it for PyTorch"
    run = f"run by {who}" if who else by_hand
    return f"{text}, {percent(gain)} less than {own.order} on layout {own.place}, the fastest of the plan itself; {run}"


def _name(each: Reordered) -> str:
    chunks = "" if each.way.chunks == 1 else f" with {each.way.chunks} chunks a rank"
    return ("an order that was sought" if each.order == SOUGHT else each.order) + chunks


def _rows(shown: Sequence[Reordered], found: Plan) -> list[tuple[str, ...]]:
    first = shown[0].seconds if shown else 1.0
    return [
        (
            str(each.place),
            each.order,
            f"{each.way.chunks}" + (" V" if each.way.folded else ""),
            figure(each.seconds, 4),
            f"{each.seconds / first:.3f}",
            figure(each.peak_bytes / GIB),
            _runners(each, found) or "-",
            _remark(each),
        )
        for each in shown
    ]


def _remark(each: Reordered) -> str:
    said = ["as the plan has it"] if each.own else []
    if each.held is not None and each.proved:
        said.append(f"of these chunks none is shorter that holds {each.held:g}")
    elif each.order == SOUGHT:
        said.append(f"holds {each.held:g} at the most")
    return ", ".join(said)


def _runners(each: Reordered, found: Plan) -> str:
    """The engine of the plan where it runs the order, else the first that does."""
    names = runners(each.order)
    return found.engine.name if found.engine.name in names else next(iter(names), "")


def runners(order: str) -> tuple[str, ...]:
    """The engines here that run a schedule."""
    return tuple(name for name in engine_names() if order in engine(name).schedules)


def _texts(orders: Orders, shown: Sequence[Reordered]) -> list[str]:
    rest = [each for each in orders.ranking if each not in shown]
    fit = sum(each.fits for each in rest)
    texts = (
        [f"not shown: {counted(fit, 'slower one')} that fit, {len(rest) - fit:,} that do not (--json has all)"]
        if rest
        else []
    )
    reasons = sorted(orders.left_out, key=lambda pair: pair[1])
    for why, group in groupby(reasons, key=lambda pair: pair[1]):
        texts.append(f"not run: {', '.join(name for name, _ in group)}: {why}")
    if orders.unsought:
        texts.append(f"the time was over before an order was sought in {orders.unsought:,} ways (--time-limit)")
    return [*texts, "stopped before all were run"] if orders.stopped else texts


def orders_record(orders: Orders) -> Record:
    """The same for JSON."""
    return {
        "ranking": [_record(each) for each in orders.ranking],
        "left_out": dict(orders.left_out),
        "unsought": orders.unsought,
        "stopped": orders.stopped,
    }


def _record(each: Reordered) -> Record:
    names = ("place", "order", "seconds", "peak_bytes", "fits", "own", "held", "proved")
    found = {name: plain(getattr(each, name)) for name in names}
    engines = list(runners(each.order))
    return found | {"chunks": each.way.chunks, "v": each.way.folded, "engines": engines, "layout": plain(each.layout)}

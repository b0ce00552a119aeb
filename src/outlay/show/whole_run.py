"""The whole run in words and in JSON: days, card-hours, money and energy, and what failures leave."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..bill import Bill
from ..whole_run import DAY, HOUR, LEAST, Goodput, Run, goodput_of, run_of
from .money import price_of
from .text import Style, block, counted, duration, figure, percent, short, table, wrapped

AMOUNTS = (
    ("days", "seconds", DAY),
    ("card-hours", "accelerator_hours", 1.0),
    ("USD", "dollars", 1.0),
    ("kWh", "energy_kwh", 1.0),
)
SIZES = ((1e9, 1e9, "billion "), (1e6, 1e6, "million "), (1e4, 1e3, "thousand "))  # from where, by what, its word
HEADS, HEADS_WITH = ("without failures", "low", "high"), ("with failures", "low", "high")
NUMBER, MAYBE = {"type": "number"}, {"type": ["number", "null"]}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
BAND: Mapping[str, Any] = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}


def _whole(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    needed = list(properties)
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, "required": needed}


RUN = _whole(
    {"tokens": NUMBER, "steps": {"type": "integer"}}
    | {key: of for name in ("seconds", "accelerator_hours") for key, of in ((name, NUMBER), (f"band_{name}", BAND))}
    | {
        key: of
        for name in ("dollars", "energy_kwh")
        for key, of in ((name, MAYBE), (f"band_{name}", dict(BAND) | {"type": ["array", "null"]}))
    }
)
TIMES = ("mtbf_seconds", "write_seconds", "restart_seconds", "young_interval_seconds", "interval_seconds")
SHARES = ("share", "writing_share", "lost_share", "restarting_share")
GOODPUT = _whole(
    dict.fromkeys((*TIMES, "interval_steps"), NUMBER)
    | dict.fromkeys(SHARES, SHARE)
    | {"failures": MAYBE, "run": dict(RUN) | {"type": ["object", "null"]}}
)
WHOLE_RUN: Mapping[str, Any] = {"run": RUN, "goodput": GOODPUT}


def run_lines(bill: Bill, style: Style) -> list[str]:
    """The whole run where its tokens are said, and the goodput where the failures are."""
    lines = [line for text in run_text(bill) for line in block("RUN", text, style)]
    if bill.cluster.mtbf_seconds is None or bill.violations:
        return lines
    found = goodput_of(bill)
    text = (
        goodput_text(found, bill) if found else "--storage 200GB/s is needed: a checkpoint takes as long as it writes"
    )
    return [*lines, *block("GOODPUT", text, style)]


def run_text(bill: Bill) -> list[str]:
    """The run without failures as a text; an empty list where its tokens are not said."""
    run = run_of(bill)
    if run is None:
        return []
    per_step = bill.job.global_batch * bill.job.sequence_length
    steps = f"{short(run.tokens)} tokens: {run.steps:,} steps of {short(per_step)} tokens"
    paid = f", {short(run.dollars)} USD at {_price(bill)}" if run.dollars is not None else ""
    more = "" if bill.cluster.mtbf_seconds else " (--mtbf)"
    return [f"{steps}, {_days(run)}, {short(run.accelerator_hours)} card-hours{paid}; without failures{more}"]


def _days(run: Run) -> str:
    low, high = run.band_seconds
    return f"{figure(run.seconds / DAY)} days ({figure(low / DAY)} to {figure(high / DAY)})"


def _price(bill: Bill) -> str:
    price = price_of(bill.cluster)
    assert price is not None
    known = f"list price of {price.date}{', unverified' if price.unverified else ''}"
    return f"{figure(price.dollars / bill.cluster.ranks)} a card-hour ({known})"


def costs_part(bill: Bill, style: Style) -> list[str]:
    """Days, card-hours, money and energy of the run, each with its band; with failures where they are said."""
    run, found = run_of(bill), goodput_of(bill)
    if run is None:
        return []
    runs = [run, found.run] if found and found.run else [run]
    heads = ("", *HEADS, *(HEADS_WITH if len(runs) > 1 else ()))
    rows = [_row(name, field, unit, runs) for name, field, unit in AMOUNTS if getattr(run, field) is not None]
    lines = block("COSTS", "of the whole run; low and high are those of the step", style)
    return [*lines, *table(heads, rows, style, "l", 4), *wrapped(_energy(bill), style, 2, 4), ""]


def _row(name: str, field: str, unit: float, runs: Sequence[Run]) -> tuple[str, ...]:
    """One amount of each run with the ends of its band, in thousands or millions where it is so large."""
    largest = max(getattr(run, field) / unit for run in runs)
    size, word = next(((size, word) for least, size, word in SIZES if largest >= least), (1.0, ""))
    values = [one / unit / size for run in runs for one in (getattr(run, field), *getattr(run, f"band_{field}"))]
    return word + name, *(figure(value, 4) for value in values)


def _energy(bill: Bill) -> str:
    """What the energy rests on; a card whose power is not known says so."""
    card, pue = bill.cluster.accelerator, bill.cluster.pue
    if not card.power_watts:
        return f"no energy: the power of {card.name} is not known"
    site = f"PUE {pue:g}" if pue else "without the site's overhead (--pue)"
    return f"kWh: if a card draws all of its {card.power_watts:,g} W (assumed), hosts and network not counted, {site}"


def goodput_text(found: Goodput, bill: Bill) -> str:
    """Share of the time that trains, what takes the rest, and the run with failures."""
    if found.share < LEAST:
        stops = f"a failure every {span(found.mtbf_seconds)}, and a checkpoint takes {span(found.write_seconds)}"
        return f"none: {stops}, a restart {span(found.restart_seconds)}: the run never ends"
    steps = counted(max(1, round(found.interval_steps)), "step")
    every = f"a checkpoint every {span(found.interval_seconds)} ({steps})"
    rest = (
        f"{percent(found.writing_share)} writes them, {percent(found.lost_share)} is work that failures lose,"
        f" {percent(found.restarting_share)} restarts"
    )
    text = (
        f"{percent(found.share)} of the time is training that stays: a failure every {span(found.mtbf_seconds)} on"
        f" {counted(bill.cluster.ranks, 'card')}, {every}, {span(found.write_seconds)} each; {rest}"
        f" ({span(found.restart_seconds)} each, reading the checkpoint included"
        f"{'' if bill.cluster.restart_seconds else '; --restart 10min adds what else it takes'})"
    )
    if found.run is None or found.failures is None:
        return text
    return f"{text}; {short(found.failures)} failures in {_days(found.run)}"


def span(seconds: float) -> str:
    """A long duration in the unit that suits it: `21.3 min`, `3.1 h`, `4.2 days`."""
    for size, unit in ((2 * DAY, "days"), (2 * HOUR, "h"), (120.0, "min")):
        if seconds >= size:
            return f"{figure(seconds / {'days': DAY, 'h': HOUR, 'min': 60.0}[unit])} {unit}"
    return duration(seconds)

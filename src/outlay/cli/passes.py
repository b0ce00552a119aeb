"""What is asked of a timing diagram: the order of the passes, and how long each takes."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Fault, InputError, quoted
from ..schedule.passes import Order
from ..schedule.times import TICK, Times
from .configuring import standard_input
from .flags import Given
from .values import SECONDS, Faults, count, number, seconds

LARGEST_FILE = 2**28  # bytes
FEW = 300_000  # passes that are always simulated one by one; of a longer step the steady state is left out
MOST_PASSES = 2**22  # forward and backward passes that are simulated one by one
OTHERS = ("pair", "recompute", "send", "gather", "reduce")
COLUMNS = ("forward", "backward", "input_gradient", "weight_gradient", *OTHERS)
SIZES = {"pp": "--pp", "micro_batches": "--micro-batches", "vpp": "--vpp"}
BOTH = {"forward", "backward"}, {"forward", "input_gradient", "weight_gradient"}
HALVES = "each gradient is taken as half of --backward where the two run apart"
NOTHING: tuple[Times, float, tuple[str, ...]] = (Times(1, 1, 1), TICK, ())
FLAGS = {
    "forward": "--forward",
    "backward": "--backward",
    "input_gradient": "--input-gradient",
    "weight_gradient": "--weight-gradient",
}


class Plan(NamedTuple):
    """An order before it is made: its numbers, the stages that a micro-batch goes through, and how to make it."""

    name: str
    pp: int
    vpp: int
    micro_batches: int
    depth: int
    make: Callable[[int], Order]
    slices: int = 1  # that are counted as micro-batches, of one micro-batch
    notes: tuple[str, ...] = ()  # what a picture does not show

    @property
    def passes(self) -> int:
        """Forward and backward passes of a step."""
        return 2 * self.depth * self.micro_batches

    def __str__(self) -> str:
        chunks = f" with {self.vpp} chunks each" if self.vpp > 1 else ""
        slices = f" of {self.slices} slices" if self.slices > 1 else ""
        micro_batches = f"{self.micro_batches // self.slices:,} micro-batches{slices}"
        return f"{self.name}, {self.pp} ranks{chunks}, {micro_batches}"


@dataclass(frozen=True)
class Asked:
    """A pipeline to draw: its order, durations in ticks, and the length of a tick."""

    plan: Plan
    times: Times
    tick: float  # seconds; 0 where no duration was given, so that times are only units
    title: str
    notes: tuple[str, ...] = ()
    copies: int = 1  # accelerators that each rank of the pipeline stands for
    sought: Mapping[str, Any] | None = None  # how good an order is that was sought


def read_asked(given: Given) -> Asked:
    """The pipeline of a command line without a model. Raises every fault."""
    if given.text("schedule") == "best" and given.text("order") is None:
        from .seeking import read_best

        return read_best(given)
    faults = Faults()
    not_sought(given, faults)
    read = _listed if given.text("order") is not None else _named
    plan = read(given, faults)
    depth = plan.depth if plan else 1
    share = plan.pp / depth / plan.slices if plan else 1.0
    times, tick, notes = durations(given, depth, share, faults)
    if plan and plan.passes <= FEW:
        faults.attempt(plan.make, plan.micro_batches)
    faults.stop()
    assert plan is not None
    from .stating import law_of

    return Asked(plan, times, tick, str(plan), (*notes, *plan.notes, *law_of(plan, times)))


def not_sought(given: Given, faults: Faults) -> None:
    """Flags of a search where none is asked for."""
    for name in ("memory_cap", "time_limit"):
        if given.text(name) is not None:
            flag, rule = "--" + name.replace("_", "-"), "it is of a search for the best order"
            faults.add(Fault("DRW002", f"{flag} is of no use here", rule, "no --schedule best", "--schedule best"))


# --- the order ------------------------------------------------------------------------------------------------------


def named(name: str, pp: int, vpp: int, micro_batches: int, even: bool = False, slices: int = 1) -> Plan:
    """A schedule by its name, interleaved in equal rounds if `even`. Raises InputError for a name that is not one.

    Where a micro-batch has several slices, they are what is counted.
    """
    from ..schedule.orders import facts, order, order_in_rounds
    from ..schedule.orders.facts import Shape

    known = facts(name)
    vpp = 2 if known.chunks == "two" else vpp
    depth = {"loop": pp * vpp, "snake": pp * vpp, "folded": 2 * pp, "both": pp}[known.placement]
    said = known.said(Shape(pp, micro_batches * slices, vpp, slices))

    @cache
    def make(wanted: int) -> Order:
        passes = 2 * depth * wanted
        if passes > MOST_PASSES:
            rule = f"a step whose steady state does not repeat is followed up to {MOST_PASSES:,} passes"
            got = f"{name}, pp {pp}, vpp {vpp}, {wanted:,} micro-batches: {passes:,} passes"
            raise InputError(Fault("DRW003", "the step is too long to follow", rule, got, "fewer --micro-batches"))
        if slices > 1:
            return order(name, pp, wanted, vpp, slices)
        return order_in_rounds(name, pp, wanted, vpp, even)

    return Plan(name, pp, vpp, micro_batches * slices, depth, make, slices, (said,) if said else ())


def _named(given: Given, faults: Faults) -> Plan | None:
    """A schedule by the flags. A number that is missing or cannot be read is a fault, and then there is none."""
    from ..schedule.orders import facts

    found = read_sizes(given, faults)
    name = given.text("schedule") or ("interleaved" if (found["vpp"] or 1) > 1 else "1f1b")
    known = faults.attempt(facts, name)
    cut = slices_of(given, name, faults)
    pp, micro_batches = found["pp"], found["micro_batches"]
    if known is None or pp is None or micro_batches is None:
        return None
    return named(name, pp, found["vpp"] or (2 if known.chunks in ("several", "even") else 1), micro_batches, slices=cut)


def read_sizes(given: Given, faults: Faults) -> dict[str, int | None]:
    """Ranks, micro-batches and chunks; those that are needed and not given are faults."""
    found = {name: _count(given, name, flag, faults) for name, flag in SIZES.items()}
    for wanted, example in (("pp", "--pp 4"), ("micro_batches", "--micro-batches 8")):
        if given.text(wanted) is None:
            rule = "a diagram needs a MODEL, or --pp and --micro-batches, or an --order file"
            faults.add(Fault("CLI004", f"{SIZES[wanted]} is not given", rule, "nothing", example))
    return found


def slices_of(given: Given, schedule: str, faults: Faults) -> int:
    """Slices of a micro-batch: those of --slices, 2 unless said, and 1 where the schedule has none."""
    asked = _count(given, "slices", "--slices", faults)
    if asked and schedule != "seq1f1b":
        rule = "seq1f1b cuts the sequences of a micro-batch into slices; other schedules do not"
        faults.add(Fault("DRW002", "--slices is of no use here", rule, f"--schedule {schedule}", "--schedule seq1f1b"))
    return (asked or 2) if schedule == "seq1f1b" else 1


def _count(given: Given, name: str, flag: str, faults: Faults) -> int | None:
    text = given.text(name)
    return None if text is None else count(text, flag, faults)


def _listed(given: Given, faults: Faults) -> Plan | None:
    """The order in a listing."""
    from ..schedule.listing import from_csv

    path = str(given.text("order"))
    extra = [flag for name, flag in (SIZES | {"schedule": "--schedule"}).items() if given.text(name) is not None]
    if extra:
        rule = "the file says how many ranks, chunks and micro-batches there are"
        faults.add(Fault("DRW002", "--order is given with what it decides", rule, ", ".join(extra), "leave them out"))
    text = faults.attempt(text_of, path, "--order")
    read: Order | None = None if text is None else faults.attempt(from_csv, text, "custom")
    if read is None:
        return None
    chunks = max(1, -(-read.stages // len(read.ranks)))
    return Plan(read.name, len(read.ranks), chunks, read.micro_batches, read.depth, lambda micro_batches: read)


def text_of(path: str, flag: str) -> str:
    """The text of a file, or of standard input. Raises InputError (DRW001)."""
    try:
        raw = standard_input() if path == "-" else Path(path).read_bytes()
        if len(raw) > LARGEST_FILE:
            raise ValueError(f"more than {LARGEST_FILE:,} bytes")
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)[:90]
        rule = f"{flag} is a CSV file in UTF-8, or - for standard input"
        raise InputError(Fault("DRW001", f"{quoted(path)} cannot be read", rule, why, "correct the path")) from None


# --- the durations --------------------------------------------------------------------------------------------------


def durations(given: Given, depth: int, share: float, faults: Faults) -> tuple[Times, float, tuple[str, ...]]:
    """Durations in ticks, the tick, and what was assumed. `share` of a rank's work is one virtual stage."""
    said = {name: given.text(name) for name in FLAGS}
    read = {name: seconds(text, FLAGS[name], faults) or 0.0 for name, text in said.items() if text is not None}
    latency, together = given.text("latency"), given.text("pair")
    pair = seconds(together, "--pair", faults) or 0.0 if together is not None else 0.0
    send = seconds(latency, "--latency", faults) or 0.0 if latency is not None else 0.0
    if given.text("times") is not None:
        if read or pair:
            rule = "--times gives the durations of every stage"
            faults.add(_together(rule, [FLAGS[name] for name in read] + ["--pair"] * bool(pair) + ["--times"]))
        text = faults.attempt(text_of, given.text("times"), "--times")
        rows = None if text is None else faults.attempt(read_times, text)
        return (_seconds(rows, send).in_ticks(TICK), TICK, ()) if rows else NOTHING
    if not read:
        if latency is not None:
            faults.add(_together("--latency is a time, so it needs the times of the passes", ["--latency"]))
        if together is not None:
            faults.add(_together("--pair is a time, so it needs the times of the passes", ["--pair"]))
        note = "times are in F, one forward pass of a stage: a backward pass is taken as 2 F, half of it each gradient"
        return Times(1, 1, 1), 0.0, (note,)
    if set(read) not in BOTH:
        faults.add(_together("a backward pass whole, or its two gradients", [FLAGS[name] for name in read]))
        return NOTHING
    rows = {name: [value * share] * depth for name, value in (read | ({"pair": pair} if pair else {})).items()}
    notes = (HALVES,) if "backward" in read else ()
    return _seconds(rows, send).in_ticks(TICK), TICK, notes


def equal_stages(plan: Plan, said: Mapping[str, float]) -> tuple[Times, float]:
    """Durations of the bubble's words: forward, backward and weight, or a slot, of which a third is forward."""
    if not said:
        return Times(1, 1, 1), 0.0
    slot = said.get("slot", 0.0) / 3
    parts = {"forward": said.get("forward", slot)}
    backward = said.get("backward", 2 * slot)
    parts |= (
        {"input_gradient": backward, "weight_gradient": said["weight"]} if "weight" in said else {"backward": backward}
    )
    share = plan.pp / plan.depth / plan.slices
    return _seconds({name: [value * share] for name, value in parts.items()}, 0.0).in_ticks(TICK), TICK


def _together(rule: str, got: list[str]) -> Fault:
    fix = "--forward 10ms --backward 20ms, or --forward 10ms --input-gradient 10ms --weight-gradient 10ms"
    return Fault("DRW002", "the durations do not go together", rule, ", ".join(got), fix)


def _seconds(rows: Mapping[str, list[float]], send: float) -> Times:
    """Rows of seconds as durations; a whole backward pass is cut in half where only it is known."""
    named = {name: value for name, value in rows.items() if name != "backward"}
    if "backward" in rows:
        half = [value / 2 for value in rows["backward"]]
        named |= {"input_gradient": half, "weight_gradient": half, "full_backward": rows["backward"]}
    if send:
        named["send"] = [value + send for value in named["send"]] if "send" in named else [send]
    fixed: dict[str, Any] = {name: value[0] if len(value) == 1 else value for name, value in named.items()}
    return Times(**fixed)


def read_times(text: str) -> dict[str, list[float]]:
    """A table of durations, a row a virtual stage. Raises InputError (DRW004) with all that is wrong."""
    table = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    heads = [head.strip().lower().replace(" ", "_") for head in table[0]] if table else []
    known = [head for head in heads if head in COLUMNS]
    faults = []
    rule = "a row a stage under forward, backward (or input_gradient, weight_gradient)"
    rule += f"; also {', '.join(OTHERS)}"
    if not any(both <= set(known) for both in BOTH) or {"backward", "input_gradient"} <= set(known) or len(table) < 2:
        fix = "forward,backward"
        faults.append(
            Fault("DRW004", "the table of durations lacks its columns", rule, ", ".join(heads) or "nothing", fix)
        )
    unknown = [head for head in heads if head not in (*COLUMNS, "stage")]
    if unknown or len(heads) != len(set(heads)):
        got = ", ".join(map(quoted, unknown)) or "a column twice"
        faults.append(Fault("DRW004", "a column of the table of durations means nothing", rule, got, "remove it"))
    found: dict[str, list[float]] = {head: [] for head in known}
    for line, row in enumerate(table[1:], 2):
        cells = dict(zip(heads, row))
        for head in known:
            value = number(cells.get(head, ""), SECONDS)
            if value is None or not 0 <= value < 1e6:
                got = f"{quoted(cells.get(head, ''))}, row {line}, {head}"
                rule = "a number from 0 on, with s, ms or us"
                faults.append(Fault("DRW004", "a cell of the table is not a duration", rule, got, "10ms"))
            found[head].append(float(value or 0))
    if faults:
        raise InputError(*faults)
    return found

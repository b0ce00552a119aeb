"""One cost by itself: memory with every component, traffic with every axis."""

from typing import TYPE_CHECKING

from ..bill import Bill
from ..items import TrafficItem
from ..job import recipe_of
from ..quantities import GB, GIB
from ..step.traffic import tokens_at_parity
from .answer import headline, says_yes, step_line
from .labels import AXES
from .parts import memory_part
from .record import Record, head, memory, model, plain, traffic
from .terminal import closing_lines, loud_lines, subject_lines, violation_lines
from .text import Style, block, both, duration, figure, percent, short, table, wrapped

if TYPE_CHECKING:
    from ..over_time import OverTime

TENSOR_UNITS = 8  # hidden vectors a token and layer: four all-reduces, of which a ring sends each twice


def _shared(bill: Bill) -> Record:
    return {
        "job": plain(bill.job),
        "cluster": plain(bill.cluster),
        "layout": plain(bill.layout),
        "engine": bill.engine.name,
        "violations": plain(bill.violations),
        "assumptions": list(bill.assumptions),
        "conventions": dict(bill.conventions),
    }


def memory_record(bill: Bill, simulated: "OverTime | None" = None, files: tuple[str, ...] = ()) -> Record:
    """The memory of a bill, and the parameters behind it; over a step, where one was simulated."""
    found = model(bill)
    found["parameters"]["components"] = plain(bill.parameters.components)
    made = head("memory") | {"model": found, "memory": memory(bill.memory)} | _shared(bill)
    if simulated is None:
        return made
    from .over_time import over_time_record

    return made | {"over_time": over_time_record(simulated), "files": list(files)}


def traffic_record(bill: Bill) -> Record:
    """The traffic of a bill, and where tensor parallelism passes data parallelism."""
    found = traffic(bill.traffic) | {"tokens_at_parity": parity(bill)}
    return head("traffic") | {"model": model(bill), "traffic": found, "step_seconds": bill.step.seconds} | _shared(bill)


def memory_lines(
    bill: Bill, style: Style, simulated: "OverTime | None" = None, files: tuple[str, ...] = (), asked: bool = False
) -> list[str]:
    """The verdict, the worst rank, every stage, and every component of the model; the step where it was simulated.

    `asked`: a step was to be simulated. One of a layout that breaks rules is not, which is said.
    """
    without = block("SIMULATED", "no: a layout that breaks rules is not run, and no picture is written", style)
    return [
        *headline(bill, style),
        *loud_lines(bill, style),
        "",
        *violation_lines(bill.violations, style),
        *subject_lines(bill, style),
        "",
        *memory_part(bill, style, every=True),
        "",
        *(_step(bill, simulated, files, style) if simulated else [*without, ""] if asked else []),
        *parameter_part(bill, style),
        "",
        *closing_lines(bill, style, "--simulate --svg f.svg   |   outlay explain memory ...   |   --json"),
    ]


def _step(bill: Bill, simulated: "OverTime", files: tuple[str, ...], style: Style) -> list[str]:
    from .over_time import over_time_lines

    wrote = block("WROTE", ", ".join(files), style) if files else []
    return [*over_time_lines(simulated, bill.memory.usable_bytes, style), *wrote, ""]


def parameter_part(bill: Bill, style: Style) -> list[str]:
    """The parameters of each component, and what state each has before it is divided."""
    owned = bill.parameters
    each_byte = bill.memory.unsharded_state_bytes / owned.total
    rows = []
    for part in owned.components:
        amount = part.each * part.layers
        times = f"{part.each:,} x {part.layers}" if part.layers > 1 else f"{part.each:,}"
        rows.append(
            (part.part, part.name, times, f"{amount:,}", percent(amount / owned.total), figure(amount * each_byte / GB))
        )
    total = ("all", "", "", f"{owned.total:,}", "100 %", figure(bill.memory.unsharded_state_bytes / GB))
    lines = block("PARTS", "of the undivided model, and the state that each has", style)
    return [
        *lines,
        *table(
            ("kind", "component", "each x layers", "parameters", "share", "state GB"),
            [*rows, total],
            style,
            "llrrrr",
            4,
        ),
    ]


def parity(bill: Bill) -> float:
    """Tokens a step on a data-parallel rank at which tensor parallelism sends as much as data parallelism."""
    shape = bill.model
    value = float(bill.job.activation_bytes)
    reduced = recipe_of(bill.job, bill.engine, bill.cluster.accelerator).reduced
    return float(tokens_at_parity(bill.parameters.total, reduced, shape.hidden, shape.layers, value, TENSOR_UNITS))


def traffic_lines(bill: Bill, style: Style) -> list[str]:
    """What each axis moves, side by side, and what it grows with."""
    lines = [*_answer(bill, style), *step_line(bill, style), *loud_lines(bill, style), ""]
    lines += [*violation_lines(bill.violations, style), *subject_lines(bill, style), ""]
    lines += block(
        "TRAFFIC", "what one rank sends in a step; alone = nothing hidden, exposed = what the step waits for", style
    )
    lines += [*_axes(bill, style), "", *choice_part(bill, style), ""]
    more = "outlay explain traffic.tp ...   |   outlay count ...   |   --json"
    return [*lines, *closing_lines(bill, style, more)]


def _answer(bill: Bill, style: Style) -> list[str]:
    """The largest axis first; a layout that is not legal or does not fit keeps its verdict as the first word."""
    if not says_yes(bill):
        return headline(bill, style)
    if not bill.traffic:
        return block("SENDS", "nothing: no axis has more than one rank", style, "1;32")
    exposed = sum(item.exposed_seconds for item in bill.traffic)
    most = max(bill.traffic, key=lambda item: item.exposed_seconds)
    text = (
        f"{both(sum(item.bytes for item in bill.traffic))} a rank and step; {duration(exposed)} of the step"
        f" ({percent(exposed / bill.step.seconds)}) waits for it, most for {AXES[most.axis]}:"
        f" {duration(most.exposed_seconds)}"
    )
    return block("SENDS", text, style, "1;32")


def _axes(bill: Bill, style: Style) -> list[str]:
    degrees = {"dp": bill.derived.dp * bill.layout.cp}
    rows = [
        (
            AXES[item.axis],
            f"{degrees.get(item.axis) or getattr(bill.layout, item.axis)}",
            figure(item.bytes / GIB),
            figure(item.bytes / GB),
            duration(item.seconds),
            duration(item.exposed_seconds),
            percent(item.exposed_seconds / bill.step.seconds),
            item.grows_with,
            item.link,
        )
        for item in sorted(bill.traffic, key=lambda item: -item.bytes)
    ]
    idle = [AXES[axis] for axis in ("tp", "cp", "pp", "ep", "dp") if axis not in {item.axis for item in bill.traffic}]
    heads = ("axis", "ranks", "GiB", "GB", "alone", "exposed", "of step", "grows with", "link")
    lines = table(heads, rows, style, "lrrrrrrll") if rows else []
    return [*lines, *wrapped(f"not cut: {', '.join(idle)}", style, 2, 4)] if idle else lines


def choice_part(bill: Bill, style: Style) -> list[str]:
    """Moving parameters or moving tokens: where one passes the other."""
    tokens = parity(bill)
    now = bill.job.global_batch * bill.job.sequence_length / bill.derived.dp
    larger = "tensor" if now > tokens else "data"
    text = (
        f"data parallelism moves parameters, whatever the batch; tensor parallelism moves tokens, at every layer."
        f" Each by itself they are equal at {short(tokens)} tokens a step on a data-parallel rank; here it has"
        f" {short(now)}, so {larger} parallelism moves {figure(max(now / tokens, tokens / now))} times"
        f" more. A pipeline moves stage boundaries alone, and pays with idle time"
    )
    return [*block("CHOICE", text, style), *_here(bill, style)]


def _here(bill: Bill, style: Style) -> list[str]:
    named: dict[str, TrafficItem] = {item.axis: item for item in bill.traffic}
    if not {"tp", "dp"} <= named.keys() or not named["dp"].bytes:
        return []
    ratio = named["tp"].bytes / named["dp"].bytes
    return wrapped(
        f"in this layout tensor parallelism sends {figure(ratio)} times what data parallelism sends", style, 10, 10
    )

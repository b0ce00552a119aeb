"""A bubble simulated pass by pass: beside the law where a schedule has one in slots, else by itself."""

from fractions import Fraction

from .bubble import GOAL, Pipeline, bubble_lines, bubble_record
from .diagram.drawing import Chart
from .diagram.text import diagram_lines
from .record import Record, head
from .text import Style, block, percent


def simulated_record(line: Pipeline, chart: Chart) -> Record:
    """The bubble as its law gives it, and the simulated one beside it; without a law, the simulated one alone."""
    seconds = chart.unit == "s"
    run = {
        "share": chart.share,
        "span_share": chart.span_share,
        "seconds": chart.idle / chart.ranks if seconds else None,
        "step_seconds": chart.makespan if seconds else None,
        "idle_by_cause": chart.idle_by_cause,
        "peak_in_flight": [lane.peak for lane in sorted(chart.lanes, key=lambda lane: lane.ranks)],
    }
    if line.counts_slots:
        made = bubble_record(line)
        return made | {"bubble": made["bubble"] | {"simulated": run}}
    whole = Fraction(round(chart.idle * 1e9), max(1, round(chart.makespan * chart.ranks * 1e9)))
    slot = line.pass_seconds / line.vpp if seconds else 3.0  # a forward pass and a backward pass of twice its length
    found = {name: run[name] for name in ("share", "span_share", "seconds")} | {
        "slots": chart.makespan / slot,
        "useful_slots": line.pp * line.micro_batches * line.vpp,
        "held_slots": chart.makespan * line.pp / slot,
        "definition": "makespan: every pass simulated, equal stages, free sends",
        "fraction": [whole.numerator, whole.denominator],
        "pp": line.pp,
        "vpp": line.vpp,
        "schedule": line.schedule,
        "slot_seconds": slot if seconds else None,
        "step_seconds": run["step_seconds"],
        "at_most": float(line.goal or GOAL),
        "micro_batches_needed": None,
        "simulated": run,
    }
    return head("bubble") | {"bubble": found, "micro_batches": line.micro_batches}


def simulated_lines(line: Pipeline, chart: Chart, style: Style) -> list[str]:
    """The same for people."""
    if not line.counts_slots:
        return diagram_lines(chart, style, more=f"outlay draw --schedule {line.schedule} --svg f.svg ..")
    law = float(line.share)
    said = f"{percent(chart.share)} over the makespan, {percent(chart.span_share)} over the span: every pass run"
    verdict = "as the law says" if abs(chart.share - law) < 1e-6 else f"the law says {percent(law)}"
    return [*bubble_lines(line, style), *block("SIMULATED", f"{said}; {verdict}", style)]

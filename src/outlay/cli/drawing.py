"""outlay draw: the timing diagram of a pipeline, in the terminal and as files."""

from dataclasses import dataclass, replace

from ..bill import Bill
from ..errors import Fault, InputError, quoted
from ..schedule.timeline import Timeline, simulate
from ..schedule.times import TICK
from ..show.diagram.drawing import Chart
from .files import STDOUT, check, write
from .flags import Given
from .output import Told
from .passes import FEW, HALVES, MOST_PASSES, Asked, named, not_sought, read_asked
from .values import Faults

OUTPUTS = {"svg": "--svg", "html": "--html", "perfetto": "--perfetto", "csv": "--csv"}
UNIT = 1e6  # ns: how long a mere unit is in a trace


@dataclass(frozen=True)
class Drawn:
    """A pipeline, its timeline, and the diagram of it."""

    asked: Asked
    timeline: Timeline
    chart: Chart


def draw(given: Given) -> Told | int:
    """Simulate a pipeline and draw it."""
    from ..show.diagram.record import diagram_record
    from ..show.diagram.text import diagram_lines

    faults = Faults()
    paths = outputs(given, faults)
    try:
        asked = pipeline(given)
    except InputError as error:
        raise InputError(*faults.found, *error.faults) from None
    faults.stop()
    if isinstance(asked, Bill):
        return refused(asked)
    done = drawn(asked, given.on("whole"))
    made = {path: content_of(name, done) for name, path in paths.items()}  # all before any is written
    for path, content in made.items():
        write(path, content, given.on("force"))
    if STDOUT not in made:
        files, name, chart = tuple(made), asked.plan.name, done.chart
        return Told(
            lambda: diagram_record(chart, name, files, asked.sought),
            lambda style: diagram_lines(chart, style, files),
        )
    return 0


def pipeline(given: Given) -> Asked | Bill:
    """The pipeline of a command line; where it is that of a layout that breaks a rule, the bill of that."""
    return _of_a_model(given) if given.text("model") is not None else read_asked(given)


def drawn(asked: Asked, whole: bool = False) -> Drawn:
    """The diagram of a pipeline."""
    from ..show.diagram.chart import chart_of

    timeline = follow(asked)
    chart = chart_of(timeline, asked.title, asked.tick, asked.notes, whole, asked.copies)
    if not {"I", "W"} & {*chart.kinds}:
        chart = replace(chart, notes=tuple(note for note in chart.notes if note != HALVES))
    return Drawn(asked, timeline, chart)


def follow(asked: Asked) -> Timeline:
    """Simulate every pass; of a long step only until its steady state repeats."""
    from ..schedule.steady import simulate_long

    plan = asked.plan
    if plan.passes <= FEW:
        return simulate(plan.make(plan.micro_batches), asked.times)
    return simulate_long(plan.make, plan.pp, plan.micro_batches, asked.times)


def outputs(given: Given, faults: Faults) -> dict[str, str]:
    """The files to write, each of which can be written as far as can be seen."""
    paths = {name: path for name in OUTPUTS if (path := given.text(name)) is not None}
    for name, path in paths.items():
        if path.startswith("--"):
            rule = f"{OUTPUTS[name]} needs the name of a file, or - for standard output"
            faults.add(
                Fault("CLI002", f"{OUTPUTS[name]} cannot be read", rule, quoted(path), f"{OUTPUTS[name]} f.{name}")
            )
        elif fault := check(path, given.on("force")):
            faults.add(fault)
    if len(set(paths.values())) < len(paths):
        rule, got = "each output is a file of its own", ", ".join(f"{OUTPUTS[name]} {paths[name]}" for name in paths)
        faults.add(Fault("DRW002", "two outputs have the same name", rule, quoted(got), "give each a name"))
    if STDOUT in paths.values() and given.on("as_json"):
        rule = "standard output holds one answer: the object of --json, or a file"
        faults.add(Fault("DRW002", "two answers go to standard output", rule, "--json and -", "write one to a file"))
    return paths


# --- a layout of a model --------------------------------------------------------------------------------------------

MODEL_KNOWS = (
    "forward", "backward", "input_gradient", "weight_gradient", "times", "order", "latency", "micro_batches", "slices",
)  # fmt: skip


def _of_a_model(given: Given) -> Asked | Bill:
    """The pipeline of a layout, with the times of its bill; the bill itself where the layout breaks a rule."""
    from .question import read_question
    from .reordering import of_another_order, reordered

    faults = Faults()
    other = reordered(given)
    extra = ["--" + name.replace("_", "-") for name in MODEL_KNOWS if given.text(name) is not None]
    if extra:
        rule = "with a MODEL the durations and the number of micro-batches are those of its bill"
        faults.add(Fault("DRW002", "a MODEL is given with what it decides", rule, ", ".join(extra), "leave them out"))
    if given.text("schedule") != "best":
        not_sought(given, faults)
    if other:
        drawn_so: Asked | Bill = faults.attempt(of_another_order, given)
        faults.stop()
        return drawn_so
    question = faults.attempt(read_question, given)
    faults.stop()
    bill: Bill = question.bill()
    return bill if bill.violations else of_bill(bill)


def of_bill(bill: Bill) -> Asked:
    """The pipeline of a bill's layout, with its times."""
    from ..bill import case_of
    from ..engines.profiled import said_of
    from ..show.text import duration
    from ..simulated import times_of

    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    layout = case.layout
    pp, vpp, micro_batches = int(layout.pp), int(layout.vpp), int(case.micro_batches)
    plan = named(str(layout.schedule), pp, vpp, micro_batches, case.engine.even_rounds)
    each = bill.cluster.ranks // plan.pp
    step = duration(bill.step.seconds)
    note = f"a row is one of {plan.pp} pipeline ranks, {each:,} accelerators each; of the step's {step} the passes"
    note += " and their messages are drawn, not the optimizer and the data-parallel exchange"
    times = times_of(case).in_ticks(TICK)
    notes = tuple(filter(None, (note, said_of(bill.cluster))))
    return Asked(plan, times, TICK, f"{bill.model.name} on {bill.cluster.name}: {plan}", notes, each)


def refused(bill: Bill) -> Told:
    """The answer is no: the layout breaks rules, and a diagram of it would mean nothing."""
    from ..show.diagram.record import refused_record
    from ..show.terminal import violation_lines

    return Told(
        lambda: refused_record(bill.violations), lambda style: violation_lines(bill.violations, style), yes=False
    )


# --- the files ------------------------------------------------------------------------------------------------------


def content_of(name: str, of: Drawn) -> bytes:
    """The content of one output, by its name: svg, html, perfetto, csv."""
    chart, asked = of.chart, of.asked
    if name == "svg":
        from ..show.diagram.svg import svg

        return svg(chart).encode()
    if name == "html":
        from ..show.diagram.html import html

        return html(chart).encode()
    if name == "csv":
        from ..schedule.listing import to_csv

        return to_csv(asked.plan.make(asked.plan.micro_batches)).encode()
    return _perfetto(of.timeline, asked)


def _perfetto(timeline: Timeline, asked: Asked) -> bytes:
    from ..formats.perfetto_timeline import timeline_trace

    if asked.plan.passes > MOST_PASSES:
        rule = f"a trace holds every operation, up to {MOST_PASSES:,} passes"
        got = f"{asked.plan}: {asked.plan.passes:,} passes"
        raise InputError(Fault("DRW003", "the step is too long for a trace", rule, got, "--svg, which folds it"))
    return timeline_trace(timeline.expand(), asked.tick * 1e9 or UNIT)

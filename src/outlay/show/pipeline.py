"""A pipeline that was run, beside its diagram: what is said, what --json prints, and the two charts of its pictures."""

from collections.abc import Iterator

from ..schedule.executed import in_pairs
from ..schedule.timeline import Timeline
from ..schedule.times import TICK
from ..verify.pipelines.run import HOP, PipelineRun
from .diagram.chart import chart_of
from .diagram.drawing import WORDS, Chart
from .record import Record
from .schema import NUMBER, SHARE, TEXT, WHOLE, YES_NO, Schema, list_of, record_of
from .text import Style, block, duration, percent, wrapped

IN_TURN = "torch runs a pair's passes one after the other, and sends what both made when the second has ended"


def titled(run: PipelineRun) -> str:
    """The pipeline in words."""
    order, vpp = run.planned.order, run.planned.order.stages // len(run.planned.order.ranks)
    chunks = f" with {vpp} chunks each" if vpp > 1 else ""
    return f"{order.name}, {len(order.ranks)} ranks{chunks}, {order.micro_batches:,} micro-batches"


def pipeline_lines(run: PipelineRun, style: Style) -> Iterator[str]:
    """What ran, and both idle shares."""
    pacing = run.planned.pacing
    does = "compute" if pacing.computes else "sleep"
    each = f"{duration(pacing.operation)} an operation in the mean, stages in the proportions of the bill"
    yield from block("PIPELINE", f"{titled(run)}, on {run.backend}: stages that {does}, {each}", style)
    drawn, seen = run.diagram, run.measured
    idle = f"idle {percent(drawn.bubble_share)} in the diagram, {percent(seen.bubble_share)} measured"
    steps = " and ".join(duration(step, 4) for step in run.steps)
    yield from wrapped(f"{idle}; the best of {len(run.steps)} steps, {steps}", style, 10, 10)
    if in_pairs(run.planned.order):
        yield from wrapped(IN_TURN, style, 10, 10)
    if run.clock:
        yield from wrapped(f"clocks of the machines agree within {duration(run.clock)}", style, 10, 10)


def charts_of(model: str, run: PipelineRun) -> tuple[Chart, Chart]:
    """The diagram and what was measured, for a model of this name."""
    what, each = f"{titled(run)} of {model}", duration(run.planned.pacing.operation)
    asked = f"operations as asked, {each} in the mean; a message takes no time"
    ran = f"measured with torch on {run.backend}; idle by communication: the other rank had ended, and the message or "
    ran += "torch itself took this long"
    paired = in_pairs(run.planned.order)
    notes = (asked, IN_TURN) if paired else (asked,)
    upper = chart_of(run.diagram, f"Diagram: {what}", TICK, notes, whole=True, critical=not paired)
    lower = chart_of(run.measured, f"Measured: {what}", TICK, (ran,), whole=True, critical=False)
    return upper, lower  # no path is exact where times are measured, or a message waits behind another pass


def pipeline_record(run: PipelineRun) -> Record:
    """The run as one object; times in seconds from the first start of a step."""
    planned = run.planned
    return {
        "schedule": planned.order.name,
        "ranks": len(planned.order.ranks),
        "stages": planned.order.stages,
        "micro_batches": planned.order.micro_batches,
        "backend": run.backend,
        "computes": planned.pacing.computes,
        "operation_seconds": planned.pacing.operation,
        "hop_seconds": {"value": HOP, "kind": "assumed", "source": "a small tensor from process to process"},
        "stage_seconds": [dict(zip(PASSES, each, strict=True)) for each in planned.seconds],
        "step_seconds": list(run.steps),
        "clock_seconds": run.clock,
        "diagram": _timeline(run.diagram),
        "measured": _timeline(run.measured) | {"operations": _operations(run.measured)},
        "replay": _timeline(run.replay),
    }


PASSES = ("forward", "input_gradient", "weight_gradient")


def _timeline(line: Timeline) -> Record:
    return {"makespan_seconds": line.makespan * TICK, "bubble_share": line.bubble_share}


def _operations(line: Timeline) -> list[Record]:
    """Every operation of every rank; micro-batches from 1, as in the pictures."""
    found = []
    for track in line.ranks:
        columns = (track.kind, track.stage, track.micro_batch, track.start, track.end)
        for kind, stage, batch, start, end in zip(*(column.tolist() for column in columns), strict=True):
            passed = {"rank": track.rank, "kind": WORDS[kind], "stage": stage, "micro_batch": batch + 1}
            found.append(passed | {"start": start * TICK, "end": end * TICK})
    return found


def pipeline_schema() -> Schema:
    """What `pipeline` is in the answer of `outlay verify --json`; null where none was run."""
    line = {"makespan_seconds": NUMBER, "bubble_share": SHARE}
    passed = {"rank": WHOLE, "kind": TEXT, "stage": WHOLE, "micro_batch": WHOLE, "start": NUMBER, "end": NUMBER}
    made = record_of(
        {
            "schedule": TEXT,
            **dict.fromkeys(("ranks", "stages", "micro_batches"), WHOLE),
            "backend": TEXT,
            "computes": YES_NO,
            "operation_seconds": NUMBER,
            "hop_seconds": record_of({"value": NUMBER, "kind": {"const": "assumed"}, "source": TEXT}),
            "stage_seconds": list_of(record_of(dict.fromkeys(PASSES, NUMBER))),
            "step_seconds": list_of(NUMBER),
            "clock_seconds": NUMBER,
            "diagram": record_of(line),
            "measured": record_of(line | {"operations": list_of(record_of(passed))}),
            "replay": record_of(line),
        }
    )
    return made | {"type": ["object", "null"]}

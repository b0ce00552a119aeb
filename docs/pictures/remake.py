"""Make the pictures of the pages again: `python docs/pictures/remake.py`.

Of `docs/timing-diagrams.md` one of each schedule, 4 ranks and 8 micro-batches, forward 10 ms, backward 20 ms, the two
gradients 10 ms each. Of `docs/verify.md` a pipeline that was run, whose times stand in `pipeline_run.json`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from outlay.schedule.executed import measured, replayed
from outlay.schedule.orders import facts, names, order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times
from outlay.show.diagram.chart import chart_of
from outlay.show.diagram.svg import svg
from outlay.show.diagram.two import svg_of_two
from outlay.show.pipeline import charts_of
from outlay.verify.pipeline import Pacing, PipelineRun, Planned

HERE = Path(__file__).parent
RANKS, MICRO_BATCHES = 4, 8
FORWARD, TICK = 10_000_000, 1e-9  # 10 ms in whole nanoseconds
RUN = "pipeline_run"


def picture(name: str) -> str:
    """The picture of one schedule. Where a rank has two chunks, each takes half as long."""
    chunks = 1 if facts(name).chunks == "one" else 2
    plan = order(name, RANKS, MICRO_BATCHES, chunks)
    each = FORWARD * RANKS // plan.depth
    timeline = simulate(plan, Times(each, each, each))
    more = f" with {plan.stages // RANKS} chunks each" if plan.stages > RANKS else ""
    return svg(chart_of(timeline, f"{name}, {RANKS} ranks{more}, {MICRO_BATCHES} micro-batches", TICK))


def picture_of_a_run() -> str:
    """Predicted above measured, of one chunk a rank."""
    ran = json.loads((HERE / f"{RUN}.json").read_text(encoding="utf-8"))
    plan = order(ran["schedule"], ran["ranks"], ran["micro_batches"])
    spans = [[(start, end) for start, end in rank] for rank in ran["nanoseconds"]]
    seconds = tuple((forward, inputs, weights) for forward, inputs, weights in ran["stage_seconds"])
    planned = Planned(plan, 1, seconds, Pacing(ran["operation_seconds"]))
    seen, again = measured(plan, spans), replayed(plan, spans, 0)
    run = PipelineRun(planned, ran["backend"], (seen.makespan * TICK,), planned.diagram, seen, again, (), ())
    return svg_of_two(*charts_of(ran["model"], run))


def pictures() -> Iterator[tuple[Path, str]]:
    """Every file and what stands in it."""
    yield from ((HERE / f"{name}.svg", picture(name)) for name in names())
    yield HERE / f"{RUN}.svg", picture_of_a_run()


if __name__ == "__main__":
    for path, text in pictures():
        path.write_text(text, encoding="utf-8")

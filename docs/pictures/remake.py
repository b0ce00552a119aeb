"""Make the pictures of `docs/timing-diagrams.md` again: `python docs/pictures/remake.py`.

One of each schedule, 4 ranks and 8 micro-batches, forward 10 ms, backward 20 ms, the two gradients 10 ms each.
"""

from collections.abc import Iterator
from pathlib import Path

from outlay.schedule.orders import facts, names, order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times
from outlay.show.diagram.chart import chart_of
from outlay.show.diagram.svg import svg

HERE = Path(__file__).parent
RANKS, MICRO_BATCHES = 4, 8
SLICES = {"seq1f1b": 2}  # of a micro-batch
AS_1F1B = ("bpipe", "pipedream", "pipedream_2bw")  # the same passes
FORWARD, TICK = 10_000_000, 1e-9  # 10 ms in whole nanoseconds


def picture(name: str) -> str:
    """The picture of one schedule. Where a rank has two chunks, each takes half as long."""
    chunks = 1 if facts(name).chunks == "one" else 2
    slices = SLICES.get(name, 1)
    plan = order(name, RANKS, MICRO_BATCHES * slices, chunks)
    each = FORWARD * RANKS // plan.depth // slices
    timeline = simulate(plan, Times(each, each, each))
    more = f" with {plan.stages // RANKS} chunks each" if plan.stages > RANKS else ""
    return svg(chart_of(timeline, f"{name}, {RANKS} ranks{more}, {MICRO_BATCHES} micro-batches", TICK))


def pictures() -> Iterator[tuple[Path, str]]:
    """Every schedule's file and what stands in it."""
    yield from ((HERE / f"{name}.svg", picture(name)) for name in names() if name not in AS_1F1B)


if __name__ == "__main__":
    for path, text in pictures():
        path.write_text(text, encoding="utf-8")

"""Make the pictures of the documents again: `python docs/pictures/remake.py`.

One of each schedule, 4 ranks and 8 micro-batches, forward 10 ms, backward 20 ms, the two gradients 10 ms each; a
pipeline that was run, whose times stand in `pipeline_run.json`; the four counts in one, with figures of a textbook.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from outlay.memory.activations import best_segments, checkpoint_share, coarse_activation_bytes
from outlay.memory.states import state_bytes
from outlay.schedule.bubble import bubble_share
from outlay.schedule.executed import measured, replayed
from outlay.schedule.orders import facts, names, order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times
from outlay.show.diagram.chart import chart_of
from outlay.show.diagram.svg import svg
from outlay.show.diagram.two import svg_of_two
from outlay.show.palette import CAUSES
from outlay.show.pipeline import charts_of
from outlay.show.plot_svg import opening
from outlay.step.traffic import coarse_gradient_bytes, transfer_seconds
from outlay.verify.pipelines.run import PipelineRun, Planned
from outlay.verify.subject import Pacing

HERE = Path(__file__).parent
RANKS, MICRO_BATCHES = 4, 8
GB = 1e9
SLICES = {"seq1f1b": 2}  # of a micro-batch
AS_1F1B = ("bpipe", "pipedream", "pipedream_2bw")  # the same passes
FORWARD, TICK = 10_000_000, 1e-9  # 10 ms in whole nanoseconds
RUN = "pipeline_run"


def picture(name: str) -> str:
    """The picture of one schedule. Where a rank has two chunks, each takes half as long."""
    chunks = 1 if facts(name).chunks == "one" else 2
    slices = SLICES.get(name, 1)
    plan = order(name, RANKS, MICRO_BATCHES * slices, chunks)
    each = FORWARD * RANKS // plan.depth // slices
    timeline = simulate(plan, Times(each, each, each))
    more = f" with {plan.stages // RANKS} chunks each" if plan.stages > RANKS else ""
    cut = f" of {slices} slices, which are numbered" if slices > 1 else ""
    return svg(chart_of(timeline, f"{name}, {RANKS} ranks{more}, {MICRO_BATCHES} micro-batches{cut}", TICK))


def say(x: float, y: float, words: str, kind: str = "") -> str:
    """One line of text."""
    return f'<text x="{x:g}" y="{y:g}"' + (f' class="{kind}"' if kind else "") + f">{words}</text>"


def bar(x: float, y: float, width: float, kind: str, words: str = "", beside: str = "") -> Iterator[str]:
    """A bar with words inside, and others behind it."""
    yield f'<path class="{kind}" d="M{x:g} {y:g}h{width:g}v20h-{width:g}z"/>'
    yield from [say(x + width / 2, y + 14, words, f"n t{kind}")] if words else ()
    yield from [say(x + width + 6, y + 14, beside)] if beside else ()


def idle_time(x: float, y: float, pp: int, micro_batches: int) -> Iterator[str]:
    """The staircase: a row a stage, a column a slot."""
    slots, cell = micro_batches + pp - 1, 10
    yield say(x, y, f"Idle time: {pp - 1} of {slots} slots, {100 * bubble_share(pp, micro_batches):.1f} %", "b")
    for stage in range(pp):
        top = y + 12 + 15 * stage
        yield f'<path fill="url(#fill)" d="M{x} {top}h{slots * cell}v12h-{slots * cell}z"/>'
        yield f'<path class="F" d="M{x + stage * cell} {top}h{micro_batches * cell}v12h-{micro_batches * cell}z"/>'
    yield say(x, y + 12 + 15 * pp + 14, f"{pp} stages, {micro_batches} micro-batches; hatched: idle")


def state(x: float, y: float, parameters: float, ranks: int) -> Iterator[str]:
    """The wall, in its four parts, and the share of one accelerator."""
    whole, unit = state_bytes(parameters, 16) / GB, 390 / 16
    yield say(x, y, f"State: {whole:g} GB before it is divided", "b")
    for start, width, kind, words in (
        (0, 2, "F", "weight"),
        (2, 2, "B", "grad."),
        (4, 4, "W", "master"),
        (8, 8, "R", "two moments of Adam"),
    ):
        yield from bar(x + start * unit, y + 12, width * unit, kind, words)
    yield say(x, y + 50, f"{parameters / 1e9:g} billion parameters x 16 bytes: 2 + 2 + 4 + 8")
    yield from bar(
        x, y + 64, 390 * whole / ranks / whole, "X", "", f"{whole / ranks:g} GB on each of {ranks} accelerators"
    )
    yield say(x, y + 102, "A share is not a stock: on 8 of 80 GB it fits in no layout.")


def activations(x: float, y: float) -> Iterator[str]:
    """The tape beside the state, and what checkpoints leave of it."""
    layers = 32
    tape = coarse_activation_bytes(32_768, layers, 4096, 10, 2) / GB
    yield say(x, y, f"Activations: {tape:.0f} GB for 32,768 tokens", "b")
    for row, (words, amount, kind) in enumerate((
        ("state of 7 billion parameters", state_bytes(7e9, 16) / GB, "R"),
        ("tape of 32,768 tokens", tape, "B"),
        ("with checkpoints", tape * checkpoint_share(layers, best_segments(layers)), "B"),
        ("tape of 65,536 tokens", 2 * tape, "B"),
    )):  # fmt: skip
        yield from bar(x, y + 12 + 26 * row, amount * 1.2, kind, "", f"{amount:.0f} GB, {words}")


def traffic(x: float, y: float) -> Iterator[str]:
    """The exchange of gradients beside the arithmetic of a step."""
    sent, arithmetic = coarse_gradient_bytes(7e9, 2), 0.4
    seconds = transfer_seconds(sent, 50e9)
    yield say(x, y, f"Traffic: {sent / GB:g} GB, {100 * seconds / (seconds + arithmetic):.0f} % of a step", "b")
    yield from bar(x, y + 12, arithmetic * 570, "F", f"arithmetic {arithmetic:g} s")
    yield from bar(x + arithmetic * 570, y + 12, seconds * 570, "C", f"exchange {seconds:g} s")
    yield say(x, y + 50, "gradients of 7 billion parameters, 2 bytes each, over 50 GB/s")
    yield say(x, y + 76, "Hidden under the backward pass:")
    yield from bar(x, y + 88, arithmetic * 570, "F", f"arithmetic {arithmetic:g} s")
    yield from bar(x + (arithmetic - seconds) * 570, y + 110, seconds * 570, "C", f"exchange {seconds:g} s")


def four_counts() -> str:
    """The four counts of a textbook in one picture."""
    parts = [*idle_time(20, 30, 8, 32), *state(480, 30, 50e9, 64), *activations(20, 232), *traffic(480, 232)]
    title = "The four counts: idle time, state, activations, traffic"
    described = "8 stages and 32 micro-batches; 50 billion parameters; 32,768 tokens; gradients over 50 GB/s."
    hatch = '<pattern id="fill" class="hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
    start = "".join(opening(title, described, 900, 370, f'{hatch}<path d="{CAUSES["fill"]}"/></pattern>\n'))
    return start + "\n".join(parts) + "\n</svg>\n"


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
    yield from ((HERE / f"{name}.svg", picture(name)) for name in names() if name not in AS_1F1B)
    yield HERE / "four-counts.svg", four_counts()
    yield HERE / f"{RUN}.svg", picture_of_a_run()


if __name__ == "__main__":
    for path, text in pictures():
        path.write_text(text, encoding="utf-8")

"""Memory and time of a bill, part by part: printed parts add up to the printed total."""

from ..bill import Bill
from ..engines.recipe import Recipe
from ..holding import Item, RankMemory
from ..job import recipe_of
from ..quantities import GB, GIB
from ..schedule.flight import round_size_of
from ..schedule.laws import SCHEDULES
from ..undivided import State, state_of
from .answer import verdict_of
from .labels import AXIS_OF, label
from .text import (
    HUGE,
    Style,
    adding_up,
    block,
    both,
    counted,
    decimals,
    duration,
    figure,
    gib,
    percent,
    short,
    table,
    wrapped,
)

BAR = 24  # characters of a bar at the wall
STATE = ("weights", "gradients", "optimizer")
FOLD = 8  # stages beyond this are folded: what differs is drawn, what repeats is not


def certainty(item: Item, unit: float, name: str) -> str:
    """Exact; or modelled, with its band and where that is from."""
    if item.kind == "exact":
        return "exact"
    return f"{item.band} {figure(item.low / unit)} to {figure(item.high / unit)} {name}"


def memory_part(bill: Bill, style: Style, every: bool = False) -> list[str]:
    """The undivided state first, then the worst rank, then every stage against the wall."""
    return [*block("MEMORY", wall_text(bill), style), *_worst_rank(bill, style), *stages_part(bill, style, every)]


def wall_text(bill: Bill) -> str:
    """The stock: the undivided state, and what one card has."""
    memory, state = bill.memory, _state(bill)
    return (
        f"undivided state {both(memory.unsharded_state_bytes, 5)}, {state.each('bytes'):.6g} bytes a parameter of"
        f" {short(bill.parameters.total)}; one card has {both(memory.capacity_bytes)}"
    )


def memory_rows(bill: Bill) -> list[tuple[str, ...]]:
    """The parts of the worst rank's peak, and the peak, to which the printed parts add up: GiB, GB, band, how."""
    memory = bill.memory
    values = [item.value for item in memory.items]
    places = decimals(memory.peak_bytes / GIB, 4)
    columns = [adding_up([value / unit for value in values], places) for unit in (GIB, GB)]
    rows = [
        (label(item.name), first, second, certainty(item, GIB, "GiB"), how(item, bill))
        for item, first, second in zip(memory.items, *columns, strict=True)
    ]
    totals = [_total(column, places) for column in columns]
    low, high = memory.peak_band_bytes
    return [*rows, ("peak", *totals, f"{figure(low / GIB)} to {figure(high / GIB)} GiB", "")]


def worst_text(bill: Bill) -> str:
    """The worst rank, and what it holds."""
    worst = bill.memory.worst_rank
    stage = next(one for one in bill.memory.ranks if one.stage == worst.stage)
    return f"rank {worst.rank}: stage {worst.stage}, {holds(stage)}"


def _worst_rank(bill: Bill, style: Style) -> list[str]:
    shown = table(("", "GiB", "GB", "", "how"), memory_rows(bill), style, "lrrll", 4)
    return [f"  {worst_text(bill)}", *shown, *wrapped(levels_text(bill), style, 2, 4)]


def levels_text(bill: Bill) -> str:
    """The three figures that tools read, which users compare."""
    memory = bill.memory
    return (
        f"of it allocated {gib(memory.allocated_bytes)} (torch: max_memory_allocated), reserved"
        f" {gib(memory.reserved_bytes)} (max_memory_reserved); the device shows {gib(memory.device_bytes)} (nvidia-smi,"
        " with the driver's context)"
    )


def _total(column: list[str], places: int) -> str:
    """The sum of the printed parts, so that they add up."""
    amount = sum(float(text.replace(",", "")) for text in column)
    return f"{amount:,.{places}f}" if amount < HUGE else figure(amount, 4)


def holds(stage: RankMemory) -> str:
    """What a stage holds, in words."""
    ends = (" + embedding" if stage.embedding else "") + (" + head and loss" if stage.head else "")
    return f"{counted(stage.layers, 'layer')}{ends}"


def how(item: Item, bill: Bill) -> str:
    """The arithmetic behind one part, where it is one product."""
    if item.name in STATE:
        return _of_parameters(item, bill)
    if item.name == "activations":
        stage, layout = bill.memory.worst_rank.stage, bill.layout
        law = SCHEDULES[layout.schedule].in_flight
        round_size = round_size_of(bill.engine.even_rounds, layout.pp, bill.derived.micro_batches)
        flying = float(law(stage, layout.pp, layout.vpp, bill.derived.micro_batches, round_size))
        return f"{counted(flying, 'micro-batch')} in flight"
    return {"buffers": "workspaces, NCCL, allocator"}.get(item.name, "")


def _recipe(bill: Bill) -> Recipe:
    return recipe_of(bill.job, bill.engine, bill.cluster.accelerator)


def _state(bill: Bill) -> State:
    return state_of(bill.model, _recipe(bill), bill.job)


def _of_parameters(item: Item, bill: Bill) -> str:
    layout, size, recipe = bill.layout, _state(bill).each(item.name), _recipe(bill)
    if not size:
        return ""
    if item.name == "gradients" and bill.engine.frees_gradients and item.value < 1:
        return "come with the backward pass"
    experts = bill.model.experts > 0
    from_zero = {"weights": bill.engine.weights_sharded_from, "gradients": 2, "optimizer": 1}[item.name]
    whole = item.name == "gradients" and bill.engine.defers_sync and layout.pp > 1
    sharded = layout.zero >= from_zero and layout.shard > 1 and not whole
    away = {"weights": layout.offload_parameters, "optimizer": layout.offload_optimizer}.get(item.name, 0)
    if away:
        return f"{percent(away)} of it in host memory"
    accumulated = layout.accumulate_whole and bill.derived.micro_batches > 1
    if item.name == "gradients" and accumulated and layout.zero >= from_zero:
        return "whole until the last micro-batch"
    if not bill.job.training.whole or item.name == (
        "weights" if recipe.copies else "" if recipe.moments.uniform else "optimizer"
    ):
        return f"on average {size:.4g} bytes a parameter"
    if experts and sharded:
        return f"{size:g} bytes a parameter, sharded"
    count = item.value / size * (float(layout.shard) if sharded else 1)
    over = f" / {int(layout.shard)} ranks" if sharded else ""
    return f"{short(count)} x {size:g} bytes{over}"


def stages_part(bill: Bill, style: Style, every: bool = False) -> list[str]:
    """The peak of each stage against the wall; long pipelines show both ends, and the range between."""
    ranks = bill.memory.ranks
    if len(ranks) < 2:
        return []
    folded = len(ranks) > FOLD and not every
    shown = [*ranks[:3], *ranks[-2:]] if folded else list(ranks)
    wall = bill.memory.usable_bytes
    lines = [f"  every stage, GiB                wall {figure(wall / GIB)} GiB usable"]
    for stage in shown:
        size = f"{figure(stage.peak_bytes / GIB):>7}"
        over = "  over" if stage.peak_bytes > wall else ""
        lines.append(f"    stage {stage.stage:<3} {size}  {_bar(stage, wall, style)}{holds(stage)}{over}")
        if folded and stage is ranks[2]:
            between = [one.peak_bytes / GIB for one in ranks[3:-2]]
            lines.append(f"    stages 3 to {ranks[-3].stage}: {figure(min(between))} to {figure(max(between))}")
    return lines


def _bar(stage: RankMemory, wall: float, style: Style) -> str:
    """A bar whose full length is the wall; for people at a terminal alone."""
    if not style.bars or wall <= 0:
        return ""
    return f"{'#' * max(1, round(BAR * min(stage.peak_bytes / wall, 1.25))):<{BAR + BAR // 4 + 2}}"


TIME_HEADS = ("", "exposed s", "share", "alone", "sent")


def time_rows(bill: Bill) -> list[tuple[str, ...]]:
    """The parts of a step, and the step, to which they add up: what is exposed, its share, and what it takes alone."""
    step = bill.step
    items = sorted(step.items, key=lambda item: -item.value)
    places = decimals(step.seconds, 4, 6)
    seconds = adding_up([item.value for item in items], places)
    shares = adding_up([100 * item.value / step.seconds for item in items], 1)
    axes = {item.axis: item for item in bill.traffic}
    rows = []
    for item, exposed, share in zip(items, seconds, shares, strict=True):
        axis = axes.get(AXIS_OF.get(item.name, ""))
        alone = duration(axis.seconds) if axis else ""
        sent = f"{figure(axis.bytes / GB)} GB a rank, {axis.link}" if axis else ""
        rows.append((label(item.name), exposed, f"{share} %", alone, sent))
    return [*rows, ("step", _total(seconds, places), "100.0 %", "", "")]


def time_text(bill: Bill) -> str:
    """How sure the time is."""
    low, high = bill.step.band_seconds
    said = f"modelled, {duration(low)} to {duration(high)}, {bill.step.items[0].band}"
    return said if verdict_of(bill) else ""


def time_part(bill: Bill, style: Style) -> list[str]:
    """The step, part by part: what is exposed, its share, and what it would take alone."""
    return [*block("TIME", time_text(bill), style), *table(TIME_HEADS, time_rows(bill), style, "lrrrl", 4)]

"""A question cut down to the devices at hand: fewer data-parallel ranks, micro-batches and layers; widths are kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...bill import Bill, count
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...errors import Fault, InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.model import Model

SOME = 4  # micro-batches of a step, and so many a stage of a pipeline
FEW = 4  # layers that a CPU runs by itself
ROOM = 0.5  # of a CPU's memory, that a run may take


@dataclass(frozen=True)
class AtHand:
    """The devices of this machine, or all that torchrun has."""

    kind: str  # cuda or cpu
    devices: int
    memory: float  # B each


@dataclass(frozen=True)
class Sized:
    """The bill of exactly what is run, and what is smaller in it than what was asked."""

    bill: Bill
    scaled: tuple[str, ...]


def sized(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine, hand: AtHand, layers: int = 0
) -> Sized:
    """The largest case of a complete question that the devices at hand hold. `layers`: so many, 0 for what fits.

    Raises InputError: VER021 where tensor and pipeline ranks alone are more than the devices, VER022 where not even the
    fewest layers fit.
    """
    said: list[str] = []
    fewer, at = fewer_ranks(layout, hand, said)
    where = cluster if fewer == cluster.ranks else replace(cluster, ranks=fewer, name=_named(fewer, cluster))
    many = job.global_batch // (layout.dp * layout.micro_batch)
    most = SOME * at.pp
    if many > most:
        said.append(f"{most} of {many:,} micro-batches a step")
    task = replace(job, global_batch=int(at.dp * at.micro_batch * min(many, most)))
    bills = [each for each in tried(model, task, where, at, engine, hand, layers) if not each.violations]
    found = next((bill for bill in bills if fits(bill, hand)), None)
    if found is None:
        raise InputError(too_large(bills[-1] if bills else None, hand, layers))
    if (held := found.model.layers) < model.layers:
        why = "--layers" if layers else "as many as fit" if hand.kind == "cuda" else "a CPU is slow (--layers)"
        said.append(f"{held} of {model.layers} layers, widths as they are: {why}")
    return Sized(found, tuple(said))


def fewer_ranks(layout: Layout, hand: AtHand, said: list[str]) -> tuple[int, Layout]:
    """The ranks that are run: tensor and pipeline ranks as they are, data-parallel ones as there is room for."""
    inner = layout.tp * layout.pp
    if inner > hand.devices:
        here = f"{hand.devices} {'core' if hand.kind == 'cpu' else 'device'}{'s' * (hand.devices != 1)}"
        fix = f"--tp and --pp with a product of {hand.devices} or less, or run it where there are {inner} devices"
        rule = "each rank has a device of its own; data-parallel ranks are cut down to those at hand, others are not"
        raise InputError(Fault("VER021", "more ranks than devices", rule, f"tp x pp = {inner}, {here}", fix))
    room = hand.devices // inner
    if layout.dp <= room:
        return int(layout.world), layout
    copies = layout.dp_replicate if room % layout.dp_replicate == 0 and layout.zero else 1
    shards = room // copies if layout.zero else 1
    ranks = inner * copies * shards
    what = f"dp {copies * shards} of {layout.dp}"
    said.append(f"{ranks} of {layout.world} ranks ({what}): as many as there are devices")
    return ranks, replace(layout, dp_replicate=copies, dp_shard=shards)


def _named(ranks: int, cluster: Cluster) -> str:
    return f"{ranks}x{cluster.name.partition('x')[2] or cluster.name}"


def tried(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine, hand: AtHand, layers: int
) -> Iterator[Bill]:
    """Bills of fewer and fewer layers, each kind among them."""
    kinds = 1 + max(model.pattern.index(kind) for kind in set(model.pattern))
    least = max(kinds, layout.pp * layout.vpp)
    most = min(model.layers, layers or (max(FEW, least) if hand.kind == "cpu" else model.layers))
    for held in range(max(most, least), (max(most, least) if layers else least) - 1, -1):
        yield count(of_layers(model, held), job, cluster, held_layout(layout, model, held), engine)


def of_layers(model: Model, held: int) -> Model:
    """The model with its first layers, without those that predict further tokens."""
    return replace(model, pattern=model.pattern[:held], mtp_layers=0, mtp_blocks=())


def held_layout(layout: Layout, model: Model, held: int) -> Layout:
    """The layout of fewer layers: stages are made anew, and full recompute runs all of them again."""
    if held == model.layers:
        return layout
    again: Any = AUTO if layout.recompute == "full" else layout.recompute_layers
    return replace(layout, split=(), recompute_layers=again)


def fits(bill: Bill, hand: AtHand) -> bool:
    """Whether the upper end of the band of its memory is at hand. On a CPU there are no libraries' buffers."""
    if hand.kind == "cpu":
        return bill.memory.allocated_bytes <= hand.memory
    context = bill.cluster.accelerator.context_bytes
    return bill.memory.peak_band_bytes[1] <= min(bill.memory.usable_bytes, hand.memory - context)


def too_large(bill: Bill | None, hand: AtHand, layers: int) -> Fault:
    """What is said where nothing is small enough."""
    rule = "a case runs where the upper end of its counted peak is in the memory at hand"
    if bill is None:
        got = "no number of layers obeys the layout's rules"
        return Fault("VER022", "no case of this layout can be run here", rule, got, "another --layers, --split or --pp")
    needs, has = bill.memory.allocated_bytes, hand.memory
    got = f"{bill.model.layers} layers need {needs / 1e9:,.1f} GB, a device has {has / 1e9:,.1f} GB"
    fix = "fewer --layers" if layers > 1 else "--mbs 1, a shorter --seq or more --tp"
    return Fault("VER022", "not even the smallest case fits the devices at hand", rule, got, fix)

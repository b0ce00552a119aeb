"""What to change where a layout does not fit: the fewest changes that make it fit, and what each costs in time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from ..bill import Bill
from ..job import AUTO
from .changed import After, after_of
from .space import MOST_CONTEXT

Way: TypeAlias = tuple[tuple["Change", ...], After]

MOST = 3  # changes that are advised
GROWTH = (2, 4, 8, 16)  # times the accelerators


@dataclass(frozen=True)
class Change:
    """One change of a question: words for it, what to type, and the fields it sets."""

    words: str
    flag: str
    layout: dict[str, Any]
    job: dict[str, Any]
    ranks: int = 1  # times the accelerators
    kind: str = ""  # changes of one kind exclude each other


@dataclass(frozen=True)
class Advice:
    """A way to fit: what to type, and what it costs."""

    change: str
    flag: str
    peak_bytes: float
    seconds: float
    tokens_per_second_per_device: float


def freely(**fields: Any) -> dict[str, Any]:
    """Fields of a layout, and those that follow from others let go."""
    return {"dp_shard": AUTO, "sp": AUTO, "split": AUTO, "recompute_layers": AUTO, **fields}


def _doubled(now: int, most: int) -> Iterator[int]:
    while (now := 2 * now) <= most:
        yield now


def changes(bill: Bill) -> Iterator[Change]:
    """Single changes that can make a bill smaller, the cheapest kinds first."""
    at, job, engine = bill.layout, bill.job, bill.engine
    if at.micro_batch > 1:
        yield Change("micro-batches of one sequence", "--mbs 1", {"micro_batch": 1}, {}, kind="micro_batch")
    for how, words in (("selective", "recompute attention cores"), ("full", "recompute whole layers")):
        if at.recompute == "none" or (at.recompute == "selective" and how == "full"):
            fields = {"recompute": how, "recompute_modules": AUTO, "recompute_layers": AUTO}
            yield Change(words, f"--recompute {how}", fields, {}, kind="recompute")
    for stage in (stage for stage in engine.zero_stages if stage > at.zero):
        yield Change(f"shard with ZeRO-{stage}", f"--zero {stage}", {"zero": stage}, {}, kind="zero")
    for tp in _doubled(at.tp, min(bill.cluster.inside.size, bill.cluster.ranks, 8)):
        yield Change("cut matrices further", f"--tp {tp}", freely(tp=tp), {}, kind="degrees")
    for pp in _doubled(at.pp, min(bill.cluster.ranks, bill.model.layers)):
        yield Change("more pipeline stages", f"--pp {pp}", freely(pp=pp, schedule=AUTO), {}, kind="degrees")
    for cp in _doubled(at.cp, min(bill.cluster.ranks, MOST_CONTEXT, job.sequence_length // 256)):
        yield Change("cut sequences", f"--cp {cp}", freely(cp=cp), {}, kind="degrees")
    for ep in _doubled(at.ep, min(bill.cluster.ranks, bill.model.experts)):
        yield Change("fewer experts a card", f"--ep {ep}", freely(ep=ep), {}, kind="experts")
    yield from _other_split(bill)
    if at.offload_optimizer < 1:
        fields = {"offload_optimizer": 1.0}
        yield Change("the optimizer in host memory", "--offload-optimizer 1", fields, {}, kind="offload")
    if job.training.whole:
        yield Change("train adapters alone", "--adapter lora", {}, {"adapter": "lora"}, kind="adapter")
        yield Change("adapters beside 4-bit weights", "--adapter qlora", {}, {"adapter": "qlora"}, kind="adapter")
    for times in GROWTH:
        ranks = times * bill.cluster.ranks
        name = f"{ranks}x{bill.cluster.accelerator.name}"
        yield Change(f"{ranks:,} accelerators", f"--on {name}", freely(), {}, times, "cluster")


def _other_split(bill: Bill) -> Iterator[Change]:
    """Fewer layers where more passes are in flight, on an engine that takes a split."""
    from .split.best import best_split, in_reach, unfilled

    if bill.violations or bill.layout.pp == 1 or not bill.engine.splits_layers or not in_reach(bill.model):
        return
    found = best_split(bill.model, bill.job, bill.cluster, unfilled(bill), bill.engine)
    if found is not None and found.bill.layout.split:
        fields = {"split": found.sizes, "recompute_layers": unfilled(bill).recompute_layers}
        yield Change("another split of the layers", "--split best", fields, {}, kind="split")


def changed(bill: Bill, made: tuple[Change, ...]) -> After | None:
    """What a bill's question is after some changes; nothing where it cannot be counted or is not legal."""
    layout = {name: value for change in made for name, value in change.layout.items()}
    job = {name: value for change in made for name, value in change.job.items()}
    return after_of(bill, layout, job, max(change.ranks for change in made))


def advise(bill: Bill) -> tuple[Advice, ...]:
    """The changes of `ways_to_fit`, in words."""
    return tuple(advice_of(*way) for way in ways_to_fit(bill))


def ways_to_fit(bill: Bill) -> tuple[Way, ...]:
    """Ways to fit: those of the whole training with the fewest changes, the fastest first, and the best with adapters.

    Fast is what one accelerator yields, so that more of them are not faster for nothing. Pairs of changes are tried
    where no single one is enough, of each kind the one that leaves least. None where the layout fits for sure already,
    or is not legal.
    """
    if bill.memory.verdict in ("fits", None):
        return ()
    tried = [(change, after) for change in changes(bill) if (after := changed(bill, (change,))) is not None]
    whole: list[Way] = [((change,), after) for change, after in tried if change.kind != "adapter"]
    fitting = [way for way in whole if way[1].fits] or pairs_that_fit(bill, whole)
    adapted: list[Way] = [((change,), after) for change, after in tried if change.kind == "adapter" and after.fits]
    return (*_best(fitting)[: MOST - 1], *_best(adapted)[:1])


def pairs_that_fit(bill: Bill, single: list[Way]) -> list[Way]:
    """Two changes that fit together, of different kinds: of each kind the one that leaves least. A split is sought for
    one layout, so it goes with no other change."""
    least: dict[str, Change] = {}
    for made, _ in sorted(single, key=lambda way: way[1].peak_bytes):
        least.setdefault(made[0].kind, made[0])
    pairs = combinations((change for kind, change in least.items() if kind != "split"), 2)
    return [(pair, after) for pair in pairs if (after := changed(bill, pair)) is not None and after.fits]


def _best(found: list[Way]) -> list[Way]:
    """The fastest way of each combination of kinds, the fastest of them first."""
    first: dict[tuple[str, ...], Way] = {}
    for way in sorted(found, key=lambda way: -way[1].tokens_per_second_per_device):
        first.setdefault(tuple(change.kind for change in way[0]), way)
    return list(first.values())


def advice_of(made: tuple[Change, ...], after: After) -> Advice:
    """Some changes and what they lead to, in words."""
    return Advice(
        ", ".join(change.words for change in made),
        " ".join(change.flag for change in made),
        after.peak_bytes,
        after.seconds,
        after.tokens_per_second_per_device,
    )

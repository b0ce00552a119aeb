"""What to change where a layout fits: the single changes that make it fastest, and those that help together."""

from collections.abc import Iterator

from ..bill import Bill
from ..job import AUTO
from ..layout.degrees import divisors
from .advice import MOST, Advice, Change, Way, advice_of, changed, freely
from .changed import After

MOST_CHUNKS = 16  # of a rank that are tried
FURTHER = 8  # times the expert-parallel ranks that are tried
LEAST = 0.002  # share of the step that a change has to save


def faster_changes(bill: Bill) -> Iterator[Change]:
    """Single changes of a layout that can make it faster."""
    yield from _of_degrees(bill)
    yield from _of_options(bill)


def _of_degrees(bill: Bill) -> Iterator[Change]:
    at, cards = bill.layout, bill.cluster.ranks
    for mbs in (2 * at.micro_batch, at.micro_batch // 2):
        if mbs:
            yield Change("another micro-batch", f"--mbs {mbs}", {"micro_batch": mbs}, {}, kind="micro_batch")
    for name, most in (("tp", bill.cluster.inside.size), ("pp", bill.model.layers), ("cp", cards)):
        for value in (2 * getattr(at, name), getattr(at, name) // 2):
            if 1 <= value <= min(most, cards):
                fields = freely(**{name: value}, **({"schedule": AUTO} if name == "pp" else {}))
                yield Change(f"another {name}", f"--{name} {value}", fields, {}, kind="degrees")
    for ep in divisors(bill.model.experts, cards) if bill.model.experts else ():
        if ep != at.ep and at.ep <= 2 * ep <= 2 * FURTHER * at.ep:
            yield Change("another ep", f"--ep {ep}", freely(ep=ep), {}, kind="experts")
    if at.pp > 1:
        for vpp in divisors(bill.model.layers // at.pp, MOST_CHUNKS):
            fields = freely(vpp=vpp, schedule=AUTO)
            yield Change("other chunks a rank", f"--vpp {vpp}", fields, {}, kind="chunks")


def _of_options(bill: Bill) -> Iterator[Change]:
    at, engine = bill.layout, bill.engine
    for stage in engine.zero_stages:
        if stage != at.zero:
            yield Change(f"ZeRO-{stage}", f"--zero {stage}", {"zero": stage}, {}, kind="zero")
    for how in engine.recomputes:
        if how not in (at.recompute, "full") and at.recompute != "none":
            fields = {"recompute": how, "recompute_modules": AUTO, "recompute_layers": AUTO}
            yield Change("recompute less", f"--recompute {how}", fields, {}, kind="recompute")
    layers = at.recompute_layers if at.recompute == "full" else 0
    if isinstance(layers, int) and layers > 1:
        half = {"recompute_layers": layers // 2}
        yield Change("recompute half", f"--recompute-layers {layers // 2}", half, {}, kind="recompute")
    for name, able in (("overlap_tp", at.tp > 1), ("overlap_dp", at.replicas > 1), ("sp", at.tp > 1)):
        if able and not getattr(at, name):
            yield Change(name.replace("_", " "), f"--{name.replace('_', '-')}", {name: True}, {}, kind=name)
    if at.offload_optimizer:
        yield Change("no offload", "--offload-optimizer 0", {"offload_optimizer": 0.0}, {}, kind="offload")


def faster(bill: Bill) -> tuple[Advice, ...]:
    """The changes of `faster_ways`, in words."""
    return tuple(advice_of(*way) for way in faster_ways(bill))


def faster_ways(bill: Bill) -> tuple[Way, ...]:
    """The three most useful single changes, of a kind each, and those of every kind that help one on top of another.

    Each fits for sure and saves time. None where the layout does not fit or is not legal, or nothing is faster.
    """
    if bill.memory.verdict != "fits" or bill.violations:
        return ()
    tried = [(change, after) for change in faster_changes(bill) if (after := _better(bill, (change,))) is not None]
    first: dict[str, tuple[Change, After]] = {}
    for change, after in sorted(tried, key=lambda way: way[1].seconds):
        first.setdefault(change.kind, (change, after))
    found: list[Way] = [((change,), after) for change, after in list(first.values())[:MOST]]
    together = _together(bill, [change for change, _ in first.values()])
    return tuple([*found, together] if together and len(together[0]) > 1 else found)


def _together(bill: Bill, every: list[Change]) -> Way | None:
    """Changes one on top of another, the most useful first; one that helps no more is left out."""
    found: Way | None = None
    for change in every:
        made = (*found[0], change) if found else (change,)
        after = _better(bill, made)
        if after and after.seconds < (1 - LEAST) * (found[1].seconds if found else bill.step.seconds):
            found = made, after
    return found


def _better(bill: Bill, made: tuple[Change, ...]) -> After | None:
    """What some changes lead to, where it fits and is faster."""
    after = changed(bill, made)
    if after is None or after.seconds >= (1 - LEAST) * bill.step.seconds:
        return None
    return after if after.fits else None  # few are faster, so few peaks are counted

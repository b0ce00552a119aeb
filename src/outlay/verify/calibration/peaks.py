"""What shares are shares of: the specified rates of an accelerator, or the best that was measured on a machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...cluster.accelerator import Cluster
from ...cluster.efficiency import peak_rate
from .shapes import wire_share
from .tasks import BYTES, Measured


@dataclass(frozen=True)
class Peaks:
    """Rates in SI units; 0 where nothing was measured and nothing is specified."""

    flops: Mapping[str, float]  # by precision
    memory: float
    link: float
    nic: float
    fill: float = 0.0  # blocks of attention with which half of the device is busy
    paths: int = 1  # that a link is the sum of
    reached: float = 0.0  # share of the memory's rate, where it is not measured here


def specified(cluster: Cluster, fill: float) -> Peaks:
    """Those of a cluster. `fill`: blocks of attention a multiprocessor."""
    card = cluster.accelerator
    flops = {kind: peak_rate(card, kind) for kind in BYTES}
    links = cluster.inside.bandwidth, cluster.top.bandwidth
    return Peaks(
        flops, card.memory_bandwidth, *links, fill * card.multiprocessors, cluster.inside.paths, card.memory_share
    )


def best(found: Sequence[Measured]) -> Peaks:
    """The best that was measured: a multiply in each precision, a copy or a sum, a collective of a large buffer."""
    flops = {kind: _best(one for one in found if _is(one, "matmul", kind)) for kind in BYTES}
    wires = [(one.task.far, bus_bandwidth(one)) for one in found if one.task.kind == "collectives"]
    inside, outside = (max((rate for far, rate in wires if far is which), default=0.0) for which in (False, True))
    return Peaks(flops, _best(one for one in found if one.task.kind == "memory"), inside, outside)


def bus_bandwidth(one: Measured) -> float:
    """Bytes that pass the slowest wire a second."""
    buffer, ranks, _ = one.task.sizes
    return wire_share(one.task.what, ranks) * buffer / one.seconds


def _is(one: Measured, kind: str, precision: str) -> bool:
    return one.task.kind == kind and one.task.precision == precision


def _best(found: Iterable[Measured]) -> float:
    return max((one.task.work / one.seconds for one in found), default=0.0)

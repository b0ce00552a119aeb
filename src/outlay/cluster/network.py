"""How long one collective takes on a network of two levels: inside a scale-up domain, and between domains.

Every collective is pipelined, so the slower level binds. A buffer is the whole tensor: each rank sends (n - 1)/n of it
in a gather or a scatter.
"""

from dataclasses import dataclass
from functools import cached_property

from ..formula import ceil, divide, floor, maximum, minimum, where
from ..quantities import Bandwidth, Bytes, Count, Pace, Seconds, Share
from .accelerator import Cluster


@dataclass(frozen=True)
class Group:
    """The ranks of a collective: so many, each `stride` ranks from the next; they span a domain or several."""

    ranks: Count
    stride: Count
    cluster: Cluster

    @cached_property
    def near(self) -> Count:
        """Members that share a scale-up domain."""
        return maximum(1, minimum(self.ranks, floor(self.cluster.inside.size / self.stride)))

    @cached_property
    def far(self) -> Count:
        """Domains that the group spans."""
        return ceil(self.ranks / self.near)

    @cached_property
    def pace(self) -> Pace:
        """Time a byte of an all-gather or a reduce-scatter: rings that leave each domain over every member's NIC.

        (n - 1)/n of the buffer passes every link; the NICs of g members share what leaves: B = min(B1, g B2).
        Source: NCCL's rings; the bus bandwidth of nccl-tests.
        """
        inside: Pace = where(self.near > 1, 1 / (self.cluster.inside.bandwidth * self.cluster.inside.share), 0)
        wire: Bandwidth = self.near * self.cluster.outside.bandwidth * self.cluster.outside.share
        outside: Pace = where(self.far > 1, 1 / wire, 0)
        return (self.ranks - 1) / self.ranks * maximum(inside=inside, outside=outside)

    @cached_property
    def latency(self) -> Seconds:
        """Steps of a ring inside a domain, and between domains."""
        inside: Seconds = (self.near - 1) * self.cluster.inside.latency_seconds
        return inside + (self.far - 1) * self.cluster.outside.latency_seconds


def sent_bytes(buffer: Bytes, ranks: Count) -> Bytes:
    """Bytes each rank sends in an all-gather, a reduce-scatter or an all-to-all of a buffer: (n - 1)/n of it.

    Source: ring algorithms; NVIDIA nccl-tests, doc/PERFORMANCE.md.
    """
    return buffer * (ranks - 1) / ranks


def gather_time(buffer: Bytes, group: Group) -> Seconds:
    """An all-gather or a reduce-scatter of a buffer; nothing where it is empty or the group is one rank."""
    return where((group.ranks > 1) & (buffer > 0), buffer * group.pace + group.latency, 0)


def all_to_all_time(buffer: Bytes, group: Group) -> Seconds:
    """Every rank keeps 1/n of what it holds and sends the rest, near and far at the same time."""
    near: Bytes = buffer * (group.near - 1) / group.ranks
    far: Bytes = buffer * (group.ranks - group.near) / group.ranks
    inside: Seconds = near / (group.cluster.inside.bandwidth * group.cluster.inside.share)
    outside: Seconds = far / (group.cluster.outside.bandwidth * group.cluster.outside.share)
    slowest: Seconds = maximum(inside=inside, outside=outside)
    step: Seconds = where(group.far > 1, group.cluster.outside.latency_seconds, group.cluster.inside.latency_seconds)
    return where((group.ranks > 1) & (buffer > 0), slowest + step, 0)


def crossing_share(ranks: Count, stride: Count, size: Count) -> Share:
    """Share of the hops along `ranks` ranks, each `stride` from the next, that leave a domain of `size`."""
    leave: Count = divide(ceil(ranks * stride / size) - 1, ranks - 1)
    return where(stride < size, leave, 1)


def send_time(message: Bytes, crossing: Share, cluster: Cluster) -> Seconds:
    """One message; `crossing` is the share of messages that leave the scale-up domain."""
    inside: Seconds = message / (cluster.inside.bandwidth * cluster.inside.share) + cluster.inside.latency_seconds
    outside: Seconds = message / (cluster.outside.bandwidth * cluster.outside.share) + cluster.outside.latency_seconds
    return inside + (outside - inside) * crossing


def level(ranks: Count, stride: Count, cluster: Cluster) -> str:
    """The name of the level that a group spans."""
    return cluster.inside.name if ranks * stride <= cluster.inside.size else cluster.outside.name

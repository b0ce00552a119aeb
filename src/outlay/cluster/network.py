"""How long one collective takes on a network of two levels: inside a scale-up domain, and between domains.

A group of `ranks` members, each `stride` ranks from the next, spans a domain or several. Every collective is pipelined,
so the slower level binds. A buffer is the whole tensor: each rank sends (n - 1)/n of it in a gather or scatter.
"""

from ..formula import ceil, floor, maximum, minimum, where
from ..quantities import Bytes, Count, Seconds
from .accelerator import Cluster


def near_ranks(ranks: Count, stride: Count, cluster: Cluster) -> Count:
    """Members of a group that share a scale-up domain."""
    return maximum(1, minimum(ranks, floor(cluster.inside.size / stride)))


def sent_bytes(buffer: Bytes, ranks: Count) -> Bytes:
    """Bytes each rank sends in an all-gather, a reduce-scatter or an all-to-all of a buffer: (n - 1)/n of it.

    Source: ring algorithms; NVIDIA nccl-tests, doc/PERFORMANCE.md.
    """
    return buffer * (ranks - 1) / ranks


def gather_time(buffer: Bytes, ranks: Count, stride: Count, cluster: Cluster) -> Seconds:
    """An all-gather or a reduce-scatter of a buffer; nothing where the buffer is empty or the group is one rank.

    Each level moves its share: (g - 1)/g of the buffer inside a domain of g members, (m - 1)/n between m domains.
    """
    near: Count = near_ranks(ranks, stride, cluster)
    far: Count = ceil(ranks / near)
    inside: Seconds = buffer * (near - 1) / near / (cluster.inside.bandwidth * cluster.inside.share)
    outside: Seconds = buffer * (far - 1) / ranks / (cluster.outside.bandwidth * cluster.outside.share)
    latency: Seconds = (near - 1) * cluster.inside.latency_seconds + (far - 1) * cluster.outside.latency_seconds
    return where((ranks > 1) & (buffer > 0), maximum(inside=inside, outside=outside) + latency, 0)


def all_to_all_time(buffer: Bytes, ranks: Count, stride: Count, cluster: Cluster) -> Seconds:
    """Every rank keeps 1/n of what it holds and sends the rest, near and far at the same time."""
    near: Count = near_ranks(ranks, stride, cluster)
    inside: Seconds = buffer * (near - 1) / ranks / (cluster.inside.bandwidth * cluster.inside.share)
    outside: Seconds = buffer * (ranks - near) / ranks / (cluster.outside.bandwidth * cluster.outside.share)
    latency: Seconds = where(ranks > near, cluster.outside.latency_seconds, cluster.inside.latency_seconds)
    return where((ranks > 1) & (buffer > 0), maximum(inside=inside, outside=outside) + latency, 0)


def send_time(message: Bytes, stride: Count, cluster: Cluster) -> Seconds:
    """One message to the rank `stride` away: over the fast level if both share a domain."""
    inside: Seconds = message / (cluster.inside.bandwidth * cluster.inside.share) + cluster.inside.latency_seconds
    outside: Seconds = message / (cluster.outside.bandwidth * cluster.outside.share) + cluster.outside.latency_seconds
    return where(stride < cluster.inside.size, inside, outside)


def level(ranks: Count, stride: Count, cluster: Cluster) -> str:
    """The name of the level that a group spans."""
    return cluster.inside.name if ranks * stride <= cluster.inside.size else cluster.outside.name

"""How long one collective takes on a network of two or three levels: inside a domain, inside a leaf, between leaves.

Every collective is pipelined, so the slowest level binds. A buffer is the whole tensor: each rank sends (n - 1)/n of it
in a gather or a scatter. A network without a spine is one leaf.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..formula import ceil, divide, floor, log2, maximum, minimum, where
from ..quantities import Bandwidth, Bytes, Count, Pace, Seconds, Share
from .accelerator import Cluster


@dataclass(frozen=True)
class Group:
    """The ranks of a collective: so many, each `stride` ranks from the next; they span a domain or several.

    Inside a domain they are behind a switch, and between domains in one leaf: two levels.
    """

    ranks: Count
    stride: Count
    cluster: Cluster

    @cached_property
    def near(self) -> Count:
        """Members that share a scale-up domain."""
        return maximum(1, minimum(self.ranks, floor(self.cluster.inside.size / self.stride)))

    @cached_property
    def leaf(self) -> Count:
        """Members in one leaf of the network: all of them."""
        return self.ranks

    @cached_property
    def far(self) -> Count:
        """Domains that the group spans in one leaf."""
        return ceil(self.leaf / self.near)

    @cached_property
    def fan(self) -> Share:
        """Share of the bandwidth inside a domain that the members can use: behind a switch two of them use all."""
        return 1

    @cached_property
    def domains(self) -> Count:
        """Domains that the group spans in all."""
        return self.far

    @cached_property
    def inside_pace(self) -> Pace:
        """Time a byte on a link inside a domain; 0 where the members are in domains of their own."""
        link: Bandwidth = self.fan * self.cluster.inside.bandwidth * self.cluster.inside.share
        return where(self.near > 1, 1 / link, 0)

    @cached_property
    def outside_pace(self) -> Pace:
        """Time a byte of what leaves a domain; the NICs of g members share it. 0 where nothing leaves."""
        wire: Bandwidth = self.near * self.cluster.outside.bandwidth * self.cluster.outside.share
        return where(self.far > 1, 1 / wire, 0)

    @cached_property
    def pace(self) -> Pace:
        """Time a byte of an all-gather or a reduce-scatter: rings that leave each domain over every member's NIC.

        (n - 1)/n of the buffer passes every link, and what leaves a domain is shared: B = min(B1, g B2).
        Source: NCCL's rings; the bus bandwidth of nccl-tests.
        """
        return (self.ranks - 1) / self.ranks * maximum(inside=self.inside_pace, outside=self.outside_pace)

    @cached_property
    def hops(self) -> Seconds:
        """The n - 1 steps of a ring, one of which enters each further domain. Source: NCCL, src/graph/tuning.cc."""
        inside: Seconds = (self.ranks - self.domains) * self.cluster.inside.latency_seconds
        return inside + (self.domains - 1) * self.cluster.outside.latency_seconds

    @cached_property
    def start(self) -> Seconds:
        """From the start of a collective to its first step; nothing where a rank is alone."""
        return where(self.ranks > 1, self.cluster.accelerator.collective_seconds, 0)

    @cached_property
    def latency(self) -> Seconds:
        """An all-gather or a reduce-scatter of next to nothing."""
        return self.start + self.hops

    @cached_property
    def ring_pace(self) -> Pace:
        """Time a byte of an all-reduce around the ring: it passes twice."""
        return 2 * self.pace

    @cached_property
    def ring_hops(self) -> Seconds:
        """An all-reduce of next to nothing around the ring."""
        return self.start + 2 * self.hops

    @cached_property
    def tree_pace(self) -> Pace:
        """Time a byte of an all-reduce that adds inside each domain, and then along two trees between the domains.

        Inside, the switch adds, (g + 1)/g of the buffer on each link, or a chain does, 2 (g - 1)/g. A domain passes the
        buffer up and down, twice; once where there are two whose switches add: NCCL takes no other tree between two for
        a large buffer. Source: NCCL, NVLS, NVLSTree and double binary trees; src/graph/tuning.cc.
        """
        switch: Pace = divide(1, self.cluster.inside.bandwidth * self.cluster.inside.switch_share)
        added: Pace = where(self.near > 1, (self.near + 1) / self.near * switch, 0)
        chain: Pace = 2 * (self.near - 1) / self.near * self.inside_pace
        inside: Pace = where(self.cluster.inside.switch_share > 0, added, chain)
        halved: Count = where(self.cluster.inside.switch_share > 0, 1, 2)
        return maximum(inside=inside, outside=where(self.domains > 2, 2, halved) * self.outside_pace)

    @cached_property
    def tree_hops(self) -> Seconds:
        """The same of next to nothing: steps in each domain, and up and down a tree of the domains."""
        chain: Seconds = 2 * (self.near - 1) * self.cluster.inside.latency_seconds
        inside: Seconds = where(self.cluster.inside.switch_share > 0, self.cluster.inside.switch_seconds, chain)
        added: Seconds = where(self.near > 1, inside, 0)
        return self.start + added + 2 * log2(self.domains) * self.cluster.outside.latency_seconds

    def send(self, message: Bytes) -> Seconds:
        """One message to the next member: the mean over the hops, some of which leave the domain."""
        crossing: Share = crossing_share(self.ranks, self.stride, self.cluster.inside.size)
        return send_time(message, crossing, self.cluster)


class DeepGroup(Group):
    """The same where the network has a spine between leaves, or a domain is a mesh or a torus."""

    @cached_property
    def leaf(self) -> Count:
        """Members in one leaf of the network."""
        return maximum(self.near, minimum(self.ranks, floor(self.cluster.outside.size / self.stride)))

    @cached_property
    def leaves(self) -> Count:
        """Leaves that the group spans."""
        return ceil(self.ranks / self.leaf)

    @cached_property
    def fan(self) -> Share:
        """Share of a mesh's or a torus's paths that the members use: one to each other member, all at most.

        Source: 48 of 64 GB/s on one pair of MI300X and 313 of 448 on eight, stas00/ml-engineering.
        """
        return minimum(1, maximum(1, self.near - 1) / self.cluster.inside.paths)

    @cached_property
    def domains(self) -> Count:
        """Domains that the group spans in all."""
        return ceil(self.ranks / self.near)

    @cached_property
    def outside_pace(self) -> Pace:
        """Time a byte of what leaves a domain or a leaf: the NICs of g members, the uplinks of m members share it."""
        wire: Bandwidth = self.near * self.cluster.outside.bandwidth * self.cluster.outside.share
        outside: Pace = where(self.far > 1, 1 / wire, 0)
        uplink: Bandwidth = self.leaf * self.cluster.top.bandwidth * self.cluster.top.share
        return maximum(outside=outside, spine=where(self.leaves > 1, 1 / uplink, 0))

    @cached_property
    def hops(self) -> Seconds:
        """The n - 1 steps of a ring, one of which enters each further domain, and one each further leaf."""
        inside: Seconds = (self.ranks - self.domains) * self.cluster.inside.latency_seconds
        outside: Seconds = (self.domains - self.leaves) * self.cluster.outside.latency_seconds
        return inside + outside + (self.leaves - 1) * self.cluster.top.latency_seconds

    def send(self, message: Bytes) -> Seconds:
        """One message to the next member: the mean over the hops, some of which leave the domain or the leaf."""
        crossing: Share = crossing_share(self.ranks, self.stride, self.cluster.inside.size)
        beyond: Share = crossing_share(self.ranks, self.stride, self.cluster.outside.size)
        return send_time(message, crossing, self.cluster) + spine_time(message, beyond, self.cluster)


def _group(ranks: Count, stride: Count, cluster: Cluster) -> Group:
    deep = cluster.spine or cluster.inside.paths > 1
    return (DeepGroup if deep else Group)(ranks, stride, cluster)


_kept_group = lru_cache(maxsize=4096, typed=True)(_group)  # a layer's rows ask for few groups, many times


def group(ranks: Count, stride: Count, cluster: Cluster) -> Group:
    """The ranks of a collective, with the formulas that their network needs; those of numbers are made once."""
    if isinstance(ranks, np.ndarray) or isinstance(stride, np.ndarray):
        return _group(ranks, stride, cluster)
    return _kept_group(ranks, stride, cluster)


def sent_bytes(buffer: Bytes, ranks: Count) -> Bytes:
    """Bytes each rank sends in an all-gather, a reduce-scatter or an all-to-all of a buffer: (n - 1)/n of it.

    Source: ring algorithms; NVIDIA nccl-tests, doc/PERFORMANCE.md.
    """
    return buffer * (ranks - 1) / ranks


def gather_time(buffer: Bytes, group: Group) -> Seconds:
    """An all-gather or a reduce-scatter of a buffer; nothing where it is empty or the group is one rank."""
    return where((group.ranks > 1) & (buffer > 0), buffer * group.pace + group.latency, 0)


def all_reduce_time(buffer: Bytes, group: Group) -> Seconds:
    """An all-reduce of a buffer: a ring that passes twice, or trees, whichever ends first.

    Source: NCCL chooses by the same times, src/graph/tuning.cc; switches that add measured on 8 H200, 8 B200 and 64
    GB300, trees between two to four nodes (stas00/ml-engineering; OCI's guides).
    """
    ring: Seconds = buffer * group.ring_pace + group.ring_hops
    tree: Seconds = buffer * group.tree_pace + group.tree_hops
    return minimum(ring=ring, tree=tree)


def copies_share(domains: Count, fan_out: Count) -> Share:
    """Domains that the k copies of a token reach, over k, where they are drawn alike: D (1 - (1 - 1/D)^k) / k.

    A dispatcher that sends one copy to each domain, and copies inside, sends so much less. Source: DeepEP; the
    occupancy of D boxes.
    """
    missed: Share = 1 - 1 / domains
    return where(fan_out > 0, divide(domains * (1 - missed**fan_out), fan_out), 1)


def all_to_all_time(buffer: Bytes, group: Group, fan_out: Count = 0) -> Seconds:
    """Every rank keeps 1/n of what it holds and sends the rest, at the same time on every level.

    Where NICs stand on rails of their own, what leaves for another rail first goes to that rail's accelerator inside
    the domain. Source: NCCL's PXN. Where a token's copies share the way between domains, `fan_out` is how many it has.
    """
    near: Bytes = buffer * (group.near - 1) / group.ranks
    every: Bytes = buffer * (group.ranks - group.near) / group.ranks
    far: Bytes = every * copies_share(group.far, fan_out)
    beyond: Bytes = buffer * (group.ranks - group.leaf) / group.ranks
    turned: Bytes = every * (1 - 1 / minimum(group.cluster.rails, group.near))
    inside: Seconds = (near + turned) / (group.fan * group.cluster.inside.bandwidth * group.cluster.inside.share)
    outside: Seconds = far / (group.cluster.outside.bandwidth * group.cluster.outside.share)
    spine: Seconds = beyond / (group.cluster.top.bandwidth * group.cluster.top.share)
    slowest: Seconds = maximum(inside=inside, outside=outside, spine=spine)
    step: Seconds = where(far > 0, group.cluster.outside.latency_seconds, group.cluster.inside.latency_seconds)
    last: Seconds = where(beyond > 0, group.cluster.top.latency_seconds, step)
    start: Seconds = group.cluster.accelerator.collective_seconds
    return where((group.ranks > 1) & (buffer > 0), start + slowest + last, 0)


def crossing_share(ranks: Count, stride: Count, size: Count) -> Share:
    """Share of the hops along `ranks` ranks, each `stride` from the next, that leave a domain of `size`."""
    leave: Count = divide(ceil(ranks * stride / size) - 1, ranks - 1)
    return where(stride < size, leave, 1)


def send_time(message: Bytes, crossing: Share, cluster: Cluster) -> Seconds:
    """One message; `crossing` is the share of messages that leave the scale-up domain. One pair has one path."""
    path: Bandwidth = cluster.inside.bandwidth * cluster.inside.share / cluster.inside.paths
    inside: Seconds = message / path + cluster.inside.latency_seconds
    outside: Seconds = message / (cluster.outside.bandwidth * cluster.outside.share) + cluster.outside.latency_seconds
    return cluster.accelerator.collective_seconds + inside + (outside - inside) * crossing


def spine_time(message: Bytes, crossing: Share, cluster: Cluster) -> Seconds:
    """What one message takes longer where it leaves its leaf; `crossing` is the share of messages that do."""
    outside: Seconds = message / (cluster.outside.bandwidth * cluster.outside.share) + cluster.outside.latency_seconds
    spine: Seconds = message / (cluster.top.bandwidth * cluster.top.share) + cluster.top.latency_seconds
    return (spine - outside) * crossing


def level(ranks: Count, stride: Count, cluster: Cluster) -> str:
    """The name of the level that a group spans."""
    span = ranks * stride
    if span <= cluster.inside.size:
        return cluster.inside.name
    return cluster.outside.name if span <= cluster.outside.size else cluster.top.name

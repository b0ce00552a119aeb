"""The operation that moves tokens between ranks, beside those of the other rows."""

from dataclasses import dataclass

from ..cluster.accelerator import Cluster
from ..cluster.network import Group, all_reduce_time, all_to_all_time, gather_time, group, sent_bytes
from ..formula import where
from ..quantities import Bandwidth, Bytes, Count, Seconds
from .operations import Row, Sizes


@dataclass(frozen=True)
class Move(Row):
    """A collective of the layer on the group of one axis: `gather` (all-gather, reduce-scatter), `all_to_all`,
    `all_reduce`, or `sequence`: an all-reduce that sequence parallelism splits into a scatter and a gather.

    `times` and `times_back` name how many passes forward and backward make; an all-reduce is two. `sent` and
    `sent_back` name the bytes of a value in them.
    """

    axis: str
    tokens: str
    width: str
    kind: str = "gather"
    times: str = "one"
    times_back: str = "one"
    sent: str = "value"
    sent_back: str = "value"
    fan_out: str = "none"  # ranks that a token is sent to, where one copy goes to each node of them

    def group(self, here: Sizes, cluster: Cluster) -> Group:
        """The ranks of the axis."""
        return group(here[self.axis], here[self.axis + "_stride"], cluster)

    def buffer(self, here: Sizes, value: Bytes) -> Bytes:
        """The whole tensor that is gathered, scattered or exchanged; `value`: bytes of one of its values."""
        return value * here[self.tokens] * here[self.width]

    def sent_forward(self, here: Sizes) -> Bytes:
        """Bytes this rank sends in the forward pass."""
        return here[self.times] * sent_bytes(self.buffer(here, here[self.sent]), here[self.axis])

    def sent_backward(self, here: Sizes) -> Bytes:
        """Bytes this rank sends in the backward pass."""
        return here[self.times_back] * sent_bytes(self.buffer(here, here[self.sent_back]), here[self.axis])

    def one_pass(self, here: Sizes, cluster: Cluster, value: Bytes) -> Seconds:
        """One pass, and what it waits for the slowest rank of tensor parallelism."""
        buffer: Bytes = self.buffer(here, value)
        gathered: Seconds = gather_time(buffer, self.group(here, cluster))
        exchanged: Seconds = all_to_all_time(buffer, self.group(here, cluster), here[self.fan_out])
        half: Seconds = all_reduce_time(buffer, self.group(here, cluster)) / 2
        reduced: Seconds = where(self.kind == "sequence", where(here["with_sp"] > 0, gathered, half), half)
        passed: Seconds = where(self.kind == "gather", gathered, reduced)
        waited: Seconds = where(here[self.axis] > 1, here["rank_skew"] + self.copied(here, cluster, buffer), 0)
        return where(self.kind == "all_to_all", exchanged, passed + where(self.axis == "tp", waited, 0))

    def copied(self, here: Sizes, cluster: Cluster, buffer: Bytes) -> Seconds:
        """Putting the sequence in order, after a gather along it or before a scatter."""
        reached: Bandwidth = cluster.accelerator.memory_bandwidth * cluster.accelerator.memory_share
        times: Count = where(self.kind == "sequence", here["with_sp"] * here["tp_copied"], 0)
        return times * buffer / reached

    def time_forward(self, here: Sizes, cluster: Cluster) -> Seconds:
        """All passes of the forward pass."""
        return here[self.times] * self.one_pass(here, cluster, here[self.sent])

    def time_backward(self, here: Sizes, cluster: Cluster) -> Seconds:
        """All passes of the backward pass."""
        return here[self.times_back] * self.one_pass(here, cluster, here[self.sent_back])

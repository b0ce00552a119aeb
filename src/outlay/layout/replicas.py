"""Ranks that hold the same weights, and what they exchange in one step: a parameter's bytes, time and latency."""

from dataclasses import dataclass
from functools import cached_property

from ..cluster.accelerator import Cluster
from ..cluster.network import Group, all_reduce_time, group, sent_bytes
from ..formula import where
from ..quantities import Bytes, Count, Flag, Pace, Params, Seconds


@dataclass(frozen=True)
class Replicas:
    """Replicas of some weights: `shard` cuts them; `summed` hold the same part of the gradients, whole or a shard.

    Under ZeRO-0 gradients are all-reduced over all. Else gradients are scattered and weights gathered over the shard
    group, and the shard's gradients all-reduced over its copies. Source: ZeRO; FSDP2's collectives in torch 2.13.
    """

    shard: Group
    summed: Group
    sharded: Flag  # from ZeRO-1 on
    scatters: Count  # reduce-scatters of the gradients in one step
    gathers: Count  # all-gathers of the weights in one step
    spared: Count  # of them, those that the ends of the model do not take part in
    gradient: Bytes  # of one parameter, on the wire
    weight: Bytes
    end_weight: Bytes  # the same of the ends, which are never quantised
    orthogonal: Bytes  # of one parameter that is gathered to be orthogonalised, not of the ends
    frozen_gathers: Count  # all-gathers of frozen weights in one step: where weights are cut
    again: Count  # of them, those for backward passes

    @cached_property
    def gathered(self) -> Bytes:
        """Bytes of one parameter in all gathers of one step."""
        return self.gathers * self.weight + self.orthogonal

    @cached_property
    def reduced(self) -> Bytes:
        """Bytes of one parameter's gradient that are all-reduced: all of it, or what scatters leave on a rank."""
        return self.gradient / where(self.sharded, self.shard.ranks, 1)

    @cached_property
    def sent(self) -> Bytes:
        """Bytes a parameter that one rank sends in one step."""
        sharded: Bytes = sent_bytes(self.scatters * self.gradient + self.gathered, self.shard.ranks)
        return where(self.sharded, sharded, 0) + 2 * sent_bytes(self.reduced, self.summed.ranks)

    @cached_property
    def pace(self) -> Seconds:
        """Time a parameter of all scatters and gathers of one step, one after another; their latency apart."""
        return where(self.sharded, (self.scatters * self.gradient + self.gathered) * self.shard.pace, 0)

    def reduce_seconds(self, parameters: Params) -> Seconds:
        """Time of the gradients' all-reduce of one step."""
        return all_reduce_time(parameters * self.reduced, self.summed)

    @cached_property
    def frozen_sent(self) -> Count:
        """How often one rank sends a byte of its frozen weights in one step."""
        return self.frozen_gathers * (self.shard.ranks - 1) / self.shard.ranks

    @cached_property
    def frozen_pace(self) -> Pace:
        """Time of a byte of frozen weights in one step."""
        return self.frozen_gathers * self.shard.pace

    @cached_property
    def again_sent(self) -> Count:
        """How often one rank sends a byte of its frozen weights for the backward passes of one step."""
        return self.again * (self.shard.ranks - 1) / self.shard.ranks

    @cached_property
    def again_pace(self) -> Pace:
        """Time of a byte of frozen weights for the backward passes of one step."""
        return self.again * self.shard.pace

    @cached_property
    def ends_spared(self) -> Bytes:
        """Bytes of one parameter of the ends that are not gathered, of those that count for every parameter."""
        own: Bytes = (self.gathers - self.spared) * self.end_weight
        return where(self.sharded, self.gathered - own, 0)

    @cached_property
    def ends_sent(self) -> Bytes:
        """Bytes a parameter of the ends that one rank sends less in one step."""
        return sent_bytes(self.ends_spared, self.shard.ranks)

    @cached_property
    def ends_pace(self) -> Seconds:
        """Time a parameter of the ends that is spared in one step."""
        return self.ends_spared * self.shard.pace

    @cached_property
    def end_again_sent(self) -> Bytes:
        """Bytes a parameter of an end that one rank sends in one step where it is gathered again after all."""
        return sent_bytes(self.spared * self.end_weight, self.shard.ranks)

    @cached_property
    def end_again_pace(self) -> Seconds:
        """Time a parameter of such an end takes in one step for that."""
        return self.spared * self.end_weight * self.shard.pace

    @cached_property
    def latency(self) -> Seconds:
        """Latency of all scatters and gathers of one step."""
        return where(self.sharded, (self.scatters + self.gathers) * self.shard.latency, 0)


def groups(ranks: Count, shard: Count, stride: Count, sharded: Flag, cluster: Cluster) -> tuple[Group, Group]:
    """Shard group of so many replicas, the first `stride` ranks apart, and those that sum the same gradients."""
    cut = where(sharded, shard, 1)
    return group(shard, stride, cluster), group(ranks / cut, stride * cut, cluster)

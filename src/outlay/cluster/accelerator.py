"""The accelerator, the links between accelerators, and the cluster: frozen figures, in SI units."""

from dataclasses import dataclass
from math import log2

from ..quantities import PlainBandwidth, PlainBytes, PlainFlopRate, PlainPower, PlainSeconds, PlainShare


@dataclass(frozen=True)
class Accelerator:
    """One accelerator as the framework sees it. Rates are dense (no structured sparsity).

    A rate of 0 means that the accelerator does not have the type. The `_share` fields are what kernels reach of the
    specified rate; each has its source in the catalogue.
    """

    name: str
    title: str
    vendor: str
    bf16_flops: PlainFlopRate  # fp32 accumulate
    fp16_flops: PlainFlopRate  # FLOP/s
    fp8_flops: PlainFlopRate  # FLOP/s
    fp4_flops: PlainFlopRate  # FLOP/s, nvfp4 and mxfp4
    fp32_flops: PlainFlopRate  # without tensor cores
    memory_bytes: PlainBytes  # what the driver reports
    context_bytes: PlainBytes  # taken by the driver's context before a framework starts
    memory_bandwidth: PlainBandwidth  # B/s
    host_bandwidth: PlainBandwidth  # one direction, to host memory
    matmul_share: PlainShare  # of the matrix rate in 16 bit (and fp32), on large shapes
    fp8_share: PlainShare  # the same in 8 bit
    mxfp8_share: PlainShare  # in 8 bit with a scale a block
    fp4_share: PlainShare  # in 4 bit
    matmul_depth: float  # values of the inner dimension that filling the matrix units costs, in 16 bit
    fp8_depth: float  # the same in 8 and 4 bit
    attention_share: PlainShare  # of the matrix rate, fused attention forward on a full device
    attention_back_share: PlainShare  # the same backward
    memory_share: PlainShare  # of memory bandwidth, kernels bound by memory
    launch_seconds: PlainSeconds  # the accelerator's own gap between two kernels
    collective_seconds: PlainSeconds  # from the start of a collective or a message to its first step
    multiprocessors: float  # that share the work of a kernel; 0 where it is not known
    power_watts: PlainPower = 0.0  # as specified: its thermal design power; 0 where it is not known


@dataclass(frozen=True)
class Link:
    """One level of the network: how many accelerators it joins, and what one of them can send in one direction."""

    name: str
    size: int  # accelerators that this level joins
    bandwidth: PlainBandwidth  # B/s an accelerator, one direction, specified
    share: PlainShare  # of the bandwidth, reached by a large collective
    latency_seconds: PlainSeconds  # one step of a ring or a tree
    switch_share: PlainShare = 0.0  # of the bandwidth, reached where the switch itself adds; 0 where it does not
    switch_seconds: PlainSeconds = 0.0  # until it has added the first values
    paths: int = 1  # that the bandwidth is the sum of, one to a pair: 1 behind a switch, more in a mesh or a torus


@dataclass(frozen=True)
class Price:
    """List price, on demand."""

    dollars: float  # USD an hour
    accelerators: int  # that so many dollars pay
    date: str
    unverified: bool = False


@dataclass(frozen=True)
class Cluster:
    """So many of one accelerator, joined by a fast level inside a domain and a slower one between domains.

    Where the slower level ends at a leaf, `spine` joins the leaves. Cards that a bridge joins in twos or fours have
    PCIe as the slower level, their host as the leaf, and the network as the spine. Above a level of the size of the
    whole cluster there is nothing to join.
    """

    name: str
    accelerator: Accelerator
    ranks: int
    inside: Link  # the scale-up domain: NVLink, xGMI, ICI, or PCIe
    outside: Link  # the scale-out network: of the whole cluster, or of a leaf; PCIe between the bridges of a host
    unverified: tuple[str, ...] = ()  # figures that rest on memory, not on a source that was read
    spine: Link | None = None  # between leaves, where there are several
    rails: int = 1  # networks side by side; one accelerator of a domain is on each
    price: Price | None = None
    notes: tuple[str, ...] = ()  # what was taken from elsewhere, and is said in every answer
    host_bytes: PlainBytes | None = None  # host memory, an accelerator's part of its node; None where nobody says it
    storage_bandwidth: PlainBandwidth | None = None  # of the storage that checkpoints go to, for all ranks together
    mtbf_seconds: PlainSeconds | None = None  # mean time between failures of one accelerator; None where it is not said
    restart_seconds: PlainSeconds | None = None  # from a failure until the job runs again, without reading a checkpoint
    pue: float | None = None  # power usage effectiveness: all power of the site over that of the accelerators

    @property
    def doublings(self) -> float:
        """How often one node of eight doubles to make the cluster."""
        return log2(max(1.0, self.ranks / 8))

    @property
    def top(self) -> Link:
        """The slowest level, which joins everything."""
        return self.spine or self.outside

    def dollars(self) -> float | None:
        """USD an hour of the whole cluster; None where no price is known."""
        return self.price.dollars * self.ranks / self.price.accelerators if self.price else None

"""The accelerator, the links between accelerators, and the cluster: frozen figures, in SI units."""

from dataclasses import dataclass

from ..quantities import PlainBandwidth, PlainBytes, PlainFlopRate, PlainSeconds, PlainShare


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
    fp32_flops: PlainFlopRate  # without tensor cores
    memory_bytes: PlainBytes  # what the driver reports
    context_bytes: PlainBytes  # taken by the driver's context before a framework starts
    memory_bandwidth: PlainBandwidth  # B/s
    host_bandwidth: PlainBandwidth  # one direction, to host memory
    matmul_share: PlainShare  # of the matrix rate, on large shapes
    attention_share: PlainShare  # of the matrix rate, fused attention
    memory_share: PlainShare  # of memory bandwidth, kernels bound by memory
    launch_seconds: PlainSeconds  # the accelerator's own gap between two kernels


@dataclass(frozen=True)
class Link:
    """One level of the network: how many accelerators it joins, and what one of them can send in one direction."""

    name: str
    size: int  # accelerators that this level joins
    bandwidth: PlainBandwidth  # B/s an accelerator, one direction, specified
    share: PlainShare  # of the bandwidth, reached by a large collective
    latency_seconds: PlainSeconds  # one step of a collective


@dataclass(frozen=True)
class Cluster:
    """So many of one accelerator, joined by a fast level inside a domain and a slower one between domains."""

    name: str
    accelerator: Accelerator
    ranks: int
    inside: Link  # the scale-up domain: NVLink, xGMI, ICI, or PCIe
    outside: Link  # the scale-out network; its size is the whole cluster
    unverified: tuple[str, ...] = ()  # figures that rest on memory, not on a source that was read

"""How long one kernel runs on one accelerator: a roofline at the rates that kernels reach."""

from dataclasses import dataclass

from ..formula import divide, maximum, where
from ..quantities import (
    Bytes,
    Count,
    FlopRate,
    Flops,
    Intensity,
    PlainBandwidth,
    PlainBytes,
    PlainFlopRate,
    PlainSeconds,
    Seconds,
    Share,
)
from .accelerator import Accelerator, Link


@dataclass(frozen=True)
class Rates:
    """What kernels of one precision and kernel set reach on one accelerator, in SI units."""

    matmul: PlainFlopRate  # FLOP/s, large matrix multiplies in the job's precision
    half_matmul: PlainFlopRate  # FLOP/s, those that stay in 16 bit (the head)
    attention: PlainFlopRate  # FLOP/s, the attention core on a full device, forward
    attention_back: PlainFlopRate  # FLOP/s, its backward pass
    memory: PlainBandwidth  # B/s, kernels bound by memory
    elementwise: float  # time of the engine's memory-bound kernels over their bytes at that rate
    launch: PlainSeconds  # s, the gap before a kernel
    depth: float = 0  # values of the inner dimension that filling the matrix units costs
    half_depth: float = 0  # the same of multiplies in 16 bit
    cast_bytes: PlainBytes = 0  # moved to quantise a value
    cast_seconds: PlainSeconds = 0  # s, the gaps of quantising what goes into a multiply
    across_bytes: PlainBytes = 0  # moved to quantise a value once more, along the other side of its matrix
    weight_bytes: PlainBytes = 0  # moved to quantise a weight in a forward pass
    weight_across_bytes: PlainBytes = 0  # the same in a backward pass, along the other side
    rescale_bytes: PlainBytes = 0  # moved to scale a value that a backward multiply gives
    fill: float = 0  # blocks of attention with which half of the device is busy
    narrow: float = 0  # width that a score of attention costs besides its products, forward
    narrow_back: float = 0  # the same of the backward pass
    accumulated: PlainBytes = 0  # moved for a value of a weight's gradient: read, added to, written
    grouped_rows: float = 0  # rows an expert with which a grouped multiply reaches half its rate
    grouped_rows_back: float = 0  # the same of the weights' gradient


PEAKS = {
    "bf16": "bf16_flops",
    "fp16": "fp16_flops",
    "fp8": "fp8_flops",
    "fp4": "fp4_flops",
    "fp32": "fp32_flops",
}  # by the type of the numbers


def peak_rate(accelerator: Accelerator, precision: str) -> float:
    """Specified FLOP/s of the matrix units in a precision; 0 if the accelerator does not have it."""
    rate: float = getattr(accelerator, PEAKS[precision])
    return rate


def counted_rate(accelerator: Accelerator, precision: str) -> float:
    """FLOP/s that utilisation is over: the precision's, or the half precision's where a rule refuses the precision."""
    return peak_rate(accelerator, precision) or accelerator.bf16_flops or accelerator.fp16_flops


def matmul_time(work: Flops, moved: Bytes, rate: FlopRate, waste: Share, copies: Count, here: Rates) -> Seconds:
    """A matrix multiply: its arithmetic at the achieved rate, or its memory traffic if that takes longer.

    `waste` is what small shapes take longer. `copies` multiplies run in one grouped kernel; where there is none,
    nothing is launched. Source: the roofline, Williams et al. 2009.
    """
    arithmetic: Seconds = work / rate * (1 + waste)
    traffic: Seconds = moved / here.memory
    return maximum(arithmetic=arithmetic, traffic=traffic) + where(copies > 0, here.launch, 0)


def small_waste(depth: Count, inner: Count, half: Count, each_expert: Count) -> Share:
    """What a multiply takes longer than a large one: k0/k to fill the units, and r0/r where r rows an expert are few.

    Sources: a fit over 183 multiplies on A100, 3.6 % mean error with k0 148; grouped multiplies on B200, 60 points
    near m / (m + 170) forward and m / (m + 270) for the weights' gradient (SimuMax's tables of operations).
    """
    filling: Share = divide(depth, inner)
    few: Share = divide(half, each_expert)
    return filling + few + filling * few


def cast_time(values: Count, weights: Count, each_weight: Bytes, here: Rates) -> Seconds:
    """Quantising what goes into a multiply: read in 16 bit, written in fewer, and the kernels' gaps.

    `each_weight`: bytes moved a weight; 0 where weights are quantised once a step.
    """
    moved: Bytes = values * here.cast_bytes + weights * each_weight
    return moved / here.memory + where(values > 0, here.cast_seconds, 0)


def across_time(values: Count, here: Rates) -> Seconds:
    """Quantising values once more, along the other side of their matrix: 0 where one kernel writes both."""
    return values * here.across_bytes / here.memory


def scaled_time(values: Count, here: Rates) -> Seconds:
    """Scaling what a backward multiply gives, in a kernel of its own: 0 where the multiply does it."""
    return values * here.rescale_bytes / here.memory


def memory_time(moved: Bytes, here: Rates) -> Seconds:
    """A kernel bound by memory: bytes read and written over the achieved bandwidth, times the engine's factor."""
    return moved / here.memory * here.elementwise + where(moved > 0, here.launch, 0)


def attention_time(work: Flops, moved: Bytes, rate: FlopRate, blocks: Count, here: Rates) -> Seconds:
    """The attention core: its arithmetic at its own rate and, where scores are written out, their traffic.

    A fused core deals blocks of 128 queries of a head over the device; few of them leave it idle: b / (b + b0), b0 0.7
    blocks a multiprocessor, held fixed in a fit over NVIDIA's H100 steps. With very few heads real kernels lose more:
    on B200 four heads of 4,096 tokens reach 190 TFLOP/s forward (SimuMax's table of operations) where this gives 560.
    """
    idle: Share = divide(here.fill, blocks)
    return work / rate * (1 + idle) + moved / here.memory + here.launch


WIDE = 128  # values of a head that the rates of attention were measured with


def narrow_share(width: Count, more: Count) -> Share:
    """Time of a fused core a multiply-add, over that of heads 128 wide: (1 + m / d) / (1 + m / 128).

    A score takes its softmax whatever the width d of its head, as long as the products of m values. Heads wider than
    128 are taken alike. Source: cuDNN by the width of heads, FlashAttention-3, arXiv:2407.08608, figures 5 and 6.
    """
    return (1 + more / width) / (1 + more / WIDE)


def scan_time(work: Flops, moved: Bytes, here: Rates) -> Seconds:
    """A recurrence: its products in chunks at the rate of fused attention, or its traffic if that takes longer.

    Source: the roofline; the chunks' products are as small as those of fused attention (assumed alike).
    """
    products: Seconds = work / here.attention
    traffic: Seconds = moved / here.memory
    return maximum(products=products, traffic=traffic) + where(moved > 0, here.launch, 0)


def flops_per_byte(accelerator: Accelerator) -> Intensity:
    """Work a byte of memory traffic must carry to keep the matrix units busy: bf16 peak / memory bandwidth.

    Below it a kernel is bound by memory, above it by arithmetic. Source: the roofline, Williams et al. 2009.
    """
    return accelerator.bf16_flops / accelerator.memory_bandwidth


def memory_over_link(accelerator: Accelerator, link: Link) -> Count:
    """How many times memory is faster than a link: memory bandwidth / link bandwidth.

    Both as specified, one accelerator, one direction of the link.
    """
    return accelerator.memory_bandwidth / link.bandwidth

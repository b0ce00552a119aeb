"""How long one kernel runs on one accelerator: a roofline at the rates that kernels reach."""

from dataclasses import dataclass

from ..formula import maximum, where
from ..quantities import Bytes, Count, FlopRate, Flops, Intensity, PlainBandwidth, PlainFlopRate, PlainSeconds, Seconds
from .accelerator import Accelerator, Link


@dataclass(frozen=True)
class Rates:
    """What kernels of one precision reach on one accelerator, in SI units."""

    matmul: PlainFlopRate  # FLOP/s, matrix multiplies in the job's precision
    half_matmul: PlainFlopRate  # FLOP/s, matrix multiplies that stay in 16 bit (the head)
    attention: PlainFlopRate  # FLOP/s, the attention core
    memory: PlainBandwidth  # B/s, kernels bound by memory
    elementwise: float  # time of the engine's memory-bound kernels over their bytes at that rate
    launch: PlainSeconds  # s, the gap before a kernel


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


def rates(accelerator: Accelerator, precision: str, attention_share: float, elementwise: float) -> Rates:
    """The achieved rates; `attention_share` > 0 replaces what the accelerator's fused attention reaches."""
    half = accelerator.bf16_flops or accelerator.fp16_flops
    plain = peak_rate(accelerator, precision) or half  # a rule refuses a precision that is not there
    core = plain if precision == "fp32" else half
    return Rates(
        matmul=plain * accelerator.matmul_share,
        half_matmul=core * accelerator.matmul_share,
        attention=core * (attention_share or accelerator.attention_share),
        memory=accelerator.memory_bandwidth * accelerator.memory_share,
        elementwise=elementwise,
        launch=accelerator.launch_seconds,
    )


def matmul_time(work: Flops, moved: Bytes, rate: FlopRate, copies: Count, here: Rates) -> Seconds:
    """A matrix multiply: its arithmetic at the achieved rate, or its memory traffic if that takes longer.

    `copies` multiplies run in one grouped kernel; where there is none, nothing is launched. Source: the roofline,
    Williams et al. 2009.
    """
    arithmetic: Seconds = work / rate
    traffic: Seconds = moved / here.memory
    return maximum(arithmetic=arithmetic, traffic=traffic) + where(copies > 0, here.launch, 0)


def memory_time(moved: Bytes, here: Rates) -> Seconds:
    """A kernel bound by memory: bytes read and written over the achieved bandwidth, times the engine's factor."""
    return moved / here.memory * here.elementwise + where(moved > 0, here.launch, 0)


def attention_time(work: Flops, moved: Bytes, here: Rates) -> Seconds:
    """The attention core: its arithmetic at its own rate and, where scores are written out, their traffic."""
    return work / here.attention + moved / here.memory + here.launch


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

"""What a profiler saw of one step, by the class of its kernels: no moment counted twice, so that all adds up."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

MATMUL, ATTENTION, MEMORY, OPTIMIZER, COPIES, EXCHANGE = CLASSES = (
    "matmul",
    "attention",
    "memory-bound",
    "optimizer",
    "copies",
    "communication",
)
NOTHING = "nothing runs"
Span = tuple[float, float]  # s: from, until

# The first pattern found in a name says its class; what none knows is bound by memory. Names of CUDA kernels: cuBLAS
# (gemm, gemv, nvjet, splitK), CUTLASS, hipBLASLt (Cijk_), flash attention, cuDNN, memory-efficient attention, AOTriton
# and CK; NCCL and RCCL; fused Adam; the copies of FSDP2. Names of a CPU are those of torch's operations.
NAMES = (
    (EXCHANGE, r"nccl|^gloo|^c10d::|_c10d_functional|all_?reduce_kernel|multimem_"),
    (ATTENTION, r"flash_(fwd|bwd|attn)|flash::|fmha|_sdpa_|scaled_dot_product|flex_attention|^attn_fwd|^bwd_kernel_"),
    (ATTENTION, r"outlay::attention"),
    (OPTIMIZER, r"adam|(?<!batch)_?lamb_|^Optimizer\.step"),
    (COPIES, r"^memcpy|^memset|split_with_sizes_copy|chunk_cat|^fsdp::|_foreach_copy_|multi_tensor_apply.*copy"),
    (OPTIMIZER, r"multi_tensor_apply|_foreach_"),
    (MATMUL, r"gemm|gemv|nvjet|^cijk_|cublas|splitkreduce|cutlass.*(kernel2|tensorop)|triton_tem_.*mm"),
    (MATMUL, r"^aten::(mm|addmm|bmm|baddbmm|_grouped_mm|mv|addmv|dot|mkldnn_linear)$"),
)
PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in NAMES)


@dataclass(frozen=True)
class Kernel:
    """One run of a kernel, or of an operation of a CPU."""

    name: str
    start: float  # s
    end: float


@dataclass(frozen=True)
class Moments:
    """One step of one rank: by class, the time in which no class before it runs; what is left is `nothing runs`."""

    seconds: float  # of the step
    shown: dict[str, float]  # s by class; they add up to the step
    alone: dict[str, float]  # s by class in which any of it runs, whatever runs beside it
    longest: tuple[tuple[str, str, int, float], ...]  # kernels that took most: class, name, runs, s


def class_of(name: str) -> str:
    """The class of a kernel by its name."""
    return next((found for found, pattern in PATTERNS if pattern.search(name)), MEMORY)


def union(spans: Iterable[Span]) -> list[Span]:
    """The same moments as spans that do not touch, in order."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > start:
            found.append((start, end))
    return found


def length(spans: Iterable[Span]) -> float:
    """Of spans that do not touch."""
    return sum(end - start for start, end in spans)


ON_A_DEVICE = (MATMUL, ATTENTION, OPTIMIZER, MEMORY, COPIES, EXCHANGE)  # kernels of one stream, others beside them
ON_A_CPU = (EXCHANGE, ATTENTION, MATMUL, OPTIMIZER, COPIES, MEMORY)  # operations, of which the outer ones say less


def moments_of(
    kernels: Sequence[Kernel], seconds: float, order: tuple[str, ...] = ON_A_DEVICE, most: int = 40
) -> Moments:
    """Share the time of a step out: each moment to the first class in `order` that runs in it."""
    spans: dict[str, list[Span]] = {name: [] for name in CLASSES}
    runs, times = Counter[str](), Counter[str]()
    for kernel in kernels:
        spans[class_of(kernel.name)].append((kernel.start, kernel.end))
        runs[kernel.name] += 1
        times[kernel.name] += kernel.end - kernel.start  # type: ignore[assignment]
    shown, before, seen = dict.fromkeys(CLASSES, 0.0), 0.0, list[Span]()
    for name in order:
        seen = union([*seen, *spans[name]])
        shown[name], before = length(seen) - before, length(seen)
    shown[NOTHING] = max(0.0, seconds - before)
    alone = {name: length(union(of)) for name, of in spans.items()}
    longest = tuple((class_of(name), name, runs[name], float(took)) for name, took in times.most_common(most))
    return Moments(seconds, shown, alone, longest)


@dataclass(frozen=True)
class Device:
    """What a rank runs on."""

    kind: str  # cuda or cpu
    name: str
    memory: int  # B that may be used, 0 where it is not known
    libraries: dict[str, str]  # and the driver, each with its version


@dataclass(frozen=True)
class Ran:
    """What one rank did: the time of each step after the warm-up, its peak, and one more step under the profiler."""

    rank: int
    device: Device
    seconds: tuple[float, ...]
    allocated: int  # B, the most that tensors held
    reserved: int  # B, the most that the allocator held; 0 on a CPU, which has none
    moments: Moments

    @property
    def middle(self) -> float:
        """Seconds of the step in the middle."""
        return median(self.seconds)

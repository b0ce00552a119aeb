"""What the kernels of an engine reach on an accelerator, in the precision of a job."""

from ..cluster.accelerator import Accelerator
from ..cluster.efficiency import Rates, peak_rate
from .engine import KernelSet
from .recipe import Precision, Recipe


def rates(accelerator: Accelerator, how: Precision, kernels: KernelSet, recipe: Recipe) -> Rates:
    """The achieved rates; a kernel set's own attention replaces the accelerator's fused kernel."""
    half = accelerator.bf16_flops or accelerator.fp16_flops
    plain = peak_rate(accelerator, how.number) or half  # a rule refuses a precision that is not there
    wide = plain if how.number == "fp32" else half
    forward, back = kernels.attention_on(accelerator.name)
    narrow, narrow_back = kernels.narrow_on(accelerator.name)
    share: float = getattr(accelerator, how.share)
    return Rates(
        matmul=plain * (share or accelerator.matmul_share),
        half_matmul=wide * accelerator.matmul_share,
        attention=wide * (forward or accelerator.attention_share),
        attention_back=wide * (back or accelerator.attention_back_share or accelerator.attention_share),
        memory=accelerator.memory_bandwidth * accelerator.memory_share,
        elementwise=kernels.elementwise,
        launch=accelerator.launch_seconds,
        depth=accelerator.fp8_depth if how.quantises else accelerator.matmul_depth,
        half_depth=accelerator.matmul_depth,
        cast_bytes=how.cast_bytes,
        cast_seconds=how.cast_seconds,
        across_bytes=how.across_bytes,
        weight_bytes=how.weight_bytes,
        weight_across_bytes=how.weight_across_bytes,
        rescale_bytes=how.rescale_bytes,
        fill=kernels.attention_fill * accelerator.multiprocessors,
        narrow=narrow,
        narrow_back=narrow_back,
        accumulated=2 * recipe.gradients,
        grouped_rows=kernels.grouped_rows,
        grouped_rows_back=kernels.grouped_rows_back,
    )

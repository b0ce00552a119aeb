"""Model FLOPs against torch's own counter, on the model code of transformers: one sequence, on tensors without data."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...job import Job
from ...model.model import Model
from ...model.parts import Attention
from ...undivided import backward_flops, sequence_flops
from ..comparison import Comparison
from ..models.configs import HOW, Config, built

if TYPE_CHECKING:
    from torch import nn

BY_VALUE = {"dbrx", "jetmoe", "longcat_flash", "step3p7", "step3p7_text"}  # they split tokens as the router says

CODE = "transformers' plain code of {part} multiplies otherwise than the kernels that are counted"
SCANS = CODE.format(part="recurrent parts")
OTHERWISE: dict[str, str] = {
    **dict.fromkeys(
        (
            "mamba", "falcon_mamba", "jamba", "zamba", "mamba2", "nemotron_h", "bamba", "falcon_h1", "zamba2",
            "granitemoehybrid", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid", "kimi_linear",
            "bailing_hybrid", "lfm2", "lfm2_moe", "recurrent_gemma",
        ),
        SCANS,
    ),
    "zaya": CODE.format(part="convolutions"),
    "deepseek_v4": CODE.format(part="an indexer"),
    "mllama_text_model": "without an image the class leaves its layers of cross-attention out",
    "diffllama": "the class computes the scores a second time for the other half of the values",
    "llama4_text": "the class sends every token to every expert, with a score of zero to most",
    **dict.fromkeys(
        ("deepseek_v32", "glm_moe_dsa", "minimax_m3_vl_text"),
        "an indexer learns nothing from this loss, and unfused attention multiplies keys that it leaves out",
    ),
}  # fmt: skip
"""Families whose class runs other products than are counted, and which."""


def flash(q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> int:
    """FLOPs of fused attention, which torch's counter knows of GPUs alone."""
    from torch.utils.flop_counter import sdpa_flop_count

    return int(sdpa_flop_count(q, k, v))


def flash_backward(grad: Any, q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> int:
    """The same of its backward pass."""
    from torch.utils.flop_counter import sdpa_backward_flop_count

    return int(sdpa_backward_flop_count(grad, q, k, v))


def run_flops(build: "Callable[[], nn.Module]", tokens: int, data: bool = False) -> tuple[int, int]:
    """FLOPs of a forward and a backward pass of one sequence as torch counts them. Loads torch and transformers.

    `data`: the model routes by value, so that its tensors must have some.
    """
    from contextlib import nullcontext

    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode
    from transformers.initialization import no_init_weights

    fused = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: flash,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: flash_backward,
    }
    with nullcontext() if data else FakeTensorMode(), nullcontext() if data else no_init_weights():
        model = build()
        ids = torch.zeros(1, tokens, dtype=torch.long)
        with FlopCounterMode(display=False, custom_mapping=fused) as ahead:
            logits = model(input_ids=ids, use_cache=False).logits
        with FlopCounterMode(display=False, custom_mapping=fused) as back:
            logits.float().sum().backward()
    return ahead.get_total_flops(), back.get_total_flops()


def seen_whole(model: Model, tokens: int) -> int:
    """The longest sequence, up to `tokens`, of which every token sees all that came before: what is beyond a window,
    unfused attention multiplies and then hides."""
    spans = [each for part in model.parts if isinstance(part, Attention) for each in (part.window, part.chunk)]
    return min([tokens, *(span for span in spans if span)])


def full(tokens: int) -> Job:
    """One sequence, its attention counted over all keys, as unfused code multiplies them."""
    return Job(sequence_length=tokens, global_batch=1, attention_flops="full")


def compare_flops(model: Model, config: Config, tokens: int) -> tuple[Comparison, ...]:
    """Forward and backward pass of one sequence, all of the model trained, nothing recomputed."""
    from torch import bfloat16

    at = seen_whole(model, tokens)
    forward, backward = run_flops(lambda: built(config, dtype=bfloat16, **HOW), at)
    note = f"one sequence of {at:,} tokens, attention over all keys"
    return (
        Comparison("forward FLOPs", sequence_flops(model, full(at)), forward, "FLOPs", note),
        Comparison("backward FLOPs", backward_flops(model, full(at)), backward, "FLOPs"),
    )

"""A split as settings of the engines that take one.

Sources: Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py (Megatron-Core 0.13 and later) and its
flags for the first and the last stage (0.9); torchtitan, torchtitan/distributed/pipeline_parallel.py (0.3.0).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .pipeline_layout import print_layout

LAYOUT_STRING = ("megatron", "megatron-0.15")  # engines and releases that parse it
MODULE_NAMES = ("fsdp2", "fsdp2-uncompiled", "fsdp2-torchtitan")


def first_and_last(sizes: Sequence[int], vpp: int) -> str:
    """The same as Megatron-LM's two older flags; nothing where they cannot say it.

    They give the layers of the first and of the last stage, and the others are equal.
    """
    first, *middle, last = sizes
    if vpp > 1 or len(set(middle)) != 1 or not first or not last:
        return ""
    return f"--decoder-first-pipeline-num-layers {first} --decoder-last-pipeline-num-layers {last}"


def module_names(sizes: Sequence[int]) -> list[list[str]]:
    """The layers of each chunk, along the model, as torchtitan's `parallelism.module_fqns_per_model_part`.

    >>> module_names((1, 2))
    [['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'norm', 'lm_head']]
    """
    ends = np.cumsum([0, *sizes]).tolist()
    names = [[f"layers.{layer}" for layer in range(*ends_of)] for ends_of in pairwise(ends)]
    names[0].insert(0, "tok_embeddings")
    names[-1] += ["norm", "lm_head"]
    return names


def settings(sizes: Sequence[int], vpp: int, engine: str) -> tuple[str, ...]:
    """What tells an engine a split, the first the one to use; nothing where its release has no such setting."""
    if engine in LAYOUT_STRING:
        whole = f'--pipeline-model-parallel-layout "{print_layout(sizes)}"'
        return tuple(filter(None, (whole, first_and_last(sizes, vpp))))
    if engine in MODULE_NAMES:
        names = str(module_names(sizes)).replace("'", '"')
        return (f"module_fqns_per_model_part = {names}",)
    return ()

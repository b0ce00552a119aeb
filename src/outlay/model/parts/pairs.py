"""A mixture of attention heads: pairs of query and output projections that a router chooses from, one key and value.

Each pair has a query head for every key/value head. Pairs are cut by heads over tp, as all attention is, and are not
dealt over ep. Source: JetMoE report (arXiv 2404.07413); transformers, JetMoeMoA.
"""

from dataclasses import replace

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .kernels import NOTHING, ROUTER


def mixed_inputs(kernels: KernelSet, waits: str) -> tuple[Row, ...]:
    """Keys and values, the router, and the queries of the pairs that a token is sent to.

    `C` copies of tokens on their way to a pair, `Y` those of one pair.
    """
    return (
        Linear("kv", "T", "hidden", "kv", waits=waits),
        Linear("pair_router", "T", "hidden", "pairs"),
        Pointwise("pair_scores", "T", "pairs", replace(ROUTER, keeps_bytes=kernels.router_keeps_expert)),
        Pointwise("pair_choices", "C", "one", replace(ROUTER, keeps_bytes=kernels.router_keeps_choice)),
        Pointwise("pair_permute", "C", "hidden", kernels.permute),
        Linear("pair_q", "Y", "hidden", "pair", waits="C", copies="pairs"),
    )


def mixed_output(kernels: KernelSet) -> tuple[Row, ...]:
    """The output projection of each pair, their weighted sum, and one bias for all."""
    permute = kernels.permute
    unpermute = replace(permute, keeps=1 if kernels.keeps_expert_output else 0)
    return (
        Linear("pair_proj", "Y", "pair", "hidden", waits="C", copies="pairs"),
        Pointwise("pair_unpermute", "C", "hidden", unpermute),
        Pointwise("proj_bias", "S", "hidden", NOTHING, weights="hidden"),
    )

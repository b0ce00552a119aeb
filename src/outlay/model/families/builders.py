"""The words in which families describe their layers: each makes a part, or a layer, from the facts of a config."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from ..model import Sublayer
from ..parts import AnyPart, Attention, Experts, FeedForward
from .family import Facts, Layer

Maker: TypeAlias = Callable[[Facts, int], AnyPart]
Built = TypeVar("Built")
Norms: TypeAlias = Literal["before", "after", "both", "none"]


ESTIMATED = "kept bytes, traffic and splits as fused kernels would have them, read from the class and not measured"


def step(*parts: AnyPart) -> Sublayer:
    """Parts that change the stream on their own: no norm before them, no sum behind them."""
    return Sublayer(parts, "none", adds=False)


def slides(facts: Facts, layer: int, period: int = 0, place: int = -1) -> bool:
    """Whether a layer sees a window only: an explicit list beats the rule of the class, all but one in each period."""
    if facts.get("window_switch") is False or not facts.window:
        return False
    if facts.layer_types is not None:
        return bool(facts.layer_types[layer] == "sliding_attention")
    every = period or facts.window_period
    regular = every == 0 or layer % every != place % every
    return regular and layer >= facts.first_sliding


def has_experts(facts: Facts, layer: int) -> bool:
    """Whether a layer has experts: by a list; else after the leading dense ones, every so many, unless listed."""
    if facts.feed_forward_types is not None:
        return bool(facts.feed_forward_types[layer] == "sparse")
    return (
        facts.experts > 0
        and layer >= facts.first_expert_layer
        and (layer + 1) % (facts.expert_step or 1) == 0
        and layer not in (facts.dense_layers or ())
    )


def grouped(*, period: int = 0, place: int = -1, **more: Any) -> Callable[[Facts, int], Attention]:
    """Grouped-query attention; `period`: one layer in so many sees all keys, that at `place`, the others a window.

    `more` are fields of Attention that no config of the family can change; biases follow `attention_bias` otherwise.
    """

    def make(facts: Facts, layer: int) -> Attention:
        bias = {"qkv_bias": facts.attention_bias, "out_bias": facts.attention_bias}
        window = facts.window if slides(facts, layer, period, place) else 0
        sizes = facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim
        return Attention(*sizes, window=window, **(bias | more))

    return make


def latent(facts: Facts, layer: int) -> Attention:
    """Multi-head latent attention."""
    bias = facts.attention_bias
    return Attention(
        facts.heads, facts.heads, facts.nope_dim, facts.value_dim, qkv_bias=bias, out_bias=bias,
        query_rank=facts.query_rank, latent_rank=facts.latent_rank, rope_dim=facts.rope_dim,
    )  # fmt: skip


def dense(**more: Any) -> Maker:
    """A dense feed-forward part, gated and with the biases of `mlp_bias` unless told otherwise."""

    def make(facts: Facts, layer: int) -> FeedForward:
        return FeedForward(facts.width, **({"bias": facts.mlp_bias} | more))

    return make


def mixture(**more: Any) -> Maker:
    """A part of experts; all shared ones are one of their summed width."""

    def make(facts: Facts, layer: int) -> Experts:
        width = facts.shared_width or facts.shared_experts * facts.expert_width
        shared = {"shared_width": width, "shared_bias": facts.mlp_bias}
        return Experts(facts.experts, facts.active, facts.expert_width, **(shared | more))

    return make


def sparse(experts: Maker | None = None, otherwise: Maker | None = None) -> Maker:
    """Experts where the config has them, else a dense part."""
    some, plain = experts or mixture(), otherwise or dense()

    def make(facts: Facts, layer: int) -> AnyPart:
        return (some if has_experts(facts, layer) else plain)(facts, layer)

    return make


def decoder(
    attention: Maker | None = None, feed_forward: Maker | None = None, norms: Norms = "before"
) -> Layer:  # fmt: skip
    """The usual layer: attention, then feed-forward."""
    first, second = attention or grouped(), feed_forward or dense()

    def build(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
        return Sublayer((first(facts, layer),), norms), Sublayer((second(facts, layer),), norms)

    return build


def parallel(attention: Maker | None = None, feed_forward: Maker | None = None, *, own_norms: bool = False) -> Layer:
    """Attention and feed-forward read the stream together, through one norm or one each."""
    first, second = attention or grouped(), feed_forward or dense()

    def build(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
        return (Sublayer((first(facts, layer), second(facts, layer)), own_norms=own_norms),)

    return build


def switched(
    name: str, on: Callable[[Facts, int], Built], off: Callable[[Facts, int], Built]
) -> Callable[[Facts, int], Built]:  # fmt: skip
    """One maker or layer where a switch is on, another where it is off."""

    def build(facts: Facts, layer: int) -> Built:
        return (on if getattr(facts, name) else off)(facts, layer)

    return build


def always(**fields: Any) -> Callable[[Facts], dict[str, Any]]:
    """Fields of Model that no config of the family can change."""

    def ends(facts: Facts) -> dict[str, Any]:
        return dict(fields)

    return ends


def layer_norms(**more: Any) -> Callable[[Facts], dict[str, Any]]:
    """A model with norms of a scale and a shift; `more` are fields of Model."""
    return always(**({"norm": "layer", "norm_weights": 2} | more))

"""Families without attention, and the words in which all families describe their recurrent parts."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

from ...errors import Fault, InputError
from ..model import Sublayer
from ..parts.delta import DeltaNet
from ..parts.mamba import Mamba, Mamba2
from ..parts.recurrent import ChannelMix, TimeMix
from .builders import Maker, layer_norms
from .family import Facts, Family, Field, Layer

TRAINED = ("max_position_embeddings", "model_max_length", "context_length", "seq_length")


def rank_of_step(values: Mapping[str, Any]) -> int:
    """hidden size / 16, rounded up"""
    hidden: int = values["hidden"]
    return ceil(hidden / 16)


def shared_equally(many: int, few: int, of: str, by: str) -> int:
    """How many of the many each of the few has; raises InputError where they cannot have equally many."""
    if many % few:
        what, rule = f"the {by} do not divide the {of}", f"{by} share the {of} equally"
        fix = f"correct the number of {by}, or what makes the {of}"
        raise InputError(Fault("MOD006", what, rule, f"{many:,} / {few:,}", fix))
    return many // few


def head_width(facts: Facts, width: int) -> int:
    """Channels of a head of Mamba-2; raises InputError where the file gives it another width."""
    found, given = shared_equally(width, facts.scan_heads, "channels", "recurrent heads"), facts.scan_head_dim
    if given not in (None, found):
        what, rule = (
            "the width of a recurrent head is not what the others make it",
            "channels / heads = width of a head",
        )
        fix = f"a width of {found:,}, or another number of heads"
        raise InputError(Fault("MOD006", what, rule, f"{width:,} / {facts.scan_heads:,}, and {given:,}", fix))
    return found


def mamba(norms: Literal["none", "weights", "bare"] = "none", apart: bool = False) -> Maker:
    """Mamba-1."""

    def make(facts: Facts, layer: int) -> Mamba:
        width, heads = facts.expand * facts.hidden, facts.scan_heads or 1
        shared_equally(width, heads, "channels", "recurrent heads")
        return Mamba(
            width, facts.state, facts.step_rank, facts.taps, heads,
            conv_bias=facts.conv_bias, bias=facts.scan_bias, norms=norms, apart=apart,
        )  # fmt: skip

    return make


def mamba2(**more: Any) -> Maker:
    """Mamba-2; its heads share the expanded width, or one that the config gives."""

    def make(facts: Facts, layer: int) -> Mamba2:
        width = facts.get("scan_width") or facts.expand * facts.hidden
        shared_equally(facts.scan_heads, facts.groups, "recurrent heads", "groups")
        bias = {"conv_bias": facts.conv_bias, "in_bias": facts.scan_bias, "out_bias": facts.scan_bias}
        return Mamba2(
            facts.scan_heads, head_width(facts, width), facts.state, facts.groups,
            facts.chunk, facts.taps, **(bias | more),
        )  # fmt: skip

    return make


def delta(facts: Facts, layer: int) -> DeltaNet:
    """Gated DeltaNet; value heads share key heads."""
    shared_equally(facts.delta_value_heads, facts.delta_key_heads, "value heads", "key heads")
    return DeltaNet(
        facts.delta_key_heads, facts.delta_value_heads, facts.delta_key_dim, facts.delta_value_dim, facts.taps
    )  # fmt: skip


def alone(mixer: Maker) -> Layer:
    """A layer of one part."""

    def build(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
        return (Sublayer((mixer(facts, layer),)),)

    return build


def _rwkv(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    return Sublayer((TimeMix(facts.mixer_width),)), Sublayer((ChannelMix(facts.width),))


def _as_hidden(values: Mapping[str, Any]) -> int:
    """hidden size"""
    return int(values["hidden"])


MAMBA = {"state": 16, "expand": 2, "taps": 4, "step_rank": None, "conv_bias": True, "scan_bias": False}
MAMBA2 = {
    "scan_heads": 128, "groups": 1, "state": 256, "expand": 2, "taps": 4, "chunk": 256, "conv_bias": True,
    "scan_bias": False, "scan_head_dim": None,
}  # fmt: skip
ALONE = ("hidden", "layers", "vocab")  # no heads, and no feed-forward part
RANK = {"step_rank": rank_of_step}

RECURRENT: Mapping[str, Family] = {
    "mamba": Family({**MAMBA, "tied": True}, alone(mamba()), core=ALONE, derived=RANK),
    "falcon_mamba": Family({**MAMBA, "tied": True}, alone(mamba("bare")), core=ALONE, derived=RANK),
    "mamba2": Family(
        {**MAMBA2, "tied": False, "groups": 8, "state": 128}, alone(mamba2()), core=ALONE,
        keys={"scan_head_dim": ("head_dim",)},
    ),
    "rwkv": Family(
        {"tied": False, "width": None, "mixer_width": None},
        _rwkv,
        layer_norms(embedding_norm=True),
        core=ALONE,
        keys={"trained_length": TRAINED},
        own={"mixer_width": Field(("attention_hidden_size",), nullable=True)},
        derived={"mixer_width": _as_hidden},
    ),
}  # fmt: skip

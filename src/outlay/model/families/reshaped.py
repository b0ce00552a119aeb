"""A family whose blocks were cut to size one by one: each has its own attention, its own width, or neither."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from ...errors import Fault, InputError, quoted
from ..model import Sublayer
from ..parts import Attention, FeedForward
from ..parts.projection import Projection
from .dense import BIASES
from .family import CORE, Facts, Family, Field

MULTIPLE = 256  # widths are rounded up to it
MOST = 1000  # hidden sizes that a width may have
LARGEST = 10**9  # heads, or tokens of a window


def _block(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    entry = facts.block_configs[layer]
    parts = (
        _part(entry, layer, "attention", facts, _attention),
        _part(entry, layer, "ffn", facts, _feed_forward),
    )  # fmt: skip
    return tuple(Sublayer((part,)) for part in parts if part)


def _part(entry: Mapping[str, Any], layer: int, name: str, facts: Facts, make: Any) -> Any:
    """A part as its entry says: nothing, one square matrix, or the usual one."""
    said = entry.get(name)
    where = f"block_configs[{layer}].{name}"
    if not isinstance(said, Mapping):
        raise _wrong(where, "an object", said, '{"no_op": true}')
    for switch in ("no_op", "replace_with_linear"):
        if said.get(switch) not in (None, False, True):
            raise _wrong(f"{where}.{switch}", "true or false", said[switch], "false")
    if said.get("no_op"):
        return None
    return Projection() if said.get("replace_with_linear") else make(facts, said, where)


def _attention(facts: Facts, said: Mapping[str, Any], where: str) -> Attention:
    group, window = said.get("n_heads_in_group"), said.get("window_length")
    if not _is_size(group) or facts.heads % group:
        raise _wrong(f"{where}.n_heads_in_group", f"a divisor of {facts.heads} attention heads", group, "8")
    if window is not None and not _is_size(window):
        raise _wrong(f"{where}.window_length", "a number of tokens, or null", window, "null")
    sizes = facts.heads, facts.heads // group, facts.head_dim, facts.head_dim
    bias = facts.attention_bias
    return Attention(*sizes, window=window or 0, qkv_bias=bias, out_bias=bias)


def _feed_forward(facts: Facts, said: Mapping[str, Any], where: str) -> FeedForward:
    times = said.get("ffn_mult")
    if not isinstance(times, int | float) or isinstance(times, bool) or not 0 < times <= MOST:
        raise _wrong(f"{where}.ffn_mult", f"a number above 0, up to {MOST}", times, "5.25")
    width = int(2 * times * facts.hidden / 3)
    return FeedForward(-(-width // MULTIPLE) * MULTIPLE, bias=facts.mlp_bias)


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _wrong(key: str, rule: str, got: object, fix: str) -> InputError:
    name = key.rsplit(".", 1)[-1]
    return InputError(
        Fault("MOD005", f"{key} cannot be used", f"{name} is {rule}", f'"{name}": {quoted(got)}', f'"{name}": {fix}')
    )


RESHAPED: Mapping[str, Family] = {
    "nemotron-nas": Family(
        {"tied": False, "head_dim": None, **BIASES},
        _block,
        required=("block_configs",),
        core=tuple(name for name in CORE if name != "width"),
        own={"block_configs": Field(("block_configs",), "objects")},
    ),
}

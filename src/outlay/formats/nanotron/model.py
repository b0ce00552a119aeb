"""The model of a nanotron configuration, both ways: Llama and Qwen2 as it builds them, dense or with experts.

Sources: huggingface/nanotron src/nanotron/models/llama.py and qwen.py (biases on queries, keys and values alone),
src/nanotron/nn/moe.py (gated experts; a shared one with a gate).
"""

from typing import Any

from ...model.model import Block, Model, decoder_block
from ...model.parts import Attention, Experts, FeedForward
from ..sections import Sections

AT = "model.model_config"
# Defaults of LlamaConfig and Qwen2Config, which are the same: src/nanotron/config/models_config.py.
DEFAULTS = {
    "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 2048, "num_attention_heads": 32,
    "num_hidden_layers": 32, "vocab_size": 32000,
}  # fmt: skip
MOST_LAYERS = 10_000


def model_of(at: Sections, notes: list[str]) -> Model | None:
    """The model, or None where the file does not describe one that is built of these parts."""
    if AT not in at.held or not isinstance(at.held[AT].value, dict):
        return None
    if at.flag(f"{AT}.is_starcoder2_config"):
        notes.append("Starcoder2 is not read: name the MODEL")
        return None
    for name in ("is_llama_config", "is_qwen2_config"):
        at.ask(f"{AT}.{name}")
    sizes = {name: at.count(f"{AT}.{name}", usual) or usual for name, usual in DEFAULTS.items()}
    notes += [
        f"{name} {usual:,}: nanotron's default" for name, usual in DEFAULTS.items() if f"{AT}.{name}" not in at.held
    ]
    hidden, heads, layers = (sizes[name] for name in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    groups = at.count(f"{AT}.num_key_value_heads", heads) or heads
    if not 0 < layers <= MOST_LAYERS or hidden % heads or sizes["intermediate_size"] < 1:
        at.wrong(AT, f"layers up to {MOST_LAYERS:,}, a hidden size that the heads divide, and a width")
        return None
    attention = Attention(
        heads, groups, hidden // heads, hidden // heads, window=at.count(f"{AT}.sliding_window_size", 0) or 0,
        qkv_bias=at.flag(f"{AT}.attention_bias"),
    )  # fmt: skip
    dense = decoder_block("layer", attention, FeedForward(sizes["intermediate_size"], True))
    blocks, pattern = _layers(at, attention, dense, layers, sizes["intermediate_size"])
    return Model(
        "nanotron", "nanotron", hidden, sizes["vocab_size"], blocks, pattern, norm="rms", norm_weights=1,
        tied=at.flag(f"{AT}.tie_word_embeddings"), trained_length=sizes["max_position_embeddings"],
        notes=("read from a nanotron configuration",),
    )  # fmt: skip


def _layers(
    at: Sections, attention: Attention, dense: Block, layers: int, width: int
) -> tuple[tuple[Block, ...], tuple[int, ...]]:  # fmt: skip
    """Kinds of layers, and the kind of each: experts in all layers, or in those that `layers` names."""
    path = f"{AT}.moe_config"
    found = at.held.get(path)
    if found is None or not isinstance(found.value, dict):
        return (dense,), (0,) * layers
    experts = Experts(
        at.count(f"{path}.num_experts", 8) or 8, at.count(f"{path}.top_k", 2) or 2,
        at.count(f"{path}.moe_intermediate_size", width) or width, True,
        shared_width=_shared(at, path, width), shared_gate=at.flag(f"{path}.enable_shared_expert"),
    )  # fmt: skip
    if experts.active > experts.experts:
        rule, fix = "top_k is at most num_experts", f"top_k: {experts.experts}"
        at.find(
            "NAN006", f"{path}.top_k", "a token goes to more experts than there are", rule, f"{experts.active}", fix
        )
    named = at.ask(f"{path}.layers")
    chosen = {one.value for one in named.value} if named and isinstance(named.value, list) else {-1}
    sparse = decoder_block("experts", attention, experts)
    kinds = [int(-1 in chosen or layer in chosen) for layer in range(layers)]
    both, used = (dense, sparse), sorted(set(kinds), key=kinds.index)
    return tuple(both[kind] for kind in used), tuple(used.index(kind) for kind in kinds)


def _shared(at: Sections, path: str, width: int) -> int:
    own = at.count(f"{path}.shared_expert_intermediate_size", width) or width
    return int(own) if at.flag(f"{path}.enable_shared_expert") else 0


def config_of(model: Model, sequence: int) -> tuple[dict[str, Any], str]:
    """The model's keys; or none, and why nanotron does not build it."""
    attention = model.blocks[0].attention
    why = _beyond(model)
    if why or attention is None:
        return {}, why or "layers without attention"
    dense = next((block.feed_forward for block in model.blocks if block.feed_forward), None)
    experts = next((block.experts for block in model.blocks if block.experts), None)
    width = dense.width if dense else experts.expert_width if experts else 0
    qwen = attention.qkv_bias or experts is not None or attention.window > 0
    said: dict[str, Any] = {
        "is_qwen2_config" if qwen else "is_llama_config": True,
        "hidden_size": model.hidden,
        "intermediate_size": width,
        "num_hidden_layers": model.layers,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.kv_heads,
        "attention_bias": attention.qkv_bias,
        "tie_word_embeddings": model.tied,
        "max_position_embeddings": max(model.trained_length, sequence),
        "vocab_size": model.vocab,
        "hidden_act": "silu",
    }
    said |= {"sliding_window_size": attention.window} if attention.window else {}
    return said | ({"moe_config": _expert_keys(model, experts)} if experts else {}), ""


def _expert_keys(model: Model, experts: Experts) -> dict[str, Any]:
    layers = [layer for layer, kind in enumerate(model.pattern) if model.blocks[kind].experts]
    shared = {"shared_expert_intermediate_size": experts.shared_width} if experts.shared_width else {}
    return {
        "num_experts": experts.experts,
        "top_k": experts.active,
        "moe_intermediate_size": experts.expert_width,
        "enable_shared_expert": bool(experts.shared_width),
        **shared,
        "layers": [-1] if len(layers) == model.layers else layers,
    }


def _beyond(model: Model) -> str:
    """What of a model nanotron has no part for; empty where it has parts for all of it."""
    plain = Model(
        model.name, model.family, model.hidden, model.vocab, model.blocks, model.pattern, "rms", 1, tied=model.tied,
        trained_length=model.trained_length, notes=model.notes,
    )  # fmt: skip
    if plain != model:
        return "its norms, head, embedding, dropout or ends are not those of Llama"
    if len({block.attention for block in model.blocks}) != 1:
        return "its layers differ in more than experts"
    for block in model.blocks:
        attention, dense, experts = block.attention, block.feed_forward, block.experts
        if attention is None or len(block.parts) != 2 or decoder_block(block.name, *block.parts) != block:
            return "its layers are not attention and then one feed-forward part, each behind a norm"
        width, odd = attention.head_dim, attention.heads * attention.head_dim != model.hidden
        usual = Attention(
            attention.heads, attention.kv_heads, width, width, window=attention.window, qkv_bias=attention.qkv_bias
        )
        if usual != attention or odd:
            return "its attention is not that of Llama or Qwen2"
        if dense and dense != FeedForward(dense.width, True):
            return "its feed-forward part is not that of Llama"
        if experts and experts != Experts(
            experts.experts, experts.active, experts.expert_width, True,
            shared_width=experts.shared_width, shared_gate=bool(experts.shared_width),
        ):  # fmt: skip
            return "its experts are not those of nanotron"
    return ""

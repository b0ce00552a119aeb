"""The model of Megatron-LM arguments, both ways: GPT layers with grouped or latent attention, dense or with experts."""

import re
from typing import Any

from ...model.model import Block, Model, decoder_block
from ...model.parts import Attention, Experts, FeedForward
from ..setting import Setting, Settings, as_number

NEEDED = {"num_layers": "layers", "hidden_size": "hidden size", "num_attention_heads": "attention heads"}
MOST_LAYERS, DEEPEST = 10_000, 4
ROTARY = ("rope", "yarn", "mrope")
BIASED_ROUTER = {"moe-router-score-function": "sigmoid", "moe-router-enable-expert-bias": ()}
OTHER_LAYERS = {
    "hybrid_layer_pattern": "Mamba layers",
    "hybrid_override_pattern": "Mamba layers",
    "is_hybrid_model": "Mamba layers",
    "experimental_attention_variant": "another attention",
    "moe_latent_size": "experts on narrower vectors",
    "heterogeneous_layers_config_path": "layers of different shapes",
}


def model_of(settings: Settings, notes: list[str]) -> Model | None:
    """The model, or None where its sizes are not all in the file; what is assumed of it is said."""
    sizes = {name: settings.number(name, 0, 0, "model") for name in NEEDED}
    vocab = settings.number("vocab_size") or settings.number("padded_vocab_size")
    if not all(sizes.values()):
        return None
    layers, hidden, heads = sizes.values()
    if layers > MOST_LAYERS or (hidden % heads and not settings.number("kv_channels")):
        notes.append(f"hidden size {hidden:,} / {heads:,} heads is no whole number, and kv-channels is not given")
        return None
    notes += [
        f"--{name.replace('_', '-')}: {what} are not read" for name, what in OTHER_LAYERS.items() if settings.get(name)
    ]
    if not vocab:
        notes.append(
            "VOCABULARY not in the file (it comes with the tokenizer): read as 0; name the MODEL, or --vocab-size"
        )
    return _model(settings, layers, hidden, heads, vocab, notes)


def _model(settings: Settings, layers: int, hidden: int, heads: int, vocab: int, notes: list[str]) -> Model:
    attention = _attention(settings, hidden, heads, notes)
    dense = _dense(settings, hidden, notes)
    experts = settings.number("num_experts")
    blocks: tuple[Block, ...] = (decoder_block("layer", attention, dense),)
    pattern = (0,) * layers
    if experts:
        sparse = decoder_block("experts", attention, _experts(settings, experts, dense))
        kinds = _frequency(settings, layers, notes)
        used = sorted(set(kinds), key=kinds.index)
        both = (blocks[0], sparse)
        blocks, pattern = tuple(both[kind] for kind in used), tuple(used.index(kind) for kind in kinds)
    longest = settings.number("max_position_embeddings")
    learned = settings.word("position_embedding_type", default="learned_absolute")
    rotary = settings.on("use_rotary_position_embeddings") or learned in ROTARY
    absolute = learned == "learned_absolute" and not rotary and settings.on("add_position_embedding", True)
    rms = settings.word("normalization", default="layernorm") == "rmsnorm"
    mtp = settings.number("mtp_num_layers")
    settings.within("mtp_num_layers", mtp, mtp <= layers, f"at most the {layers} layers")
    tied = not settings.on("untie_embeddings_and_output_weights")
    dropout = max(settings.real("hidden_dropout", 0.1), settings.real("attention_dropout", 0.1)) > 0
    notes += ["embedding and head are tied: no --untie-embeddings-and-output-weights"] if tied else []
    notes += ["dropout 0.1: Megatron-LM's default (--hidden-dropout, --attention-dropout)"] if dropout else []
    return Model(
        "megatron", "megatron", hidden, vocab, blocks, pattern, norm="rms" if rms else "layer",
        norm_weights=1 if rms else 2, tied=tied, positions=longest if absolute else 0, dropout=dropout,
        trained_length=longest or settings.number("seq_length"), mtp_layers=mtp,
        notes=("read from Megatron-LM arguments",),
    )  # fmt: skip


def _attention(settings: Settings, hidden: int, heads: int, notes: list[str]) -> Attention:
    width = settings.number("kv_channels") or hidden // heads
    biased = settings.on("add_bias_linear", True)
    if settings.on("multi_latent_attention"):
        nope, value = settings.number("qk_head_dim", 128, 1), settings.number("v_head_dim", 128, 1)
        settings.asked.update(("qk_layernorm", "group_query_attention", "num_query_groups"))
        return Attention(
            heads, heads, nope, value, query_rank=settings.number("q_lora_rank"),
            latent_rank=settings.number("kv_lora_rank", 32, 1), rope_dim=settings.number("qk_pos_emb_head_dim", 64),
        )  # fmt: skip
    grouped = settings.on("group_query_attention")
    groups = settings.number("num_query_groups", 1)
    if not grouped:
        notes.append(f"{heads} key/value heads, one a head: no --group-query-attention")
    settings.within("num_query_groups", groups, groups > 0 and heads % groups == 0, f"a divisor of {heads} heads")
    window = next(iter(settings.numbers("window_size")), 0)
    if settings.get("window_attn_skip_freq"):
        notes.append("--window-attn-skip-freq: every layer is read with the window")
    return Attention(
        heads, groups if grouped else heads, width, width, window=window + 1 if window else 0,
        qkv_bias=biased or settings.on("add_qkv_bias"), out_bias=biased,
        head_norm="head" if settings.on("qk_layernorm") else "none",
    )  # fmt: skip


def _dense(settings: Settings, hidden: int, notes: list[str]) -> FeedForward:
    """The dense part. Without a width Megatron-LM takes 4 h, and with SwiGLU two thirds of it in steps of 64."""
    gated = settings.on("swiglu") or settings.on("quick_geglu") or "silu" in settings.word("activation_func")
    settings.asked.update(("squared_relu",))
    usual = int((4 * hidden * 2 / 3) / 64) * 64 if gated else 4 * hidden
    width = settings.number("ffn_hidden_size")
    if not width and not settings.number("num_experts"):
        notes.append(f"--ffn-hidden-size {usual}: Megatron-LM's default{' with --swiglu' if gated else ''}")
    return FeedForward(width or usual, gated, bias=settings.on("add_bias_linear", True))


def _experts(settings: Settings, experts: int, dense: FeedForward) -> Experts:
    width = settings.number("moe_ffn_hidden_size") or dense.width
    shared = settings.number("moe_shared_expert_intermediate_size")
    active = settings.number("moe_router_topk", 2)
    settings.within("moe_router_topk", active, 0 < active <= experts, f"from 1 to {experts} experts")
    return Experts(
        experts, active, width, dense.gated, expert_bias=dense.bias,
        router_bias=settings.on("moe_router_enable_expert_bias"), shared_width=shared,
        shared_bias=bool(shared) and dense.bias, shared_gate=settings.on("moe_shared_expert_gate"),
    )  # fmt: skip


def _frequency(settings: Settings, layers: int, notes: list[str]) -> list[int]:
    """Which layers have experts: every n-th from the first on, or a pattern such as ([0]*3+[1]*58)."""
    found = settings.get("moe_layer_freq")
    text = "".join("".join(found.values).split()).strip("\"'") if found else "1"
    every = as_number(text)
    if every and every == int(every):
        return [int(layer % int(every) == 0) for layer in range(layers)]
    made = pattern_of(text)
    if made is None or len(made) != layers:
        what, rule = "--moe-layer-freq does not name the layers", "a number, or a list of one entry a layer; read as 1"
        got = f"{text[:60]}: {len(made) if made else 'no'} entries, {layers} layers"
        settings.find("MEG006", "moe_layer_freq", what, rule, got, f"([0]*1+[1]*{layers - 1})")
        return [1] * layers
    return made


def pattern_of(text: str, depth: int = 0) -> list[int] | None:
    """A list such as [0,1,1] or ([0]*3+[1]*58) or ([1]+[0]*2)*4, as Megatron-LM evaluates it; nothing is run."""
    plain = text.strip("()") if text.count("(") == 1 and text.endswith(")") else text
    again = re.fullmatch(r"\((.*)\)\*(\d{1,4})", text)
    if again:
        inner = pattern_of(again[1], depth + 1) if depth < DEEPEST else None
        return inner * int(again[2]) if inner and len(inner) * int(again[2]) <= MOST_LAYERS else None
    made = list[int]()
    for piece in plain.split("+"):
        match = re.fullmatch(r"\[((?:[01],?)*)\](?:\*(\d{1,5}))?", piece)
        if match is None or len(made) > MOST_LAYERS:
            return None
        made += [int(one) for one in match[1].split(",") if one] * min(int(match[2] or 1), MOST_LAYERS)
    return made


def flags_of_model(model: Model, sequence: int) -> tuple[list[Setting], str]:
    """The model's flags; or none, and why it cannot be said with them."""
    first = model.blocks[0]
    attention = first.attention
    why = _beyond(model)
    if why or attention is None:
        return [], why or "layers without attention"
    dense = next((block.feed_forward for block in model.blocks if block.feed_forward), None)
    experts = next((block.experts for block in model.blocks if block.experts), None)
    longest = model.positions or max(model.trained_length, sequence)
    gated, biased = (dense or experts).gated, attention.out_bias  # type: ignore[union-attr]
    said: dict[str, Any] = {
        "num-layers": model.layers,
        "hidden-size": model.hidden,
        "num-attention-heads": attention.heads,
        **_attention_flags(attention, model),
        **({"ffn-hidden-size": dense.width} if dense else {}),
        **({"swiglu": ()} if gated else {}),
        **({} if biased else {"disable-bias-linear": ()}),
        **({"add-qkv-bias": ()} if attention.qkv_bias and not biased else {}),
        **({"normalization": "RMSNorm"} if model.norm == "rms" else {}),
        "position-embedding-type": "learned_absolute" if model.positions else "rope",
        **({} if model.tied else {"untie-embeddings-and-output-weights": ()}),
        **({} if model.dropout else {"hidden-dropout": 0, "attention-dropout": 0}),
        "max-position-embeddings": longest,
        "vocab-size": model.vocab,
        **({"mtp-num-layers": model.mtp_layers} if model.mtp_layers else {}),
        **(_expert_flags(experts, model) if experts else {}),
    }
    return [Setting(f"--{name}", _values(value)) for name, value in said.items()], ""


def _values(value: Any) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (str(value),)


def _attention_flags(attention: Attention, model: Model) -> dict[str, Any]:
    if attention.latent_rank:
        return {
            "multi-latent-attention": (),
            **({"q-lora-rank": attention.query_rank} if attention.query_rank else {}),
            "kv-lora-rank": attention.latent_rank,
            "qk-head-dim": attention.head_dim,
            "qk-pos-emb-head-dim": attention.rope_dim,
            "v-head-dim": attention.value_dim,
            "qk-layernorm": (),
        }
    grouped = attention.kv_heads != attention.heads
    return {
        **({"group-query-attention": (), "num-query-groups": attention.kv_heads} if grouped else {}),
        "kv-channels": attention.head_dim,
        **({"qk-layernorm": ()} if attention.head_norm == "head" else {}),
        **({"window-size": f"{attention.window - 1},0"} if attention.window else {}),
    }


def _expert_flags(experts: Experts, model: Model) -> dict[str, Any]:
    sparse = [int(model.blocks[kind].experts is not None) for kind in model.pattern]
    dense = sparse.index(1)
    runs = [[sparse[0], 0]]
    for kind in sparse:
        if kind != runs[-1][0]:
            runs.append([kind, 0])
        runs[-1][1] += 1
    pattern = "+".join(f"[{kind}]*{count}" for kind, count in runs)
    return {
        "num-experts": experts.experts,
        "moe-router-topk": experts.active,
        "moe-ffn-hidden-size": experts.expert_width,
        **({"moe-shared-expert-intermediate-size": experts.shared_width} if experts.shared_width else {}),
        **({"moe-shared-expert-gate": ()} if experts.shared_gate else {}),
        **(BIASED_ROUTER if experts.router_bias else {}),
        **({"moe-layer-freq": f"({pattern})"} if dense or 0 in sparse else {}),
        "moe-grouped-gemm": (),
    }


def _beyond(model: Model) -> str:
    """What of a model these flags have no word for; empty where they have words for all of it."""
    plain = Model(
        model.name, model.family, model.hidden, model.vocab, model.blocks, model.pattern, model.norm,
        2 if model.norm == "layer" else 1, tied=model.tied, positions=model.positions, dropout=model.dropout,
        trained_length=model.trained_length, mtp_layers=model.mtp_layers, notes=model.notes,
    )  # fmt: skip
    if plain != model:
        return "its norms, head, embedding or ends are not those of a GPT of Megatron-LM"
    attentions = {block.attention for block in model.blocks}
    dense = {block.feed_forward for block in model.blocks if block.feed_forward}
    sparse = {block.experts for block in model.blocks if block.experts}
    if len(attentions) != 1 or len(dense) > 1 or len(sparse) > 1:
        return "its layers differ in more than experts"
    made = [decoder_block(block.name, *block.parts) if len(block.parts) == 2 else None for block in model.blocks]
    if any(one != block for one, block in zip(made, model.blocks, strict=True)):
        return "its layers are not attention and then one feed-forward part, each behind a norm"
    return _beyond_parts(model.blocks)


def _beyond_parts(blocks: tuple[Block, ...]) -> str:
    attention = blocks[0].attention
    assert attention is not None
    biased = attention.out_bias
    if attention.latent_rank:
        usual = Attention(
            attention.heads, attention.heads, attention.head_dim, attention.value_dim,
            query_rank=attention.query_rank, latent_rank=attention.latent_rank, rope_dim=attention.rope_dim,
        )  # fmt: skip
    else:
        usual = Attention(
            attention.heads, attention.kv_heads, attention.head_dim, attention.head_dim, window=attention.window,
            qkv_bias=attention.qkv_bias or biased, out_bias=biased,
            head_norm="head" if attention.head_norm == "head" else "none",
        )  # fmt: skip
    if usual != attention:
        return "its attention has parts that the flags have no word for"
    for block in blocks:
        dense, experts = block.feed_forward, block.experts
        if dense and dense != FeedForward(dense.width, dense.gated, bias=biased):
            return "its feed-forward part has parts that the flags have no word for"
        if experts and not _plain_experts(experts, biased):
            return "its experts have parts that the flags have no word for"
    return ""


def _plain_experts(experts: Experts, biased: bool) -> bool:
    return experts == Experts(
        experts.experts, experts.active, experts.expert_width, experts.gated, expert_bias=biased,
        router_bias=experts.router_bias, shared_width=experts.shared_width,
        shared_bias=bool(experts.shared_width) and biased, shared_gate=experts.shared_gate,
    )  # fmt: skip

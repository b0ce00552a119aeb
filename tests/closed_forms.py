"""Parameters in closed form, straight from the dataclasses: a second count beside the operation rows."""

from outlay.model.model import Attention, Block, FeedForward, Model


def attention_parameters(part: Attention, hidden: int) -> int:
    """Grouped-query: 2hd(a + k), biases, norms of q and k, sinks. MLA: two projections down, two up, one out."""
    a, k, d = part.heads, part.kv_heads, part.head_dim
    if part.latent_rank:
        return _latent_parameters(part, hidden)
    weights = hidden * a * d + hidden * k * (d + part.value_dim) + a * part.value_dim * hidden
    biases = part.qkv_bias * (a * d + k * d + k * part.value_dim) + part.out_bias * hidden
    norms = {"none": 0, "head": 2 * d, "all": (a + k) * d}[part.head_norm]
    return weights + biases + norms + part.sinks * a


def _latent_parameters(part: Attention, hidden: int) -> int:
    a, ql, kl, r = part.heads, part.query_rank, part.latent_rank, part.rope_dim
    key, value = part.head_dim, part.value_dim
    query = hidden * ql + ql + ql * a * (key + r) if ql else hidden * a * (key + r)
    latent = hidden * (kl + r) + kl + kl * a * (key + value)
    biases = part.qkv_bias * (ql + kl + r) + part.out_bias * hidden
    return query + latent + a * value * hidden + biases


def feed_forward_parameters(part: FeedForward, hidden: int, experts: int) -> int:
    """Dense 2hf or 3hf; experts: the router over all of them, so many experts, and the shared one."""
    matrices = 3 if part.gated else 2
    if not part.experts:
        return _dense(part.width, hidden, matrices, part.bias)
    router = part.experts * (hidden + part.router_bias)
    shared = _dense(part.shared_width, hidden, matrices, part.bias) if part.shared_width else 0
    return router + experts * _dense(part.expert_width, hidden, matrices, part.expert_bias) + shared


def _dense(width: int, hidden: int, matrices: int, bias: bool) -> int:
    return matrices * hidden * width + bias * ((matrices - 1) * width + hidden)


def block_parameters(block: Block, hidden: int, norm: int, active: bool) -> int:
    """One layer: attention, feed-forward, and two norms (four where they stand on both sides)."""
    part = block.feed_forward
    norms = 4 if block.norms == "both" else 2
    experts = part.active if active else part.experts
    return attention_parameters(block.attention, hidden) + feed_forward_parameters(part, hidden, experts) + norms * norm


def model_parameters(model: Model, *, active: bool = False) -> int:
    """The whole model, or the part that works on one token (with both embeddings)."""
    norm = model.hidden * (2 if model.norm == "layer" else 1)
    layers = sum(block_parameters(model.blocks[kind], model.hidden, norm, active) for kind in model.pattern)
    tables = (2 - model.tied) * model.vocab * model.hidden + model.positions * model.hidden
    return layers + tables + norm * (1 + model.embedding_norm)

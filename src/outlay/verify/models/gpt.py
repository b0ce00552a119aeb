"""GPT-2 in plain PyTorch: norms with a shift, biases, learned positions, a plain feed-forward part. Loads torch."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...model.model import Model
from .llama import Attention, Block, Llama, linear


class Plain(nn.Module):
    """A feed-forward part without a gate."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.up, self.down = linear(hidden, width, True), linear(width, hidden, True)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class Positioned(nn.Module):
    """A table of tokens, and one of positions that is added."""

    def __init__(self, vocab: int, positions: int, hidden: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)

    @property
    def weight(self) -> Tensor:
        """The table that a head may share."""
        return self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))


def gpt(model: Model) -> Llama:
    """A model of GPT-2's kind; what holds its layers is as in a Llama."""
    built = Llama(model.hidden, 0, 1, 1, 1, model.vocab)
    for kind in model.pattern:
        of, part = model.blocks[kind].attention, model.blocks[kind].feed_forward
        if of is None or part is None:
            raise ValueError("a layer without attention and a feed-forward part is not built")
        attention = Attention(model.hidden, of.heads, of.kv_heads, bias=True, dim=of.head_dim)
        layer = Block(model.hidden, attention, Plain(model.hidden, part.width))
        layer.attention_norm, layer.mlp_norm = nn.LayerNorm(model.hidden), nn.LayerNorm(model.hidden)
        built.layers.append(layer)
    built.norm = nn.LayerNorm(model.hidden)
    built.last = nn.Sequential(built.norm, built.head)
    built.embedding = Positioned(model.vocab, model.positions, model.hidden)
    if model.tied:
        built.head.weight = built.embedding.weight
    return built

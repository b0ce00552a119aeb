"""The operations of a layer, as rows that name their dimensions.

A layout divides dimensions, never rows: `here` says how large each is on one rank. So one row serves parameters (sizes
of the undivided model), FLOPs, tape, time and sharding. `here["value"]` is the bytes of one activation value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..cluster.efficiency import (
    WIDE,
    Rates,
    across_time,
    attention_time,
    cast_time,
    matmul_time,
    memory_time,
    narrow_share,
    scaled_time,
    small_waste,
)
from ..engines.engine import Kernel
from ..formula import minimum, where
from ..quantities import Bytes, Count, Flag, FlopRate, Flops, Params, PlainBytes, Real, Seconds, Share

Sizes: TypeAlias = Mapping[str, Real]

BLOCK = 128  # queries in a block of a fused attention core


@dataclass(frozen=True)
class Row:
    """One operation. What it does not have costs nothing."""

    name: str
    trained: bool = field(default=True, kw_only=True)  # its weights, where it has any
    differentiated: bool = field(default=True, kw_only=True)  # a backward pass runs through it

    def parameters(self, here: Sizes) -> Params:
        """Parameters this operation reads."""
        return 0

    def flops(self, here: Sizes) -> Flops:
        """Model FLOPs of the forward pass, two a multiply-add; attention as the job counts it."""
        return 0

    def flops_back(self, here: Sizes) -> Flops:
        """Model FLOPs of the backward pass: twice the forward pass, by the field's convention."""
        return 2 * self.flops(here)

    def kept(self, here: Sizes) -> Bytes:
        """Bytes that wait for the backward pass."""
        return 0

    def kept_input(self, here: Sizes) -> Bytes:
        """Of these, its input, which is the output of the row that it reads."""
        return 0

    def kept_inside(self, here: Sizes) -> Bytes:
        """Of these, what only its own backward pass reads: freed where it runs again."""
        return self.kept(here) - self.kept_input(here)

    def workspace(self, here: Sizes) -> Bytes:
        """Bytes held for a moment, beyond what is kept."""
        return 0

    def backward_workspace(self, here: Sizes) -> Bytes:
        """Bytes of gradients of values that its backward pass holds for a moment, beyond what is kept."""
        return 0

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """Time of the forward pass."""
        return 0

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Time of the gradient of the input."""
        return 0

    def weight_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Time of the gradient of the weights."""
        return 0


@dataclass(frozen=True)
class Linear(Row):
    """y = x W. `waits`: the tokens along which its input waits for backward; "none" if another row keeps it."""

    tokens: str
    ins: str
    outs: str
    waits: str = "none"
    copies: str = "one"  # matrices of this shape in one grouped multiply: the experts of this rank
    biased: bool = False
    owned: str = "one"  # 0 where the matrix is another row's (a tied head)
    half: bool = False  # stays in 16 bit under fp8
    grows: bool = False  # the gradients of its input and of its matrix stand beside those of its output
    matrices: int = 1  # that a framework without fused projections multiplies one by one

    def parameters(self, here: Sizes) -> Params:
        """The matrix, and the bias of what comes out."""
        return here[self.owned] * here[self.copies] * here[self.outs] * (here[self.ins] + self.biased)

    def flops(self, here: Sizes) -> Flops:
        """Two a multiply-add: 2 m n k."""
        return here["multiply_add"] * here[self.copies] * here[self.tokens] * here[self.ins] * here[self.outs]

    def flops_back(self, here: Sizes) -> Flops:
        """Those of the input's gradient, and of the weights' where they are trained."""
        return self.flops(here) * (1 + self.trained)

    def kept(self, here: Sizes) -> Bytes:
        """Its input."""
        return here["value"] * here[self.waits] * here[self.ins]

    def kept_input(self, here: Sizes) -> Bytes:
        """All that it keeps."""
        return self.kept(here)

    def backward_workspace(self, here: Sizes) -> Bytes:
        """The gradients of its input and, where autograd makes one, of its matrix."""
        made: Count = self.trained * here["plain_gradient"] * here[self.outs]
        gradients: Bytes = here["value"] * here[self.ins] * (here[self.tokens] + made)
        return where(self.grows, gradients, 0)

    def moved(self, here: Sizes) -> Bytes:
        """Bytes of the three matrices."""
        inputs: Count = here[self.tokens] * (here[self.ins] + here[self.outs])
        return here["value"] * here[self.copies] * (inputs + here[self.ins] * here[self.outs])

    def accumulated(self, here: Sizes, rates: Rates) -> Bytes:
        """Bytes of both inputs of the weights' gradient, and of the gradient that it is added to."""
        inputs: Count = here[self.tokens] * (here[self.ins] + here[self.outs])
        gradient: Bytes = rates.accumulated * here[self.ins] * here[self.outs]
        return here[self.copies] * (here["value"] * inputs + gradient)

    def grouped(self, here: Sizes) -> Flag:
        """Whether several experts are multiplied in one grouped kernel: one alone is a plain multiply."""
        return (self.copies == "E") & (here[self.copies] > 1)

    def timed(self, here: Sizes, rates: Rates, inner: Count, half: Count, moved: Bytes) -> Seconds:
        """One of the three multiplies, by its inner dimension; `half`: rows that reach half the rate where grouped."""
        rate: FlopRate = where(self.half, rates.half_matmul, rates.matmul)
        depth: Count = where(self.half, rates.half_depth, rates.depth)
        waste: Share = small_waste(depth, inner, where(self.grouped(here), half, 0), here[self.tokens])
        return matmul_time(self.flops(here), moved, rate, waste, here[self.copies], rates)

    def values(self, here: Sizes) -> Count:
        """Weights that are quantised: none where the matrix stays in 16 bit."""
        return where(self.half, 0, here[self.copies] * here[self.ins] * here[self.outs])

    def streamed(self, here: Sizes, width: Count) -> Count:
        """Values of inputs or gradients that are quantised, each as wide."""
        return where(self.half, 0, here[self.copies] * here[self.tokens] * width)

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """y = x W."""
        multiply: Seconds = self.timed(here, rates, here[self.ins], rates.grouped_rows, self.moved(here))
        return multiply + cast_time(self.streamed(here, here[self.ins]), self.values(here), rates.weight_bytes, rates)

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """dx = dy W': the same three sizes, permuted. Each of its matrices gives a gradient of the input."""
        multiply: Seconds = self.timed(here, rates, here[self.outs], rates.grouped_rows, self.moved(here))
        scaled: Seconds = self.matrices * scaled_time(self.streamed(here, here[self.ins]), rates)
        gradients: Count = self.streamed(here, here[self.outs])
        return multiply + scaled + cast_time(gradients, self.values(here), rates.weight_across_bytes, rates)

    def weight_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """dW = x' dy: the same three sizes, permuted; none where the matrix is frozen. Both inputs are quantised."""
        moved: Bytes = self.accumulated(here, rates)
        multiply: Seconds = self.timed(here, rates, here[self.tokens], rates.grouped_rows_back, moved)
        across: Seconds = across_time(self.streamed(here, here[self.ins] + here[self.outs]), rates)
        return where(self.trained, multiply + across + scaled_time(self.values(here), rates), 0)


@dataclass(frozen=True)
class Pointwise(Row):
    """A kernel bound by memory, over `tokens` x `width` values; `groups` of a token have statistics of their own."""

    tokens: str
    width: str
    kernel: Kernel
    weights: str = "none"
    per: str = "one"  # parameters are weights x per
    groups: str = "one"
    mask: PlainBytes = 0  # B a value of a dropout mask
    shared_input: bool = False  # another row keeps the same input
    extra: PlainBytes = 0  # B a value held for a moment
    extra_cut: PlainBytes = 0  # the same where tensor parallelism cuts the width
    passes: float = 2  # gradients of its input and its output, in values of its width
    work: str = "none"  # multiply-adds a value: the taps of a convolution
    grows: int = 0  # gradients of its input that stand beside what is kept: one, or one on each side of an exchange
    turns: bool = False  # the gradient of its input takes the place of what is kept
    stands: str = "none"  # tokens of the copies that stand beside it in the forward pass
    part: str = "one"  # of its tokens, that stand at one time

    def parameters(self, here: Sizes) -> Params:
        """Scales and shifts, the same on every tensor-parallel rank; or a table."""
        return here[self.weights] * here[self.per]

    def flops(self, here: Sizes) -> Flops:
        """Two a multiply-add, where it has any that are counted."""
        return here["multiply_add"] * here[self.tokens] * here[self.width] * here[self.work]

    def kept(self, here: Sizes) -> Bytes:
        """Input values, copies in other types, masks, and statistics a group."""
        values: Bytes = (
            where(self.shared_input, 0, self.kernel.keeps * here["value"]) + self.kernel.keeps_bytes + self.mask
        )
        tokens: Count = here[self.part] * here[self.tokens]
        return tokens * (values * here[self.width] + self.kernel.keeps_group * here[self.groups])

    def kept_input(self, here: Sizes) -> Bytes:
        """Its input once, where no other row keeps it."""
        inputs: Bytes = here["value"] * here[self.tokens] * here[self.width]
        return where(self.shared_input, 0, minimum(self.kernel.keeps, 1)) * inputs

    def workspace(self, here: Sizes) -> Bytes:
        """Copies that live only while the kernel runs."""
        beside: Bytes = here["value"] * here[self.stands] * here[self.width]
        held: Bytes = where(here["tp"] > 1, self.extra_cut, self.extra)
        return here[self.part] * held * here[self.tokens] * here[self.width] + beside

    def backward_workspace(self, here: Sizes) -> Bytes:
        """The gradient of its input."""
        gradient: Bytes = here[self.part] * here["value"] * here[self.tokens] * here[self.width]
        return self.grows * gradient + where(self.turns, gradient - self.kept(here), 0)

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """Values read and written, forward."""
        return memory_time(self.kernel.moves * here["value"] * here[self.tokens] * here[self.width], rates)

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Values read and written, backward."""
        return memory_time(self.kernel.moves_back * here["value"] * here[self.tokens] * here[self.width], rates)


@dataclass(frozen=True)
class Attention(Row):
    """The attention core over q, k and v. Fused, it skips what the causal mask hides and keeps one statistic a head."""

    fused: bool
    scores_keep: PlainBytes  # B a score
    scores_move: PlainBytes  # B a score, forward
    scores_move_back: PlainBytes
    statistic: PlainBytes = 4  # B a token and head: the fp32 log-sum-exp
    sinks: bool = False
    slowed: float = 1  # time over that of heads whose width suits the kernel
    width: int = WIDE  # of a head, no more than that
    back: float = 2.5  # FLOPs of the backward pass over those of the forward pass: five products for two

    def parameters(self, here: Sizes) -> Params:
        """One learned logit a head, where there are sinks."""
        return here["heads"] * self.sinks

    def flops(self, here: Sizes) -> Flops:
        """Two products, q k' and scores v, over the keys that the job counts."""
        return here["multiply_add"] * here["T"] * here["counted_keys"] * (here["q"] + here["o"])

    def kept(self, here: Sizes) -> Bytes:
        """q, k, v and a statistic a head; or q, k, v and every score."""
        return self.kept_input(here) + self.kept_inside(here)

    def kept_input(self, here: Sizes) -> Bytes:
        """q, k and v."""
        return here["T"] * here["value"] * (here["q"] + here["k"] + here["v"])

    def kept_inside(self, here: Sizes) -> Bytes:
        """A statistic a head, or every score."""
        statistics: Bytes = self.statistic * here["heads"]
        return here["T"] * where(self.fused, statistics, self.scores_keep * here["heads"] * here["span"])

    def backward_workspace(self, here: Sizes) -> Bytes:
        """Unfused: gradients of the scores before and after the softmax."""
        return 2 * here["value"] * self.scores(here)

    def scores(self, here: Sizes) -> Count:
        """Scores written out on this rank; none where the core is fused."""
        return where(self.fused, 0, here["T"] * here["heads"] * here["span"])

    def work(self, here: Sizes) -> Flops:
        """FLOPs that run: fused kernels skip masked blocks, unfused ones do not."""
        keys: Count = where(self.fused, here["keys"], here["span"])
        return here["multiply_add"] * here["T"] * keys * (here["q"] + here["o"])

    def blocks(self, here: Sizes) -> Count:
        """Blocks of queries, a head each, that a fused core deals over the device."""
        return here["T"] * here["heads"] / BLOCK

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """Two products, and the scores' traffic."""
        traffic: Bytes = self.scores_move * self.scores(here)
        once: Seconds = attention_time(self.work(here), traffic, rates.attention, self.blocks(here), rates)
        return self.slowed * narrow_share(self.width, rates.narrow) * here["in_ring"] * once

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Five products (four where the scores were kept), and the scores' traffic."""
        work: Flops = where(self.fused, self.back, 2) * self.work(here)
        traffic: Bytes = self.scores_move_back * self.scores(here)
        once: Seconds = attention_time(work, traffic, rates.attention_back, self.blocks(here), rates)
        return self.slowed * narrow_share(self.width, rates.narrow_back) * here["in_ring"] * once

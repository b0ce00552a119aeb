"""The operation of recurrent parts, beside those of the other rows."""

from dataclasses import dataclass

from ..cluster.efficiency import Rates, attention_time, scan_time
from ..quantities import Bytes, Flops, Params, Seconds
from .operations import Row, Sizes


@dataclass(frozen=True)
class Scan(Row):
    """A recurrence along the sequence, in one kernel: matrix products inside chunks and a state between them, or
    element-wise arithmetic. Neither grows with the square of the sequence.
    """

    tokens: str
    width: str  # values a token that are read and written
    work: str = "none"  # multiply-adds a token, in matrix products
    arithmetic: str = "none"  # the same, element by element: counted by convention, and timed by the values it moves
    keeps: str = "none"  # values a token of the activation's type that wait for backward
    keeps_bytes: str = "none"  # the same in bytes: statistics, decays and states in fp32
    weights: str = "none"
    back: float = 2.0  # work and values moved backward over those forward
    slowed: float = 1.0  # time of its traffic over that at the rate of other kernels bound by memory

    def parameters(self, here: Sizes) -> Params:
        """Decays, biases and skips a head or channel."""
        return here[self.weights]

    def flops(self, here: Sizes) -> Flops:
        """Two a multiply-add."""
        return here["multiply_add"] * here[self.tokens] * (here[self.work] + here[self.arithmetic])

    def kept(self, here: Sizes) -> Bytes:
        """Its inputs, and what its backward pass does not compute again."""
        return here[self.tokens] * (here["value"] * here[self.keeps] + here["byte"] * here[self.keeps_bytes])

    def kept_input(self, here: Sizes) -> Bytes:
        """Its inputs."""
        return here[self.tokens] * here["value"] * here[self.keeps]

    def products(self, here: Sizes) -> Flops:
        """What runs on the matrix units."""
        return here["multiply_add"] * here[self.tokens] * here[self.work]

    def moved(self, here: Sizes) -> Bytes:
        """Bytes read and written, forward."""
        return here["value"] * here[self.tokens] * here[self.width]

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """Its products at the rate of the attention core, or its traffic if that takes longer."""
        return scan_time(self.products(here), self.slowed * self.moved(here), rates)

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """As much more as `back`, usually twice; inputs, outputs and their gradients are moved."""
        return scan_time(self.back * self.products(here), self.back * self.slowed * self.moved(here), rates)


@dataclass(frozen=True)
class Scores(Row):
    """Products with every key that a token may see, where only their order matters: an indexer."""

    tokens: str
    width: str  # multiply-adds a key

    def flops(self, here: Sizes) -> Flops:
        """Two a multiply-add, over the keys that the job counts."""
        return here["multiply_add"] * here[self.tokens] * here["counted_all_keys"] * here[self.width]

    def work(self, here: Sizes) -> Flops:
        """FLOPs that run: what the causal mask hides is skipped."""
        return here["multiply_add"] * here[self.tokens] * here["all_keys"] * here[self.width]

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """The products, at the rate of the attention core."""
        inputs: Bytes = here["value"] * here[self.tokens] * here[self.width]
        return attention_time(self.work(here), inputs, rates.attention, 1e9, rates)

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Twice the products: of queries and of keys."""
        inputs: Bytes = here["value"] * here[self.tokens] * here[self.width]
        return attention_time(2 * self.work(here), 2 * inputs, rates.attention_back, 1e9, rates)

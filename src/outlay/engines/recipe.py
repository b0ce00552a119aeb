"""What every parameter keeps: number types, an optimizer and a precision, together as bytes."""

from dataclasses import dataclass, replace

from ..quantities import PlainBytes, PlainSeconds, PlainShare

# Bytes of a value. `remainder` is the half of an fp32 master that its bf16 weight does not hold.
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "remainder": 2, "none": 0}
COMPUTE = "compute"  # of a recipe's types: as the weights that matrices are multiplied with


@dataclass(frozen=True)
class Types:
    """The number types of a recipe."""

    name: str
    apart: bool  # the optimizer updates a master of its own; else the weights themselves
    master: str
    gradients: str  # `none`: freed as they appear
    moments: str
    source: str
    more_gradients: PlainBytes = 0  # of a parameter's gradients, beside those that accumulate
    more_optimizer: PlainBytes = 0  # of the optimizer's copies of gradients


@dataclass(frozen=True)
class Optimizer:
    """State of one optimizer: values that it keeps a parameter, by what the parameter belongs to."""

    name: str
    title: str
    kind: str
    source: str
    matrix: float = 0  # of a matrix inside a layer
    embedding: float = 0
    head: float = 0
    vector: float = 0  # of norms and biases
    factor: float = 0  # values a row, and a column, of every matrix
    projected: float = 0  # values along the longer side of a matrix, for each of the projection's ranks
    projector: float = 0  # values along its shorter side, the same
    block: float = 0  # values of a matrix that share a scale, where its moments have 8 bits; 0: the moments' own type
    steps: float = 0  # Newton-Schulz steps on each matrix inside a layer
    note: str = ""  # what was assumed of it


@dataclass(frozen=True)
class Precision:
    """One recipe of matrix multiplies: the numbers they take, and the copies that it keeps."""

    name: str
    number: str  # type of the matrix units that set the rate
    weights: str  # type of the weights that stay, and of all that is not quantised
    needs: tuple[str, ...]  # types that the accelerator must have
    kind: str
    source: str
    kernels: tuple[str, ...] = ()  # kernel sets that keep quantised weights and inputs
    copies: PlainBytes = 0  # of a quantised weight, both orders
    copies_native: PlainBytes = 0  # the same on accelerators that read one copy in both orders
    saved_input_bytes: PlainBytes = 0  # of an input that waits quantised for its weight gradient
    output_again: PlainBytes = 0  # of attention's output, which waits in 16 bit, saved once more
    gathers: PlainBytes = 0  # of a weight that is gathered quantised; 0: it cannot be
    tp_gathers: PlainBytes = (
        0  # of a value that is quantised before it is gathered along tp; 0: it is gathered as it is
    )
    tp_kernels: tuple[str, ...] = ()  # kernel sets for which that holds
    tp_overlaps: PlainShare = 1  # of the exchange along tp, what the engine can hide under chunks of a multiply
    note: str = ""
    share: str = "matmul_share"  # the accelerator's field of what its multiplies reach
    cast_bytes: PlainBytes = 0  # moved to quantise a value
    cast_seconds: PlainSeconds = 0  # s, the gaps of quantising what goes into a multiply
    across_bytes: PlainBytes = 0  # moved to quantise a value once more, along the other side of its matrix
    weight_bytes: PlainBytes = 0  # moved to quantise a weight in every forward pass; 0: once a step, which is left out
    weight_across_bytes: PlainBytes = 0  # the same in every backward pass, along the other side
    rescale_bytes: PlainBytes = 0  # moved to scale a value that a backward multiply gives

    @property
    def quantises(self) -> bool:
        """Whether what goes into a multiply is quantised first."""
        return self.cast_bytes > 0

    def tp_value(self, kernels: str) -> float:
        """Bytes of a value that is gathered along tp for a matrix of a layer; 0: as of any other."""
        return self.tp_gathers if kernels in self.tp_kernels else 0


@dataclass(frozen=True)
class FrozenFormat:
    """How a frozen matrix is kept."""

    name: str
    bytes: PlainBytes  # a value, scales included
    kind: str
    source: str
    number: str = ""  # type of the matrix units that multiply it as it is


@dataclass(frozen=True)
class Moments:
    """Bytes of optimizer state beside the master weight."""

    matrix: PlainBytes  # of a parameter of a matrix inside a layer
    embedding: PlainBytes
    head: PlainBytes
    vector: PlainBytes  # of a norm or a bias
    factor: PlainBytes  # of a row, and of a column, of a matrix
    projected: PlainBytes  # of a value of a matrix projected to `rank`
    projector: PlainBytes  # of a value of the projector
    rank: float

    @property
    def uniform(self) -> bool:
        """Whether every parameter costs the same."""
        return {self.matrix, self.embedding, self.head} == {self.vector} and not (self.factor or self.projected)


@dataclass(frozen=True)
class Recipe:
    """Bytes a parameter: weights, gradients, the optimizer's master and moments, and what is moved."""

    name: str
    weights: PlainBytes  # what forward and backward read
    gradients: PlainBytes
    master: PlainBytes  # what the optimizer updates, where that is not the weight itself
    moments: Moments
    copies: PlainBytes  # of a matrix inside a layer, more than its weights: quantised copies
    spares: PlainBytes  # a value that waits for its weight gradient less than in 16 bit
    output_again: PlainBytes  # of attention's output, saved once more
    gathered: PlainBytes  # of a gathered weight
    ends_gathered: PlainBytes  # the same of embedding and head, which are never quantised
    reduced: PlainBytes  # of a gradient on the wire
    reduced_sharded: PlainBytes  # the same where gradients are sharded
    orthogonal: PlainBytes  # of a matrix that is gathered to be orthogonalised
    steps: float  # Newton-Schulz steps
    touched: PlainBytes  # read and written by one optimizer step, moments apart
    adam_touched: PlainBytes  # the same with moments, of Adam in the engine's own types
    frozen: PlainBytes  # of a frozen matrix inside a layer
    frozen_rest: PlainBytes  # of a frozen parameter elsewhere
    frozen_copies: PlainBytes  # quantised copies of a frozen matrix; none where it is kept in fewer bits itself

    @property
    def optimizer(self) -> PlainBytes:
        """Master and moments of a parameter outside matrices; of any parameter where all cost the same."""
        return self.master + self.moments.vector

    @property
    def bytes_per_parameter(self) -> float:
        """All of it together, before anything is divided."""
        return self.weights + self.gradients + self.optimizer


def settled(types: Types, weights: str) -> Types:
    """The types with `compute` replaced by that of the weights."""
    master, gradients, moments = (
        weights if name == COMPUTE else name for name in (types.master, types.gradients, types.moments)
    )
    return replace(types, master=master, gradients=gradients, moments=moments)


def weight_bytes_of(types: Types, weights: str) -> tuple[float, float]:
    """Bytes of a weight and of its master: a master of the weights' own type is the weight itself."""
    if not types.apart:
        return BYTES[types.master] or BYTES[weights], 0
    return BYTES[weights], 0 if types.master == weights else BYTES[types.master]


def copies_of(precision: Precision, kernels: str, native: bool, quantised: bool) -> float:
    """Bytes of a matrix's parameter more than its 16-bit weight; `quantised`: that weight does not stay."""
    if kernels not in precision.kernels:
        return 0
    copies = precision.copies_native if native else precision.copies
    return copies - BYTES[precision.weights] if quantised else copies


def touched_bytes_of(types: Types, weights: str) -> float:
    """Bytes that one optimizer step reads and writes, moments apart.

    It reads the gradient, reads and writes what it updates, and writes the weight where that is another.
    """
    weight, master = weight_bytes_of(types, weights)
    return BYTES[types.gradients] + (2 * master + weight if master else 2 * weight)


def moments_of(optimizer: Optimizer, types: Types, weights: str, rank: float) -> Moments:
    """Bytes of an optimizer's state. 8-bit moments have an fp32 scale a block."""
    value = BYTES[types.moments]
    own = BYTES["fp8"] + BYTES["fp32"] / optimizer.block if optimizer.block else value
    return Moments(
        matrix=optimizer.matrix * own,
        embedding=optimizer.embedding * value,
        head=optimizer.head * own,
        vector=optimizer.vector * value,
        factor=optimizer.factor * value,
        projected=optimizer.projected * value,
        projector=optimizer.projector * BYTES[weights],
        rank=rank if optimizer.projected else 0,
    )

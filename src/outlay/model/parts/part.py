"""What every part of a layer gives: its named dimensions, how a layout may cut each, and its operations as rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from ...engines.engine import KernelSet
from ...quantities import Count
from ..operations import Pointwise, Row


@dataclass(frozen=True)
class Dimension:
    """`units` x `width` values. A layout cuts the units over the ranks of an axis, and never cuts inside a unit."""

    units: Count
    width: Count = 1
    cut: Literal["none", "tp", "etp", "ep"] = "none"
    copied: bool = False  # fewer units than ranks: each rank has a copy of one
    dealt: bool = False  # the same for the ranks that heads are dealt to


Dimensions: TypeAlias = Mapping[str, tuple[Dimension, ...]]  # name -> the pieces that add up to it

GATHER: Mapping[str, Any] = {
    "kind": "sequence",
    "times": "with_sp",
    "times_back": "gather_back",
    "sent": "gathered_value",
}
"""Into a column-parallel matrix."""
SCATTER: Mapping[str, Any] = {
    "kind": "sequence",
    "times": "scatter_forward",
    "times_back": "with_sp",
    "sent_back": "gathered_value",
}
"""Out of a row-parallel matrix."""
SUM: Mapping[str, Any] = {"kind": "all_reduce", "times": "two", "times_back": "two"}
"""Of parts of a value that the ranks hold."""


class Frame(Protocol):
    """What a part must know of the model around it."""

    @property
    def norm(self) -> Literal["rms", "layer"]:
        """The kind of the norms."""

    @property
    def norm_weights(self) -> int:
        """Parameters a value of a norm: 1 a scale, 2 a scale and a shift, 0 nothing."""

    @property
    def dropout(self) -> bool:
        """Whether there is dropout."""


class Part(Protocol):
    """A part of a layer: it reads the layer's stream and its output is added to it."""

    @property
    def kind(self) -> str:
        """The word for it, also the name of a norm behind it."""

    def dimensions(self) -> Dimensions:
        """The dimensions that its rows name."""

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Its operations, in the order of the forward pass; `shared`: another part keeps the same input."""


def cut(units: Count, width: Count = 1) -> Dimension:
    """Units that tensor parallelism cuts."""
    return Dimension(units, width, "tp")


def copied(units: Count, width: Count = 1) -> Dimension:
    """Units that tensor parallelism cuts, and copies where they are fewer than its ranks."""
    return Dimension(units, width, "tp", copied=True)


def whole(values: Count) -> tuple[Dimension, ...]:
    """Values that every rank has."""
    return (Dimension(values),)


WEIGHTS = ("none", "one", "two")


def norm(
    frame: Frame, kernels: KernelSet, name: str, tokens: str = "S", width: str = "hidden", **more: object
) -> Pointwise:  # fmt: skip
    """A norm of the model's kind."""
    kernel = kernels.rms_norm if frame.norm == "rms" else kernels.layer_norm
    how: dict[str, object] = {"weights": width, "per": WEIGHTS[frame.norm_weights]} | more
    return Pointwise(name, tokens, width, kernel, **how)  # type: ignore[arg-type]

"""What Doge adds to attention and the dense part: a mask computed from the values, and experts found by two keys."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from .kernels import DECAY, table_rows
from .part import SUM, Dimensions, Frame, copied, cut, whole


@dataclass(frozen=True)
class DynamicMask:
    """A mask of keys computed from the values."""

    kv_heads: int
    head_dim: int
    bias: bool
    kind: Literal["dynamic_mask"] = "dynamic_mask"

    def dimensions(self) -> Dimensions:
        """The values are cut; what is computed from them is summed over the ranks."""
        return {"mask_values": (copied(self.kv_heads, self.head_dim),), "mask_heads": whole(self.kv_heads)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """One small matrix, its sum over the ranks, an exponential."""
        return (
            Linear("mask", "T", "mask_values", "mask_heads", biased=self.bias),
            Move("sum_mask", "tp", "T", "mask_heads", **SUM),
            Pointwise("mask_decay", "T", "mask_heads", DECAY, weights="mask_heads"),
        )


@dataclass(frozen=True)
class ProductKeys:
    """Experts of one hidden unit, found by two sets of keys: an expert is a row of each of two tables."""

    experts: int
    keys: int  # of one set
    active: int
    kind: Literal["product_keys"] = "product_keys"

    def dimensions(self) -> Dimensions:
        """The experts are cut."""
        return {
            "product_keys": whole(2 * self.keys),
            "product_tables": (cut(self.experts, 2),),
            "product_work": whole(2 * self.active),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """The keys' scores, and the chosen rows of both tables: a product with one, a weighted sum of the other."""
        rows = 2 * self.active
        chosen = table_rows(rows)
        return (
            Linear("product_keys", "S", "hidden", "product_keys", waits="none" if shared else "S"),
            Pointwise(
                "product_experts", "S", "hidden", chosen, weights="product_tables", per="hidden", work="product_work"
            ),
        )

"""THE TASK: what is trained for how long, in which precision, and by which conventions it is counted."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from .formula import where
from .quantities import Bytes
from .ranges import AtLeast

SINGLE: Bytes = 4  # bytes of an fp32 value
HALF: Bytes = 2  # bytes of a bf16 or fp16 value

# What is not given stays AUTO until `complete()` fills it, before any formula: so a default can be told from a value.
AUTO: Any = None


@dataclass(frozen=True)
class Job:
    """One training job."""

    __pydantic_config__ = {"extra": "forbid"}

    sequence_length: Annotated[int, AtLeast(1)] = AUTO
    "tokens in a sequence; default: the length the model was trained with"
    global_batch: Annotated[int, AtLeast(1)] = AUTO
    "sequences in one step; default: one a data-parallel rank and micro-batch"
    tokens: Annotated[float, AtLeast(0)] = 0.0
    "tokens to train on; 0 = not said"
    precision: Literal["bf16", "fp16", "fp8", "fp32"] = AUTO
    "type of the matrix multiplies; default: bf16, or fp16 where the accelerator has no bf16"
    bytes_per_parameter: Literal["8", "12", "16", "18", "fsdp2"] = AUTO
    "bytes a parameter of state; default: the engine's"
    attention_flops: Literal["causal", "full"] = "causal"
    "how model FLOPs count attention: the keys a token sees, or all"
    expert_imbalance: Annotated[float, AtLeast(1)] = 1.0
    "tokens of the busiest expert rank over the mean"
    reserved_bytes: Annotated[float, AtLeast(0)] = 0.0
    "memory of one accelerator that others use"

    @property
    def activation_bytes(self) -> Bytes:
        """Bytes of one activation value: 4 in fp32, else 2 (fp8 runs keep bf16 activations)."""
        return where(self.precision == "fp32", SINGLE, HALF)

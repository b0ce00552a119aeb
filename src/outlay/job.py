"""THE TASK: what is trained for how long, in which precision, by which optimizer, and by which conventions it is
counted."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from .cluster.accelerator import Accelerator
from .engines.engine import Engine
from .engines.recipe import (
    BYTES,
    Recipe,
    Types,
    copies_of,
    moments_of,
    settled,
    touched_bytes_of,
    weight_bytes_of,
)
from .engines.tables import frozen_format, optimizer, precision, types
from .formula import where
from .model.trained import Training, named_targets
from .quantities import Bytes, Tokens
from .ranges import AtLeast, Written

SINGLE: Bytes = 4  # bytes of an fp32 value
HALF: Bytes = 2  # bytes of a bf16 or fp16 value

# What is not given stays AUTO until `complete()` fills it, before any formula: so a default can be told from a value.
AUTO: Any = None

Words = Annotated[tuple[str, ...], Written("attention,feed_forward")]


@dataclass(frozen=True)
class Packing:
    """Documents of unequal length: several packed in a sequence, or each padded to it by itself."""

    mean: Annotated[float, AtLeast(1)]  # tokens of a document
    spread: Annotated[float, AtLeast(0, 100)] = 0.0  # their standard deviation over their mean
    padded: bool = False  # one document a sequence, and padding behind it

    @property
    def seen(self) -> Tokens:
        """Length of the document that a token stands in, on average over tokens: m (1 + c^2), c the spread.

        Long documents hold more tokens: E[l^2] / E[l].
        """
        return self.mean * (1 + self.spread * self.spread)


@dataclass(frozen=True)
class Measured:
    """What a run reached: tokens a second of one accelerator, or seconds of a step; the other one is 0."""

    tokens_per_second_per_device: Annotated[float, AtLeast(0)] = 0.0
    step_seconds: Annotated[float, AtLeast(0)] = 0.0


@dataclass(frozen=True)
class Beside:
    """Another model on the same accelerators: its weights, or all the state of a model that is trained too."""

    name: str
    role: Literal["reference", "reward", "teacher", "inference", "critic"]
    parameters: Annotated[float, AtLeast(1)]
    ranks: Annotated[int, AtLeast(1, 1e7)] = AUTO  # that one copy of it is cut over; default: all

    def held(self, state: Bytes) -> Bytes:
        """Bytes on one accelerator: `state` a parameter where it is trained, 16-bit weights else."""
        each: Bytes = where(self.role == "critic", state, HALF)
        return self.parameters * each / self.ranks


@dataclass(frozen=True)
class Job:
    """One training job."""

    __pydantic_config__ = {"extra": "forbid"}

    sequence_length: Annotated[int, AtLeast(1)] = AUTO
    "tokens in a sequence; default: the length the model was trained with"
    global_batch: Annotated[int, AtLeast(1)] = AUTO
    "sequences in one step; default: one a data-parallel rank and micro-batch"
    tokens: Annotated[float, AtLeast(0), Written("15T", unit="token")] = 0.0
    "tokens to train on; 0 = not said"
    precision: Literal[
        "bf16", "fp16", "fp8", "fp8_delayed", "fp8_tensorwise", "fp8_rowwise", "fp8_blockwise", "mxfp8", "nvfp4", "fp32"
    ] = AUTO
    "type of the matrix multiplies; default: bf16, or fp16 where the accelerator has no bf16"
    optimizer: Literal["adam", "sgd", "momentum", "adam8bit", "adafactor", "lion", "muon", "adam_mini", "galore"] = (
        "adam"
    )
    "what updates the weights; adam is AdamW too"
    galore_rank: Annotated[int, AtLeast(1)] = 128
    "rank that galore projects matrices to"
    bytes_per_parameter: Literal["8", "12", "16", "18", "20", "22", "fsdp2", "maxtext", "derived"] = AUTO
    "bytes a parameter of state with adam; default: derived from the optimizer, the precision and the engine's types"
    master_dtype: Literal["fp32", "bf16", "fp16", "remainder", "none"] = AUTO
    "type of the optimizer's own weights; remainder: the 16 bits that bf16 lacks; none: no weights of its own"
    moment_dtype: Literal["fp32", "bf16", "fp16", "fp8"] = AUTO
    "type of the optimizer's moments; default: the engine's"
    gradient_dtype: Literal["fp32", "bf16", "fp16", "none"] = AUTO
    "type of the gradients that accumulate; none: freed as they appear; default: the engine's"
    reduce_dtype: Literal["fp32", "bf16", "fp16", "usual"] = AUTO
    "type of a gradient on the wire; default: the engine's"
    gather_dtype: Literal["fp32", "bf16", "fp16", "fp8"] = AUTO
    "type of a gathered weight; fp8: the 16-bit weight does not stay; default: that of the matrix multiplies"
    attention_flops: Literal["causal", "full"] = "causal"
    "how model FLOPs count attention: the keys a token sees, or all"
    expert_imbalance: Annotated[float, AtLeast(1)] = 1.0
    "tokens of the busiest expert rank over the mean"
    expert_capacity: Annotated[float, AtLeast(0, 1e6)] = 0.0
    "tokens that an expert takes at most, over the mean; what is beyond is dropped; 0 = all"
    pad_to_capacity: bool = False
    "every expert gets as many tokens as its capacity, padded where they are fewer"
    reserved_bytes: Annotated[float, AtLeast(0), Written("2GiB", unit="B")] = 0.0
    "memory of one accelerator that others use"
    adapter: Literal["none", "lora", "qlora", "dora"] = "none"
    "train small matrices beside frozen ones: lora, qlora beside 4-bit ones, dora with a learned magnitude"
    adapter_rank: Annotated[int, AtLeast(1)] = 16
    "rank of the adapters"
    adapter_targets: Words = ("attention", "feed_forward", "scan")
    "matrices with an adapter: attention, feed_forward, scan, experts, or names such as q_proj,v_proj"
    frozen: Words = ()
    "parts that are not trained: embedding, head, layers, norms, router, experts, feed_forward, attention, extra"
    frozen_format: Literal["32bit", "16bit", "fp8", "int8", "nf4", "nf4_double"] = AUTO
    "how frozen matrices of layers are kept; nf4_double, the default of qlora, also quantises scales; else as weights"
    beside: Annotated[tuple[Beside, ...], Written("qwen2.5-7b:reference")] = ()
    "other models on the same accelerators, MODEL:ROLE[:RANKS], ROLE reference, reward, teacher, inference or critic"
    packing: Annotated[Packing | None, Written("mean=800")] = None
    "documents of unequal length: mean=800, mean=800,spread=1.2, or mean=800,padded where each is padded by itself"
    batch_rampup: Annotated[
        tuple[Annotated[int, AtLeast(0, 1e15)], ...], Written("32,32,2e6", means="START,INCREMENT,SAMPLES")
    ] = ()
    "a batch that grows: START,INCREMENT,SAMPLES, from START to the global batch by INCREMENT over SAMPLES sequences"
    measured: Annotated[Measured | None, Written("11.2k")] = None
    "what a run reached: 11.2k tokens a second on an accelerator, or 4.2s a step; its MFU and HFU, by convention"

    @property
    def activation_bytes(self) -> Bytes:
        """Bytes of one activation value: 4 in fp32, else 2 (8-bit and 4-bit runs keep bf16 activations)."""
        return where(self.precision == "fp32", SINGLE, HALF)

    @property
    def number(self) -> str:
        """Type of the numbers that the matrix units multiply."""
        return precision(self.precision).number

    @property
    def document(self) -> float:
        """Tokens among which a token sees: its sequence, or its document where several are packed in one."""
        packed = self.packing is not None and not self.packing.padded
        return float(self.packing.seen) if self.packing and packed else self.sequence_length

    @property
    def useful_share(self) -> float:
        """Share of the tokens that are not padding."""
        if self.packing is None or not self.packing.padded:
            return 1.0
        return float(min(1.0, self.packing.mean / self.sequence_length))

    @cached_property
    def training(self) -> Training:
        """What of the model is trained."""
        targets = named_targets(self.adapter_targets) if self.adapter != "none" else frozenset()
        return Training(self.adapter, targets, self.frozen)

    @property
    def fixed(self) -> bool:
        """Whether `bytes_per_parameter` names a recipe, with Adam, and so fixes all state."""
        return self.bytes_per_parameter not in (AUTO, "derived")


def usual_format(job: Job) -> str:
    """How frozen matrices are kept where the job does not say: in 4 bit for qlora, else as the run's weights."""
    if job.adapter == "qlora":
        return "nf4_double"
    return "32bit" if precision(job.precision).weights == "fp32" else "16bit"


def dequantised_of(job: Job) -> float:
    """Bytes a value of frozen matrices that are changed into the type of the multiplies before each use, else 0."""
    kept, how = frozen_format(job.frozen_format or usual_format(job)), precision(job.precision)
    return 0 if kept.bytes == BYTES[how.weights] or kept.number == how.number else kept.bytes


def named_types(job: Job, engine: Engine) -> Types:
    """The number types of the recipe that a job names, or of its engine's."""
    usual = engine.recipe_fp16 if job.precision == "fp16" else engine.recipe
    return types(job.bytes_per_parameter if job.fixed else usual)


def types_of(job: Job, engine: Engine) -> Types:
    """The number types of a job's state: the named recipe's, but for the fields that were given."""
    half = "fp16" if job.precision == "fp16" else "bf16"
    own = settled(named_types(job, engine), half if job.fixed else precision(job.precision).weights)
    if job.fixed:
        return own
    return replace(
        own,
        master=job.master_dtype or own.master,
        gradients=job.gradient_dtype or own.gradients,
        moments=job.moment_dtype or own.moments,
    )


def wire_of(job: Job, engine: Engine) -> tuple[str, str]:
    """The types of a gradient and of a gathered weight on the wire.

    Where gradients accumulate beside a master they are sent from there, so a type that was given for them is sent.
    """
    weights = precision(job.precision).weights
    sent = engine.reduce_bytes_fp16 if job.precision == "fp16" else engine.reduce_bytes
    wide = weights == "fp32" or sent == SINGLE
    usual = "fp32" if wide else weights
    accumulated = job.gradient_dtype if named_types(job, engine).apart and job.gradient_dtype != "none" else AUTO
    gathered = "fp32" if weights == "fp32" or engine.compute_bytes == SINGLE else weights
    told = AUTO if job.reduce_dtype == "usual" else job.reduce_dtype  # `usual`: as the engine and the layout have it
    return told or accumulated or usual, job.gather_dtype or gathered


def gathered_value_of(job: Job, engine: Engine) -> float:
    """Bytes of a value that is gathered along tp for a matrix of a layer."""
    quantised = precision(job.precision).tp_value(engine.kernels) if job.precision else 0
    return quantised or float(job.activation_bytes)


def recipe_of(job: Job, engine: Engine, accelerator: Accelerator) -> Recipe:
    """What every parameter keeps and moves under a job, whose precision is filled. What is AUTO is the engine's."""
    how, kept, rule = precision(job.precision), types_of(job, engine), optimizer(job.optimizer)
    weights = ("fp16" if job.precision == "fp16" else "bf16") if job.fixed else how.weights
    weight, master = weight_bytes_of(kept, weights)
    reduced, gathered = wire_of(job, engine)
    sharded = weights if engine.narrows_sharded and job.reduce_dtype in (AUTO, "usual") else reduced
    quantised = gathered == "fp8"
    usual = settled(named_types(job, engine), "bf16")
    copies = 0 if job.fixed else copies_of(how, engine.kernels, accelerator.fp4_flops > 0, quantised)
    kept_frozen = frozen_format(job.frozen_format or usual_format(job))
    return Recipe(
        name=job.bytes_per_parameter if job.fixed else rule.name,
        weights=weight,
        gradients=BYTES[kept.gradients] + kept.more_gradients,
        master=master + kept.more_optimizer,
        moments=moments_of(rule, kept, weights, job.galore_rank),
        copies=copies,
        spares=BYTES[how.weights] - how.saved_input_bytes if engine.kernels in how.kernels else 0,
        output_again=how.output_again if engine.kernels in how.kernels else 0,
        gathered=how.gathers if quantised else BYTES[gathered],
        ends_gathered=BYTES[how.weights] if quantised else BYTES[gathered],
        reduced=BYTES[reduced],
        reduced_sharded=BYTES[sharded],
        orthogonal=BYTES["bf16"] if rule.steps else 0,
        steps=rule.steps,
        frozen=kept_frozen.bytes,
        frozen_rest=BYTES[how.weights],
        frozen_copies=0 if job.fixed or kept_frozen.bytes < BYTES[how.weights] else copies,
        touched=touched_bytes_of(kept, weights),
        adam_touched=touched_bytes_of(usual, "bf16") + 2 * moments_of(optimizer("adam"), usual, "bf16", 0).vector,
    )

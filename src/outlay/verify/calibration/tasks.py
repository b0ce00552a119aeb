"""What is measured, one kernel or collective at a time, and what came out: plain records, without torch."""

from dataclasses import dataclass
from statistics import median, quantiles

KINDS = ("matmul", "attention", "memory", "elementwise", "launch", "collectives")
FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = "forward", "input_gradient", "weight_gradient"
PASSES = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
GATHER, SCATTER, REDUCE, EXCHANGE, SEND = "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send"
COLLECTIVES = (GATHER, SCATTER, REDUCE, EXCHANGE, SEND)
BYTES = {"bf16": 2, "fp32": 4}  # bytes a value of the precisions that are measured


@dataclass(frozen=True)
class Task:
    """One thing to time. `sizes` by kind.

    matmul: tokens, ins, outs. attention: sequences, heads, heads of keys, width, tokens a sequence. memory: values.
    elementwise: tokens, width, of it what is rotated, width of a head. launch: kernels in a row. collectives: bytes of
    the buffer, ranks, stride between them.
    """

    kind: str
    what: str  # the pass, kernel or collective
    sizes: tuple[int, ...]
    precision: str = "bf16"
    work: float = 0.0  # FLOPs, or bytes of memory traffic
    blocks: float = 0.0  # blocks of queries, a head each, of an attention core
    weight: float = 1.0  # how often a step of the model has it
    far: bool = False  # between machines

    @property
    def key(self) -> str:
        """Its name in the working file."""
        return f"{self.kind} {self.what} {self.precision} {'x'.join(map(str, self.sizes))}"

    @property
    def inner(self) -> int:
        """The dimension that a multiply sums over."""
        tokens, ins, outs = self.sizes
        return {FORWARD: ins, INPUT_GRADIENT: outs, WEIGHT_GRADIENT: tokens}[self.what]

    @property
    def moved(self) -> float:
        """Bytes of the three matrices of a multiply."""
        tokens, ins, outs = self.sizes
        return float(BYTES[self.precision] * (tokens * ins + tokens * outs + ins * outs))


@dataclass(frozen=True)
class Measured:
    """The times of one task over all ranks and repetitions."""

    task: Task
    seconds: float  # the median
    low: float  # first quartile
    high: float  # third quartile
    runs: int
    core: float = 1.0  # share of the time in which a rank had its core, where a kernel runs on one

    @property
    def spread(self) -> float:
        """Half of the distance between the quartiles, over the median."""
        return (self.high - self.low) / 2 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Run:
    """One time of a kernel, and the share of it in which its process ran."""

    seconds: float
    core: float


def on_core(runs: list[Run], cpu: bool) -> tuple[list[float], float]:
    """Times of a kernel, and the share of them in which its rank ran.

    On a CPU a kernel takes the time that its process has a core: what the system gives to others meanwhile is not the
    kernel's. On a quiet machine both are the same. On a GPU the host waits, and the time is the clock's.
    """
    if not cpu:
        return [run.seconds for run in runs], 1.0
    share = sum(run.seconds * run.core for run in runs) / sum(run.seconds for run in runs)
    return [max(1e-9, run.seconds * run.core) for run in runs], share


def measured(task: Task, samples: list[float], core: float = 1.0) -> Measured:
    """What the times of one task come to."""
    low, _, high = quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
    return Measured(task, median(samples), low, high, len(samples), core)

"""What lines of a log say, each as a frozen record in SI units, and the whole log that a reading ends in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .prefixes import rank_of, when_of

Kind = Literal["allocated", "active", "reserved", "device", "estimated"]


@dataclass(frozen=True)
class Line:
    """One line of a log, without colours; `whole` unless the file ends inside it."""

    text: str
    whole: bool = True

    @cached_property
    def rank(self) -> int | None:
        """The rank that a launcher or the framework put before it; None where none did."""
        return rank_of(self.text)

    @cached_property
    def when(self) -> float | None:
        """Seconds of the time that stands in it, for differences alone: nobody says its zone."""
        return when_of(self.text)


@dataclass(frozen=True)
class Step:
    """One line of a training step. What the line does not say is None; nothing is worked out from anything else."""

    number: int
    seconds: float | None = None  # of one step; where a line is of several, their mean
    tokens: float | None = None  # of the whole job in one step
    samples: float | None = None  # sequences of the whole job in one step
    samples_per_second: float | None = None  # of the whole job
    tokens_per_second: float | None = None  # of the whole job
    tokens_per_second_per_device: float | None = None
    flops_per_second: float | None = None  # of one device, as the framework counts them
    mfu: float | None = None  # 0..1
    loss: float | None = None
    loss_scale: float | None = None
    consumed_samples: float | None = None
    skipped: int = 0  # steps without an update
    nans: int = 0
    data_seconds: float | None = None  # of it, waiting for data
    when: float | None = None
    source: str = ""  # whose line it is
    run: int = 0  # 0 is the first; each restart counts one more
    marks: tuple[str, ...] = ()  # what the lines since the step before tell: evaluation, checkpoint, profiler, ..


@dataclass(frozen=True)
class Memory:
    """A figure of memory in a line, in bytes."""

    kind: Kind
    bytes: float
    rank: int | None = None
    after: int | None = None  # the step that it was printed after
    share: float | None = None  # of the card's


@dataclass(frozen=True)
class Timer:
    """Seconds of a part of a step: the most of all ranks, and the least where that is said too."""

    name: str
    seconds: float
    least: float | None = None


@dataclass(frozen=True)
class Fact:
    """Something that holds for the whole run: `devices`, `sequence_length`, `total_steps`, .."""

    name: str
    value: float | str


@dataclass(frozen=True)
class Mark:
    """Something beside training that the next step's time may hold."""

    name: str
    count: int = 1


@dataclass(frozen=True)
class Begins:
    """A run begins here, the first one or one that goes on."""


Event = Step | Memory | Timer | Fact | Mark | Begins


@dataclass(frozen=True)
class Held:
    """Memory of one kind over a log: its peak, of which rank, and the first that was said."""

    kind: Kind
    bytes: float
    rank: int | None
    after: int | None
    first_bytes: float
    first_after: int | None
    before_states: bool = False  # all that is known of it is from before the first update


@dataclass(frozen=True)
class Log:
    """A log as it was read. Of a very long one the last steps alone are kept; what is counted is of all."""

    framework: str  # the name of its reader
    steps: tuple[Step, ...]
    seen: int  # steps of the log, kept or not
    runs: int
    memory: tuple[Held, ...] = ()
    timers: Mapping[str, Timer] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0
    nans: int = 0
    lines: int = 0
    cut: bool = False  # the last line ends inside a word, and was left out
    since: int = 0  # the first run with the arguments of the last one
    dump: str = ""  # the arguments that Megatron-LM printed
    others: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)  # the same steps by another library's lines

    def number(self, name: str) -> float | None:
        """A fact that is a number."""
        value = self.facts.get(name)
        return value if isinstance(value, float) else None

    def text(self, name: str) -> str:
        """A fact that is a text; empty where the log does not say it."""
        value = self.facts.get(name, "")
        return value if isinstance(value, str) else ""

"""The readers by name, and a whole log: its lines go to each of them, and the outermost that found steps is the log's.

A reader is a module with `Reader().take(line)`, its name and title, the lines it looks for, and how many lines at the
start of a run hold start-up.
"""

from collections.abc import Iterable
from types import ModuleType

from ...errors import Fault, InputError
from . import beside, composer, deepspeed, maxtext, megatron, nanotron, small, torchtitan, trainer
from .collect import Collected
from .record import Line, Log

READERS: tuple[ModuleType, ...] = (
    megatron, torchtitan, nanotron, maxtext, composer, trainer, small, deepspeed, beside,
)  # fmt: skip

# Whose steps count where several print them: the outer one, which holds the others.
ORDER = (
    "neox", "megatron_deepspeed", "megatron", "megatron_bridge", "nemo", "torchtitan", "nanotron", "picotron",
    "maxtext", "composer", "xtuner", "internevo", "torchtune", "nanochat", "nanogpt", "trainer", "deepspeed",
)  # fmt: skip
TITLES = {
    **{one.NAME: one.TITLE for one in READERS},
    **small.TITLES,
    "neox": "GPT-NeoX",
    "megatron_deepspeed": "Megatron-DeepSpeed",
    "megatron_bridge": "Megatron-Bridge",
    "picotron": "picotron",
}
FROM_ZERO = ("maxtext", "nemo", "internevo")  # who counts steps from 0
WARM: dict[str, int] = {one.NAME: one.WARM for one in READERS}  # else 1


class Reading:
    """A log that is being read: lines in, what it says so far out."""

    def __init__(self) -> None:
        self._readers = [one.Reader() for one in READERS]
        self._found = Collected()

    def take(self, line: Line) -> None:
        """Read one line."""
        self._found.line(line)
        for reader in self._readers:
            for event in reader.take(line):
                self._found.take(event, line)

    @property
    def at(self) -> int | None:
        """The last step that was read; None before the first."""
        return self._found.at(self._framework())

    @property
    def ended(self) -> bool:
        """Whether the last step of the job was read, as far as the log says which that is."""
        total, at = self._found.number("total_steps"), self.at
        return total is not None and at is not None and at >= total - (self._framework() in FROM_ZERO)

    def _framework(self) -> str:
        return next((name for name in ORDER if name in self._found.held), "")

    def log(self) -> Log:
        """The whole of it. Raises InputError (LOG001) where no line is of a step."""
        framework = self._framework()
        if not framework:
            raise InputError(_no_steps(self._found.lines))
        return self._found.log(framework)


def read(lines: Iterable[Line]) -> Log:
    """What a log says. Raises InputError (LOG001) where no line is one of a training step."""
    reading = Reading()
    for line in lines:
        reading.take(line)
    return reading.log()


def _no_steps(lines: int) -> Fault:
    looked = "; ".join(f"{one.TITLE}: {one.LOOKS_FOR}" for one in READERS if one.LOOKS_FOR)
    rule = f"the lines of steps, as one of these prints them. {looked}"
    fix = "the log of the rank that prints steps; torchtitan, DeepSpeed and the Trainer print them when told how often"
    return Fault("LOG001", "no line of this log is of a training step", rule, f"{lines:,} lines", fix)

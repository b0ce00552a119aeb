"""A job that watches itself: its bill before the first step, and after twenty steps how they stand beside it.

>>> import outlay
>>> from outlay.watching import trainer_callback
>>> bill = outlay.count(outlay.load_model("llama-3.1-8b"), outlay.Job(4096, 64), outlay.load_cluster("8xh100-sxm"),
...     outlay.Layout(zero=3, recompute="full"), "hf_trainer")
>>> callback = trainer_callback(bill, say=lambda text: None)  # Trainer(.., callbacks=[callback])

transformers and lightning are loaded where one of their callbacks is asked for, if they are there.
"""

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .bill import Bill
from .formats.logs.record import Held, Kind, Log, Step
from .show.answer import headline, step_line
from .show.text import PLAIN
from .show.watch import beside_lines, step_text
from .validate.watched import Watched, watched

AFTER = 20  # steps that the comparison is over
Say = Callable[[str], object]


class Watching:
    """Times the steps of a job, from the end of one to the end of the next, and says how they stand beside a bill."""

    def __init__(self, bill: Bill, after: int, say: Say, clock: Callable[[], float] = time.perf_counter) -> None:
        self._bill, self._after, self._say, self._clock = bill, after, say, clock
        self._steps: list[Step] = []
        self._marks: dict[str, None] = {}
        self._since = clock()
        self._said = False

    def begins(self) -> None:
        """Say what the bill expects."""
        self._since = self._clock()
        self._say("\n".join([*headline(self._bill, PLAIN), *step_line(self._bill, PLAIN)]))

    def mark(self, name: str) -> None:
        """Keep what the time of the next step also holds: evaluation, checkpoint."""
        self._marks[name] = None

    def step(self, number: int) -> None:
        """A step ended. Says the comparison where it is the last one that it waits for."""
        if self._steps and number <= self._steps[-1].number:
            return  # a micro-batch of a step that is not whole yet
        now = self._clock()
        if not self._said:
            self._steps.append(Step(number, now - self._since, marks=tuple(self._marks)))
        self._marks, self._since = {}, now
        if len(self._steps) > self._after:  # the first one is start-up
            self.ends()

    def ends(self) -> None:
        """Say the comparison, once."""
        if self._said or len(self._steps) < 2:
            return
        self._said = True
        found = self.found()
        self._say("\n".join(["STEP      " + step_text(found.pace), *beside_lines(found, PLAIN)]))

    def found(self) -> Watched:
        """The steps so far beside the bill, with what torch says of memory where it runs on CUDA."""
        log = Log("watching", tuple(self._steps), len(self._steps), 1, memory=_memory())
        return watched(log, self._bill)


def _memory() -> tuple[Held, ...]:
    """Peaks of this process, as torch counts them."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ()
    kinds: tuple[tuple[Kind, float], ...] = (
        ("allocated", torch.cuda.max_memory_allocated()),
        ("reserved", torch.cuda.max_memory_reserved()),
    )
    return tuple(Held(kind, float(value), None, None, float(value), None) for kind, value in kinds)


class _OfTrainer:
    """The events of the transformers Trainer. Rank 0 speaks."""

    def __init__(self, watching: Watching) -> None:
        self.watching = watching

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.watching.begins()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.watching.step(state.global_step)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watching.mark("evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watching.mark("checkpoint")

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.watching.ends()


class _OfLightning:
    """The events of Lightning's Trainer. Rank 0 speaks."""

    def __init__(self, watching: Watching) -> None:
        self.watching = watching

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.watching.begins()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.is_global_zero and trainer.global_step > 0:
            self.watching.step(trainer.global_step)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.watching.mark("evaluation")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        self.watching.mark("checkpoint")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.watching.ends()


def trainer_callback(bill: Bill, after: int = AFTER, say: Say = print) -> Any:
    """A `TrainerCallback` of transformers: `Trainer(.., callbacks=[trainer_callback(bill)])`."""
    return _made(_OfTrainer, "TrainerCallback", ("transformers",), Watching(bill, after, say))


def lightning_callback(bill: Bill, after: int = AFTER, say: Say = print) -> Any:
    """A `Callback` of Lightning: `Trainer(callbacks=[lightning_callback(bill)])`."""
    modules = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks")
    return _made(_OfLightning, "Callback", modules, Watching(bill, after, say))


def _made(events: type, name: str, modules: tuple[str, ...], watching: Watching) -> Any:
    """Our events over the library's own class, or by themselves where it is not installed."""
    base: tuple[type, ...] = ()
    for module in modules:
        try:
            base = (getattr(import_module(module), name),)
            break
        except ImportError:
            continue
    return type("OutlayCallback", (events, *base), {})(watching)

"""Events of a log put together: ranks that tell the same step, runs that begin again, peaks. Of bounded size."""

from collections import OrderedDict
from dataclasses import fields, replace
from typing import Any

from ..dump import LINE
from .record import Begins, Event, Fact, Held, Kind, Line, Log, Mark, Memory, Step, Timer

MOST_STEPS = 10_000  # kept of one library; older ones are counted alone
MOST_RANKS, MOST_FACTS, MOST_DUMP = 4_096, 4_096, 2_000
EACH_START = ("load", "save", "port", "rank", "addr", "time", "date", "exit", "log", "wandb", "board", "seed", "path")
LEAST = ("tokens_per_second", "tokens_per_second_per_device", "samples_per_second", "flops_per_second", "mfu")
KEPT = ("number", "source", "run", "marks")


def merged(a: Step, b: Step) -> Step:
    """The same step as two ranks tell it: the slowest counts, whichever came first."""
    told: dict[str, Any] = {}
    for one in fields(Step):
        if one.name not in KEPT:
            values = [value for value in (getattr(a, one.name), getattr(b, one.name)) if value is not None]
            told[one.name] = _one_of(values, one.name in LEAST)
    return replace(a, **told, marks=tuple(dict.fromkeys((*a.marks, *b.marks))))


def _one_of(values: list[float], least: bool) -> float | None:
    """The least or the most, and a number that is not one where any is not."""
    if not values:
        return None
    odd = next((value for value in values if value != value), None)
    return odd if odd is not None else min(values) if least else max(values)


def _task(dump: dict[str, str]) -> dict[str, str]:
    """Arguments without those that differ in each start of one job."""
    return {name: line for name, line in dump.items() if not any(word in name for word in EACH_START)}


class Steps:
    """The steps that one library's lines tell."""

    def __init__(self) -> None:
        self.held: OrderedDict[tuple[int, int], Step] = OrderedDict()
        self.seen = self.skipped = self.nans = 0
        self.run = 0
        self.waiting: dict[str, None] = {}  # marks since the last step
        self.updated: int | None = None  # the first step that was not skipped, where any was
        self.last: dict[int | None, int] = {}  # the last number of each rank
        self.before = -1  # and that before the last, of whichever rank

    def begins(self) -> None:
        """A new run, where the one before had any step."""
        if self.last:
            self.run, self.last, self.before, self.waiting = self.run + 1, {}, -1, {}

    def take(self, step: Step, rank: int | None) -> None:
        """One more line of a step."""
        if self._again(step.number, rank):
            self.begins()
        newest = max(self.last.values(), default=-1)
        if rank in self.last or len(self.last) < MOST_RANKS:
            self.last[rank] = step.number
        self.before = newest if step.number > newest else self.before
        key = (self.run, step.number)
        held = self.held.get(key)
        self.held[key] = merged(held, step) if held else replace(step, run=self.run, marks=(*step.marks, *self.waiting))
        if held is None:
            self.waiting = {}
            self.seen += 1
            self.skipped, self.nans = self.skipped + step.skipped, self.nans + step.nans
            if self.updated is None and self.skipped < step.number:
                self.updated = step.number
            if len(self.held) > MOST_STEPS:
                self.held.popitem(last=False)

    def _again(self, number: int, rank: int | None) -> bool:
        """Whether steps begin again. Without a rank, the last two numbers may come from ranks that are a line late."""
        if rank not in self.last or number > self.last[rank]:
            return False
        if rank is None:
            return number not in (self.last[rank], self.before)
        return number < self.last[rank]

    def nothing_updated(self, after: int | None) -> bool:
        """Whether every step up to this one was skipped, so that the optimizer had no states yet."""
        return after is not None and self.skipped > 0 and (self.updated is None or after < self.updated)

    def ordered(self) -> tuple[Step, ...]:
        """All that are kept, in the order of their runs and numbers."""
        return tuple(self.held[key] for key in sorted(self.held))


class Collected:
    """All that the lines of a log have told so far."""

    def __init__(self) -> None:
        self.held: dict[str, Steps] = {}
        self.lines = 0
        self._memory: dict[tuple[Kind, int | None], Held] = {}
        self._timers: dict[str, Timer] = {}
        self._facts: dict[str, float | str] = {}
        self._marks: dict[str, int] = {}
        self._dump: dict[str, str] = {}  # the arguments of the run that is being read
        self._before: dict[str, str] = {}  # and of the one before
        self._since: dict[str, int] = {}  # the run from which on the arguments are those of the last one
        self._cut = False

    def line(self, line: Line) -> None:
        """Count a line, and keep it where it is one of the arguments that Megatron-LM prints."""
        self.lines += 1
        self._cut = not line.whole
        room = len(self._dump) < MOST_DUMP and ".." in line.text and "config.py" not in line.text
        if room and (match := LINE.match(line.text)):
            self._dump.setdefault(match["name"], f"  {match['name']} ..... {match['value'].strip()}")

    def take(self, event: Event, line: Line) -> None:
        """One event of a line. What a cut line says of a step counts only where nothing else does."""
        if isinstance(event, Step):
            if line.whole or not self.held:
                self.held.setdefault(event.source, Steps()).take(event, line.rank)
        elif not line.whole:
            return
        elif isinstance(event, Memory):
            self._peak(event)
        elif isinstance(event, Timer):
            if event.name in self._timers or len(self._timers) < MOST_FACTS:
                self._timers[event.name] = event
        elif isinstance(event, Fact):
            if event.name in self._facts or len(self._facts) < MOST_FACTS:
                self._facts[event.name] = event.value
        elif isinstance(event, Mark):
            self._marks[event.name] = self._marks.get(event.name, 0) + event.count
            for steps in self.held.values():
                steps.waiting[event.name] = None
        elif isinstance(event, Begins):
            self._settle()
            if self.held and self._dump:
                self._before, self._dump = self._dump, {}
            for steps in self.held.values():
                steps.begins()

    def _settle(self) -> None:
        """Keep from which run on the arguments hold, where they are not those of the run before."""
        if self._before and self._dump and _task(self._before) != _task(self._dump):
            self._since = {name: steps.run for name, steps in self.held.items()}
        self._before = self._dump or self._before

    def _peak(self, new: Memory) -> None:
        """The most of each rank so far."""
        key = (new.kind, new.rank)
        if new.share:
            self._facts.setdefault("capacity_bytes", new.bytes / new.share)
        old = self._memory.get(key)
        if old is None:
            if len(self._memory) < MOST_RANKS:
                self._memory[key] = Held(new.kind, new.bytes, new.rank, new.after, new.bytes, new.after)
        elif new.bytes > old.bytes:
            self._memory[key] = replace(old, bytes=new.bytes, after=new.after)

    def at(self, framework: str) -> int | None:
        """The last number of a library."""
        steps = self.held.get(framework)
        return next(reversed(steps.held))[1] if steps and steps.held else None

    def number(self, name: str) -> float | None:
        """A fact that is a number."""
        value = self._facts.get(name)
        return value if isinstance(value, float) else None

    def log(self, framework: str) -> Log:
        """What all lines together say."""
        self._settle()
        steps = self.held[framework]
        others = {name: each.ordered() for name, each in self.held.items() if name != framework}
        return Log(
            framework=framework,
            steps=steps.ordered(),
            seen=steps.seen,
            runs=steps.run + 1,
            memory=self._peaks(steps),
            timers=dict(self._timers),
            facts=dict(self._facts),
            marks=dict(self._marks),
            skipped=steps.skipped or int(self.number("skipped") or 0),
            nans=steps.nans,
            lines=self.lines,
            cut=self._cut,
            dump="\n".join((self._dump or self._before).values()),
            since=self._since.get(framework, 0),
            others=others,
        )

    def _peaks(self, steps: Steps) -> tuple[Held, ...]:
        """The fullest rank of each kind; of equals the one with the lowest number."""
        found: dict[Kind, Held] = {}
        for _, held in sorted(self._memory.items(), key=lambda one: (one[0][0], one[0][1] or 0)):
            if held.kind not in found or held.bytes > found[held.kind].bytes:
                found[held.kind] = replace(held, before_states=steps.nothing_updated(held.after))
        return tuple(found.values())

"""The bubble by itself: share and duration, the staircase, and how both move with the number of micro-batches."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ..schedule.bubble import held_slots, useful_slots
from .record import Record, head, whole
from .text import GOOD, Style, block, duration, percent, table, wrapped

MOST_ROWS = 16  # ranks of a staircase that is still read
GOAL = Fraction(1, 20)
SLOTS = ("gpipe", "1f1b", "interleaved")  # whose idle time is counted in slots


@dataclass(frozen=True)
class Pipeline:
    """One pipeline of equal stages, and how long a micro-batch takes on one of them (0: not said)."""

    pp: int
    vpp: int
    micro_batches: int
    schedule: str
    pass_seconds: float = 0.0
    goal: Fraction | None = None
    asked: bool = True  # whether the number of micro-batches was given, or follows from the goal

    @property
    def share(self) -> Fraction:
        """The idle share, exactly."""
        return Fraction(self.held - self.useful, self.held)

    @property
    def useful(self) -> int:
        """Slots that work."""
        return int(useful_slots(self.pp, self.chunks, self.micro_batches))

    @property
    def held(self) -> int:
        """Slots that are held."""
        return int(held_slots(self.pp, self.chunks, self.micro_batches))

    @property
    def chunks(self) -> int:
        """Chunks a rank that the schedule uses."""
        return self.vpp if self.schedule == "interleaved" else 1

    @property
    def counts_slots(self) -> bool:
        """Whether the schedule idles for whole slots, whatever F, B and W."""
        return self.schedule in SLOTS

    @property
    def slot_seconds(self) -> float:
        """One slot: a forward and a backward pass of one chunk."""
        return self.pass_seconds / self.chunks

    @property
    def idle_seconds(self) -> float:
        """Idle time of every rank in one step."""
        return (self.pp - 1) * self.slot_seconds

    @property
    def step_seconds(self) -> float:
        """The whole step."""
        return (self.chunks * self.micro_batches + self.pp - 1) * self.slot_seconds

    def at(self, micro_batches: int) -> "Pipeline":
        """The same pipeline with another number of micro-batches."""
        return Pipeline(self.pp, self.vpp, micro_batches, self.schedule, self.pass_seconds, self.goal, self.asked)


def needed(pp: int, chunks: int, share: Fraction) -> int:
    """The least number of micro-batches whose idle share is at most this: whole numbers only, so exact.

    (P - 1) / (v M + P - 1) <= a/b  <=>  M >= (P - 1)(b - a) / (a v); interleaving takes whole rounds of P.
    """
    least = ceil(Fraction((pp - 1) * (share.denominator - share.numerator), share.numerator * chunks))
    rounds = pp if chunks > 1 else 1
    return max(1, ceil(Fraction(least, rounds))) * rounds


def bubble_record(line: Pipeline) -> Record:
    """The bubble as a bill prints it, with the exact share and what a goal needs."""
    goal = line.goal or GOAL
    found = {
        "share": float(line.share),
        "span_share": float(line.share),
        "seconds": line.idle_seconds if line.pass_seconds else None,
        "slots": whole(line.held / line.pp),
        "useful_slots": line.useful,
        "held_slots": line.held,
        "definition": "makespan: idle slots over held slots, equal stages, free sends",
        "fraction": [line.share.numerator, line.share.denominator],
        "pp": line.pp,
        "vpp": line.vpp,
        "schedule": line.schedule,
        "slot_seconds": line.slot_seconds or None,
        "step_seconds": line.step_seconds or None,
        "at_most": float(goal),
        "micro_batches_needed": needed(line.pp, line.chunks, goal),
    }
    return head("bubble") | {"bubble": found, "micro_batches": line.micro_batches}


def bubble_lines(line: Pipeline, style: Style) -> list[str]:
    """The share and the duration, what a goal needs, the staircase, and the price of more micro-batches."""
    text = f"{percent(float(line.share))} of all accelerator-time ({line.share.numerator}/{line.share.denominator})"
    lines = block("IDLE", text, style, f"1;{GOOD}")
    lines += [each for text in _durations(line) for each in wrapped(text, style, 10, 10)]
    goal = line.goal or GOAL
    need = needed(line.pp, line.chunks, goal)
    reached = f"idle {percent(float(line.at(need).share))} ({line.at(need).share})"
    wanted = f"{need:,} micro-batches for at most {100 * float(goal):g} %: {reached}"
    lines += block("NEED", wanted if line.pp > 1 else "nothing: one stage never idles", style)
    return [*lines, "", *staircase(line, style), "", *growth(line, need, style), "", *_notes(line, style)]


def _durations(line: Pipeline) -> list[str]:
    idle = line.pp - 1
    slots = f"{idle:,} of {line.held // line.pp:,} slots on every rank; {line.useful:,} useful of {line.held:,} held"
    if not line.pass_seconds:
        return [slots, "no duration without the time of a slot: --slot 30ms, or --forward 10ms --backward 20ms"]
    time = f"{duration(line.idle_seconds)} of a {duration(line.step_seconds)} step on every rank"
    return [slots, f"{time}; {duration(line.idle_seconds * line.pp)} of accelerator-time over {line.pp} ranks"]


def staircase(line: Pipeline, style: Style) -> list[str]:
    """Each rank's slots in order: the digit is the micro-batch's last one, a dot idles."""
    slots = line.held // line.pp
    if slots + 10 > style.width or line.pp > MOST_ROWS:
        why = f"{line.pp:,} ranks" if line.pp > MOST_ROWS else f"{slots:,} slots do not fit in {style.width} columns"
        return wrapped(f"the staircase is left out: {why}", style, 2, 2)
    unit = f"slots of {duration(line.slot_seconds)}" if line.pass_seconds else "slots"
    lines = [f"  slot    {_ruler(slots)} {unit}"]
    order = "".join(str((batch + 1) % 10) for batch in _order(line))
    lines += [f"  rank {rank:<2} {'.' * rank}{order}{'.' * (line.pp - 1 - rank)}" for rank in range(line.pp)]
    return lines


def _ruler(slots: int) -> str:
    """1, 10, 20 .. over their slots, and the last one at the end."""
    text = "1"
    for mark in range(10, slots - 3, 10):
        text = text.ljust(mark - 1) + str(mark)
    return text.ljust(max(slots - len(str(slots)), len(text) + 1)) + str(slots) if slots > 1 else text


def _order(line: Pipeline) -> list[int]:
    """Micro-batches in the order in which one rank takes them: with chunks, a round of P micro-batches a chunk."""
    if line.chunks == 1:
        return list(range(line.micro_batches))
    rounds = range(0, line.micro_batches, line.pp)
    return [first + each for first in rounds for _ in range(line.chunks) for each in range(line.pp)]


def growth(line: Pipeline, need: int, style: Style) -> list[str]:
    """A share is not a duration: more micro-batches of the same size halve the share and lengthen the step."""
    step = line.pp if line.chunks > 1 else 1
    half = max(step, line.micro_batches // 2 // step * step)
    counts = sorted({half, line.micro_batches, 2 * line.micro_batches, need})
    rows = []
    for micro_batches in counts:
        here = line.at(micro_batches)
        said = {
            line.micro_batches: "<- asked" if line.asked else "<- needed",
            2 * line.micro_batches: "share halves, the step grows",
        }
        times: Callable[[float], str] = lambda value: duration(value) if line.pass_seconds else "?"  # noqa: E731
        in_slots = f"{here.held // here.pp:,}"
        rows.append(
            (
                f"{micro_batches:,}",
                percent(float(here.share)),
                times(here.idle_seconds),
                times(here.step_seconds),
                in_slots,
                said.get(micro_batches, ""),
            )
        )
    heads = ("micro-batches", "idle share", "idle", "step", "slots", "same tokens a micro-batch")
    lines = table(heads, rows, style, "rrrrrl")
    if line.pass_seconds and line.pp > 1:
        lines += wrapped(_finer(line), style, 2, 4)
    return lines


def _finer(line: Pipeline) -> str:
    finer = line.at(2 * line.micro_batches)
    return (
        f"same batch, cut finer: {finer.micro_batches:,} micro-batches of half the size idle"
        f" {percent(float(finer.share))} = {duration(finer.idle_seconds / 2)} of {duration(finer.step_seconds / 2)}"
        " (if kernels stay as efficient)"
    )


def _notes(line: Pipeline, style: Style) -> list[str]:
    law = "(P - 1) / (M + P - 1)" if line.chunks == 1 else "(P - 1) / (v M + P - 1)"
    slot = "one forward + one backward pass" + (" of one chunk" if line.chunks > 1 else "")
    asked = f"--pp {line.pp} --micro-batches {line.micro_batches}" + (
        f" --vpp {line.chunks}" if line.chunks > 1 else ""
    )
    more = f"--vpp 2   |   --at-most 5%   |   outlay explain bubble {asked}"
    return [
        *block("COUNTS", f"{law}; {line.schedule}, equal stages, free sends; a slot is {slot}", style),
        *block("MORE", more, style),
    ]

"""outlay bubble: a pipeline without a model."""

import re
from dataclasses import replace
from fractions import Fraction

from ..errors import Fault, quoted
from ..schedule.laws import SCHEDULES
from ..schedule.orders import names
from ..show.bubble import SLOTS, Pipeline, bubble_lines, bubble_record, needed
from .flags import Given
from .output import Told
from .passes import slices_of
from .values import Faults, count, seconds, unknown_key

PASSES = ("slot", "forward", "backward", "weight")
SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)|(\d{1,9})\s*/\s*(\d{1,9})")


def bubble(given: Given) -> Told:
    """Share, duration and staircase of one pipeline; or the micro-batches that a share needs."""
    faults = Faults()
    line = _pipeline(given, faults)
    faults.stop()
    assert line is not None
    if given.on("simulate"):
        return _simulate(given, line)
    return Told(lambda: bubble_record(line), lambda style: bubble_lines(line, style))


def _simulate(given: Given, line: Pipeline) -> Told:
    """The same with every pass run; the only way where a schedule's idle time is not counted in slots."""
    from ..show.bubble_simulated import simulated_lines, simulated_record
    from ..show.diagram.chart import chart_of
    from .drawing import follow
    from .passes import Asked, equal_stages, named
    from .stating import law_of

    slices = slices_of(given, line.schedule, Faults())
    plan = named(line.schedule, line.pp, line.vpp, line.micro_batches, slices=slices)
    said = {name: seconds(text, name, Faults()) or 0.0 for name in PASSES if (text := given.text(name)) is not None}
    asked = Asked(plan, *equal_stages(plan, said), str(plan))
    chart = chart_of(follow(asked), asked.title, asked.tick, (*plan.notes, *law_of(plan, asked.times)))
    line = replace(line, vpp=plan.vpp)
    return Told(lambda: simulated_record(line, chart), lambda style: simulated_lines(line, chart, style))


def _pipeline(given: Given, faults: Faults) -> Pipeline | None:
    pp = _count(given, "pp", "--pp", faults)
    vpp = _count(given, "vpp", "--vpp", faults) or 1
    goal = exact_share(given.text("at_most") or "", faults) if given.text("at_most") is not None else None
    asked = _count(given, "micro_batches", "--micro-batches", faults)
    schedule = given.text("schedule") or ("interleaved" if vpp > 1 else "1f1b")
    time = _pass_seconds(given, faults)
    if given.text("pp") is None:
        faults.add(Fault("CLI004", "no pipeline is given", "--pp is the number of stages", "nothing", "--pp 8"))
    if given.text("micro_batches") is None and given.text("at_most") is None:
        rule = "a bubble needs the number of micro-batches, or the share to allow"
        faults.add(
            Fault("CLI004", "no micro-batches are given", rule, "nothing", "--micro-batches 32, or --at-most 5%")
        )
    if schedule not in SCHEDULES and schedule not in names():
        faults.add(unknown_key(schedule, names(), f"--schedule {quoted(schedule)}"))
    elif schedule not in SLOTS:
        faults.add(*_without_slots(given, schedule))
    slices_of(given, schedule, faults)
    if faults.found or pp is None:
        return None
    if schedule not in SLOTS:
        return Pipeline(pp, vpp, asked or 1, schedule, time)
    chunks = vpp if schedule == "interleaved" else 1
    micro_batches = asked or needed(pp, chunks, goal or Fraction(1))
    if not SCHEDULES[schedule].legal(pp, vpp, micro_batches):
        got = f"{schedule}, pp {pp}, vpp {vpp}, {micro_batches:,} micro-batches"
        fix = (
            f"--micro-batches {max(1, micro_batches // pp) * pp}"
            if vpp > 1 and pp > 1
            else "--vpp 2 --pp 4, or leave --vpp out"
        )
        faults.add(
            Fault("LAY012", "the schedule does not fit", f"{schedule} needs {SCHEDULES[schedule].needs}", got, fix)
        )
    return Pipeline(pp, vpp, micro_batches, schedule, time, goal, asked is not None)


def _without_slots(given: Given, schedule: str) -> list[Fault]:
    """Where weight gradients fill the bubble, it depends on F, B and W: it is simulated, for some micro-batches."""
    if given.on("simulate") and given.text("micro_batches") is not None:
        return []
    rule = f"{', '.join(SLOTS)} idle for whole slots; what others idle depends on the times of their passes"
    fix = f"--schedule {schedule} --micro-batches 32 --simulate"
    return [Fault("CLI007", f"{schedule} has no count in slots", rule, f"--schedule {quoted(schedule)}", fix)]


def _count(given: Given, name: str, flag: str, faults: Faults) -> int | None:
    text = given.text(name)
    return None if text is None else count(text, flag, faults)


def _pass_seconds(given: Given, faults: Faults) -> float:
    """Forward and backward of one micro-batch on one stage; 0 where it is not said."""
    said = {name: given.text(name) for name in PASSES}
    read = {name: seconds(text, f"--{name}", faults) for name, text in said.items() if text is not None}
    if "slot" in read and len(read) > 1:
        rule = "a slot is forward, backward and weight together: give it, or them"
        faults.add(
            Fault("CLI006", "the slot is given twice", rule, ", ".join(f"--{name}" for name in read), "--slot 30ms")
        )
    if read and "slot" not in read and not {"forward", "backward"} <= read.keys():
        rule = "a slot is one forward and one backward pass"
        faults.add(
            Fault(
                "CLI006",
                "the slot is not complete",
                rule,
                ", ".join(f"--{name}" for name in read),
                "--forward 10ms --backward 20ms",
            )
        )
    return sum(value or 0.0 for value in read.values())


def exact_share(text: str, faults: Faults) -> Fraction | None:
    """A share as a ratio of whole numbers: 5%, 1/20 and 0.05 are the same, exactly."""
    match = SHARE.fullmatch(text.strip())
    share = Fraction(0)
    if match and match[3]:
        share = Fraction(int(match[3]), int(match[4])) if int(match[4]) else share
    elif match:
        share = Fraction(match[1]) / (100 if match[2] else 1)
    if 0 < share <= 1:
        return share
    rule = "a share above 0 and at most 1; a pipeline of several stages always idles a little"
    faults.add(Fault("UNI004", "--at-most is not a share", rule, quoted(text), "--at-most 5%   (or 1/20, or 0.05)"))
    return None

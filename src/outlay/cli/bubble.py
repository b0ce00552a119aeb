"""outlay bubble: a pipeline without a model."""

import re
from fractions import Fraction

from ..errors import Fault, quoted
from ..schedule.bubble import SCHEDULES
from ..show.bubble import Pipeline, bubble_lines, bubble_record, needed
from .flags import Given
from .output import tell
from .values import Faults, count, seconds, unknown_key

SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)|(\d{1,9})\s*/\s*(\d{1,9})")


def bubble(given: Given) -> int:
    """Share, duration and staircase of one pipeline; or the micro-batches that a share needs."""
    faults = Faults()
    line = _pipeline(given, faults)
    faults.stop()
    assert line is not None
    tell(given, lambda: bubble_record(line), lambda style: bubble_lines(line, style))
    return 0


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
    if schedule not in SCHEDULES:
        faults.add(unknown_key(schedule, SCHEDULES, f"--schedule {quoted(schedule)}"))
    if faults.found or pp is None:
        return None
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


def _count(given: Given, name: str, flag: str, faults: Faults) -> int | None:
    text = given.text(name)
    return None if text is None else count(text, flag, faults)


def _pass_seconds(given: Given, faults: Faults) -> float:
    """Forward and backward of one micro-batch on one stage; 0 where it is not said."""
    said = {name: given.text(name) for name in ("slot", "forward", "backward", "weight")}
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

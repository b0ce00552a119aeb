"""A split beside the engine's own cut: what it saves, and how the engine is told it."""

from ..bill import Bill
from ..formats.stage_layout import settings
from ..search.split.best import Split, sizes_of
from .labels import sizes_text
from .record import Record, plain
from .text import Style, block, duration, gib, percent, wrapped

LONGEST = 200  # characters of a setting that the terminal prints


def split_lines(split: Split, style: Style) -> list[str]:
    """What the split saves against the engine's own cut, and its settings."""
    bill = split.bill
    chunks = "stage" if bill.layout.vpp == 1 else "chunk"
    lines = block("SPLIT", f"{sizes_text(split.sizes)} layers a {chunks}{_against(bill, split.own)}", style)
    told = settings(split.sizes, bill.layout.vpp, bill.engine.name)
    if not told:
        return lines + wrapped(f"no setting of {bill.engine.name} is known that takes it", style, 10, 10)
    if len(told[0]) > LONGEST:
        return lines + wrapped(f"{told[0].split(' ')[0]}: whole in --json", style, 10, 10)
    more = ", with m for each multi-token layer before L where they are trained" if bill.model.mtp_layers else ""
    texts = [f"{told[0]}{more}", *(f"or {text}" for text in told[1:])]
    return lines + [line for text in texts for line in wrapped(text, style, 10, 12)]


def _against(bill: Bill, own: Bill | None) -> str:
    """Beside the engine's own cut: that it does not fit, where the split does; time and memory."""
    if own is None:
        return ""
    if sizes_of(own) == sizes_of(bill):
        return ", as the engine cuts by itself"
    cut = f"{sizes_text(sizes_of(own))}, as the engine cuts by itself"
    then = f"{duration(own.step.seconds)}, {gib(own.memory.peak_bytes)}"
    less = own.step.seconds - bill.step.seconds
    time = f"{duration(abs(less))} ({percent(abs(less) / own.step.seconds)}) {'more' if less < 0 else 'less'} a step"
    time = time if less else "the same step"
    spared = own.memory.peak_bytes - bill.memory.peak_bytes
    memory = f"{gib(abs(spared))} {'more' if spared < 0 else 'less'} at the peak" if spared else "the same peak"
    if bill.memory.verdict == "fits" and own.memory.verdict != "fits":
        how = "is tight" if own.memory.verdict == "tight" else "does not fit"
        return f": it fits, with {time} and {memory}; {cut}, {how} ({then})"
    return f": {time} and {memory} than with {cut} ({then})"


def split_record(split: Split) -> Record:
    """The same for JSON."""
    bill, own = split.bill, split.own
    told = settings(split.sizes, bill.layout.vpp, bill.engine.name)
    made: Record = {"sizes": list(split.sizes), "settings": list(told)}
    if own is None:
        return made
    return made | {
        "own_sizes": list(sizes_of(own)),
        "own_seconds": plain(own.step.seconds),
        "own_peak_bytes": plain(own.memory.peak_bytes),
        "own_verdict": own.memory.verdict,
        "saved_seconds": plain(own.step.seconds - bill.step.seconds),
        "saved_share": plain(1 - bill.step.seconds / own.step.seconds),
        "saved_bytes": plain(own.memory.peak_bytes - bill.memory.peak_bytes),
    }

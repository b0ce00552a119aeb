"""What a check found, before it is printed in any way."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...bill import Bill, Violation
from ...errors import Fault
from ...formats.setting import Finding, Found
from ...undivided import parameters
from ..text import counted, short

AXES = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp_replicate", "dp_shard", "zero")
# Findings that say a rule of the layout at its place in the file: the rule is not said once more.
SAME = {
    "MEG003": ("LAY009", "LAY011"), "MEG004": ("LAY001",), "MEG008": ("BAT001", "BAT003"),
    "MEG009": ("LAY013", "LAY023"), "MEG011": ("LAY008",), "MEG012": ("LAY004",), "MEG014": ("LAY009",),
    "MEG015": ("LAY009",), "MEG017": ("LAY003", "LAY004"), "MEG020": ("LAY002",), "MEG024": ("LAY018",),
    "DSP006": ("LAY031",),
}  # fmt: skip


@dataclass(frozen=True)
class File:
    """One file: its path as it was given, its name in texts, its own text, and what it says."""

    path: str
    title: str
    text: str
    found: Found


@dataclass(frozen=True)
class Cost:
    """What a finding costs: the bill as the file is, less the bill with its edits."""

    peak_bytes: float
    seconds: float

    def share(self, bill: Bill) -> float:
        """Of the peak or of the step, the larger."""
        return max(self.peak_bytes / bill.memory.peak_bytes, self.seconds / bill.step.seconds)


@dataclass(frozen=True)
class Placed:
    """A finding in its file, and what it costs where that can be counted."""

    file: File
    finding: Finding
    cost: Cost | None = None


@dataclass(frozen=True)
class Near:
    """A better layout that is one or a few changes away, as settings of the framework where it has them."""

    change: str
    flags: str
    settings: tuple[str, ...]
    peak_bytes: float
    seconds: float


@dataclass(frozen=True)
class Fixed:
    """The corrected copy of a file: where it is, what changed, and which findings are left."""

    file: File
    output: str  # empty: nothing could be mended, so nothing was written
    diff: tuple[str, ...]
    mended: tuple[Finding, ...]
    left: tuple[Finding, ...]


@dataclass(frozen=True)
class Answer:
    """Everything that a check says."""

    files: tuple[File, ...]
    found: Found  # all of them together
    placed: tuple[Placed, ...]  # the dearest first
    bill: Bill | None
    needs: tuple[Fault, ...]
    near: tuple[Near, ...] = ()
    fixed: tuple[Fixed, ...] = ()
    after: Bill | None = None  # with all mends

    @property
    def serious(self) -> int:
        """Errors."""
        return sum(one.finding.serious for one in self.placed)

    @property
    def broken(self) -> tuple[Violation, ...]:
        """Rules that the layout breaks and no finding says."""
        said = {code for one in self.placed for code in SAME.get(one.finding.code, ())}
        return tuple(one for one in self.bill.violations if one.code not in said) if self.bill else ()

    @property
    def title(self) -> str:
        """The files by name."""
        return " and ".join(one.title for one in self.files)


def words_of(found: Found) -> str:
    """The run of the files in one sentence; what they leave open is left out."""
    model = (
        f"a model of {short(parameters(found.model).total)} parameters"
        if found.model
        else "a model that it does not name"
    )
    degrees = [
        f"{name} {value}" for name in AXES if (value := getattr(found.layout, name)) and (value > 1 or name == "zero")
    ]
    job, split = found.job, found.layout.split or ()
    degrees += [f"{','.join(map(str, split))} layers a {'chunk' if found.layout.vpp > 1 else 'stage'}"] if split else []
    said = [
        f"micro-batch {found.layout.micro_batch}" if found.layout.micro_batch else "",
        f"batch {job.global_batch:,}" if job.global_batch else "",
        f"sequences of {job.sequence_length:,}" if job.sequence_length else "",
        job.precision or "",
        f"on {counted(found.ranks, 'rank')}" if found.ranks else "",
    ]
    return f"runs {model} with {', '.join([*degrees, *filter(None, said)])}"


def counts(found: Sequence[Finding]) -> str:
    """How many errors and warnings: `2 errors, 1 warning`."""
    serious = sum(one.serious for one in found)
    return f"{counted(serious, 'error')}, {counted(len(found) - serious, 'warning')}"

"""The working file of a run: a line that says what is measured, then a line for each measurement that is done.

It stands beside the profile, hidden, and goes when the profile is written. A run of the same question goes on from it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import Fault, InputError, quoted
from .tasks import Measured, Task

FORMAT = "outlay.calibration.1"
FIGURES = ("seconds", "low", "high", "runs", "core")
LARGEST = 2**24  # bytes


def working_path(output: str) -> Path:
    """The working file of a profile."""
    where = Path(output)
    return where.with_name(f".{where.name[:200]}.measured")


@dataclass(frozen=True)
class Working:
    """A working file: where it is, and what the run measures and on what."""

    path: Path
    subject: Mapping[str, Any]  # of plain values

    def done(self, tasks: Sequence[Task]) -> dict[str, Measured]:
        """The tasks that are measured already, by key. Raises InputError (CAL004) for what this run did not write."""
        by_key = {task.key: task for task in tasks}
        lines = self._lines()
        if not lines:
            return {}
        subject = lines[0].get("subject")
        if lines[0].get("format") != FORMAT:
            raise InputError(self._foreign("its first line is not that of a working file"))
        if subject != self.subject:
            raise InputError(self._another(subject if isinstance(subject, dict) else {}))
        found = {}
        for line in lines[1:]:
            task = by_key.get(str(line.get("key")))
            values = [line.get(name) for name in FIGURES]
            if not all(
                isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in values
            ):
                raise InputError(self._foreign("a line without its times"))
            if task:
                found[task.key] = Measured(task, *values)  # type: ignore[arg-type]
        return found

    def begin(self, done: Mapping[str, Measured]) -> None:
        """Write the file anew, with what is done."""
        part = self.path.with_name(f"{self.path.name}.part")
        lines = [{"format": FORMAT, "subject": self.subject}, *map(_line, done.values())]
        try:
            part.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            part.replace(self.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(unwritable(self.path, error)) from None

    def add(self, one: Measured) -> None:
        """Keep one more measurement."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_line(one)) + "\n")

    def count(self) -> int:
        """Measurements that are in the file now."""
        try:
            return max(0, self.path.read_bytes().count(b"\n") - 1)
        except OSError:
            return 0

    def _lines(self) -> list[dict[str, Any]]:
        """Its lines. A last one without an end was cut off as it was written, and is measured again."""
        try:
            with self.path.open("rb") as file:
                text = file.read(LARGEST).decode("utf-8")
            lines = [json.loads(line) for line in text.split("\n")[:-1]]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(self._foreign(error.strerror or "it cannot be read")) from None
        except (ValueError, RecursionError):
            raise InputError(self._foreign("no lines of JSON")) from None
        if (not lines and text) or not all(isinstance(line, dict) for line in lines):
            raise InputError(self._foreign("no lines of JSON"))
        return lines

    def _foreign(self, got: str) -> Fault:
        rule = "a working file is what an interrupted `outlay calibrate` left"
        fix = "--force, which removes it and measures everything anew, or --output with another name"
        return Fault("CAL004", f"{quoted(str(self.path))} is no working file", rule, got, fix)

    def _another(self, other: Mapping[str, Any]) -> Fault:
        apart = [name for name in {**other, **self.subject} if other.get(name) != self.subject.get(name)]
        said = ", ".join(f"{name} {_short(other.get(name))}, now {_short(self.subject.get(name))}" for name in apart)
        rule = "an interrupted run goes on with the same question on the same machine"
        fix = "the flags of that run, or --force to measure everything anew, or --output with another name"
        return Fault("CAL004", f"{quoted(str(self.path))} is of another run", rule, said, fix)


def _line(one: Measured) -> dict[str, Any]:
    return {"key": one.task.key, **{name: value for name, value in asdict(one).items() if name in FIGURES}}


def _short(value: object) -> str:
    return quoted(value)[:60]


def unwritable(path: Path, error: OSError) -> Fault:
    """OUT002: a file that cannot be written."""
    rule, fix = "a file in a folder that exists and can be written", "--output in another folder"
    return Fault("OUT002", f"{quoted(str(path))} cannot be written", rule, error.strerror or str(error), fix)

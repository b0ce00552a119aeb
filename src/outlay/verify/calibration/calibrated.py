"""A calibration from its question to the texts of its files; loads torch when it is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ...cluster.accelerator import Cluster
from ...engines.profile import HARDWARE, Constant, Profile
from ...engines.profile_file import profile_text
from ...engines.tables import kernel_set
from ...errors import Fault, InputError
from ...layout.case import Case
from .constants import constants_of
from .machine_file import Names, Rank, lacking, machine_text
from .parts import ENGINE, KERNELS
from .peaks import best, specified
from .shapes import common_tasks, iterated, model_tasks, standard_tasks
from .tasks import KINDS, Measured, Task


@dataclass(frozen=True)
class Asked:
    """What is to be measured."""

    name: str  # of the profile
    precision: str
    only: tuple[str, ...] = KINDS
    case: Case | None = None  # of the model whose operations are measured
    cluster: Cluster | None = None  # whose accelerator the shares are of; None: this machine as it is


@dataclass(frozen=True)
class Around:
    """What it is measured on."""

    where: str  # device, versions and ranks, in a line
    gpu: bool
    ranks: int
    local: int  # ranks of one machine
    rank: Rank


@dataclass(frozen=True)
class Calibrated:
    """What was found: the profile, and the file of the machine where the catalogue does not have it."""

    profile: Profile
    machine: str  # the text of its file; empty where the accelerator is known by name
    measured: tuple[Measured, ...]
    rests: Mapping[str, tuple[int, float]]  # of each constant: measurements, and how far single times spread
    said: tuple[str, ...]  # of what is not in it, and of single collectives
    where: str
    date: str

    @property
    def text(self) -> str:
        """The file of the profile."""
        return profile_text(self.profile, ("", f"Measured on {self.date}: {self.where}.", *self.said))


def tasks_of(asked: Asked, around: Around) -> tuple[list[Task], tuple[str, ...]]:
    """What to measure, in order, and what of a model is not."""
    found, said = standard_tasks(asked.precision, around.gpu), tuple[str, ...]()
    if asked.case is not None:
        found, said = model_tasks(asked.case)
    tasks = [*found, *common_tasks(asked.precision, around.gpu, around.ranks, around.local)]
    known = {task.key: task for task in reversed(tasks)}  # of two with one name the first, which a model has
    return [*iterated(list(dict.fromkeys(known[task.key] for task in tasks)), asked.only)], said


def subject_of(asked: Asked, around: Around, tasks: Sequence[Task]) -> Mapping[str, Any]:
    """What a run has to have in common with an interrupted one to go on from it."""
    keys = sha256("\n".join(task.key for task in tasks).encode()).hexdigest()[:16]
    return {
        "on": around.where,
        "model": asked.case.model.name if asked.case else "the standard set",
        "precision": asked.precision,
        "only": ",".join(asked.only),
        "measurements": f"{len(tasks)}, {keys}",
    }


def calibrated(
    asked: Asked, around: Around, measured: Sequence[Measured], names: Names, date: str, said: Sequence[str] = ()
) -> Calibrated:
    """The files of a calibration. Raises InputError (CAL003) where the times fix too little."""
    own = asked.cluster is None
    peaks = specified(asked.cluster, kernel_set(KERNELS).attention_fill) if asked.cluster else best(measured)
    of = f"{around.where}, {'the operations of ' + asked.case.model.name if asked.case else 'the standard set'}"
    found = constants_of(measured, asked.precision, peaks, of, date, own)
    values = {each.name: each.value for each in found.constants}
    if not values or (own and lacking(values, around.ranks)):
        raise InputError(_too_little([*lacking(values, around.ranks)] if own else [], found.said))
    card = asked.cluster.accelerator.name if asked.cluster else names.machine
    kernels = tuple(each for each in found.constants if each.name not in HARDWARE)
    profile = Profile(asked.name, card, ordered(found.constants), ENGINE if kernels else "", kernels)
    machine = ""
    if own:
        sizes = (around.ranks, around.local)
        machine = machine_text(names, around.rank, found.peaks, values, *sizes, around.where, date)
    return Calibrated(profile, machine, tuple(measured), found.rests, (*said, *found.said), of, date)


def ordered(constants: Sequence[Constant]) -> tuple[Constant, ...]:
    """Those of the accelerator, in the order of a profile's table."""
    of_hardware = (each for each in constants if each.name in HARDWARE)
    return tuple(sorted(of_hardware, key=lambda each: [*HARDWARE].index(each.name)))


def _too_little(names: Sequence[str], said: Sequence[str]) -> Fault:
    what = f"the times do not fix {', '.join(names)}" if names else "the times fix no constant"
    rule = "a profile holds what was measured, and a machine's file needs all of a roofline"
    got = said[0] if said else "nothing"
    return Fault("CAL003", what, rule, got, "run it again on a quiet machine, or with other kinds in --only")

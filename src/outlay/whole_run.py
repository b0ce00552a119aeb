"""What a whole run costs: days, accelerator-hours, money and energy, each with its band; and what failures add."""

from dataclasses import dataclass
from math import ceil

from .bill import Bill, Loaded
from .cluster.accelerator import Cluster
from .errors import Fault, InputError
from .memory.saved import Saved, saved_of
from .reading import parts
from .step.energy import DRAWN, run_energy
from .step.goodput import cluster_mtbf, daly_interval, spent_seconds, young_interval

Band = tuple[float, float]
DAY, HOUR = 86_400.0, 3_600.0  # seconds
KWH = 3.6e6  # joules
LEAST = 1e-6  # share of the time that must stay for a run to end


@dataclass(frozen=True)
class Run:
    """A run of so many tokens; bands are those of the step. None where a price or a power is not known."""

    tokens: float
    steps: int
    seconds: float
    band_seconds: Band
    accelerator_hours: float
    band_accelerator_hours: Band
    dollars: float | None
    band_dollars: Band | None
    energy_kwh: float | None
    band_energy_kwh: Band | None


@dataclass(frozen=True)
class Goodput:
    """What failures leave of the time: shares of all of it, and the run with them where its tokens are said."""

    mtbf_seconds: float  # of the whole cluster
    write_seconds: float  # of one checkpoint
    restart_seconds: float  # with reading the checkpoint
    young_interval_seconds: float
    interval_seconds: float  # between two checkpoints, by Daly: what the shares rest on
    interval_steps: float
    share: float
    writing_share: float
    lost_share: float
    restarting_share: float
    failures: float | None  # in the whole run
    run: Run | None


def run_of(bill: Bill) -> Run | None:
    """The whole run of a bill without failures; None where its tokens are not said."""
    job, step = bill.job, bill.step
    if not job.tokens:
        return None
    ramp = bill.rampup
    steps = ramp.run_steps if ramp else ceil(job.tokens / (job.global_batch * job.sequence_length))
    seconds = ramp.run_seconds if ramp else steps * step.seconds
    low, high = step.band_seconds
    return _run(bill, steps, (low / step.seconds * seconds, seconds, high / step.seconds * seconds))


def _run(bill: Bill, steps: int, times: tuple[float, float, float]) -> Run:
    """The costs of three durations: the low end, the value, the high end."""
    cluster = bill.cluster
    power, dollars = cluster.accelerator.power_watts, cluster.dollars()
    hours = [seconds * cluster.ranks / HOUR for seconds in times]
    paid = None if dollars is None else [dollars * seconds / HOUR for seconds in times]
    joules = [float(run_energy(seconds, cluster.ranks, power, DRAWN, cluster.pue or 1.0)) for seconds in times]
    used = [energy / KWH for energy in joules] if power else None
    return Run(
        tokens=bill.job.tokens,
        steps=steps,
        seconds=times[1],
        band_seconds=_ends(times),
        accelerator_hours=hours[1],
        band_accelerator_hours=_ends(hours),
        dollars=paid[1] if paid else None,
        band_dollars=_ends(paid) if paid else None,
        energy_kwh=used[1] if used else None,
        band_energy_kwh=_ends(used) if used else None,
    )


def _ends(three: tuple[float, ...] | list[float]) -> Band:
    return three[0], three[2]


def stops(saved: Saved, cluster: Cluster) -> tuple[float, float, float] | None:
    """Time to write a checkpoint, to restart with reading it, and between failures; None where one is not said."""
    if cluster.mtbf_seconds is None or saved.write_seconds is None or saved.read_seconds is None:
        return None
    restart = (cluster.restart_seconds or 0.0) + saved.read_seconds
    return saved.write_seconds, restart, float(cluster_mtbf(cluster.mtbf_seconds, cluster.ranks))


def failing(loaded: Loaded) -> tuple[float, float, float]:
    """The same of a case, so that its goodput can be explained. Raises InputError (EXP003) where one is not said."""
    cluster = loaded.case.cluster
    found = stops(saved_of(loaded.every, loaded.case), cluster)
    if found is None:
        rule = "goodput rests on the time between failures, and on the time that a checkpoint takes"
        got = "--mtbf is missing" if cluster.mtbf_seconds is None else "--storage is missing"
        raise InputError(Fault("EXP003", "there is no goodput", rule, got, "--mtbf 50000h --storage 200GB/s"))
    return found


def goodput_of(bill: Bill) -> Goodput | None:
    """What failures leave; None where they or the storage of checkpoints are not said, or a rule is broken."""
    found = None if bill.violations else stops(bill.saved, bill.cluster)
    if found is None:
        return None
    write, restart, mtbf = found
    interval = float(daly_interval(write, mtbf))
    spent = parts(spent_seconds, interval, write, restart, mtbf)
    whole = sum(spent.values())
    share = interval / whole if whole else 0.0
    run = run_of(bill)
    low, high = run.band_seconds if run else (0.0, 0.0)
    slower = _run(bill, run.steps, (low / share, run.seconds / share, high / share)) if run and share >= LEAST else None
    return Goodput(
        mtbf_seconds=mtbf,
        write_seconds=write,
        restart_seconds=restart,
        young_interval_seconds=float(young_interval(write, mtbf)),
        interval_seconds=interval,
        interval_steps=interval / bill.step.seconds,
        share=share,
        writing_share=spent["writing"] / whole if whole else 0.0,
        lost_share=spent["lost"] / whole if whole else 0.0,
        restarting_share=spent["restarting"] / whole if whole else 0.0,
        failures=slower.seconds / mtbf if slower else None,
        run=slower,
    )

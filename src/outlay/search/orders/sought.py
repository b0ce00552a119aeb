"""The best order for the stages of a layout, within the memory that its accelerators have."""

from dataclasses import dataclass

from ...bill import Loaded
from ...layout.stages import rank_chunks
from ...memory.activations import activation_bytes, one_pass_bytes
from ...memory.peak import allocated_bytes
from ...over_time import over_time
from ...schedule.passes import Order
from ...schedule.synthesis.best import Said, best, problem_of
from ...schedule.synthesis.problem import Problem, least
from ...schedule.timeline import simulate
from ...schedule.times import TICK
from ...simulated import Simulated, chunk_costs, seconds_around, times_of, with_passes
from ..fitting import allocatable, limits
from .standing import Way


@dataclass(frozen=True)
class Sought:
    """An order that was found, its run, and how good it is."""

    order: Order
    run: Simulated
    peak_bytes: float  # of the rank that holds most, at its largest moment
    held: float  # micro-batches that a rank may hold at once
    bound: float  # s of a step that no order of these chunks which holds no more goes below
    proved: bool  # it takes no longer than that
    named: tuple[tuple[str, float], ...]  # schedules that hold no more, and the s of their passes
    stopped: bool


def room(loaded: Loaded, waiting: bool = False) -> float:
    """Micro-batches that every rank can hold beside all else, each chunk as large as the rank's largest.

    All else is what stands at the peak of the closed form; `waiting` logits are held with each pass through the head.
    As many as there are, at the most; below 1, none fits.
    """
    case = loaded.case
    tapes = [
        float(one_pass_bytes(chunk, case) + (chunk.head * chunk.ends[1].costs.kept if waiting else 0))
        for chunk in chunk_costs(case)
    ]
    pp, vpp, folded = int(case.layout.pp), int(case.layout.vpp), bool(case.layout.folded)
    found = int(case.micro_batches) * vpp
    for rank, stage in enumerate(loaded.every):
        largest = max(tapes[chunk] for chunk in rank_chunks(pp, vpp, rank, folded))
        others = float(allocated_bytes(stage, case) - activation_bytes(stage, case))
        found = min(found, int((allocatable(case) - others) // largest)) if largest else found
    return found / vpp


def problem_for(loaded: Loaded, way: Way, held: float) -> Problem:
    """What is sought on these chunks. Raises InputError: SCH052 too many passes, SCH053 less than a micro-batch."""
    case = loaded.case
    times = times_of(case).in_ticks(TICK)
    return problem_of(times, int(case.layout.pp), int(case.micro_batches), way.chunks, way.place, held)


def least_seconds(loaded: Loaded, problem: Problem) -> float:
    """A step that no order of these chunks goes below."""
    return least(problem) * problem.tick * TICK + seconds_around(loaded)


def peak_of(loaded: Loaded, ran: Simulated) -> float:
    """Peak memory of the rank that holds most, at the largest moment of its passes."""
    return max(rank.peak.bytes + rank.buffers for rank in over_time(loaded, ran).ranks)


def seek_in_room(loaded: Loaded, way: Way, seconds: float, said: Said | None = None) -> Sought:
    """The shortest order that is found in about so many seconds within the memory of the accelerators.

    First with room for activations alone. Where the order then lets logits wait and does not fit, with room for those.
    Raises InputError as `problem_for`.
    """
    most, careful = room(loaded), max(1.0, room(loaded, waiting=True))
    share = 1.0 if careful >= most else 0.5
    answer = seek(loaded, problem_for(loaded, way, most), share * seconds, said)
    if answer.stopped or careful >= most or answer.peak_bytes <= limits(loaded.case).fits:
        return answer
    return seek(loaded, problem_for(loaded, way, careful), share * seconds, said)


def seek(loaded: Loaded, problem: Problem, seconds: float, said: Said | None = None) -> Sought:
    """The shortest order that is found in about so many seconds, whether it fits or not."""
    found = best(problem, seconds, prove=True, said=said)
    line = simulate(found.order, times_of(loaded.case).in_ticks(TICK))
    ran = with_passes(loaded, line)
    peak = peak_of(loaded, ran)
    tick = problem.tick * TICK
    bound = ran.seconds - (found.makespan - found.bound) * tick
    named = tuple((name, taken * tick) for name, taken in found.named)
    return Sought(found.order, ran, peak, problem.cap / problem.chunks, bound, found.proved, named, found.stopped)

"""What failures cost a run: how often to write a checkpoint, and what share of the time is training.

Failures come at random (exponential times between them), and any of them stops the job. Between two failures the run
trains for an interval, writes a checkpoint while it waits, and goes on. After a failure it restarts from the last one.
Sources: Young 1974, CACM 17(9); Daly 2006, Future Generation Computer Systems 22(3), equations 20 and 37.
"""

from ..formula import divide, expm1, minimum, sqrt, total, where
from ..quantities import Count, Seconds, Share

FAILURES: Count = 419  # unexpected interruptions of a published run; Llama Team 2024, table 5
FAILING: Count = 16_384  # on so many H100; the same
OBSERVED: Seconds = 54 * 86_400  # in 54 days; the same
MOST: Count = 300  # time over time between failures, beyond which nothing is ever finished


def observed_mtbf(watched: Seconds, accelerators: Count, failures: Count) -> Seconds:
    """Mean time between failures of one accelerator, from a cluster that was watched: T x accelerators / failures."""
    return watched * accelerators / failures


def cluster_mtbf(mtbf: Seconds, accelerators: Count) -> Seconds:
    """Mean time between failures of a cluster, from that of one accelerator: any of them stops the job."""
    return mtbf / accelerators


def young_interval(write: Seconds, mtbf: Seconds) -> Seconds:
    """Training between two checkpoints that costs least: sqrt(2 C M), where C is far below M. Source: Young 1974."""
    return sqrt(2 * write * mtbf)


def daly_interval(write: Seconds, mtbf: Seconds) -> Seconds:
    """The same to a higher order: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C; M where C is 2 M or more.

    Source: Daly 2006, equation 37; the restart does not change it.
    """
    ratio: Share = write / (2 * mtbf)
    longer: Share = 1 + sqrt(ratio) / 3 + ratio / 9
    return where(ratio < 1, young_interval(write, mtbf) * longer - write, mtbf)


def failures_each(interval: Seconds, write: Seconds, mtbf: Seconds) -> Count:
    """Failures until one interval and its checkpoint are done without one: e^((t + C) / M) - 1."""
    return expm1(minimum((interval + write) / mtbf, MOST))


def restart_each(restart: Seconds, mtbf: Seconds) -> Seconds:
    """One restart, which may fail too and then begins again: M (e^(R / M) - 1)."""
    return mtbf * expm1(minimum(restart / mtbf, MOST))


def spent_seconds(interval: Seconds, write: Seconds, restart: Seconds, mtbf: Seconds) -> Seconds:
    """Time that an interval of training takes with its checkpoint, the work that failures lose, and restarts.

    Exact where failures are exponential: M e^(R / M) (e^((t + C) / M) - 1). Source: Daly 2006, equation 20.
    """
    failures: Count = failures_each(interval, write, mtbf)
    return total(
        training=interval,
        writing=write,
        lost=mtbf * failures - (interval + write),
        restarting=failures * restart_each(restart, mtbf),
    )


def goodput_share(write: Seconds, restart: Seconds, mtbf: Seconds) -> Share:
    """Share of the time that is training which stays, a checkpoint at every interval of Daly."""
    interval: Seconds = daly_interval(write, mtbf)
    return divide(interval, spent_seconds(interval, write, restart, mtbf))

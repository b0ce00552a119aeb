"""The bill with the profile of a CPU beside the real step of its ranks: by the clock, and on their cores.

python benchmarks/step_on_cpu.py MODEL MACHINE.toml PROFILE.toml [--seq 512] [--mbs 2] [--precision bf16]

Two ranks of gloo train MODEL with FSDP2 and AdamW, as `outlay verify --only step --device cpu` runs them; each step is
timed by the clock and by the time that the rank had a core. On a quiet machine both are the same but for what waits.
"""

import argparse
import os
import statistics
import time
from typing import Any

import outlay
from outlay.bill import case_of
from outlay.engines.profile_file import read_profile
from outlay.engines.profiled import profiled
from outlay.engines.tables import engine
from outlay.layout.case import Case
from outlay.verify.together import together

WARM, TIMED = 3, 9


def steps(case: Case) -> list[tuple[float, float]]:
    """Of each step of this rank: seconds, and those in which it had a core."""
    import torch
    import torch.distributed as dist

    from outlay.verify.steps.training import step_of

    step = step_of(case, torch.device("cpu"))
    for _ in range(WARM):
        step()
    found = []
    for _ in range(TIMED):
        dist.barrier()
        began, worked = time.perf_counter(), time.process_time()
        step()
        found.append((time.perf_counter() - began, time.process_time() - worked))
    return found


def main() -> None:
    """Count, run, print."""
    reads = argparse.ArgumentParser()
    for name in ("model", "machine", "profile"):
        reads.add_argument(name)
    reads.add_argument("--seq", type=int, default=512)
    reads.add_argument("--mbs", type=int, default=2)
    reads.add_argument("--precision", default="bf16")
    reads.add_argument("--ranks", type=int, default=2)
    given = reads.parse_args()
    cluster = outlay.load_cluster(f"{given.ranks}x{given.machine}")
    held, driver = profiled(read_profile(given.profile), cluster, engine("fsdp2-uncompiled"))
    precision: Any = given.precision
    job = outlay.Job(sequence_length=given.seq, global_batch=given.mbs * given.ranks, precision=precision)
    asked = (outlay.load_model(given.model), job, held, outlay.Layout(micro_batch=given.mbs), driver)
    bill, (case, _) = outlay.count(*asked), case_of(*asked)
    items = {item.name: f"{1e3 * item.value:.1f}" for item in bill.step.items}
    print(f"load {os.getloadavg()[0]:.1f}; bill {1e3 * bill.step.seconds:.1f} ms: {items}")
    for rank, found in enumerate(together(steps, (case,), given.ranks)):
        for words, times in zip(("by the clock", "on its core"), zip(*found, strict=True), strict=True):
            low, _, high = statistics.quantiles(times, n=4)
            middle = statistics.median(times)
            ratio = bill.step.seconds / middle
            print(
                f"rank {rank} {words}: {1e3 * middle:.1f} ms, quartiles {1e3 * low:.1f} to {1e3 * high:.1f}, ", end=""
            )
            print(f"bill / measured {ratio:.3f}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

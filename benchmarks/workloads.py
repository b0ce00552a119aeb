"""The workloads of the benchmark, each in a process of its own: `python workloads.py NAME` prints one JSON object."""

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

# Model, cluster, sequence length, batch, width.
SPACES: dict[str, tuple[str, str, int, int, str]] = {
    "gpt3-175b 1024 lean": ("gpt3-175b", "1024xa100-sxm-80", 2048, 1536, "lean"),
    "gpt3-175b 1024 middle": ("gpt3-175b", "1024xa100-sxm-80", 2048, 1536, "middle"),
    "gpt3-175b 1024 wide": ("gpt3-175b", "1024xa100-sxm-80", 2048, 1536, "wide"),
    "llama-3.1-70b 64 wide": ("llama-3.1-70b", "64xh100-sxm", 8192, 512, "wide"),
    "llama-3.1-70b 1024 wide": ("llama-3.1-70b", "1024xh100-sxm", 8192, 1024, "wide"),
    "deepseek-v3 2048 wide": ("deepseek-v3", "2048xh100-sxm", 4096, 15360, "wide"),
    "gpt3-175b 1024 full": ("gpt3-175b", "1024xa100-sxm-80", 2048, 1536, "full"),
    "deepseek-v3 256 full": ("deepseek-v3", "256xh100-sxm", 4096, 2048, "full"),
}
MEANS = {
    "reference loop": "a fixed NumPy loop, to tell a slow machine from slow code",
    "count()": "one bill in a warm process: Llama-3.1-70B on 64 H100",
    "gpt3-175b 1024 lean": "plan of GPT-3 175B on 1,024 A100, lean",
    "gpt3-175b 1024 middle": "the same, middle",
    "gpt3-175b 1024 wide": "the same, wide",
    "llama-3.1-70b 64 wide": "plan of Llama-3.1-70B on 64 H100, wide",
    "llama-3.1-70b 1024 wide": "the same on 1,024 H100",
    "deepseek-v3 2048 wide": "plan of DeepSeek-V3 on 2,048 H100, wide",
    "gpt3-175b 1024 full": "plan of GPT-3 175B on 1,024 A100, full",
    "deepseek-v3 256 full": "plan of DeepSeek-V3 on 256 H100, full",
    "list": "a list of random layouts",
    "schedules 64 x 512": "64 ranks, 512 micro-batches: an order made, checked and run, the slowest schedule",
    "outlay count": "`outlay count` from the shell",
    "outlay count --json": "`outlay count --json`",
    "outlay check": "`outlay check` of a script of 200 lines",
    "outlay plan": "`outlay plan` of Llama-3.1-70B on 64 H100, the first answer",
    "outlay plan --mixed": "`outlay plan --mixed recompute` of the same",
}
LIST_ROWS = 400_000
REPEATS = 5
CELLS, ROUNDS = 400_000, 40


def seconds_of(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The least seconds of some calls, after one to warm up."""
    call()
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def megabytes() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def reference_loop() -> dict[str, Any]:
    """Ten array operations a round, as a search makes them, on blocks of the same size: never to be changed."""
    import numpy as np

    a, b = np.linspace(1.0, 2.0, CELLS), np.linspace(3.0, 5.0, CELLS)

    def loop() -> float:
        total = 0.0
        for _ in range(ROUNDS):
            c = a * b + a
            d = np.maximum(c, b) / (a + 1.0)
            e = np.where(d > c, d, np.floor(c))
            total += float((e + d).min())
        return total

    seconds = seconds_of(loop)
    return {"seconds": seconds, "rate": 10 * CELLS * ROUNDS / seconds}


def one_bill() -> dict[str, Any]:
    """A call of `count()` on the demo's model, job, cluster and layout: the median over two seconds."""
    from outlay import Job, Layout, count, load_cluster, load_model

    model, machine = load_model("llama-3.1-70b"), load_cluster("64xh100-sxm")
    job, layout = Job(sequence_length=8192, global_batch=512), Layout(tp=8, pp=4)
    count(model, job, machine, layout)
    taken: list[float] = []
    while sum(taken) < 2.0 or len(taken) < 5:
        begin = time.perf_counter()
        count(model, job, machine, layout)
        taken.append(time.perf_counter() - begin)
    seconds = statistics.median(taken)
    return {"seconds": seconds, "rate": 1 / seconds}


def space(name: str) -> dict[str, Any]:
    """A whole plan of a space and the bill of its best layout: the least seconds of some calls, and the best rate of
    their searches, in layouts that are counted or passed over by proof."""
    from outlay import Job, load_cluster, load_model
    from outlay.search.plan import plan

    model_name, on, sequence, batch, width = SPACES[name]
    model, cluster, job = load_model(model_name), load_cluster(on), Job(sequence, batch)
    searches: list[Any] = []
    repeats = 2 if model_name == "deepseek-v3" else REPEATS

    def answer() -> None:
        found = plan(model, job, cluster, width=width)
        assert found.best[0].bill.step.seconds > 0
        searches.append(found.search)

    seconds = seconds_of(answer, repeats)
    best = min(searches, key=lambda search: search.seconds)
    rate = best.legal / best.seconds
    return {"seconds": seconds, "search_seconds": best.seconds, "rate": rate, "layouts": best.legal}


def random_list() -> dict[str, Any]:
    """Random layouts of a 70 B model on 64 cards: the row of each drawn from the legal ones, every option by itself."""
    import numpy as np

    from outlay import Job, load_cluster, load_model
    from outlay.layout.axes import joined
    from outlay.search.lists import count_list
    from outlay.search.plan import asked
    from outlay.search.rows import legal_rows, taken
    from outlay.search.space import declare

    model, cluster = load_model("llama-3.1-70b"), load_cluster("64xh100-sxm")
    case, _ = asked(model, Job(8192, 512), cluster, "megatron")
    rows = legal_rows(case, declare(model, case.job, cluster, case.engine)).layout
    draw = np.random.default_rng(1)
    layouts = taken(rows, draw.integers(0, np.size(rows.tp), LIST_ROWS))
    kinds = draw.choice(np.asarray(["none", "selective", "full"]), LIST_ROWS)
    held = np.ceil(model.layers / layouts.pp)
    again = np.where(kinds == "full", np.ceil(draw.random(LIST_ROWS) * held), 0.0)
    layouts = joined(
        layouts,
        recompute=kinds,
        recompute_layers=again,
        zero=draw.integers(0, 4, LIST_ROWS).astype(float),
        overlap_tp=draw.random(LIST_ROWS) < 0.5,
        overlap_dp=draw.random(LIST_ROWS) < 0.5,
        offload_optimizer=draw.random(LIST_ROWS),
    )
    seconds = seconds_of(lambda: count_list(case, layouts), 3)
    return {"seconds": seconds, "rate": LIST_ROWS / seconds, "layouts": LIST_ROWS}


def schedules() -> dict[str, Any]:
    """Every named schedule on 64 ranks with 512 micro-batches, from its name to its idle time: the slowest of them."""
    from outlay.schedule.orders import facts, names, order
    from outlay.schedule.timeline import simulate
    from outlay.schedule.times import Times

    def step(name: str) -> float:
        made = order(name, 64, 512, 1 if facts(name).chunks == "one" else 2)
        return simulate(made, Times(10, 11, 9)).bubble_share

    each = {name: seconds_of(lambda name=name: step(name), 3) for name in names()}
    slowest = max(each, key=each.__getitem__)
    return {"seconds": each[slowest], "slowest": slowest, "each": each}


def main(name: str) -> int:
    """Run one workload, and the reference loop right after it, so that both meet the same machine."""
    others = {"reference loop": reference_loop, "count()": one_bill, "list": random_list}
    others |= {"schedules 64 x 512": schedules}
    found = others[name]() if name in others else space(name)
    found["megabytes"] = megabytes()
    found["reference_seconds"] = reference_loop()["seconds"]
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

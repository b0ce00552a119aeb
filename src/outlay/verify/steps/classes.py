"""A step's time in the bill by the class of its kernels, as a profiler tells them apart; the parts add up to the step.

Copies stand beside `wire`: what FSDP copies in and out, and what its exchange takes from the memory that kernels use.
Communication is what shows, and waiting for other stages and ranks. Where nothing runs the host is behind, or at its
own work.
"""

from collections.abc import Iterable

from ...bill import Loaded
from ...engines.rates import rates
from ...engines.tables import kernels_of, precision
from ...items import Timed
from ...layer import inventory, passed_back
from ...layout.case import Case
from ...layout.sizes import sizes
from ...memory.activations import recomputed_share
from ...model.modules import checkpoints
from ...model.moves import Move
from ...model.operations import Attention, Linear, Row
from ...model.reads import only_added
from ...model.scan import Scan, Scores
from ...stage import StageCosts
from ...sums import sum_forward, sum_input_gradient, sum_weight_gradient
from .profiled import ATTENTION, COPIES, EXCHANGE, MATMUL, MEMORY, NOTHING, OPTIMIZER

KERNELS = (MATMUL, ATTENTION, MEMORY)
SHOWN = ("data", "tensor", "context", "expert", "sends", "idle", "stragglers")  # items of a bill: exchange and waiting


def class_of_row(row: Row) -> str:
    """The class of an operation's kernels. A recurrence runs as fused attention does."""
    if isinstance(row, Linear):
        return MATMUL
    return ATTENTION if isinstance(row, Attention | Scan | Scores) else MEMORY


def counted_step(loaded: Loaded) -> dict[str, float]:
    """Seconds of a step by class, on the slowest stage."""
    case = loaded.case
    timed = Timed(loaded.stages, loaded.whole, case)
    many = float(case.micro_batches)
    found = {name: many * value for name, value in one_pass(timed.slowest, case).items()}
    work = many * sum(timed.one_pass[name] for name in ("arithmetic", "recompute"))
    items = timed.step | {name: many * timed.one_pass[name] for name in ("tensor", "context", "expert", "offload")}
    return found | {
        OPTIMIZER: items["optimizer"],
        COPIES: items["wire"] + items["offload"],
        EXCHANGE: sum(items[name] for name in SHOWN),
        NOTHING: items["overhead"] + max(0.0, work - sum(found.values())),
    }


def one_pass(stage: StageCosts, case: Case) -> dict[str, float]:
    """Seconds of the kernels of one micro-batch on a stage: forward, backward, and what runs again."""
    model, job, layout, engine = case.model, case.job, case.layout, case.engine
    kernels = kernels_of(engine)
    speed = rates(case.cluster.accelerator, precision(job.precision), kernels, case.recipe)
    heres = [sizes(model, block, job, layout, engine, kernels) for block in (*model.blocks, *model.ends)]
    share = float(recomputed_share(stage, layout))
    found = dict.fromkeys(KERNELS, 0.0)
    held = [*stage.layers, *stage.ends]
    for place, (here, rows) in enumerate(zip(heres, inventory(model, job, kernels).values(), strict=True)):
        inner, layers = place < len(model.blocks), float(held[place].layers)
        work = [row for row in rows if not isinstance(row, Move)]
        for name in KERNELS:
            mine = of_class(work, name)
            back = passed_back(mine)
            parts = [sum_forward(mine, here, speed), sum_input_gradient(back, here, speed)]
            parts.append(sum_weight_gradient(back, here, speed))
            if inner and layout.selective:
                again = checkpoints(rows, layout.recompute_modules, kernels)
                parts.append(sum_forward(of_class((row for one in again for row in one.work), name), here, speed))
            elif inner:
                skipped = of_class(only_added(rows), name) if engine.drops_unread else ()
                parts.append(share * (sum_forward(mine, here, speed) - sum_forward(skipped, here, speed)))
            found[name] += layers * float(sum(parts))
    return found


def of_class(rows: Iterable[Row], name: str) -> tuple[Row, ...]:
    """The operations of one class."""
    return tuple(row for row in rows if class_of_row(row) == name)

"""What to measure: a standard set, or the operations of a model on a rank of a layout."""

from collections.abc import Iterator
from dataclasses import replace

from ...engines.tables import kernels_of
from ...layer import inventory, passed_back
from ...layout.case import Case
from ...layout.sizes import sizes
from ...model.model import Block
from ...model.operations import BLOCK, Attention, Linear, Pointwise, Row, Sizes
from .parts import KERNELS, PARTS, ROTATE, both_passes, part_of, part_tasks
from .tasks import BYTES, COLLECTIVES, FORWARD, GATHER, INPUT_GRADIENT, PASSES, REDUCE, SCATTER, Task

KIB, MIB = 2**10, 2**20
IN_A_ROW = 1_000  # tiny kernels
ADDED, COPIED = "add", "copy"
MATRICES = (  # tokens, ins, outs on a CPU; four times each on a GPU
    (1024, 512, 512), (1024, 512, 2048), (1024, 2048, 512), (1024, 1024, 1024), (2048, 1024, 4096), (2048, 2048, 2048),
)  # fmt: skip
LARGE = MATRICES[-3:]
CORES = {  # sequences, heads, heads of keys, width, tokens a sequence
    False: ((1, 8, 8, 64, 512), (1, 8, 8, 64, 1024), (1, 8, 2, 128, 1024), (1, 8, 8, 64, 2048)),
    True: ((2, 32, 8, 128, 2048), (1, 32, 8, 128, 4096), (1, 32, 32, 128, 4096), (1, 32, 8, 128, 8192)),
}
TRAFFIC = {False: (64, 256), True: (256, 1024)}  # MiB of a tensor, by whether it is a GPU's
BUFFERS = {False: (4, 64, 1024, 4096, 16384), True: (64, 1024, 16384, 262144, 1048576)}  # KiB
MOST_TRAFFIC = 6  # sizes of a model's memory-bound kernels: those that move most


def standard_tasks(precision: str, gpu: bool) -> list[Task]:
    """Multiplies, cores and traffic where no model says which."""
    found = [task for each in scaled(MATRICES, gpu) for task in multiplies(each, precision)]
    found += [task for each in CORES[gpu] for task in core_tasks(each, precision)]
    found += part_tasks(PARTS[gpu], precision)
    return [*found, *(traffic_task(what, each, precision) for each in sizes_of(gpu) for what in (COPIED, ADDED))]


def common_tasks(precision: str, gpu: bool, ranks: int, local: int) -> list[Task]:
    """What is measured whatever the model: the large multiplies of every precision and large copies, the best of which
    are a machine's peaks; the gap between kernels; the wires. `local`: ranks of one machine."""
    best = [task for kind in BYTES for each in scaled(LARGE, gpu) for task in multiplies(each, kind, 0)[:1]]
    best += [traffic_task(COPIED, each, precision, 0) for each in sizes_of(gpu)]
    return [*best, launch_task(), *collective_tasks(gpu, ranks, local)]


def scaled(shapes: tuple[tuple[int, ...], ...], gpu: bool) -> list[tuple[int, ...]]:
    """The shapes of a device: a GPU's are four times as large each way."""
    return [tuple((4 if gpu else 1) * size for size in shape) for shape in shapes]


def sizes_of(gpu: bool) -> list[int]:
    """Bytes of large tensors."""
    return [each * MIB for each in TRAFFIC[gpu]]


def multiplies(shape: tuple[int, ...], precision: str, weight: float = 1.0, trained: bool = True) -> list[Task]:
    """The forward pass of a matrix and both its gradients."""
    tokens, ins, outs = shape
    work = 2.0 * tokens * ins * outs
    passes = PASSES if trained else PASSES[:-1]
    return [Task("matmul", each, (tokens, ins, outs), precision, work, weight=weight) for each in passes]


def core_tasks(shape: tuple[int, ...], precision: str, weight: float = 1.0) -> list[Task]:
    """A causal core forward and backward: over the keys that a token sees, (s + 1) / 2 on average."""
    sequences, heads, _, width, tokens = shape
    work = 2.0 * sequences * tokens * (tokens + 1) / 2 * heads * 2 * width
    blocks = sequences * tokens * heads / BLOCK
    both = ((FORWARD, work), (INPUT_GRADIENT, Attention.back * work))
    return [Task("attention", what, shape, precision, flops, blocks, weight) for what, flops in both]


def traffic_task(what: str, size: int, precision: str, weight: float = 1.0) -> Task:
    """A copy, which reads and writes a tensor, or a sum of two into a third. `size`: bytes of one tensor."""
    values = max(1, size // BYTES[precision])
    moved = (2 if what == COPIED else 3) * values * BYTES[precision]
    return Task("memory", what, (values,), precision, float(moved), weight=weight)


def launch_task() -> Task:
    """Tiny kernels back to back."""
    return Task("launch", "tiny", (IN_A_ROW,), "fp32")


def collective_tasks(gpu: bool, ranks: int, local: int) -> list[Task]:
    """Every collective over sizes, inside a machine over 2, 4, .. and all its ranks, and between machines."""
    inside = [2**power for power in range(1, local.bit_length()) if 2**power <= local]
    inside += [local] if local > 1 and local not in inside else []
    groups = [(many, 1, False) for many in inside if local % many == 0]
    groups += [(ranks // local, local, True)] if ranks > local else []
    return [
        Task("collectives", what, (size * KIB, many, stride), "fp32", far=far)
        for many, stride, far in groups
        for what in COLLECTIVES
        for size in BUFFERS[gpu]
    ]


# ---- of a model


def model_tasks(case: Case) -> tuple[list[Task], tuple[str, ...]]:
    """The multiplies, cores and memory-bound kernels of a model on a rank of a layout, and what is left out.

    A task's weight is how many layers have it.
    """
    kernels = kernels_of(case.engine)
    rows = inventory(case.model, case.job, kernels)
    found, said = list[Task](), dict[str, None]()
    for index, block in enumerate((*case.model.blocks, *case.model.ends)):
        times = case.model.pattern.count(index) if index < len(case.model.blocks) else 1
        here = sizes(case.model, block, case.job, case.layout, case.engine, kernels)
        for row in passed_back(rows[block.name]):
            made, left = _of_row(row, block, here, case, times)
            found += made
            said.update(dict.fromkeys(left))
    traffic = sorted((task for task in found if task.kind == "memory"), key=lambda task: -task.work * task.weight)
    some = [task for task in distinct(found) if task.kind != "memory"]
    return [*some, *distinct(traffic)[:MOST_TRAFFIC]], tuple(said)


def _of_row(row: Row, block: Block, here: Sizes, case: Case, times: int) -> tuple[list[Task], list[str]]:
    """The tasks of one operation, or why it has none."""
    precision = case.job.precision
    if isinstance(row, Linear):
        shape = tuple(round(float(here[name])) for name in (row.tokens, row.ins, row.outs))
        if row.copies != "one":
            return [], [f"{row.name}: multiplies of experts in groups are not measured"]
        return (multiplies(shape, precision, times, row.trained), []) if all(shape) else ([], [])
    if isinstance(row, Attention):
        return _of_core(row, block, here, case, precision, times)
    if isinstance(row, Pointwise):
        size = float(here[row.tokens]) * float(here[row.width]) * BYTES[precision]
        often = (row.kernel.moves + row.kernel.moves_back) / 3 * times
        added = [traffic_task(ADDED, round(size), precision, often)] if size >= 1 and often else []
        return [*added, *_of_part(row, block, here, case, times)], []
    return [], []


def _of_part(row: Pointwise, block: Block, here: Sizes, case: Case, times: int) -> list[Task]:
    """A memory-bound part as PyTorch runs it, where that is what the model's engine runs."""
    name = part_of(row) if case.engine.kernels == KERNELS else ""
    if not name or (name == ROTATE and block.attention is None):
        return []
    tokens, width = (round(float(here[of])) for of in (row.tokens, row.width))
    head = block.attention.head_dim if block.attention and name == ROTATE else 0
    rotated = round(float(here["q"] + here["k"])) if head else 0
    return both_passes(name, (tokens, width, rotated, head), case.job.precision, times) if tokens * width else []


def _of_core(
    row: Attention, block: Block, here: Sizes, case: Case, precision: str, times: int
) -> tuple[list[Task], list[str]]:  # fmt: skip
    at = block.attention
    if at is None or at.latent_rank or at.window or at.chunk or at.selected or not row.fused or case.layout.cp > 1:
        return [], [f"{row.name}: cores with a window, latent, unfused or over context ranks are not measured"]
    width = at.head_dim
    heads, keys = (round(float(here[name]) / width) for name in ("q", "k"))
    return core_tasks((case.layout.micro_batch, heads, keys, width, case.job.sequence_length), precision, times), []


def distinct(tasks: list[Task]) -> list[Task]:
    """Each task once, with the weights of all."""
    weights = dict[str, float]()
    for task in tasks:
        weights[task.key] = weights.get(task.key, 0.0) + task.weight
    return [replace(task, weight=weights[task.key]) for task in {task.key: task for task in tasks}.values()]


def wire_share(what: str, ranks: int) -> float:
    """Bytes that pass the slowest wire over those of the buffer. Source: rings, as nccl-tests counts bus bandwidth."""
    around = (ranks - 1) / ranks
    return {REDUCE: 2 * around, GATHER: around, SCATTER: around}.get(what, around if what == "all_to_all" else 1.0)


def steps_of(what: str, ranks: int) -> int:
    """Steps of a ring, or one: those that the time of a collective is counted with."""
    return {GATHER: ranks - 1, SCATTER: ranks - 1, REDUCE: 2 * (ranks - 1)}.get(what, 1)


def iterated(tasks: list[Task], only: tuple[str, ...]) -> Iterator[Task]:
    """The tasks of some kinds, in the order of the kinds."""
    for kind in only:
        yield from (task for task in tasks if task.kind == kind)

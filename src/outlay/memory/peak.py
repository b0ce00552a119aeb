"""The peak of one rank, and of the worst."""

from ..engines.engine import Engine
from ..formula import each, maximum, total, where
from ..held import held_dense
from ..layout.case import Case
from ..quantities import Bytes
from ..stage import StageCosts
from .activations import activation_bytes, one_pass_bytes
from .blocks import (
    ahead_bytes,
    ends_moment,
    growing,
    scatter_bytes,
    scattered_sum_bytes,
    scattering,
    staying_bytes,
    table_gradient_bytes,
)
from .messages import message_buffer_bytes, receiving
from .moments import moment_bytes
from .shared_table import shared_gradient_bytes, sharing
from .states import (
    beside_bytes,
    bucket_bytes,
    dummy_bytes,
    fresh_bytes,
    gathered_bytes,
    gradient_bytes,
    optimizer_bytes,
    replica_bytes,
    unit_bytes,
    weight_bytes,
)

Stages = tuple[StageCosts, ...]  # those among which the worst one is


def held_state(stage: StageCosts, case: Case) -> Bytes:
    """What a rank of a stage holds whatever the batch: its state, and the weights that stand gathered."""
    return total(
        weights=weight_bytes(stage, case),
        gradients=gradient_bytes(stage, case),
        optimizer=optimizer_bytes(stage, case),
        gathered=gathered_bytes(stage, case),
        kernels=dummy_bytes(stage, case),
        copies=replica_bytes(stage, case),
        buckets=bucket_bytes(stage, case),
        messages=total(each(message_buffer_bytes, receiving(stage, case), case)),
        beside=beside_bytes(case),
    )


def held_activations(stage: StageCosts, case: Case) -> Bytes:
    """What a rank of a stage holds for the passes in flight, and where the backward pass begins."""
    return total(activations=activation_bytes(stage, case), moment=moment_bytes(stage, case))


def shared_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands beside the rest of the state where the gradients of a shared table are added, and no block's gradient
    is scattered as it is made: all that came with the backward pass, or a sum that stood before. Where the sums of
    layers wait whole, a last pass has scattered them by then; of three passes the second has not."""
    one: Bytes = shared_gradient_bytes(stage, case)
    whole: Bytes = where(case.fresh > 0, fresh_bytes(stage, case) + 2 * one, 3 * one)
    last: Bytes = scatter_bytes(stage, case) + scattered_sum_bytes(stage, case)
    before: Bytes = where(case.micro_batches > 2, maximum(last, 0), last)
    return where(case.scattered > 0, 0, whole + case.summed * before)


def embedding_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands beside the rest of the state where the embedding's gradient is made and then added to one that stood:
    the gradient, that of its output, weights that are gathered then, and the tapes of all other passes in flight."""
    width: Bytes = where(case.made_whole > 0, case.compute_bytes, case.recipe.gradients)
    made: Bytes = width * held_dense(stage.ends[0]) + table_gradient_bytes(stage, case)
    others: Bytes = activation_bytes(stage, case) - one_pass_bytes(stage, case)
    table: Bytes = ahead_bytes(stage, case)
    here: Bytes = where(made > 0, made + others + table + staying_bytes(stage, case) + stage.largest_entry, 0)
    return where(case.scattered + case.fresh > 0, 0, here)


def table_moment(stage: StageCosts, case: Case) -> Bytes:
    """The larger of both, where gradients are torch's own."""
    shared: Bytes = total(each(shared_moment, sharing(stage, case), case))
    own: Bytes = total(each(embedding_moment, growing(stage, case), case))
    return maximum(shared=shared, own=own)


def later_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients that were not there where the backward pass begins, at its end and at the update: the larger."""
    ends: Bytes = total(each(ends_moment, scattering(stage, case), case))
    late: Bytes = maximum(end=unit_bytes(stage, case), ends=ends, table=table_moment(stage, case))
    return maximum(late=late, update=fresh_bytes(stage, case))


def allocated_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What a rank of a stage allocates at its peak: where the backward pass begins, where it ends, or at the update."""
    fresh: Bytes = fresh_bytes(stage, case)
    beyond: Bytes = maximum(begin=held_activations(stage, case), later=later_bytes(stage, case)) - fresh
    return total(state=held_state(stage, case), activations=beyond)


def buffer_bytes(allocated: Bytes, engine: Engine) -> Bytes:
    """Workspaces and communication buffers, and what the allocator reserves beyond what is allocated. Modelled."""
    return total(workspace=engine.workspace_bytes, slack=engine.slack_share * allocated)


def peak_bytes(allocated: Bytes, engine: Engine) -> Bytes:
    """Peak memory of a rank that allocates so much."""
    return total(allocated=allocated, buffers=buffer_bytes(allocated, engine))


def peak_of(stage: StageCosts, case: Case) -> Bytes:
    """Peak memory of one rank of a stage."""
    return peak_bytes(allocated_bytes(stage, case), case.engine)


def peak(stages: Stages, case: Case) -> Bytes:
    """Peak memory of the worst rank: buffers grow with what is allocated, so it is the one that allocates most."""
    allocated: Bytes = maximum(each(allocated_bytes, stages, case))
    return total(allocated=allocated, buffers=buffer_bytes(allocated, case.engine))

"""Between layers of unequal tensor-parallel degree the activations are laid out anew: bytes, time, and what stands.

From t to t' ranks, f times as many or as few: under sp the sequence is gathered over the t ranks; where t' is larger,
the sequences of f groups are gathered, where it is smaller each group keeps its own; under sp each rank then keeps its
part of the sequence. The backward pass goes the other way with the gradient. Source: Hetu-Galvatron,
core/comm_groups.py, merge_redistributed_group; core/redistribute.py, fused_split_allgather with sequence parallelism.
"""

from ...cluster.network import gather_time, group, sent_bytes
from ...layout.case import Case
from ...layout.sizes import tokens_on_rank


def stream_bytes(case: Case) -> float:
    """The hidden vectors of a micro-batch on a rank where nothing is cut along the sequence."""
    tokens = tokens_on_rank(case.job, case.layout)
    return float(case.job.activation_bytes * tokens * case.model.hidden * case.model.streams)


def relayout_seconds(one: Case, other: Case) -> float:
    """Both directions of one boundary, forward and backward pass of a micro-batch: over the ranks of each degree one
    gather of its own micro-batch under sp, and one gather of the larger micro-batch between the groups."""
    few, many = sorted((one, other), key=lambda case: case.layout.tp)
    if few.layout.tp == many.layout.tp:
        return 0.0
    between = group(many.layout.tp / few.layout.tp, few.layout.tp, few.cluster)
    within = [each for each in (few, many) if each.layout.sp]
    ends = sum(float(gather_time(stream_bytes(each), group(each.layout.tp, 1, each.cluster))) for each in within)
    return ends + float(gather_time(stream_bytes(many), between))


def relayout_bytes(one: Case, other: Case) -> float:
    """Bytes that one rank sends for that."""
    few, many = sorted((one, other), key=lambda case: case.layout.tp)
    if few.layout.tp == many.layout.tp:
        return 0.0
    within = [each for each in (few, many) if each.layout.sp]
    ends = sum(float(sent_bytes(stream_bytes(each), each.layout.tp)) for each in within)
    return ends + float(sent_bytes(stream_bytes(many), many.layout.tp / few.layout.tp))


def standing_bytes(one: Case, other: Case) -> float:
    """What stands for a moment: the gathered tensor of each side."""
    return 0.0 if one.layout.tp == other.layout.tp else stream_bytes(one) + stream_bytes(other)

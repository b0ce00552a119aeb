"""What leaves the accelerators: the checkpoint, what offload moves, and what stands while the model loads."""

from collections.abc import Mapping
from typing import Any

from ..bill import Bill
from ..memory.loading import Loading
from ..quantities import GB
from ..step.offload import Offload
from .text import Style, block, both, counted, duration, figure, gib

NUMBER, MAYBE = {"type": "number"}, {"type": ["number", "null"]}
SAVED: Mapping[str, Any] = {
    **dict.fromkeys(("bytes", "weights_bytes", "optimizer_bytes", "per_rank_bytes", "read_bytes"), NUMBER),
    **dict.fromkeys(("write_seconds", "read_seconds"), MAYBE),
}
OFFLOAD: Mapping[str, Any] = {
    "what": {"type": "string"},
    "bytes": NUMBER,
    "needed_bandwidth": MAYBE,
    "host_bandwidth": NUMBER,
    "shown_seconds": NUMBER,
}
LOADING: Mapping[str, Any] = {
    "by": {"enum": ["rank", "node", "job"]},
    "host_bytes": NUMBER,
    "accelerator_bytes": MAYBE,
    "beyond_peak": {"type": "boolean"},
}
WHO = {"rank": "every rank holds", "node": "the first rank of each node holds", "job": "the first rank of all holds"}


def storage_lines(bill: Bill, style: Style) -> list[str]:
    """A line each: the checkpoint always, offload and loading where there is something to say."""
    lines = block("SAVED", saved_text(bill), style)
    for each in bill.offload:
        lines += block("OFFLOAD", offload_text(each), style)
    return [
        *lines,
        *(block("LOADING", loading_text(bill.loading, bill.cluster.host_bytes), style) if bill.loading else []),
    ]


def saved_text(bill: Bill) -> str:
    """Size and time of one checkpoint."""
    saved = bill.saved
    size = f"{both(saved.bytes, 4)} a checkpoint, of it weights {gib(saved.weights_bytes)}"
    busiest = f"{gib(saved.per_rank_bytes)} on the busiest of {counted(bill.cluster.ranks, 'rank')}"
    if saved.write_seconds is None or saved.read_seconds is None:
        return f"{size}; {busiest}; --storage 200GB/s for the time"
    rate = figure((bill.cluster.storage_bandwidth or 0) / GB)
    return (
        f"{size}; {busiest}; {duration(saved.write_seconds)} to write and {duration(saved.read_seconds)} to read"
        f" {gib(saved.read_bytes)} at {rate} GB/s"
    )


def offload_text(of: Offload) -> str:
    """What moves, and whether the step waits for it."""
    moved = f"{of.what}: {gib(of.bytes)} a step between accelerator and host"
    if of.needed_bandwidth is None:
        return f"{moved}; the update on the host adds {duration(of.shown_seconds)}, and nothing computes beside it"
    rate = f"hidden behind compute from {figure(of.needed_bandwidth / GB)} GB/s on"
    has = f"the link has {figure(of.host_bandwidth / GB)}"
    said = f"{duration(of.shown_seconds)} of it shows" if of.shown_seconds > 0 else "free"
    return f"{moved}, {rate}; {has}: {said}"


def loading_text(of: Loading, there: float | None) -> str:
    """Who holds the whole model, and where; `there` is an accelerator's part of its node's memory, if it is known."""
    host = f"{WHO[of.by]} the whole model in host memory: {both(of.host_bytes)}"
    if of.by == "rank" and there:
        host += f", of {gib(there)} there" if of.host_bytes <= there else f", more than the {gib(there)} there"
    if of.accelerator_bytes is None:
        return host
    more = ", more than training allocates" if of.beyond_peak else ""
    return f"{host}; and each accelerator {gib(of.accelerator_bytes)}{more}, unless it is made under zero.Init"

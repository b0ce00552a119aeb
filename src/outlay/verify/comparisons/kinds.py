"""What torch's memory trackers call the bytes they find, and the items of a bill that hold the same bytes.

A bill names what stands at its peak. Trackers tell weights and states apart everywhere, and activations from the
gradients of values only as far as they know whether a backward pass runs: under recompute they mix the two, so that
only the sum of both is compared.
"""

from collections.abc import Mapping

ITEMS = {
    "Sharded Param": "weights",
    "Parameter": "weights",
    "Buffer": "constants",
    "Unsharded Param": "gathered",
    "All Gather": "gathered",
    "Sharded Grad": "gradients",
    "Gradient": "gradients",
    "Unsharded Grad": "buckets",
    "Reduce Scatter": "buckets",
    "OptState": "optimizer",
    "Optstate": "optimizer",
    "Activation": "activations",
    "Temp": "backward",
    "Inputs": "inputs",
    "Other": "inputs",
}  # kinds of torch 2.13, FSDPMemTracker and MemTracker


def items_of(snapshot: Mapping[str, int]) -> dict[str, int]:
    """Bytes by item. Token ids and targets are `inputs`, which no bill counts."""
    found = dict.fromkeys(ITEMS.values(), 0)
    for kind, size in snapshot.items():
        found[ITEMS[kind]] += size
    return found

"""Which published runs are siblings, and the third of all configurations that each of them is in.

Siblings have one model and one layout: layers, hidden size and experts, and the degrees tp, pp, vpp, cp, ep and etp.
They may differ in all else (micro-batch, batch, sequence, precision, recompute, schedule, sharding, the number and kind
of accelerators, the engine, the table that prints them), so that constants that saw a run's like never judge it.
"""

from hashlib import sha256

from ..layout.case import Case

THIRDS = 3
DEGREES = ("tp", "pp", "vpp", "cp", "ep", "etp")


def siblings_of(case: Case) -> str:
    """The name of a configuration, alike in siblings."""
    model = (case.model.layers, case.model.hidden, case.model.experts)
    degrees = (int(getattr(case.layout, axis)) for axis in DEGREES)
    return " ".join(f"{value}" for value in (*model, *degrees))


def third_of(siblings: str) -> int:
    """The third, 0 to 2, of a configuration: by the hash of its name, so that no other row and no order has a say."""
    return int.from_bytes(sha256(siblings.encode()).digest()[:8], "big") % THIRDS

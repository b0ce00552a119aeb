"""MaxText's mesh: axes inside a slice (ici) and across slices (dcn), one of each of which may be -1.

Source: src/maxtext/configs/base.yml of maxtext 0.2.5, `mesh_axes` and `logical_axis_rules`: the batch is cut over data,
fsdp, fsdp_transpose and expert, the sequence over context, and weights over fsdp, context and expert alike.
"""

import re
from dataclasses import dataclass
from math import prod

from ..setting import Settings

AXES = (
    "diloco", "data", "pipeline", "fsdp", "fsdp_transpose", "sequence", "context", "context_usp_ulysses",
    "context_autoregressive", "tensor", "tensor_sequence", "expert", "autoregressive",
)  # fmt: skip
OURS = {  # which of ours an axis belongs to; that of experts also cuts the batch
    "diloco": "data", "data": "data", "fsdp": "fsdp", "fsdp_transpose": "fsdp", "tensor": "tp",
    "tensor_sequence": "tp", "sequence": "cp", "context": "cp", "context_usp_ulysses": "cp", "expert": "ep",
    "pipeline": "pp",
}  # fmt: skip
DECODING = ("autoregressive", "context_autoregressive")
TOPOLOGY = re.compile(r"(v4|v5p|v5e|v6e|tpu7x)-(\d{1,6})")
CORES = ("v4", "v5p")  # whose names count cores, two a chip


@dataclass(frozen=True)
class Mesh:
    """The degrees of a run. 0: it depends on the number of devices, which the file does not say."""

    degrees: dict[str, int]
    devices: int
    slices: int

    def __getitem__(self, name: str) -> int:
        return self.degrees[name]


def mesh_of(at: Settings, notes: list[str]) -> Mesh:
    """The mesh, as far as the file says it: the devices are those of `compile_topology`, or the product of all axes."""
    inside = {name: _axis(at, f"ici_{name}_parallelism", -1 if name == "fsdp" else 1) for name in AXES}
    across = {name: _axis(at, f"dcn_{name}_parallelism", -1 if name == "data" else 1) for name in AXES}
    for kind, axes in (("ici", inside), ("dcn", across)):
        free = [name for name, value in axes.items() if value == -1]
        if len(free) > 1:
            what, rule = f"{len(free)} axes of {kind} are -1", "one axis of each kind may be -1"
            at.find("MTX001", f"{kind}_{free[1]}_parallelism", what, rule, ", ".join(free), "a number for all but one")
    each, slices = _devices(at)
    if across["data"] == -1 and not slices:
        notes.append("dcn_data_parallelism -1: read as one slice (compile_topology_num_slices)")
    across = {name: max(1, value) for name, value in _filled(at, "dcn", across, slices).items()}
    inside = _filled(at, "ici", inside, each)
    if slices == 1 and prod(across.values()) > 1:
        rule, fix = "parallelism across slices needs several slices", "dcn_data_parallelism 1"
        name = next(name for name, value in across.items() if value > 1)
        at.find("MTX010", f"dcn_{name}_parallelism", "axes across slices, and one slice", rule, "1 slice", fix)
    degrees = dict.fromkeys(OURS.values(), 1)
    for name, ours in OURS.items():
        degrees[ours] *= max(0, inside[name]) * across[name]
    decoding = [name for name in DECODING if max(inside[name], across[name]) > 1]
    notes += [f"{name} is an axis of decoding: not counted" for name in decoding]
    whole = prod(inside.values()) if min(inside.values()) > 0 else 0
    return Mesh(degrees, whole * prod(across.values()), slices or prod(across.values()))


def _axis(at: Settings, name: str, usual: int) -> int:
    value = at.real(name, usual, -1)
    at.within(name, int(value), value == int(value) and value != 0, "a whole number, or -1")
    return int(value) or 1


def _devices(at: Settings) -> tuple[int, int]:
    """Devices of a slice, and slices; 0 where the file does not say them."""
    named = TOPOLOGY.fullmatch(at.word("compile_topology"))
    slices = at.real("compile_topology_num_slices", -1, -1)
    count = max(0, int(slices))
    if named is None:
        return 0, count
    return int(named[2]) // (2 if named[1] in CORES else 1), count or 1


def _filled(at: Settings, kind: str, axes: dict[str, int], count: int) -> dict[str, int]:
    """The axes with the one that is -1 filled; it stays -1 where the count is not known."""
    free = next((name for name, value in axes.items() if value == -1), "")
    rest = prod(value for value in axes.values() if value != -1)
    wrong = count > 0 and (count % rest if free else count != rest)
    if wrong:
        what = f"the axes of {kind} do not make the {'devices of a slice' if kind == 'ici' else 'slices'}"
        name = free or next((name for name, value in axes.items() if value > 1), "fsdp")
        at.find(
            "MTX010", f"{kind}_{name}_parallelism", what, "their product is the count", f"{rest} of {count}", "others"
        )
    others = {name: max(1, value) if value == -1 and name != free else value for name, value in axes.items()}
    if not free:
        return others
    return others | {free: max(1, count // rest) if count else -1}

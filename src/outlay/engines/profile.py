"""A profile of one's own: constants of one accelerator and of one engine, each with how it was obtained."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["specified", "measured", "assumed"]
KINDS: tuple[str, ...] = get_args(Kind)

SHARE, USUAL = (1e-6, 1, "above 0, at most 1"), (0, 1, "0 to 1; 0: the usual one")
FACTOR, SECONDS = (0, 1_000, "0 to 1,000"), (0, 1, "0 s to 1 s")
Range = tuple[float, float, str]  # least and most in SI units, and both in words

HARDWARE: Mapping[str, Range] = {
    "matmul_share": SHARE,
    **dict.fromkeys(("fp8_share", "mxfp8_share", "fp4_share"), USUAL),
    **dict.fromkeys(("matmul_depth", "fp8_depth"), (0, 1e6, "0 values or more")),
    "attention_share": SHARE,
    "attention_back_share": USUAL,
    "memory_share": SHARE,
    **dict.fromkeys(("launch_seconds", "collective_seconds"), SECONDS),
    "link_share": SHARE,
    "link_latency_seconds": SECONDS,
    "nic_share": SHARE,
    "nic_latency_seconds": SECONDS,
}
"""The constants of an accelerator and of its links that a profile may hold."""

KERNELS: Mapping[str, Range] = {
    "elementwise": (1e-3, 1_000, "above 0, at most 1,000"),
    **dict.fromkeys(("loss_moves", "loss_moves_back"), FACTOR),
    "attention_share": SHARE,
    "attention_back_share": USUAL,
}
"""Those of an engine's kernel set. Its attention shares are of its own core, on the accelerator of the profile."""

DRIVER: Mapping[str, Range] = {
    "step_seconds": SECONDS,
    "straggler_share": (0, 1, "0 to 1"),
    "rank_skew_seconds": SECONDS,
    "wire_accesses": FACTOR,
    "router_seconds": SECONDS,
    "layer_floor_seconds": SECONDS,
    "layer_floor_back_seconds": SECONDS,
    "layer_floor_collective_seconds": SECONDS,
    "expert_floor_seconds": SECONDS,
}
"""Those of the engine itself."""


@dataclass(frozen=True)
class Constant:
    """One constant, in SI units, and how it was obtained."""

    name: str
    value: float
    kind: Kind
    source: str
    date: str = ""  # of the runs; empty where nobody says it
    rows: str = ""  # that it rests on


@dataclass(frozen=True)
class Profile:
    """Constants that replace those of one accelerator and of one engine and release."""

    name: str
    accelerator: str
    hardware: tuple[Constant, ...] = ()
    engine: str = ""  # empty: it holds no constant of an engine
    kernels: tuple[Constant, ...] = ()  # of the engine and its kernel set

    def values(self, among: Mapping[str, Range]) -> dict[str, float]:
        """The values of the constants that a table names, by name."""
        held = self.hardware if among is HARDWARE else self.kernels
        return {each.name: each.value for each in held if each.name in among}


def unusable(profile: Profile) -> Iterator[tuple[str, str, object]]:
    """What cannot be used of a profile that was not read from a file of its own: the place, the rule, what stands."""
    for table, constants, known in (
        ("hardware", profile.hardware, HARDWARE),
        ("kernels", profile.kernels, {**KERNELS, **DRIVER}),
    ):
        for index, each in enumerate(constants):
            if each.name not in known:
                yield f"profile.{table}.{index}.name", f"one of {', '.join(known)}", each.name
                continue
            least, most, rule = known[each.name]
            if not least <= each.value <= most:
                yield f"profile.{table}.{index}.value", rule, each.value

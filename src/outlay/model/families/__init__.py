"""The model families: which keys of a config.json say what, what each class takes by default, and how a layer is built.

A file a group: one entry is one family.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from .family import COMMON, CORE, FIELDS, Facts, Family, Field
from .kinds import blocks
from .others import OTHERS
from .wrappers import WRAPPERS, Wrapper

__all__ = [
    "COMMON",
    "CORE",
    "FAMILIES",
    "FIELDS",
    "OTHERS",
    "RENAMED",
    "WRAPPERS",
    "Facts",
    "Family",
    "Field",
    "Wrapper",
    "blocks",
]

GROUPS = (  # where they are, those of most models first
    "dense.DENSE", "dense.GEMMAS", "dense.GLMS", "layer_normed.LAYER_NORMED", "reshaped.RESHAPED", "mixtures.MIXTURES",
    "routed.ROUTERS", "patterned.PATTERNED", "latent.LATENTS", "classic.CLASSIC", "borrowing.BORROWERS", "odd.ODD",
    "recurrent.RECURRENT", "hybrids.HYBRIDS", "linear.LINEAR", "zamba.ZAMBAS", "wrapped.WRAPPED",
)  # fmt: skip


class Families(Mapping[str, Family]):
    """The families by their type. A group is loaded where a type is in none of those before it."""

    def __getitem__(self, kind: str) -> Family:
        for group in _groups():
            if kind in group:
                return group[kind]
        raise KeyError(kind)

    def __contains__(self, kind: object) -> bool:
        return any(kind in group for group in _groups())

    def __iter__(self) -> Iterator[str]:
        return (kind for group in _groups() for kind in group)

    def __len__(self) -> int:
        return sum(map(len, _groups()))


def _groups() -> Iterator[Mapping[str, Family]]:
    for place in GROUPS:
        module, name = place.split(".")
        yield getattr(import_module(f".{module}", __name__), name)


FAMILIES = Families()

RENAMED: Mapping[str, str] = {
    "kimi_k2": "deepseek_v3",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "mimo": "qwen2",
    "gpt-sw3": "gpt2",
    "step3p5": "step3p7_text",
}
"""Types with no class of their own here, and the family that has the same layers."""

"""The model families: which keys of a config.json say what, what each class takes by default, and how a layer is built.

A file a group: one entry is one family.
"""

from collections.abc import Mapping

from .borrowing import BORROWERS
from .classic import CLASSIC
from .dense import DENSE, GEMMAS, GLMS
from .family import COMMON, CORE, FIELDS, Facts, Family, Field
from .hybrids import HYBRIDS
from .kinds import blocks
from .latent import LATENTS
from .layer_normed import LAYER_NORMED
from .linear import LINEAR
from .mixtures import MIXTURES
from .odd import ODD
from .others import OTHERS
from .patterned import PATTERNED
from .recurrent import RECURRENT
from .reshaped import RESHAPED
from .routed import ROUTERS
from .wrapped import WRAPPED
from .wrappers import WRAPPERS, Wrapper
from .zamba import ZAMBAS

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

FAMILIES: Mapping[str, Family] = {
    **DENSE,
    **GEMMAS,
    **GLMS,
    **LAYER_NORMED,
    **RESHAPED,
    **MIXTURES,
    **ROUTERS,
    **PATTERNED,
    **LATENTS,
    **CLASSIC,
    **BORROWERS,
    **ODD,
    **RECURRENT,
    **HYBRIDS,
    **LINEAR,
    **ZAMBAS,
    **WRAPPED,
}

RENAMED: Mapping[str, str] = {
    "kimi_k2": "deepseek_v3",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "mimo": "qwen2",
    "gpt-sw3": "gpt2",
    "step3p5": "step3p7_text",
}
"""Types with no class of their own here, and the family that has the same layers."""

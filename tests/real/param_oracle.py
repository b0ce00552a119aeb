"""What transformers' config classes take for themselves, and random small configs of every family."""

import csv
import json
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from transformers import AutoConfig
from transformers.utils import logging

logging.set_verbosity_error()


def class_defaults(kind: str, keys: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """What a class takes for a field that a file leaves out, under any of its keys: as it stands in the class, and in
    one that was made of nothing."""
    made = AutoConfig.for_model(kind)
    found = ([_at(owner, key) for key in keys] for owner in (type(made), made))
    stands, holds = ([value for value in values if value is not None] for values in found)
    return stands, holds


def _at(owner: Any, key: str) -> Any:
    """A setting, inside an object where the key has a dot; None where there is none, or one a layer."""
    for step in key.split("."):
        try:
            owner = owner.get(step) if isinstance(owner, dict) else getattr(owner, step, None)
        except Exception:  # a setting that each layer has for itself
            return None
    return None if isinstance(owner, property) or callable(owner) else owner


def layer_types(kind: str, fields: dict[str, Any]) -> list[str]:
    """The kind of attention of each layer, by the rule of the class."""
    return list(AutoConfig.for_model(kind, **fields).layer_types)


CASES: dict[str, list[dict[str, Any]]] = {}
for row in csv.DictReader((Path(__file__).parents[1] / "families_cases.csv").read_text(encoding="utf-8").splitlines()):
    CASES.setdefault(row["model_type"], []).append(json.loads(row["fields"]))


def random_config(kind: str, seed: int) -> dict[str, Any]:
    """A fresh small config of a family: one of its known ones with other sizes, switches flipped, layers shuffled."""
    draw = random.Random(f"{kind} {seed}")
    known = CASES[kind]
    config = dict(draw.choice(known)) | {"model_type": kind, "vocab_size": draw.randrange(300, 900)}
    switches = {key for one in known for key, value in one.items() if isinstance(value, bool)}
    for key in sorted({*switches, "tie_word_embeddings"}):
        if draw.random() < 0.5:
            config[key] = draw.random() < 0.5
    for key, value in list(config.items()):
        if key in WIDTHS and isinstance(value, int):
            config[key] = value + 8 * draw.randrange(5)
        if key in SHUFFLED and isinstance(value, list):
            config[key] = draw.sample(value, len(value))
    if config.get("qk_layernorm"):
        config.pop("head_dim", None)  # the class builds norms of another width than its heads, which cannot run
    return config


WIDTHS = {
    "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "n_inner", "ffn_dim",
    "intermediate_size_mlp", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
}  # fmt: skip
SHUFFLED = {"layer_types", "mlp_layer_types"}

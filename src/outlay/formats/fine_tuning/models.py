"""Models under the names of the Hugging Face hub, and the catalogue's own names for them."""

import re
from collections.abc import Mapping
from functools import cache

from ...model.catalogue import entry, load, names
from ...model.model import Model

HUB = re.compile(r"^([A-Za-z0-9][\w.-]*)/([\w.-]+)")
# What a name says of training alone, so that the sizes are those of the name without it.
TUNED = re.compile(r"-(instruct|thinking)-\d{4}$|-(instruct|chat|it|base|hf|pt|sft|thinking|bf16|fp16)(?=-|$)")
# Layers that FSDP wraps by default, by `model_type`. Source: transformers 5.24, `_no_split_modules` of each class.
LAYERS: Mapping[str, str] = {
    "llama": "LlamaDecoderLayer", "mistral": "MistralDecoderLayer", "mixtral": "MixtralDecoderLayer",
    "qwen2": "Qwen2DecoderLayer", "qwen2_moe": "Qwen2MoeDecoderLayer", "qwen3": "Qwen3DecoderLayer",
    "qwen3_moe": "Qwen3MoeDecoderLayer", "gemma": "GemmaDecoderLayer", "gemma2": "Gemma2DecoderLayer",
    "phi": "PhiDecoderLayer", "phi3": "Phi3DecoderLayer", "gpt_neox": "GPTNeoXLayer", "gpt2": "GPT2Block",
    "opt": "OPTDecoderLayer", "olmo2": "Olmo2DecoderLayer", "starcoder2": "Starcoder2DecoderLayer",
    "smollm3": "SmolLM3DecoderLayer", "falcon": "FalconDecoderLayer", "bloom": "BloomBlock",
    "glm4_moe": "Glm4MoeDecoderLayer", "cohere": "CohereDecoderLayer",
}  # fmt: skip


def plain(name: str) -> str:
    """A name as the catalogue spells it: its last part, in lower case, without what says how it was tuned."""
    last = re.sub(r"^meta-(?=llama)", "", name.rstrip("/").rpartition("/")[2].lower())
    while (shorter := TUNED.sub("", last)) != last:
        last = shorter
    return last


@cache
def _hub() -> Mapping[str, str]:
    """The catalogue's name by the id of the hub that its source names, and by the plain form of both."""
    found: dict[str, str] = {}
    for name in names():
        one = entry(name)
        said = HUB.match(one.source)
        for spelling in (name, *one.also, *([said[0].lower(), plain(said[2])] if said else [])):
            found.setdefault(spelling, name)
    return found


def model_named(text: str) -> Model | None:
    """The model of the catalogue that a name of the hub, or of the catalogue, means; None where none is known."""
    wanted = text.strip()
    if not wanted or len(wanted) > 200:
        return None
    for spelling in (wanted.lower(), plain(wanted)):
        if spelling in _hub():
            return load(_hub()[spelling])
    return None


def name_on_hub(model: Model) -> str:
    """The hub's id of a model, where it is one of the catalogue and means that model when it is read; else empty."""
    if model.name not in names():
        return ""
    said = HUB.match(entry(model.name).source)
    meant = model_named(said[0]) if said else None
    return said[0] if said and meant == model else ""


def layer_class(model: Model) -> str:
    """The class of a model's layers in transformers, where it is known; else empty."""
    kind = entry(model.name).config.get("model_type", "") if model.name in names() else ""
    return LAYERS.get(str(kind), "")

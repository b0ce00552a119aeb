"""MaxText's names of models that the catalogue has: src/maxtext/configs/models of maxtext 0.2.5, compared by size."""

from collections.abc import Mapping

from ...model.catalogue import find
from ...model.model import Model
from ...undivided import parameters

# The first name of a model is the one that is written.
NAMES: Mapping[str, str] = {
    "llama2-7b": "llama-2-7b", "llama2-13b": "llama-2-13b", "llama2-70b": "llama-2-70b",
    "llama3-8b": "llama-3-8b", "llama3-70b": "llama-3-70b", "llama3.1-8b": "llama-3.1-8b",
    "llama3.1-70b": "llama-3.1-70b", "llama3.1-405b": "llama-3.1-405b", "llama3.3-70b": "llama-3.1-70b",
    "llama4-17b-16e": "llama-4-scout-17b-16e", "llama4-17b-128e": "llama-4-maverick-17b-128e",
    "mixtral-8x7b": "mixtral-8x7b", "mixtral-8x22b": "mixtral-8x22b",
    "deepseek2-16b": "deepseek-v2-lite", "deepseek2-236b": "deepseek-v2", "deepseek3-671b": "deepseek-v3",
    "deepseek3-671b-2dfsdp": "deepseek-v3", "deepseek3-671b-batchsplit": "deepseek-v3",
    "deepseek3.2-671b": "deepseek-v3.2", "deepseek4-284b": "deepseek-v4-flash", "kimi-k2-1t": "kimi-k2",
    "gemma-7b": "gemma-7b", "gemma2-9b": "gemma-2-9b", "gemma2-27b": "gemma-2-27b", "gemma3-4b": "gemma-3-4b",
    "gemma3-12b": "gemma-3-12b", "gemma3-27b": "gemma-3-27b", "gemma4-26b": "gemma-4-26b-a4b",
    "gpt-oss-20b": "gpt-oss-20b", "gpt-oss-120b": "gpt-oss-120b", "gpt3-175b": "gpt3-175b",
    "olmo3-32b": "olmo-3.1-32b", "qwen2.5-7b": "qwen2.5-7b", "qwen2.5-14b": "qwen2.5-14b",
    "qwen3-0.6b": "qwen3-0.6b", "qwen3-4b": "qwen3-4b", "qwen3-4b-base": "qwen3-4b", "qwen3-8b": "qwen3-8b",
    "qwen3-8b-base": "qwen3-8b", "qwen3-14b": "qwen3-14b", "qwen3-14b-base": "qwen3-14b", "qwen3-32b": "qwen3-32b",
    "qwen3-30b-a3b": "qwen3-30b-a3b", "qwen3-30b-a3b-base": "qwen3-30b-a3b",
    "qwen3-235b-a22b": "qwen3-235b-a22b", "qwen3-480b-a35b": "qwen3-coder-480b-a35b",
    "qwen3-vl-30b-a3b": "qwen3-vl-30b-a3b", "qwen3-next-80b-a3b": "qwen3-next-80b-a3b",
    "qwen3.5-35b-a3b": "qwen3.5-35b-a3b", "qwen3.5-397b-a17b": "qwen3.5-397b-a17b",
}  # fmt: skip
# Vocabularies that MaxText has larger than the published model.
PADDED: Mapping[str, int] = {
    "gemma-7b": 256_128, "gemma2-9b": 256_128, "gemma2-27b": 256_128, "gpt3-175b": 50_304, "mixtral-8x22b": 32_768,
}  # fmt: skip
# Families that Muon is tried with: others are refused.
MUON = ("default", "deepseek", "kimi", "qwen3-", "gpt-oss", "gemma3", "llama2", "llama3")
DENSE_OUTSIDE = ("deepseek", "kimi")  # whose pipeline has the layers with experts alone


def name_of(model: Model) -> str:
    """MaxText's name of a model of the catalogue; empty where it has none, or the model is not the catalogue's."""
    written = next((name for name, ours in NAMES.items() if ours == model.name), "")
    same = bool(written) and parameters(model).total == parameters(find(model.name)).total
    return written if same else ""


def pipelined(name: str, model: Model) -> int:
    """Layers that a pipeline has by itself."""
    dense = sum(model.blocks[kind].experts is None for kind in model.pattern)
    return model.layers - (dense if name.startswith(DENSE_OUTSIDE) and model.experts else 0)

"""Which layers see a window, and how many keys they see: against the configs and the models of transformers."""

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from outlay.model.huggingface import read_config
from outlay.model.model import Model

pytestmark = pytest.mark.filterwarnings("ignore")
LAYERS, TOKENS, WINDOW = 13, 24, 8
SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": LAYERS, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 8, "vocab_size": 100, "max_position_embeddings": 64, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SLIDING = {"sliding_window": WINDOW}
SWITCHED = SLIDING | {"use_sliding_window": True}
PERIODIC = SLIDING | {"sliding_window_pattern": 5}
RULES: list[tuple[str, dict[str, Any]]] = [
    *((kind, SLIDING) for kind in ("cohere2", "cwm", "exaone4", "gemma2", "gemma3_text", "granite_swa", "ministral")),
    *((kind, SLIDING) for kind in ("olmo3", "vaultgemma")),
    *((kind, PERIODIC) for kind in ("cohere2", "exaone4", "gemma3_text")),
    ("modernbert-decoder", {"local_attention": 2 * WINDOW}),
    ("modernbert-decoder", {"local_attention": 2 * WINDOW, "global_attn_every_n_layers": 4}),
    ("qwen2", SWITCHED | {"max_window_layers": 5}),
    ("qwen3", SWITCHED | {"max_window_layers": 5}),
    ("smollm3", SWITCHED),
    ("smollm3", SWITCHED | {"no_rope_layer_interval": 3}),
    ("smollm3", SWITCHED | {"no_rope_layers": [0, 1] * 6 + [0]}),
    ("smollm3", SLIDING),
    ("smollm3", SWITCHED | {"layer_types": ["sliding_attention", "full_attention"] * 6 + ["full_attention"]}),
    *((kind, SLIDING | {"layer_types": ["full_attention"] * 12 + ["sliding_attention"]})
      for kind in ("cohere2", "cwm", "gemma3_text", "granite_swa", "ministral", "vaultgemma")),
]  # fmt: skip


def windows(model: Model) -> list[int]:
    """The window of each layer, 0 where it sees all keys."""
    found = [model.blocks[kind].attention for kind in model.pattern]
    return [attention.window for attention in found if attention]


@pytest.mark.parametrize(("kind", "fields"), RULES, ids=[f"{kind}-{place}" for place, (kind, _) in enumerate(RULES)])
def test_the_layers_that_slide_are_those_of_the_class(kind: str, fields: dict[str, Any]) -> None:
    real = AutoConfig.for_model(kind, **(SIZES | fields))
    ours = windows(read_config({"model_type": kind} | SIZES | fields))

    assert ours == [WINDOW if span == "sliding_attention" else 0 for span in real.layer_types]


@pytest.mark.parametrize("kinds", [[[["global", "local"], 4]], [[["local"], 2], [["global"], 3]], None])
def test_the_local_layers_of_gpt_neo_are_those_of_the_class(kinds: Any) -> None:
    layers = 24 if kinds is None else sum(len(names) * times for names, times in kinds)
    sizes = {"hidden_size": 64, "num_layers": layers, "num_heads": 8, "vocab_size": 100, "window_size": WINDOW}
    fields = sizes | {"attention_types": kinds}

    ours = windows(read_config({"model_type": "gpt_neo"} | fields))
    assert ours == [WINDOW * (kind == "local") for kind in AutoConfig.for_model("gpt_neo", **fields).attention_layers]


ONE = SIZES | {"num_hidden_layers": 1}
LISTED = ONE | SLIDING | {"layer_types": ["sliding_attention"]}
WINDOWED = {
    **dict.fromkeys(("cohere2", "cwm", "exaone4", "gemma2", "gemma3_text", "granite_swa", "ministral"), LISTED),
    **dict.fromkeys(("olmo3", "vaultgemma"), LISTED),
    **dict.fromkeys(("mistral", "ministral3", "phi3", "starcoder2"), ONE | SLIDING),
    "smollm3": LISTED | SWITCHED,
    "modernbert-decoder": LISTED | {"local_attention": 2 * WINDOW},
    "gpt_neo": {"hidden_size": 64, "num_layers": 1, "num_heads": 8, "vocab_size": 100, "window_size": WINDOW,
                "attention_types": [[["local"], 1]]},
}  # fmt: skip


def keys_seen(kind: str, fields: dict[str, Any]) -> int:
    """Of how many tokens the last one's logits depend: those that a gradient reaches through one layer."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **fields), attn_implementation="eager")
    vectors = torch.randn(1, TOKENS, 64, requires_grad=True)
    model.eval()(inputs_embeds=vectors, use_cache=False).logits[0, -1].sum().backward()
    assert vectors.grad is not None
    return int((vectors.grad[0].abs().sum(-1) > 0).sum())


@pytest.mark.parametrize("kind", WINDOWED)
def test_a_layer_with_a_window_sees_as_many_keys_as_the_class_shows_it(kind: str) -> None:
    fields = WINDOWED[kind]

    assert windows(read_config({"model_type": kind} | fields)) == [WINDOW]
    assert keys_seen(kind, fields) == WINDOW


@pytest.mark.parametrize("kind", ["llama", "cohere", "exaone", "glm", "helium", "phi"])
def test_a_family_without_windows_sees_every_key_though_the_file_names_a_window(kind: str) -> None:
    fields = ONE | SLIDING

    assert windows(read_config({"model_type": kind} | fields)) == [0]
    assert keys_seen(kind, fields) == TOKENS

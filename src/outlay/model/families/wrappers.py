"""Types that hold a language model beside other parts, such as a vision tower."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wrapper:
    """A type that holds a language model beside other parts. Its own tie flag decides, not that of the part."""

    text: str  # the type of its language model, where the part does not say
    tied: bool = False  # where the top level does not say


WRAPPERS: Mapping[str, Wrapper] = {
    "aria": Wrapper("aria_text"),
    "cohere2_vision": Wrapper("cohere2", tied=True),
    "exaone4_5": Wrapper("exaone4"),
    "gemma3": Wrapper("gemma3_text", tied=True),
    "gemma3n": Wrapper("gemma3n_text", tied=True),
    "gemma4": Wrapper("gemma4_text", tied=True),
    "gemma4_unified": Wrapper("gemma4_unified_text", tied=True),
    "glm46v": Wrapper("glm4v_text"),
    "glm4v": Wrapper("glm4v_text"),
    "glm4v_moe": Wrapper("glm4v_moe_text"),
    "idefics3": Wrapper("llama"),
    "internvl": Wrapper("qwen2", tied=True),
    "kimi_k25": Wrapper("kimi_k2", tied=True),
    "lfm2_vl": Wrapper("lfm2", tied=True),
    "llama4": Wrapper("llama4_text"),
    "llava": Wrapper("llama"),
    "llava_next": Wrapper("llama"),
    "llava_next_video": Wrapper("llama"),
    "llava_onevision": Wrapper("qwen2"),
    "minimax_m3_vl": Wrapper("minimax_m3_vl_text"),
    "mistral3": Wrapper("mistral", tied=True),
    "mllama": Wrapper("mllama_text_model"),
    "ovis2": Wrapper("qwen2", tied=True),
    "paligemma": Wrapper("gemma", tied=True),
    "qwen2_5_omni": Wrapper("qwen2_5_omni_text"),
    "qwen2_5_vl": Wrapper("qwen2_5_vl_text"),
    "qwen2_vl": Wrapper("qwen2_vl_text"),
    "qwen3_5": Wrapper("qwen3_5_text"),
    "qwen3_5_moe": Wrapper("qwen3_5_moe_text"),
    "qwen3_omni_moe": Wrapper("qwen3_omni_moe_text"),
    "qwen3_vl": Wrapper("qwen3_vl_text"),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text"),
    "smolvlm": Wrapper("llama"),
    "step3p7": Wrapper("step3p7_text"),
    "video_llama_3": Wrapper("qwen2"),
}
"""The defaults of the classes of transformers 5.24.0; those of an omni model are its thinker's."""

"""Types that hold a language model: which one, and whether it is tied, as the classes of transformers have it."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from transformers import AutoConfig

from outlay.model.families import RENAMED, WRAPPERS

NAMES = {"step3p5": "step3p7_text"}  # what transformers calls the part of a wrapper


@pytest.mark.parametrize("kind", WRAPPERS)
def test_a_wrapper_holds_the_language_model_and_the_tie_flag_of_its_class(kind: str) -> None:
    whole = AutoConfig.for_model(kind)
    holder = getattr(whole, "thinker_config", whole)
    text = holder.text_config.model_type
    ours = WRAPPERS[kind].text

    assert NAMES.get(text, text) in (ours, RENAMED.get(ours, ours))
    assert getattr(holder, "tie_word_embeddings", False) == WRAPPERS[kind].tied

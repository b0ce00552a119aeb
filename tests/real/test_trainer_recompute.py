"""Which layers transformers checkpoints: the counts that the rule of its Trainer allows are those that it can reach."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from outlay import Job, Layout, count, load_cluster, load_model  # noqa: E402

LAYERS = 32


@pytest.fixture(scope="module")
def reached() -> set[int]:
    """How many of 32 layers are checkpointed, for every n."""
    with torch.device("meta"):
        config = transformers.LlamaConfig(
            num_hidden_layers=LAYERS, hidden_size=8, intermediate_size=8, num_attention_heads=1, vocab_size=8
        )
        model = transformers.LlamaForCausalLM(config)
    found = set()
    for every in range(1, LAYERS + 1):
        model.activation_checkpointing_enable(every_n_layers=every)
        found.add(sum(layer.gradient_checkpointing for layer in model.model.layers))
    return found


def test_the_rule_allows_the_counts_that_the_trainer_reaches_and_no_others(reached: set[int]) -> None:
    model, on = load_model("llama-3-8b"), load_cluster("8xh200-sxm")
    legal = {
        some
        for some in range(1, LAYERS + 1)
        if not count(model, Job(2048, 8), on, Layout(recompute="full", recompute_layers=some), "hf_trainer").violations
    }
    assert legal == reached

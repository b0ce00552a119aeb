"""outlay verify on small models: it agrees, it finds a fault planted in each count, and says what it does not run."""

from functools import partial
from typing import Any

import pytest
import torch
from command_runs import Ask
from small_models import deepseek, llama, mixtral

from outlay.model.operations import Linear
from outlay.schedule.passes import Order
from outlay.verify import scaled
from outlay.verify.comparisons import memory
from outlay.verify.models.kernels import FusedAttention

pytestmark = pytest.mark.filterwarnings("ignore")
LLAMA = llama(256, 2)


@pytest.fixture
def ask(ask_verify: Ask) -> Ask:
    """All that takes no real time, of a config."""
    return partial(ask_verify, on="8xh100-sxm", sequence_length="256")


def names(record: dict[str, Any]) -> list[str]:
    return [one["name"] for one in record["comparisons"]]


STATES = ["weights", "gradients", "optimizer"]
MODEL = ["parameters", "forward FLOPs", "backward FLOPs"]


def test_a_dense_model_agrees_in_everything_that_one_stage_has(ask: Ask) -> None:
    code, record = ask(LLAMA, tp="2", global_batch="12")

    assert code == 0 and record["agrees"]
    assert names(record) == [*MODEL, *STATES, "tape", "peak", "tp traffic", "dp traffic"]
    assert all(one["counted"] == one["measured"] > 0 for one in record["comparisons"] if one["kind"] != "peak")
    assert [one["kinds"] for one in record["not_run"]] == [["schedule"]]
    assert any("1 of 3 micro-batches" in said for said in record["scaled"])


def test_biases_and_a_shared_table_agree(ask: Ask) -> None:
    code, record = ask(LLAMA | {"model_type": "qwen2", "tie_word_embeddings": True}, only="states,tape,peak,traffic")

    assert code == 0
    assert names(record) == [*STATES, "tape", "peak", "dp traffic"]


def test_experts_agree_and_those_fewer_than_ranks_are_cut_inside(ask: Ask) -> None:
    """The router has 4 rows for 8 ranks: what pads it, and what the first rank has more of, is said."""
    code, record = ask(mixtral(256, 2))
    said = {one["name"]: one["note"] for one in record["comparisons"]}

    assert code == 0
    assert names(record) == [*MODEL, *STATES, "tape", "peak", "dp traffic"]
    assert "beyond an even share" in said["weights"] and "padding of rows" in said["dp traffic"]
    assert [one["agrees"] for one in record["comparisons"] if one["name"] == "peak"] == [None]  # a copy more
    assert "cut inside" in record["comparisons"][7]["reason"]


def test_as_many_experts_as_ranks_agree_in_the_peak_too(ask: Ask) -> None:
    code, record = ask(mixtral(256, 2, num_local_experts=8), only="states,tape,peak")

    assert code == 0
    assert all(one["agrees"] and "even share" not in one["note"] for one in record["comparisons"])


def test_latent_attention_and_a_shared_expert_agree_on_two_kinds_of_layers(ask: Ask) -> None:
    code, record = ask(deepseek(4), layers="2")

    assert code == 0
    assert names(record) == [*MODEL, *STATES, "tape", "peak", "dp traffic"]
    assert all(one["agrees"] for one in record["comparisons"] if one["kind"] != "peak")
    assert record["scaled"] == []  # three layers of experts in a row are run, as the whole model has them


def test_a_model_that_is_not_built_here_agrees_in_what_its_own_class_sends(ask: Ask) -> None:
    code, record = ask(LLAMA | {"model_type": "olmo2"}, only="states,traffic")

    assert code == 0
    assert names(record) == ["dp traffic"] and "not of layers" in record["not_run"][0]["reason"]


def test_a_fused_attention_gives_what_torchs_own_gives() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 16, 32, dtype=torch.float64, requires_grad=True) for _ in range(3))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    ours = FusedAttention.apply(q, k, v)
    grads = [torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (theirs, ours)]

    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)  # its scores are fp32
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


def test_a_pipeline_of_another_engine_has_its_order_compared_and_no_rank_run(ask: Ask) -> None:
    code, record = ask(LLAMA, pp="2", engine="megatron", global_batch="32")

    assert code == 0
    assert names(record) == [*MODEL, "order accepted", "order as listed"]
    assert [one["kinds"] for one in record["not_run"]] == [["states", "tape", "peak"], ["traffic"]]


def test_a_pipeline_has_its_order_and_a_few_ranks_compared(ask: Ask) -> None:
    code, record = ask(LLAMA, pp="2", global_batch="32", only="states,tape,traffic,schedule")
    kinds = {one["kind"] for one in record["comparisons"]}

    assert code == 0 and kinds == {"states", "tape", "traffic", "schedule"}
    assert "weights, stage 1" in names(record) and "pp traffic" in names(record)


def test_a_compiled_engine_has_its_states_and_traffic_compared(ask: Ask) -> None:
    code, record = ask(LLAMA, engine="fsdp2", only="states,tape,peak,traffic")

    assert code == 0
    assert names(record) == [*STATES, "dp traffic"]
    assert "compiler" in record["not_run"][0]["reason"]


def test_a_gradient_that_torch_keeps_whole_differs_for_a_known_reason(ask: Ask) -> None:
    code, record = ask(LLAMA, on="2xh100-sxm", tp="2", zero="0", bytes_per_parameter="8", only="states")
    gradients = record["comparisons"][1]

    assert code == 0
    assert gradients["agrees"] is None and "partial sum" in gradients["reason"]


def test_where_nothing_can_be_compared_nothing_is_verified(ask: Ask) -> None:
    code, record = ask(LLAMA, only="schedule")

    assert code == 1
    assert not record["agrees"] and record["comparisons"] == []


# --- a fault in each count ------------------------------------------------------------------------------------------


def halved(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let a formula give half of what it gives."""
    whole = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *inputs: whole(*inputs) / 2)


def test_a_fault_in_the_parameters_is_found(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Linear.parameters
    monkeypatch.setattr(Linear, "parameters", lambda row, here: whole(row, here) - 1)
    code, record = ask(LLAMA | {"vocab_size": 1000}, only="parameters")  # a model that no cache holds

    assert code == 1 and not record["agrees"]


@pytest.mark.parametrize(
    ("only", "owner", "name", "wrong"),
    [
        ("flops", "outlay.undivided", "sum_flops", ["forward FLOPs"]),
        ("flops", "outlay.undivided", "sum_flops_back", ["backward FLOPs"]),
        ("states", "outlay.verify.comparisons.memory", "weight_bytes", ["weights"]),
        ("states", "outlay.verify.comparisons.memory", "gradient_bytes", ["gradients"]),
        ("states", "outlay.verify.comparisons.memory", "optimizer_bytes", ["optimizer"]),
        ("tape", "outlay.verify.comparisons.memory", "activation_bytes", ["tape"]),
        ("peak", "outlay.memory.peak", "moment_bytes", ["peak"]),
        ("traffic", "outlay.items", "data_bytes", ["dp traffic"]),
        ("traffic", "outlay.items", "axis_bytes", ["tp traffic"]),
    ],
)
def test_a_formula_that_gives_half_is_found(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, only: str, owner: str, name: str, wrong: list[str]
) -> None:
    from importlib import import_module

    halved(monkeypatch, import_module(owner), name)
    code, record = ask(LLAMA, tp="2", only=only)

    assert code == 1 and not record["agrees"]
    assert [one["name"] for one in record["comparisons"] if one["agrees"] is False] == wrong


@pytest.mark.parametrize("refused", [True, False], ids=["backward first", "another order"])
def test_an_order_with_two_passes_in_each_others_place_is_found(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Rank 0 of 2: F0 F1 B0 F2 B1 ..; a backward pass before its forward pass is refused, F0 F1 F2 B0 is not."""
    whole = scaled.order_of

    def swapped(case: Any, many: int) -> Order:
        of = whole(case, many)
        row = list(of.ranks[0])
        one, other = (0, 2) if refused else (2, 3)
        row[one], row[other] = row[other], row[one]
        return Order(of.name, (tuple(row), *of.ranks[1:]), of.stages, of.micro_batches, of.rank_of)

    monkeypatch.setattr(scaled, "order_of", swapped)
    code, record = ask(LLAMA, pp="2", global_batch="32", only="schedule")
    accepted, listed = record["comparisons"]

    assert code == 1
    assert accepted["agrees"] is not refused and listed["agrees"] is False
    assert accepted["note"].startswith("refused") == refused


def test_a_peak_is_held_within_2_percent(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory.allocated_bytes
    monkeypatch.setattr(memory, "allocated_bytes", lambda *inputs: whole(*inputs) * 1.03)

    assert ask(LLAMA, only="peak")[0] == 1

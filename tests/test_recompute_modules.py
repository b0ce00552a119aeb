"""Selective recompute by module: laws, published figures, and what is refused."""

import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import DEEPSEEK_V3, GEMMA, GPT3, LLAMA_8B, LLAMA_70B, MIXTRAL, MODELS, loaded
from outlay import Job, Layout, Model, count, load_cluster, load_model, plan
from outlay.bill import Bill
from outlay.cli.main import main
from outlay.engines.tables import engine, engine_names, kernel_set
from outlay.errors import InputError
from outlay.layer import LayerCosts
from outlay.layout.module_rules import apart
from outlay.model.modules import MODULES, modules_of
from outlay.model.policies import POLICIES
from outlay.show.labels import attack

KERNELS = kernel_set("transformer_engine")
TOKENS = 4096


def costs(model: Model, modules: tuple[str, ...], **axes: Any) -> list[LayerCosts]:
    """What every kind of layer costs where these modules run again."""
    at = loaded(model, "64xh100-sxm", recompute="selective", recompute_modules=modules, **axes)
    return [held.costs for held in at.whole.layers]


def bill(model: Model, on: str = "64xh100-sxm", driver: str = "megatron", **axes: Any) -> Bill:
    return count(model, Job(4096, 512), load_cluster(on), Layout(**axes), driver)


def refused(model: Model, driver: str = "megatron", **axes: Any) -> dict[str, str]:
    """Codes of what is wrong with a question, and the ways out."""
    with pytest.raises(InputError) as error:
        bill(model, driver=driver, **axes)
    return {fault.code: fault.fix for fault in error.value.faults}


def choices(model: Model) -> list[tuple[str, ...]]:
    """Every choice of modules that share no row."""
    had = [name for name in modules_of(model, KERNELS) if name in MODULES]
    return [names for size in range(len(had) + 1) for names in combinations(had, size) if apart(names)]


# --- laws -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_more_modules_never_keep_more_and_never_run_again_faster(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(MODELS))
    more = data.draw(st.sampled_from(choices(model)))
    fewer = tuple(name for name in more if data.draw(st.booleans()))
    tp = data.draw(st.sampled_from([1, 2]))
    for one, other in zip(costs(model, fewer, tp=tp), costs(model, more, tp=tp), strict=True):
        assert 0 <= other.kept_selective <= one.kept_selective <= one.kept
        assert one.modules_forward <= other.modules_forward <= other.forward
        assert one.freed <= other.freed <= other.kept - other.kept_selective


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_no_module_is_no_recompute(model: Model) -> None:
    none, empty = bill(model, recompute="none"), bill(model, recompute="selective", recompute_modules=())

    assert (empty.memory.peak_bytes, empty.step.seconds, empty.step.hfu) == (
        none.memory.peak_bytes,
        none.step.seconds,
        none.step.hfu,
    )


def test_modules_that_share_no_row_free_and_take_the_sum_of_what_each_does() -> None:
    for names in choices(DEEPSEEK_V3):
        together, alone = costs(DEEPSEEK_V3, names), [costs(DEEPSEEK_V3, (name,)) for name in names]
        for place, layer in enumerate(together):
            parts = [each[place] for each in alone]
            freed = sum(part.kept - part.kept_selective for part in parts)
            assert layer.kept - layer.kept_selective == pytest.approx(freed)
            assert layer.modules_forward == pytest.approx(sum(part.modules_forward for part in parts))


def test_the_attention_core_alone_is_the_usual_choice_and_is_said() -> None:
    usual = bill(LLAMA_8B, recompute="selective")

    assert usual.layout.recompute_modules == ("core_attn",)
    assert "recompute modules core_attn (--recompute-modules)" in usual.assumptions
    assert bill(LLAMA_8B, recompute="none").layout.recompute_modules == ()


def test_modules_alone_are_selective_recompute() -> None:
    found = bill(LLAMA_8B, recompute_modules=("mlp",))

    assert found.layout.recompute == "selective"
    assert "recompute selective (--recompute)" in found.assumptions


def test_an_exchange_runs_again_with_the_module_that_it_stands_in() -> None:
    fed = costs(LLAMA_70B, ("mlp",), tp=4)[0].tp
    core = costs(LLAMA_70B, ("core_attn",), tp=4)[0].tp
    routed = costs(MIXTRAL, ("moe",), ep=8)[0].ep
    ring = costs(LLAMA_8B, ("core_attn",), cp=4, cp_kind="all_gather")[0]

    assert fed.sent_again == fed.sent_forward / 2  # the feed-forward part's two of a layer's four
    assert core.sent_again == core.again == 0
    assert routed.sent_again == routed.sent_forward > 0
    assert ring.context_again == ring.context_forward > 0


@pytest.mark.parametrize(
    ("model", "part", "module", "axes", "more"),
    [
        (LLAMA_8B, "context", "core_attn", {"cp": 4, "cp_kind": "all_gather"}, 1 / 3),
        (MIXTRAL, "expert", "moe", {"ep": 8}, 2 / 4),
    ],
)
def test_an_exchange_that_runs_again_takes_its_time_again(
    model: Model, part: str, module: str, axes: dict[str, Any], more: float
) -> None:
    """Keys and values are gathered forward, and backward again, where gradients are scattered: one more of three.

    Tokens go to experts and back in both passes: two more of four.
    """

    def seconds(modules: tuple[str, ...]) -> float:
        found = bill(model, recompute="selective", recompute_modules=modules, **axes)
        return next(item.value for item in found.step.items if item.name == part)

    assert seconds((module,)) / seconds(()) == pytest.approx(1 + more, rel=0.01)


def test_a_module_that_is_named_twice_runs_again_once() -> None:
    assert bill(LLAMA_8B, recompute_modules=("mlp", "mlp")) == bill(LLAMA_8B, recompute_modules=("mlp",))


def test_hfu_counts_what_runs_again() -> None:
    """A Llama layer's feed-forward part: 3 h f of its 2 h (a + k) d + 3 h f parameters."""
    plain, again = bill(LLAMA_8B), bill(LLAMA_8B, recompute_modules=("mlp",))
    h, f, layers, attention, head = 4096, 14336, 32, 4096 * 4096 * 2 + 2 * 4096 * 1024, 4096 * 128256
    one = 2 * (layers * (3 * h * f + attention) + head) + layers * 2 * (4096 + 1) / 2 * 2 * 4096
    flops = again.step.hfu * again.step.seconds / (plain.step.hfu * plain.step.seconds)

    assert flops == pytest.approx(1 + layers * 6 * h * f / (3 * one), rel=1e-6)


def test_a_search_takes_the_modules_that_it_is_told() -> None:
    found = plan(
        LLAMA_8B, Job(8192, 64), load_cluster("8xh100-sxm"), recompute=("selective",), recompute_modules=("mlp",)
    )
    seconds = [ranked.bill.step.seconds for ranked in found.best]

    assert {ranked.layout.recompute_modules for ranked in found.best} == {("mlp",)}
    assert seconds == sorted(seconds)
    with pytest.raises(InputError, match="moe: the model has no such module"):
        plan(LLAMA_8B, Job(8192, 64), load_cluster("8xh100-sxm"), recompute_modules=("moe",))


# --- published figures ----------------------------------------------------------------------------------------------


def test_what_each_module_of_deepseek_v3_frees_a_token() -> None:
    """Of its config: hidden 7168, 128 heads of 128 + 64 and 128, experts of 2048, 8 of 256, one shared."""
    freed = {
        name: [(each.kept - each.kept_selective) / TOKENS for each in costs(DEEPSEEK_V3, (name,), ep=8)]
        for name in MODULES
    }

    assert freed["core_attn"] == [4 * 128] * 2  # the log-sum-exp of a head
    assert freed["mla_up_proj"] == [2 * 128 * (192 + 192 + 128)] * 2  # q, k and v
    assert freed["layernorm"] == [2 * 7168 + 4, 2 * (2 * 7168 + 4)]  # a dense layer's second norm is in its matrix
    assert freed["mlp"] == [2 * 3 * 18432, 0]
    assert freed["moe_act"] == [0, 2 * 8 * 2048]  # the product, read by the matrix behind it
    assert freed["shared_experts"] == [0, 2 * 3 * 2048]
    routed = 8 * (2 * 7168 + 2 * 3 * 2048) + 13 * 256 + 8 * 8  # dispatched inputs, gate, up, product; the router's own
    assert freed["moe"] == [0, routed + 2 * 3 * 2048]


def test_what_torchtitans_saved_operations_keep_a_token_of_llama_3_8b() -> None:
    """Of hidden h, queries q, keys k, width f and heads a, as published peaks of torchtitan confirm within 3 %.

    Until 2025: the layer's input, queries, values, gate or up, the last matrix; output and statistic of the core.
    """
    h, q, k, f, a = 4096, 4096, 1024, 14336, 32

    def kept(policy: str) -> float:
        at = loaded(LLAMA_8B, "8xh100-sxm", "fsdp2-torchtitan", TOKENS, 8, recompute_modules=(policy,))
        return at.whole.layers[0].costs.kept_selective / TOKENS

    assert kept("all_but_other_matrices") == 2 * h + 2 * q + 2 * k + 2 * f + 2 * h + 2 * q + 4 * a
    assert kept("all_but_matrices") == 2 * h + 2 * (q + 2 * k) + 2 * h + 4 * f + 2 * h + 2 * q + 4 * a


def test_one_policy_is_a_choice_by_itself() -> None:
    usual, alone = "--recompute-modules core_attn", ("all_but_matrices",)

    assert refused(LLAMA_8B, "fsdp2", recompute_modules=(*alone, "core_attn")) == {
        "RCP003": "--recompute-modules all_but_matrices"
    }
    assert refused(LLAMA_8B, recompute_modules=alone) == {"RCP005": usual}


def test_a_policy_saves_what_experts_exchange_and_runs_their_multiplies_again() -> None:
    """torchtitan 0.3, distributed/activation_checkpoint.py: all_to_all_single is on its list, grouped multiplies and
    the router's are not; of the others, q and v of q, k, v, o are saved, and what the core gives."""
    at = {"recompute": "selective", "recompute_modules": ("all_but_other_matrices",), "micro_batch": 1}
    kept = {}
    for ep in (1, 8):
        found = bill(MIXTRAL, "64xh100-sxm", "fsdp2-torchtitan", ep=ep, **at)
        kept[ep] = next(item.value for item in found.memory.items if item.name == "activations")
    h, kv, tokens, active, layers = 4096, 1024, 4096, 2, 32

    exchanged = 2 * 2 * active * h  # received, and come back
    saved = 2 * (h + h + kv + h) + 4 * 32  # input, q, v, the core with a statistic a head
    assert kept[1] == pytest.approx(layers * tokens * saved, rel=1e-3)
    assert kept[8] - kept[1] == pytest.approx(layers * tokens * exchanged, rel=1e-9)


def test_llama_3_70b_loses_the_published_throughput_to_each_module() -> None:
    """TFLOP/s of 32 H100 in fp8, tp 4, pp 4, vpp 5, 32 sequences of 4,096 tokens.

    Source: NVIDIA-NeMo/Megatron-Bridge, skills/perf-activation-recompute: 709.93 is the reference of that run.
    """
    measured = {("core_attn",): 704, ("mlp",): 593.6, ("mlp", "core_attn"): 586.8, ("core_attn", "layernorm"): 702}
    job, cluster = Job(4096, 32, precision="fp8_tensorwise"), load_cluster("32xh100-sxm")

    def seconds(modules: tuple[str, ...]) -> float:
        layout = Layout(tp=4, pp=4, vpp=5, recompute="selective", recompute_modules=modules)
        return count(load_model("llama-3-70b"), job, cluster, layout).step.seconds

    for modules, rate in measured.items():
        assert seconds(()) / seconds(modules) == pytest.approx(rate / 709.93, abs=0.02)
    assert seconds(("core_attn", "layernorm")) == seconds(("core_attn",))


def test_a_fused_attention_core_has_almost_nothing_to_free() -> None:
    """Users of fused kernels expected most of a layer, and saw 25.52 GB become 24.94: NVIDIA/Megatron-LM, 1225."""
    fused, written = costs(GPT3, ("core_attn",), tp=8)[0], loaded(GPT3, "64xh100-sxm", "megatron-2022", tp=8)
    scores = loaded(GPT3, "64xh100-sxm", "megatron-2022", tp=8, recompute="selective").whole.layers[0].costs

    assert 1 - fused.kept_selective / fused.kept < 0.01
    assert scores.kept == written.whole.layers[0].costs.kept
    assert 1 - scores.kept_selective / scores.kept > 0.6


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_policy_for_a_module_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert refused(LLAMA_8B, recompute_modules=("moe_act", "mlp")) == {"RCP002": "--recompute-modules mlp"}
    assert refused(GEMMA, recompute_modules=("mla_up_proj",)) == {"RCP002": "--recompute-modules core_attn"}
    assert refused(MIXTRAL, recompute_modules=("mlp",)) == {"RCP002": "--recompute-modules core_attn"}
    assert refused(LLAMA_8B, recompute_modules=("core_atn",)) == {"RCP001": "--recompute-modules core_attn"}


def test_a_module_that_the_engine_lacks_is_refused() -> None:
    assert refused(LLAMA_8B, "fsdp2", recompute_modules=("layernorm",)) == {"RCP005": "--recompute-modules core_attn"}
    assert refused(GPT3, "megatron-2022", recompute_modules=("mlp",)) == {"RCP005": "--recompute-modules core_attn"}
    assert refused(LLAMA_8B, "nanotron", recompute_modules=("mlp",)) == {"RCP005": "leave --recompute-modules out"}


def test_a_module_inside_another_is_refused() -> None:
    assert refused(MIXTRAL, recompute_modules=("moe", "moe_act")) == {"RCP003": "--recompute-modules moe"}


def test_modules_without_selective_recompute_are_refused() -> None:
    assert refused(LLAMA_8B, recompute="full", recompute_modules=("mlp",)) == {"RCP006": "--recompute selective"}


@pytest.mark.parametrize("name", engine_names())
def test_an_engine_has_modules_where_it_has_selective_recompute(name: str) -> None:
    found = engine(name)

    assert bool(found.recompute_modules) == ("selective" in found.recomputes)
    assert set(found.recompute_modules) <= {*MODULES, *POLICIES}
    assert found.recompute_modules[:1] in ((), ("core_attn",))


# --- faces ----------------------------------------------------------------------------------------------------------


def test_modules_go_round_through_json_and_flags(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    words = "count deepseek-v3 --on 512xh100-sxm --ep 64 --seq 4096 --batch 512"
    assert main([*words.split(), "--recompute-modules", "mla_up_proj,moe_act", "--json"]) == 1
    first = capsys.readouterr().out
    (tmp_path / "bill.json").write_text(first)
    main(["count", str(tmp_path / "bill.json"), "--json"])
    again = json.loads(capsys.readouterr().out)

    assert json.loads(first)["layout"]["recompute_modules"] == ["mla_up_proj", "moe_act"]
    assert again["layout"] == json.loads(first)["layout"]
    assert again["memory"]["peak_bytes"] == json.loads(first)["memory"]["peak_bytes"]
    main(["count", str(tmp_path / "bill.json"), "--recompute", "full", "--json"])
    assert json.loads(capsys.readouterr().out)["layout"]["recompute_modules"] == []


def test_a_norm_inside_a_matrix_is_said_not_to_run_again() -> None:
    said = "layernorm: a norm that is one kernel with the matrix behind it does not run again"

    assert said in bill(LLAMA_8B, recompute_modules=("core_attn", "layernorm")).assumptions
    assert said not in bill(LLAMA_8B, recompute_modules=("core_attn",)).assumptions


def test_less_recompute_is_advised_in_the_words_of_its_kind() -> None:
    """Under `selective` there are modules to leave out, under `full` layers."""
    bills = [bill(LLAMA_8B, recompute=kind) for kind in ("selective", "full")]
    selective, full = (attack("step", "recompute", each.layout, each.engine) for each in bills)
    without = attack("step", "recompute", bills[1].layout, engine("hf_trainer"))

    assert without == "fewer --recompute-layers, for more memory"
    assert selective == "fewer --recompute-modules, for more memory"
    assert full == "--recompute selective; or fewer --recompute-layers, for more memory"

"""MFU and HFU back from measured tokens a second, under each source's own convention, against what it printed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outlay import Bill, Job, Layout, Model, count, load_cluster, load_model
from outlay.__main__ import main
from outlay.bill import case_of, load
from outlay.job import Measured
from outlay.ladder import rungs
from outlay.measured import CONVENTIONS, Utilisation, flops_of, reached_of
from outlay.show.terminal import bill_lines
from outlay.show.text import Style
from outlay.undivided import layer_flops, parameters

PLAIN = Style(width=100)
BY = {each.name: each for each in CONVENTIONS}
LLAMA = load_model("llama-3.1-8b")


def model_of(folder: Path, **config: Any) -> Model:
    """A model of a config of its own."""
    file = folder / "config.json"
    file.write_text(json.dumps(config))
    return load_model(str(file))


def mpt(folder: Path, layers: int, hidden: int, heads: int, seq: int) -> Model:
    """The MPT of llm-foundry's benchmark: learned positions, biases, a tied head: a GPT-2 of its sizes."""
    return model_of(
        folder, model_type="gpt2", n_layer=layers, n_embd=hidden, n_head=heads, n_positions=seq, vocab_size=50_368
    )


def reached(bill: Bill, convention: str) -> Utilisation:
    found = reached_of(bill)
    assert found is not None
    return next(each for each in found.utilisation if each.convention == convention)


def rate(model: Model, convention: str, seq: int, tokens: float) -> float:
    """Model FLOP/s of one accelerator."""
    return flops_of(BY[convention], model, Job(seq, 1, precision="bf16")) * tokens


# --- published figures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "seq", "parameters_said", "cards", "tokens", "mfu", "hfu", "recompute"),
    [
        (80, 8192, 64, 2048, 64_862_437_376, "512xh100-sxm", 515_636, 41.25, 55.0, "full"),
        (80, 8192, 64, 2048, 64_862_437_376, "32xa100-sxm-80", 11_962, 48.56, 64.75, "full"),
        (48, 7168, 56, 4096, 29_989_894_144, "8xh100-sxm", 14_419, 35.86, 47.81, "full"),
        (40, 5120, 40, 32768, 13_011_240_960, "8xa100-sxm-80", 8_134, 51.69, 68.92, "full"),
        (40, 5120, 40, 2048, 12_853_954_560, "8xh100-sxm", 38_336, 39.79, 39.79, "none"),
        (32, 4096, 32, 65536, 6_918_905_856, "8xa100-sxm-80", 8_108, 46.97, 62.63, "full"),
        (32, 4096, 32, 2048, 6_658_859_008, "128xh100-sxm", 1_340_830, 45.71, 45.71, "none"),
    ],
)
def test_mpt_has_the_mfu_and_hfu_that_its_table_prints(
    tmp_path: Path, layers: int, hidden: int, heads: int, seq: int, parameters_said: int, cards: str, tokens: float,
    mfu: float, hfu: float, recompute: Any,
) -> None:  # fmt: skip
    """mosaicml/llm-foundry@8c8dd48f, scripts/train/benchmarking/README.md: tokens a second of all cards; 0.1 %."""
    model, cluster = mpt(tmp_path, layers, hidden, heads, seq), load_cluster(cards)
    assert parameters(model).total == parameters_said
    job = Job(seq, cluster.ranks, precision="bf16", measured=Measured(tokens / cluster.ranks))
    found = reached(count(model, job, cluster, Layout(recompute=recompute), "fsdp2-llm-foundry"), "llm_foundry")
    assert 100 * found.mfu == pytest.approx(mfu, rel=1e-3)
    assert 100 * found.hfu == pytest.approx(hfu, rel=1e-3)


def test_palm_has_the_mfu_that_its_report_prints(tmp_path: Path) -> None:
    """Chowdhery et al. 2022: 540B on 6,144 TPU v4 of 275 TFLOP/s, 238.3 thousand tokens a second, MFU 46.2 %."""
    palm = model_of(
        tmp_path, model_type="llama", num_hidden_layers=118, hidden_size=18_432, intermediate_size=73_728,
        num_attention_heads=48, num_key_value_heads=1, head_dim=256, vocab_size=256_000, tie_word_embeddings=True,
    )  # fmt: skip
    assert parameters(palm).total == pytest.approx(540.35e9, rel=1e-4)
    assert 100 * rate(palm, "palm", 2048, 238_300 / 6144) / 275e12 == pytest.approx(46.2, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "seq", "tokens", "mfu"),
    [
        *(("llama-3-8b", 8192, tokens, mfu) for tokens, mfu in ((2904, 56.8), (2973, 58.2))),
        ("llama-3-70b", 8192, 331, 51.7),
        *(("llama-2-13b", 4096, tokens, mfu) for tokens, mfu in ((2162, 61.1), (1914, 54.1), (1904, 53.8))),
        *(("llama-2-70b", 4096, tokens, mfu) for tokens, mfu in ((355, 50.8), (353, 50.5))),
    ],
)
def test_torchtitan_of_2024_prints_the_mfu_of_palm(name: str, seq: int, tokens: float, mfu: float) -> None:
    """pytorch/torchtitan, docs/performance.md of August 2024, 64 A100: whole tokens a second, three digits of MFU."""
    rounding = 0.5 / tokens + 0.05 / mfu
    assert 100 * rate(load_model(name), "palm", seq, tokens) / 312e12 == pytest.approx(mfu, rel=1e-3 + rounding)


@pytest.mark.parametrize(
    ("name", "seq", "tokens", "tflops"),
    [
        *(("llama-3.1-405b", 8192, tokens, tflops) for tokens, tflops in ((326, 822), (843, 2129), (1048, 2646))),
        *(("llama-3-70b", 8192, tokens, tflops) for tokens, tflops in ((4864, 2186), (7397, 3321), (1619, 727))),
        ("llama-3-70b", 4096, 1638, 710),
    ],
)
def test_megatron_bridge_prints_causal_flops_without_the_embedding(
    name: str, seq: int, tokens: float, tflops: float
) -> None:
    """NVIDIA-NeMo/Megatron-Bridge@067f987d, performance-summary-archive.md: Llama-3 405B and 70B, TFLOP/s a GPU."""
    rounding = 0.5 / tokens + 0.5 / tflops
    found = rate(load_model(name), "megatron_bridge", seq, tokens) / 1e12
    assert found == pytest.approx(tflops, rel=1e-3 + rounding)


@pytest.mark.parametrize(
    ("name", "seq", "tokens", "tflops"),
    [
        *(("llama-3-70b", 8192, tokens, tflops) for tokens, tflops in ((1533, 738), (1549, 746), (1524, 734))),
        ("gpt3-175b", 2048, 782, 842),
    ],
)
def test_nemo_of_2024_prints_full_attention_without_the_embedding(
    name: str, seq: int, tokens: float, tflops: float
) -> None:
    """NVIDIA/NeMo@15d767b645 and @141aa8e2f4, performance_summary.md of container 24.07: TFLOP/s a GPU."""
    rounding = 0.5 / tokens + 0.5 / tflops
    assert rate(load_model(name), "nemo", seq, tokens) / 1e12 == pytest.approx(tflops, rel=1e-3 + rounding)


@pytest.mark.parametrize(
    ("name", "cards", "batch", "seconds", "mfu", "hfu"),
    [
        ("gpt-22b", 8, 4, 1.10, 41.5, 43.7),
        ("gpt-175b", 64, 64, 13.75, 51.4, 52.8),
        ("gpt-530b", 280, 280, 37.83, 56.0, 57.0),
        ("gpt-1t", 512, 512, 71.49, 56.3, 57.0),
    ],
)
def test_megatron_has_the_mfu_and_hfu_of_its_paper(
    name: str, cards: int, batch: int, seconds: float, mfu: float, hfu: float
) -> None:
    """Korthikanti et al. 2022, table 5: selective recompute of the attention core; seconds and percents as printed."""
    stages = cards // 8
    layout = Layout(tp=8, pp=stages, recompute="selective", recompute_modules=("core_attn",))
    job = Job(2048, batch, precision="fp16", measured=Measured(0.0, seconds))
    found = reached(
        count(load_model(name), job, load_cluster(f"{cards}xa100-sxm-80"), layout, "megatron-2022"), "megatron"
    )
    rounding = 0.005 / seconds + 0.05 / mfu
    assert 100 * found.mfu == pytest.approx(mfu, rel=1e-3 + rounding)
    assert 100 * found.hfu == pytest.approx(hfu, rel=1e-3 + rounding)


@pytest.mark.parametrize("name", ["gpt-18b", "gpt-39b", "gpt-76b", "gpt-145b", "gpt-310b", "gpt-1t"])
def test_megatron_with_full_recompute_counts_the_flops_of_its_formula(name: str) -> None:
    """Narayanan et al. 2021, section 5.1: 96 B s L h^2 (1 + s / 6h + V / 16 L h), with every forward pass run again."""
    model, seq = load_model(name), 2048
    job = Job(seq, 1, precision="fp16", attention_flops="full")
    layers, hidden, vocab = model.layers, model.hidden, model.vocab
    formula = 96 * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))
    again, _ = layer_flops(model, job, ())
    assert flops_of(BY["megatron"], model, job) + again / seq == pytest.approx(formula, rel=1e-9)


# --- laws -------------------------------------------------------------------------------------------------------------


def bill(measured: Measured | None, **axes: Any) -> Bill:
    return count(LLAMA, Job(8192, 64, measured=measured), load_cluster("64xh100-sxm"), Layout(**axes))


def test_tokens_and_seconds_say_the_same() -> None:
    seconds = reached_of(bill(Measured(0.0, 0.8)))
    assert seconds is not None
    tokens = reached_of(bill(Measured(seconds.tokens_per_second_per_device)))
    assert tokens is not None and tokens.step_seconds == pytest.approx(0.8)
    assert [each.mfu for each in tokens.utilisation] == pytest.approx([each.mfu for each in seconds.utilisation])


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_run_that_takes_as_long_as_predicted_has_the_predicted_utilisation(recompute: Any) -> None:
    of = bill(None, recompute=recompute)
    found = reached_of(bill(Measured(0.0, of.step.seconds), recompute=recompute))
    assert found is not None
    assert found.step_time_error == pytest.approx(0) and found.step_time_in_band
    assert found.utilisation[0].mfu == pytest.approx(of.step.mfu)
    assert found.utilisation[0].hfu == pytest.approx(of.step.hfu)
    for each in found.utilisation:
        assert (each.mfu, each.hfu) == pytest.approx((each.predicted_mfu, each.predicted_hfu))
        assert each.hfu >= each.mfu * (1 - 1e-12)


def test_own_hfu_follows_from_the_same_share_of_layers_that_run_again() -> None:
    """Under full recompute HFU is up to 4/3 of MFU, less the head's part, which does not run again."""
    for each in reached_of(bill(Measured(9e3), recompute="full")).utilisation:  # type: ignore[union-attr]
        assert 1.2 < each.hfu / each.mfu <= 4 / 3 + 1e-9


def test_full_attention_and_the_embedding_make_mfu_larger() -> None:
    by = {each.convention: each.mfu for each in reached_of(bill(Measured(9e3))).utilisation}  # type: ignore[union-attr]
    assert by["palm"] == by["llm_foundry"] > by["nemo"] >= by["megatron"] > by["megatron_bridge"]
    assert by["outlay, causal"] == pytest.approx(by["megatron_bridge"], rel=2e-3)


def test_only_the_own_convention_counts_a_model_that_is_trained_in_part() -> None:
    job = Job(8192, 64, adapter="lora", measured=Measured(9e3))
    found = reached_of(count(LLAMA, job, load_cluster("64xh100-sxm"), Layout()))
    assert found is not None
    assert [each.convention for each in found.utilisation] == ["outlay, causal"]


def test_experts_that_a_token_does_not_reach_are_not_counted() -> None:
    mixtral = load_model("mixtral-8x7b")
    flops = flops_of(BY["palm"], mixtral, Job(4096, 1, precision="bf16"))
    assert flops < 6 * parameters(mixtral).total / 2


def test_the_ladder_has_the_measured_rung_of_the_step() -> None:
    job = Job(8192, 64, measured=Measured(0.0, 0.8))
    at = load(case_of(LLAMA, job, load_cluster("64xh100-sxm"), Layout())[0])
    assert {rung.name: rung.value for rung in rungs("step", at)}["measured"] == 0.8
    assert {rung.name: rung.value for rung in rungs("memory", at)}["measured"] is None
    bare = load(case_of(LLAMA, replace(job, measured=None), load_cluster("64xh100-sxm"), Layout())[0])
    assert {rung.name: rung.value for rung in rungs("step", bare)}["measured"] is None


# --- the faces --------------------------------------------------------------------------------------------------------


ASK = ["count", "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "8192", "--batch", "64"]


@pytest.mark.parametrize(
    ("text", "rate_said", "seconds"),
    [("11.2k", 11_200, None), ("11200", 11_200, None), ("4.2s", None, 4.2), ("850ms", None, 0.85)],
)
def test_a_rate_and_a_duration_differ_by_their_unit(
    capsys: pytest.CaptureFixture[str], text: str, rate_said: float | None, seconds: float | None
) -> None:
    main([*ASK, "--measured", text, "--json"])
    found = json.loads(capsys.readouterr().out)["measured"]
    assert rate_said is None or found["tokens_per_second_per_device"] == pytest.approx(rate_said)
    assert seconds is None or found["step_seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "-5", "fast", "nan", "1e30", "4.2min", "0s"])
def test_what_is_neither_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*ASK, f"--measured={text}", "--json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert fault["code"] == "JOB000" and "11.2k" in fault["rule"]


def test_the_answer_has_the_measured_step_and_a_table_of_conventions() -> None:
    text = "\n".join(bill_lines(bill(Measured(9e3)), PLAIN))
    assert "MEASURED  910 ms a step, 9,000 tokens/s a card" in text
    assert all(f"    {each.name} " in text for each in CONVENTIONS)
    assert "REACHED" not in "\n".join(bill_lines(bill(None), PLAIN))


def test_more_than_the_accelerators_can_do_is_said() -> None:
    assert "more than these accelerators can do" in " ".join("\n".join(bill_lines(bill(Measured(9e4)), PLAIN)).split())

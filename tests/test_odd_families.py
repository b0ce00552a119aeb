"""Families with parts of their own, and parameters beside a language model."""

import json
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import LLAMA_8B
from outlay import Job, Layout, Model, count, load_cluster
from outlay.cli.main import main
from outlay.errors import InputError
from outlay.layout.sizes import compressed_keys
from outlay.model.families import FAMILIES
from outlay.model.huggingface import read_config
from outlay.model.model import with_extra
from outlay.undivided import parameters, sequence_flops
from test_cli import answer
from test_families import CASES
from test_huggingface import CONFIGS

V4 = read_config(CONFIGS / "deepseek-v4-flash.json")
GEMMA4 = read_config(CONFIGS / "gemma-4-26b-a4b.json")
ONE = Job(sequence_length=4096, global_batch=1)


def first_case(kind: str) -> dict[str, object]:
    """The first small config of a family."""
    return {"model_type": kind} | json.loads(next(row for row in CASES if row["model_type"] == kind)["fields"])


# --- what a token sees ------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 16), st.integers(0, 50))
def test_compressed_keys_are_the_mean_of_what_each_token_may_see(windows: int, rate: int, selected: int) -> None:
    sequence = windows * rate
    seen = [min(place // rate, selected or sequence) for place in range(1, sequence + 1)]

    assert isclose(float(compressed_keys(sequence, rate, selected)), sum(seen) / sequence, abs_tol=1e-9)


def test_the_layers_of_deepseek_v4_follow_the_ratios_of_its_file() -> None:
    """Two layers see a window alone; then sparse and heavily compressed keys take turns."""
    names = [V4.blocks[kind].name for kind in V4.pattern]

    assert names == ["sliding"] * 2 + ["sparse", "compressed"] * 20 + ["sparse"]
    assert [block.compressed.rate for block in V4.blocks if block.compressed] == [0, 4, 128]
    assert [block.compressed.rate for block in V4.mtp_blocks if block.compressed] == [0]


def test_compressed_keys_make_long_sequences_cheap() -> None:
    """From 4 k to 64 k tokens full attention grows sixteenfold; here the keys of a token grow by 480 + window."""
    short, long = (sequence_flops(V4, Job(sequence_length=size, global_batch=1)) / size for size in (4096, 65536))

    assert long < 1.15 * short


# --- streams, borrowed keys, inputs of a layer ------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "streams"), [("deepseek_v4", 4), ("gemma3n_text", 4), ("gemma4_text", 1)])
def test_every_stream_goes_from_layer_to_layer(kind: str, streams: int) -> None:
    config = first_case(kind)
    model, plain = read_config(config), read_config(config | {"hc_mult": 1, "altup_num_inputs": 1})

    assert model.streams == streams
    assert sent_by_stages(model) == streams * sent_by_stages(plain)


def sent_by_stages(model: Model) -> float:
    """Bytes that a rank of a pipeline of two sends in a step."""
    layout, cluster = Layout(pp=2, split=(model.layers - 2, 2)), load_cluster("8xh100-sxm")
    bill = count(model, Job(sequence_length=256, global_batch=16), cluster, layout, "megatron")
    return next(item.bytes for item in bill.traffic if item.axis == "pp")


def test_the_last_layers_of_gemma_borrow_keys_of_their_own_kind() -> None:
    model = read_config(first_case("gemma4_text") | {"num_kv_shared_layers": 2})

    borrowed = [block.attention.borrowed for kind in model.pattern if (block := model.blocks[kind]).attention]
    assert borrowed == [False] * 4 + [True] * 2


def test_full_layers_of_gemma_4_have_wider_heads_and_no_matrix_of_values() -> None:
    sliding, full = (block.attention for block in GEMMA4.blocks)
    assert sliding and full
    assert (sliding.head_dim, sliding.kv_heads, sliding.values, sliding.window) == (256, 8, "projected", 1024)
    assert (full.head_dim, full.kv_heads, full.values, full.window) == (512, 2, "keys", 0)


def test_the_last_layer_of_gemma_4_sees_all_keys_whatever_its_list_says() -> None:
    """As transformers does: it warns, and forces the layer to full attention."""
    model = read_config(first_case("gemma4_text") | {"layer_types": ["sliding_attention"] * 6})

    windows = [block.attention.window for kind in model.pattern if (block := model.blocks[kind]).attention]
    assert windows == [512] * 5 + [0]


def test_experts_of_gemma_4_that_are_switched_on_need_their_sizes() -> None:
    config = {key: value for key, value in first_case("gemma4_text").items() if key != "num_experts"}
    with pytest.raises(InputError) as caught:
        read_config(config | {"enable_moe_block": True, "top_k_experts": None})

    (fault,) = caught.value.faults
    assert (fault.code, fault.fix) == ("MOD004", "add num_experts and top_k_experts to the file")


@pytest.mark.parametrize("kind", [kind for kind, family in FAMILIES.items() if family.notes])
def test_what_a_family_leaves_out_is_said_in_every_model_of_it(kind: str) -> None:
    made = read_config(first_case(kind)) if any(row["model_type"] == kind for row in CASES) else None

    assert made is None or {*FAMILIES[kind].notes} <= {*made.notes}


# --- parameters beside the language model -----------------------------------------------------------------------------


def test_extra_parameters_are_counted_whole_and_have_no_flops() -> None:
    more = with_extra(LLAMA_8B, 570_000_000)

    assert parameters(more).total == parameters(LLAMA_8B).total + 570_000_000
    assert parameters(more).active == parameters(LLAMA_8B).active
    assert sequence_flops(more, ONE) == sequence_flops(LLAMA_8B, ONE)


def test_extra_parameters_stand_on_the_first_stage_and_are_not_cut_by_tp() -> None:
    """18 bytes each, of which Megatron's optimizer shards 12 over the replicas: 2 here."""
    plain, more = (
        count(model, Job(4096, 64), load_cluster("16xh100-sxm"), Layout(tp=4, pp=2), "megatron")
        for model in (LLAMA_8B, with_extra(LLAMA_8B, 10**9))
    )
    grown = {
        item.name: item.value - before.value
        for before, item in zip(plain.memory.items, more.memory.items, strict=True)
        if item.name in ("weights", "gradients", "optimizer")
    }

    assert grown == {"weights": 2 * 10**9, "gradients": 4 * 10**9, "optimizer": 12 / 2 * 10**9}
    assert plain.memory.ranks[1].peak_bytes == more.memory.ranks[1].peak_bytes


def test_extra_parameters_are_said_once() -> None:
    twice = with_extra(with_extra(LLAMA_8B, 5), 7)

    assert twice.extra_parameters == 7
    assert [note for note in twice.notes if note.startswith("extra")] == [
        "extra parameters 7: on the first stage; no FLOPs and no activations of them are counted"
    ]


def test_a_flag_a_file_and_a_bill_give_the_same_extra_parameters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base = ["count", "llama-3.1-8b", "--on", "8xh100-sxm"]
    (tmp_path / "case.toml").write_text("extra_parameters = 570_000_000")
    flagged = answer(capsys, *base, "--extra-parameters", "0.57e9")
    (tmp_path / "bill.json").write_text(json.dumps(flagged))
    filed = answer(capsys, *base, "--config", str(tmp_path / "case.toml"))
    again = answer(capsys, "count", str(tmp_path / "bill.json"))

    assert flagged["model"] == filed["model"] == again["model"]
    assert flagged["model"]["parameters"]["total"] == 8_030_261_248 + 570_000_000


@pytest.mark.parametrize("text", ["0", "-5", "x", "1e13", "0.5"])
def test_extra_parameters_are_a_whole_number(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["count", "llama-3.1-8b", "--on", "8xh100-sxm", f"--extra-parameters={text}"]) == 2
    assert "--extra-parameters is not a count" in capsys.readouterr().err

"""A profile of one's own constants: what it replaces, what refuses it, how it is kept, and how steps are fitted.

Measured steps are of the README of mosaicml/llm-foundry at 8c8dd48f, scripts/train/benchmarking: the section "H100 80GB
BF16", all rows of 8 accelerators (FSDP FULL_SHARD, mixed precision DEFAULT), tokens a second and accelerator.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outlay.bill import count
from outlay.cli.main import main
from outlay.cluster.catalogue import cluster
from outlay.engines.profile import Constant, Profile
from outlay.engines.profile_file import profile_text, read_profile
from outlay.engines.profiled import profiled
from outlay.engines.rates import rates
from outlay.engines.tables import engine, kernels_of, precision
from outlay.errors import InputError
from outlay.job import Job, recipe_of
from outlay.layout.axes import Layout
from outlay.model import catalogue
from outlay.show.fit import fit_text
from outlay.show.profile import profile_of
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.validate import HEADER, compare_files
from outlay.validate.fit import Fit, fit_files
from outlay.validate.fit_rows import fit_rows, sides
from test_json import faults

SHAPES = {"760m": (24, 1536, 12), "1b": (24, 2048, 16), "3b": (32, 2560, 20), "7b": (32, 4096, 32),
          "13b": (40, 5120, 40), "30b": (48, 7168, 56)}  # fmt: skip
# Line of the README, model, sequence, micro-batch, global batch, recompute, tokens/s of one accelerator.
MPT = (
    (101, "30b", 4096, 1, 168, "full", 1802), (104, "30b", 2048, 3, 504, "full", 2002),
    (105, "30b", 1024, 6, 1008, "full", 2084), (106, "13b", 32768, 1, 24, "full", 1976),
    (108, "13b", 4096, 10, 240, "full", 4717), (112, "13b", 2048, 2, 16, "none", 4792),
    (114, "7b", 65536, 1, 16, "full", 1956), (115, "7b", 32768, 2, 32, "full", 3318),
    (116, "7b", 8192, 8, 128, "full", 6935), (117, "7b", 4096, 16, 256, "full", 8611),
    (118, "7b", 2048, 6, 48, "none", 10643), (119, "7b", 1024, 64, 1024, "full", 10203),
    (121, "3b", 32768, 3, 144, "full", 5873), (122, "3b", 16384, 1, 48, "none", 11152),
    (129, "3b", 512, 40, 1920, "none", 27965), (132, "1b", 16384, 2, 64, "none", 19649),
    (133, "1b", 8192, 3, 96, "none", 29157), (134, "1b", 4096, 7, 224, "none", 38535),
    (139, "1b", 1024, 18, 576, "none", 48910), (140, "1b", 512, 56, 1792, "none", 52275),
    (142, "760m", 16384, 3, 48, "none", 27815), (143, "760m", 8192, 6, 96, "none", 41825),
    (147, "760m", 2048, 24, 384, "none", 63147), (148, "760m", 1024, 48, 768, "none", 78581),
)  # fmt: skip
Row = tuple[int, str, int, int, int, str, float]
FOUNDRY = "fsdp2-llm-foundry"


def table(path: Path, rows: Sequence[Row], **changes: str) -> Path:
    """A file of measured runs."""
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADER)
    writer.writeheader()
    for line, model, sequence, micro_batch, batch, recompute, rate in rows:
        layers, hidden, heads = SHAPES[model]
        known = {
            "source": "mosaicml/llm-foundry benchmarking README", "source_locator": f"README.md#L{line}",
            "model": f"MPT-{model}", "layers": layers, "hidden": hidden, "heads": heads, "ffn": 4 * hidden,
            "vocab": 50368, "seq_len": sequence, "accelerator": "H100-80GB", "n_accel": 8,
            "precision": "amp_bf16/fsdp_mp=DEFAULT", "optimizer": "DecoupledAdamW", "tp": 1, "pp": 1,
            "zero_or_fsdp": "FSDP FULL_SHARD", "micro_batch": micro_batch, "global_batch": batch,
            "recompute": recompute, "flash_attn": "yes", "tokens_per_s_per_accel": rate,
        }  # fmt: skip
        writer.writerow(known | changes)
    path.write_text(text.getvalue())
    return path


def constant(name: str, value: float) -> Constant:
    return Constant(name, value, "assumed", "a test")


def own(hardware: dict[str, float], kernels: dict[str, float], name: str = FOUNDRY) -> Profile:
    held = tuple(constant(*each) for each in hardware.items())
    return Profile(
        "mine", "h100-sxm", held, name if kernels else "", tuple(constant(*each) for each in kernels.items())
    )


WRONG = own({"matmul_share": 0.8}, {"attention_share": 0.5, "attention_back_share": 0.25, "elementwise": 1.0})


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """A profile as a user writes it."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\n[accelerator]\nname = "h100-sxm"\nmatmul_share = 0.5\n'
        'nic_share = { value = 0.6, kind = "measured", source = "nccl-tests", date = "2026-11-30", rows = "3 runs" }\n'
        '[engine]\nname = "fsdp2"\nelementwise = 3\nstep_seconds = "0.1 s"\nattention_share = 0.2\n'
    )
    return str(file)


ASK = ["llama-3.1-8b", "--on", "16xh100-sxm", "--engine", "fsdp2", "--seq", "4096", "--batch", "64"]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


# --- what it replaces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", ["h100-sxm", "a100-sxm-80", "mi300x", "p5.48xlarge", "l40s", "tpu-v5p"])
@pytest.mark.parametrize("driver", ["megatron", "megatron-2022", FOUNDRY, "maxtext"])
def test_a_printed_profile_changes_nothing(card: str, driver: str, tmp_path: Path) -> None:
    file = tmp_path / "printed.toml"
    file.write_text(profile_text(profile_of(card, driver)))
    plain, of = cluster(f"16x{card}"), engine(driver)
    here, under = profiled(read_profile(str(file)), plain, of)
    job = Job(sequence_length=2048, global_batch=16, precision="bf16")
    recipe, how = recipe_of(job, of, plain.accelerator), precision("bf16")

    assert replace(here, notes=(), unverified=()) == replace(plain, notes=(), unverified=())
    assert replace(under, profile=None) == of
    assert rates(here.accelerator, how, kernels_of(under), recipe) == rates(
        plain.accelerator, how, kernels_of(of), recipe
    )
    assert kernels_of(under).loss == kernels_of(of).loss


def seconds(profile: Profile | None, on: str = "16xh100-sxm", driver: str = FOUNDRY) -> float:
    where, by = cluster(on), engine(driver)
    where, by = profiled(profile, where, by) if profile else (where, by)
    job = Job(sequence_length=4096, global_batch=64)
    return count(catalogue.load("llama-3.1-8b"), job, where, Layout(), by).step.seconds


def test_a_fixed_cost_is_added_to_every_step() -> None:
    assert seconds(own({}, {"step_seconds": 0.533})) - seconds(None) == pytest.approx(0.533 - 0.033)


@pytest.mark.parametrize(
    ("hardware", "kernels"),
    [
        ({"matmul_share": 0.5}, {}), ({"memory_share": 0.5}, {}), ({"matmul_depth": 1000}, {}),
        ({}, {"attention_share": 0.2}), ({}, {"attention_back_share": 0.1}), ({}, {"elementwise": 3}),
        ({}, {"loss_moves": 30}), ({}, {"loss_moves_back": 30}), ({}, {"straggler_share": 0.1}),
        ({}, {"wire_accesses": 20}),
    ],
)  # fmt: skip
def test_every_constant_reaches_the_step(hardware: dict[str, float], kernels: dict[str, float]) -> None:
    assert seconds(own(hardware, kernels)) > seconds(None) * 1.001


def test_the_share_of_a_network_counts_between_nodes_alone() -> None:
    slow = own({"nic_share": 0.05}, {})

    assert seconds(slow) > seconds(None)
    assert seconds(slow, "8xh100-sxm") == seconds(None, "8xh100-sxm")


def test_constants_of_another_engine_are_not_used_and_the_answer_says_so() -> None:
    here, _ = profiled(WRONG, cluster("16xh100-sxm"), engine("megatron"))

    assert seconds(own({}, {"elementwise": 9.0}), driver="megatron") == seconds(None, driver="megatron")
    assert any("not used: the engine is megatron" in note for note in here.notes)


# --- every answer, and every refusal --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["count", "memory", "traffic", "recompute", "explain step", "draw", "compare tp=1 tp=2", "plan --space lean"],
)
def test_every_answer_names_the_profile(words: str, mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *rest = words.split()
    places = 2 if command == "compare" else 1 if command == "explain" else 0
    line = [command, *rest[:places], *ASK, *rest[places:], "--profile", mine]

    assert "profile mine" in " ".join(answer(capsys, *line)[1].split())
    assert '"mine"' in answer(capsys, *line, "--json")[1] or "profile mine" in answer(capsys, *line, "--json")[1]


def test_a_bill_that_is_read_back_is_the_same(mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first, _ = answer(capsys, "count", *ASK, "--profile", mine, "--json")
    bill = tmp_path / "bill.json"
    bill.write_text(first)
    larger = [*ASK[:2], "32xh100-sxm", *ASK[3:]]

    assert answer(capsys, "count", str(bill), "--json")[1] == first
    assert json.loads(first)["profile"]["kernels"][0] == {
        "name": "elementwise", "value": 3.0, "kind": "assumed", "source": "not said", "date": "", "rows": "",
    }  # fmt: skip
    assert faults(OUTPUT_SCHEMAS["bill"](), json.loads(first)) == []
    assert (
        answer(capsys, "count", str(bill), "--on", "32xh100-sxm", "--json")[1]
        == answer(capsys, "count", *larger, "--profile", mine, "--json")[1]
    )


@pytest.mark.parametrize(
    ("place", "value"), [("name", "elementwisest"), ("value", -1.0), ("value", 1e9), ("kind", "felt")]
)
def test_a_bill_with_a_broken_profile_is_refused(
    place: str, value: object, mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(answer(capsys, "count", *ASK, "--profile", mine, "--json")[1])
    made["profile"]["kernels"][0][place] = value
    bill = tmp_path / "bill.json"
    bill.write_text(json.dumps(made))
    code, _, error = answer(capsys, "count", str(bill))

    assert code == 2
    assert f"profile.kernels.0.{place}" in error


@pytest.mark.parametrize("command", ["count", "plan"])
def test_another_accelerator_refuses_it_by_name(command: str, mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = answer(capsys, command, "llama-3.1-8b", "--on", "8xa100-sxm-80", "--profile", mine)

    assert code == 2
    assert "PRF002" in error
    assert "a100-sxm-80" in error
    assert "h100-sxm" in error


def test_a_file_tells_all_its_faults_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'names = "x"\n[accelerator]\nname = "h100-sxm"\nmatmul_share = 1.2\nmatmul_shere = 0.5\n'
        'launch_seconds = 5\nnic_share = { value = 0.5, kind = "guessed", sauce = "x" }\n'
        '[engine]\nname = "fsdp9"\nelementwise = "1.7"\nwire_accesses = -1\n'
    )
    with pytest.raises(InputError) as caught:
        read_profile(str(file))
    said = "\n".join(f"{fault.what} {fault.rule}" for fault in caught.value.faults)

    for place in (
        "names", "accelerator.matmul_share is out", "matmul_shere", "launch_seconds has no unit", "nic_share.kind",
        "sauce", "fsdp9", "engine.elementwise", "engine.wire_accesses",
    ):  # fmt: skip
        assert place in said


@pytest.mark.parametrize("text", [None, "a = [", 'name = "x"\n', "accelerator = 3\n"])
def test_what_is_no_profile_is_refused(text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.toml"
    if text is not None:
        file.write_text(text)
    code, _, error = answer(capsys, "count", *ASK, "--profile", str(file))

    assert code == 2
    assert "PRF001" in error or "HW007" in error


def test_a_config_file_may_name_it(mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f"profile = {json.dumps(mine)}\n")

    assert (
        answer(capsys, "count", *ASK, "--config", str(config), "--json")[1]
        == answer(capsys, "count", *ASK, "--profile", mine, "--json")[1]
    )


# --- fitted ---------------------------------------------------------------------------------------------------------

ALTERED = own(
    {"matmul_share": 0.61},
    {"attention_share": 0.4, "attention_back_share": 0.19, "elementwise": 1.35, "step_seconds": 0.058},
)
SHORT = tuple(  # one micro-batch, of small models a short one: so that the fixed cost of a step shows
    (line, model, seq, 1, 8, again, 1.0) if model in ("760m", "1b") else (line, model, seq, mbs, 8 * mbs, again, 1.0)
    for line, model, seq, mbs, _, again, _ in MPT
)


def counted(path: Path, rows: Sequence[Row], profile: Profile) -> Path:
    """The rows with the steps that outlay counts under a profile."""
    found = compare_files([table(path, rows)], profile=profile).rows
    times = [row.predicted_step_time_s or 0.0 for row in found]
    rates = [
        (line, model, seq, mbs, batch, again, batch * seq / (8 * time))
        for (line, model, seq, mbs, batch, again, _), time in zip(rows, times, strict=True)
    ]
    return table(path, rates)


def values(fit: Fit) -> dict[str, float]:
    return {each.name: each.value for each in fit.fitted}


def test_constants_that_made_the_steps_are_found_again(tmp_path: Path) -> None:
    fit = fit_files([counted(tmp_path / "runs.csv", SHORT, ALTERED)])
    made = {each.name: each.value for each in (*ALTERED.hardware, *ALTERED.kernels)}

    assert values(fit) == pytest.approx(made, rel=5e-3)
    assert fit.inside.mean < 1e-3
    assert fit.held_out is not None
    assert fit.held_out.mean < 1e-3
    assert fit.before.mean > 0.05


FITTED = MPT[::3]  # 8 rows: 1,024 to 65,536 tokens, 760 million to 30 billion parameters


@pytest.mark.parametrize("base", [None, WRONG], ids=["from what is known", "from constants that are wrong"])
def test_eight_published_steps_predict_the_others(base: Profile | None, tmp_path: Path) -> None:
    rest = table(tmp_path / "rest.csv", [row for row in MPT if row not in FITTED])
    fit = fit_files([table(tmp_path / "eight.csv", FITTED)], base=base)
    errors = np.array([row.step_time_error for row in compare_files([rest], profile=fit.profile).rows], float)

    assert errors.size == 16
    assert np.abs(errors).mean() <= 0.03
    assert fit.inside.rows == 8
    assert fit.left_out is not None
    assert fit.inside.mean <= fit.left_out.mean <= 0.04


def test_a_row_left_out_is_predicted_as_by_a_fit_of_the_others(tmp_path: Path) -> None:
    far = (*FITTED[:-1], (*FITTED[-1][:-1], FITTED[-1][-1] * 0.85))
    row = fit_files([table(tmp_path / "far.csv", far)]).rows[-1]
    others = fit_files([table(tmp_path / "others.csv", far[:-1])]).profile
    (alone,) = compare_files([table(tmp_path / "alone.csv", far[-1:])], profile=others).rows

    assert row.error_without == pytest.approx(alone.step_time_error, abs=0.02)
    assert abs(row.error_without or 0.0) > abs(row.error) + 0.02


def test_the_fitted_file_gives_the_errors_that_the_fit_says(tmp_path: Path) -> None:
    runs, file = table(tmp_path / "eight.csv", FITTED), tmp_path / "mine.toml"
    fit = fit_files([runs], base=WRONG)
    file.write_text(fit_text(fit))
    again = compare_files([runs], profile=read_profile(str(file)))

    assert [row.step_time_error for row in again.rows] == pytest.approx([row.error for row in fit.rows])
    assert read_profile(str(file)) == replace(fit.profile, name="own")
    assert again.profile == "own"


def test_steps_that_look_alike_hold_what_they_cannot_tell_apart(tmp_path: Path) -> None:
    alike = [row for row in MPT if row[2] in (1024, 2048) and row[5] == "none"]
    fit = fit_files([table(tmp_path / "alike.csv", alike)])

    assert not {"attention_share", "attention_back_share"} <= {each.name for each in fit.fitted if not each.tied}
    assert any("attention_back_share tied" in said or "attention_back_share held" in said for said in fit.said)


def test_a_third_is_held_out_and_one_layout_is_on_one_side(tmp_path: Path) -> None:
    twice = [
        *MPT,
        *((line, model, seq, mbs, 2 * batch, again, rate) for line, model, seq, mbs, batch, again, rate in MPT),
    ]
    rows, _ = fit_rows([table(tmp_path / "twice.csv", twice)])
    inside, outside = sides(rows)
    few, none = sides(rows[:11])

    assert len(inside) + len(outside) == 48
    assert 12 <= len(outside) <= 16
    assert not {row.layout for row in inside} & {row.layout for row in outside}
    assert (len(few), none) == (11, ())
    assert sides(tuple(reversed(rows)))[1] == tuple(reversed(outside))


def test_the_same_row_twice_counts_once(tmp_path: Path) -> None:
    rows, said = fit_rows([table(tmp_path / "twice.csv", [*FITTED, *FITTED[:2]])])

    assert len(rows) == 8
    assert said == ("2 rows left out: an earlier row's case and time again",)


def test_a_fit_that_is_stopped_keeps_its_best(tmp_path: Path) -> None:
    def report(done: int, total: int) -> None:
        assert done <= total
        if done == 110:  # in the second iteration of 8 rows and 5 constants
            raise KeyboardInterrupt

    fit = fit_files([table(tmp_path / "eight.csv", FITTED)], base=WRONG, report=report)

    assert fit.stopped
    assert fit.left_out is None
    assert fit.inside.mean < fit.before.mean


@pytest.mark.parametrize(
    ("rows", "changes", "code"),
    [(MPT[:2], {}, "FIT001"), (MPT[:4], {"accelerator": "?"}, "FIT001"), ((), {}, "FIT001")],
)
def test_too_few_steps_are_refused(
    rows: Sequence[Row], changes: dict[str, str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = answer(capsys, "validate", str(table(tmp_path / "few.csv", rows, **changes)), "--fit")

    assert status == 2
    assert code in error


def test_a_fit_is_of_one_accelerator_and_one_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = table(tmp_path / "h.csv", MPT[:4])
    other = table(tmp_path / "a.csv", MPT[:4], accelerator="A100-80GB")
    status, _, error = answer(capsys, "validate", str(first), str(other), "--fit")

    assert status == 2
    assert "FIT002" in error
    assert "4 rows of a100-sxm-80" in error


def test_rows_of_another_accelerator_are_skipped_by_name(tmp_path: Path) -> None:
    (row,) = compare_files([table(tmp_path / "a.csv", MPT[:1], accelerator="A100-80GB")], profile=WRONG).rows

    assert row.status == "skipped"
    assert row.reason == "a100-sxm-80: profile mine is of h100-sxm"


def test_the_engine_of_an_unknown_source_can_be_named(tmp_path: Path) -> None:
    runs = table(tmp_path / "own.csv", FITTED, source="our cluster")

    assert {row.engine for row in compare_files([runs]).rows} == {"fsdp2"}
    assert {row.engine for row in compare_files([runs], engine="fsdp2-torchtitan").rows} == {"fsdp2-torchtitan"}


def test_the_command_writes_a_profile_and_equal_rows_give_equal_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, file = str(table(tmp_path / "eight.csv", FITTED)), tmp_path / "mine.toml"
    words = ("validate", runs, "--fit", "--date", "2024-03-01")
    code, said, _ = answer(capsys, *words, "-o", str(file))

    assert code == 0
    assert "mean error" in said
    assert "each left out" in said
    assert read_profile(str(file)).hardware[0].date == "2024-03-01"
    assert "eight.csv lines 2, 3, 4" in read_profile(str(file)).hardware[0].rows
    assert answer(capsys, *words, "-o", str(file))[0] == 2  # never over a file that exists
    assert answer(capsys, *words, "-o", str(file), "--force")[1] == said
    alone = answer(capsys, *words)[1]
    assert alone == answer(capsys, *words)[1]
    assert alone.replace('name = "eight"', 'name = "mine"') == file.read_text()
    record = json.loads(answer(capsys, *words, "--json")[1])
    assert faults(OUTPUT_SCHEMAS["fit"](), record) == []


def test_flags_of_a_fit_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = answer(capsys, "validate", str(table(tmp_path / "x.csv", MPT[:1])), "-o", str(tmp_path / "y.toml"))

    assert code == 2
    assert "FIT003" in error


def test_hardware_prints_a_profile_with_the_kind_and_source_of_each_constant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "printed.toml"
    file.write_text(answer(capsys, "hardware", "h100-sxm", "--profile", "--engine", FOUNDRY)[1])
    found = read_profile(str(file))
    kinds = {each.name: each.kind for each in (*found.hardware, *found.kernels)}

    assert (kinds["matmul_share"], kinds["memory_share"], kinds["elementwise"]) == ("measured", "assumed", "measured")
    assert all(len(each.source) > 5 for each in (*found.hardware, *found.kernels))
    assert answer(capsys, "hardware", "h999", "--profile")[0] == 2
    assert answer(capsys, "hardware", "h100-sxm", "--profile", "--engine", "none")[0] == 2

"""Where step times are scored: tiers, rows that contradict their table, runs that are printed twice; and bands."""

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.bill import case_of
from outlay.cli.main import main
from outlay.cluster.catalogue import accelerator_names
from outlay.engines.tables import engine_names, time_bands
from outlay.sections import section
from outlay.show.validation.accuracy_svg import accuracy_svg
from outlay.step.total import time_band
from outlay.validate import HEADER, Row, Validation, as_json, compare_files, lines
from outlay.validate.page import markdown
from outlay.validate.summary import FEW, summarise
from outlay.validate.table import sources
from outlay.validate.tiers import AGAIN, same_runs, timed_sources, worst

# Rows of published tables, with what a count needs.
DGXC = {
    "source": "NVIDIA DGX Cloud benchmarking recipes", "model": "Llama3.1 8b", "layers": "32", "hidden": "4096",
    "heads": "32", "kv_heads": "8", "ffn": "14336", "vocab": "128256", "seq_len": "8192", "n_accel": "8", "tp": "1",
    "accelerator": "H100-80GB-SXM (DGX)", "precision": "BF16", "pp": "1", "vpp": "1", "cp": "2", "dp": "4",
    "micro_batch": "1", "global_batch": "128", "step_time_s": "12",
}  # fmt: skip
VTRAIN = {
    "source": "vTrain ground truth (arXiv:2312.12391)", "model": "GPT-39.1B", "layers": "48", "hidden": "8192",
    "heads": "64", "kv_heads": "64", "ffn": "32768", "seq_len": "2048", "n_accel": "512", "tp": "2", "pp": "16",
    "accelerator": "A100 (8 per node, NVLink) multi-node cluster", "vpp": "1", "dp": "16", "micro_batch": "6",
    "global_batch": "1536", "schedule": "1F1B", "recompute": "full", "step_time_s": "20",
}  # fmt: skip


def table(tmp_path: Path, *rows: dict[str, str]) -> Path:
    """A file of rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADER, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    file = tmp_path / "runs.csv"
    file.write_text(text.getvalue())
    return file


@pytest.fixture
def row_of(tmp_path: Path) -> Callable[..., Row]:
    """The row that comes of DGXC with some cells changed."""
    return lambda **cells: compare_files([table(tmp_path, DGXC | cells)]).rows[0]


def made(error: float, tier: int = 1, facts: str = "s", **more: object) -> Row:
    """A timed row of a source."""
    names: dict[str, object] = {
        "source": "s",
        "model": "m",
        "accelerator": "a",
        "precision": "bf16",
        "layout": "8 cards",
    }
    times = {"measured_step_time_s": 1.0, "predicted_step_time_s": 1 + error, "step_time_error": error}
    all_of = {"file": "f", "line": 2, "status": "compared", "step_time_in_band": False, **names, **times, **more}
    return Row(**all_of, step_time_tier=tier, facts=facts)  # type: ignore[arg-type]


# --- tiers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "tier", "reason"),
    [
        ({}, 1, ""),
        ({"precision": "FP8"}, 1, ""),
        ({"accelerator": "GB200"}, 1, ""),
        ({"accelerator": "GB300"}, 2, "an accelerator outside tier 1"),
        ({"accelerator": "V100-32GB", "precision": "fp16"}, 2, "an accelerator outside tier 1"),
        ({"accelerator": "GB200", "precision": "NVFP4"}, 2, "4-bit"),
        ({"model": "Grok1 314b", "other": "MoE 8 experts topk 2"}, 2, "a model with experts"),
        ({"source": "NVIDIA NeMo 24.07 performance docs"}, 2, ""),
        ({"source": "a page"}, 0, "the source is not known"),
    ],
)
def test_a_row_is_of_the_tier_that_source_accelerator_precision_and_model_give(
    row_of: Callable[..., Row], cells: dict[str, str], tier: int, reason: str
) -> None:
    row = row_of(**cells)

    assert row.status == "compared", row.reason
    assert row.step_time_tier == tier
    assert row.step_time_unscored.startswith(reason) if reason else not row.step_time_unscored


def test_every_source_is_scored_in_a_tier_or_says_why_it_is_not() -> None:
    for source in sources():
        assert bool(source.tier) != bool(source.untimed or source.skip), source.name


@pytest.mark.parametrize(
    ("tp", "pp", "micro_batch"),
    [("2", "16", "2"), ("2", "16", "3"), ("2", "8", "2"), ("4", "16", "6"), ("4", "16", "12")],
)
def test_rows_that_contradict_their_neighbours_are_compared_and_not_scored(
    tmp_path: Path, tp: str, pp: str, micro_batch: str
) -> None:
    """vTrain: T M / (M + P - 1) must be smooth in the micro-batch for one model, tp and pp."""
    cells = {"tp": tp, "pp": pp, "dp": str(512 // int(tp) // int(pp)), "micro_batch": micro_batch}
    row = compare_files([table(tmp_path, VTRAIN | cells)]).rows[0]

    assert row.step_time_error is not None
    assert row.step_time_tier == 0
    assert "(M + P - 1)" in row.step_time_unscored


def test_their_neighbours_are_scored(tmp_path: Path) -> None:
    rows = compare_files([table(tmp_path, VTRAIN, VTRAIN | {"tp": "4", "pp": "8"})]).rows

    assert [row.step_time_tier for row in rows] == [1, 1]


def test_a_run_that_two_tables_print_counts_once(tmp_path: Path) -> None:
    mpt = {
        "source": "mosaicml/llm-foundry benchmarking README", "model": "MPT-1b", "layers": "24", "hidden": "2048",
        "heads": "16", "kv_heads": "16", "ffn": "8192", "vocab": "50368", "seq_len": "2048", "n_accel": "8",
        "accelerator": "A100-80GB", "precision": "amp_bf16", "tp": "1", "pp": "1", "zero_or_fsdp": "FULL_SHARD",
        "micro_batch": "8", "global_batch": "128", "recompute": "none", "tokens_per_s_per_accel": "20000",
    }  # fmt: skip
    old = mpt | {"source": "mosaicml/llm-foundry benchmarking README (superseded)"}
    other = old | {"tokens_per_s_per_accel": "19000"}
    rows = compare_files([table(tmp_path, mpt, old, other)]).rows

    assert [row.step_time_tier for row in rows] == [1, 0, 1]
    assert [row.step_time_unscored for row in rows] == ["", AGAIN, ""]


def test_equal_times_of_different_layouts_are_two_runs() -> None:
    rows = [made(0.1), made(0.2), made(0.1)]

    assert list(same_runs(rows)) == [2]


# --- sums -----------------------------------------------------------------------------------------------------------


def test_a_tier_has_its_sources_and_those_of_few_rows_together() -> None:
    many = [made(0.01 * place, facts="large") for place in range(FEW)]
    rows = [*many, made(0.5, facts="small"), made(-0.5, facts="tiny"), made(0.3, 2, "second"), made(0.9, 0, "none")]
    found = {(one.by, one.name): one for one in summarise(rows) if one.by.startswith("tier")}

    assert set(found) == {
        ("tier", "tier 1"), ("tier 1", "large"), ("tier 1", f"sources under {FEW} rows"),
        ("tier", "tier 2"), ("tier 2", f"sources under {FEW} rows"),
    }  # fmt: skip
    assert found["tier", "tier 1"].count == FEW + 2
    assert found["tier 1", f"sources under {FEW} rows"].mean == 0.5
    assert found["tier 1", f"sources under {FEW} rows"].bias == 0
    assert found["tier", "tier 2"].worst == 0.3


def test_times_that_add_up_from_parts_are_scored_and_a_tier_is_summed_without_them_too() -> None:
    rows = [made(0.1, 2), made(0.9, 2, step_time_composed=True)]
    found = {one.name: one.mean for one in summarise(rows) if one.by == "tier"}

    assert found == {"tier 2": pytest.approx(0.5), "tier 2, measured as a whole": pytest.approx(0.1)}
    assert worst(rows, 10) == rows[:1]


def test_text_page_and_object_say_the_tiers_the_reasons_and_the_worst_rows(tmp_path: Path) -> None:
    bad = VTRAIN | {"micro_batch": "2"}
    found = compare_files([table(tmp_path, DGXC, VTRAIN, bad, DGXC | {"accelerator": "GB300"})])
    text, page, plain = "\n".join(lines(found)), "\n".join(markdown(found)), as_json(found)

    assert "tier 1" in text and "step times that are in no tier" in text
    assert "worst 3 of the scored step times" in text
    assert "| **tier 1** | 2 |" in page and "| vTrain | 2 | 1 | 0 | u = T M / (M + P - 1)" in page
    assert [row["step_time_tier"] for row in plain["rows"]] == [1, 1, 0, 2]
    assert {(one["by"], one["name"]): one["count"] for one in plain["summary"]}["tier", "tier 1"] == 2
    assert [one["name"] for one in plain["timed"]] == ["NVIDIA DGX Cloud benchmarking", "vTrain"]
    assert [(one.rows, one.first, one.second) for one in timed_sources(found.rows)] == [(2, 1, 1), (2, 1, 0)]


def test_the_worst_rows_say_what_was_counted(tmp_path: Path) -> None:
    (row,) = compare_files([table(tmp_path, VTRAIN)]).rows

    assert row.layout == "512 cards tp 2 pp 16 dp_shard 16 1f1b mbs 6 recompute full"


# --- the picture ----------------------------------------------------------------------------------------------------


def dots_of(*rows: Row) -> dict[str, list[list[float]]]:
    """Where the dots of each tone stand: x and y."""
    root = ET.fromstring(accuracy_svg(Validation(("f",), rows, len(rows), summary=summarise(rows))))
    paths = {
        path.get("class", ""): path.get("d", "") for path in root.findall(".//{*}path") if "h4v4" in path.get("d", "")
    }
    return {
        tone: [[float(at) for at in dot.split("h")[0].split()] for dot in path.split("M")[1:]]
        for tone, path in paths.items()
    }


def test_the_picture_has_a_dot_a_row_in_the_colour_of_its_tier() -> None:
    dots = dots_of(made(0.0), made(1.0), made(0.5, 2), made(0.0, 0))

    assert {tone: len(places) for tone, places in dots.items()} == {"F": 2, "B": 1, "X": 1}


def test_twice_as_long_stands_as_far_above_the_line_as_half_as_long_below_it() -> None:
    (_, on), (_, above), (_, below) = dots_of(made(0.0), made(1.0), made(-0.5))["F"]

    assert above < on < below
    assert abs((on - above) - (below - on)) < 0.2


def test_the_picture_of_no_row_is_still_a_picture() -> None:
    assert ET.fromstring(accuracy_svg(Validation(("f",), (), 0))).tag.endswith("svg")


def test_the_command_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = table(tmp_path, DGXC), tmp_path / "dots.svg"

    assert main(["validate", str(file), "--svg", str(picture)]) == 0
    assert "tier 1" in capsys.readouterr().out
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    assert main(["validate", str(file), "--svg", str(picture)]) == 2  # it exists


# --- bands ----------------------------------------------------------------------------------------------------------


def band_of(model: str, on: str, engine: str = "megatron", precision: str = "bf16") -> tuple[float, str]:
    """The share of the band that a bill prints, and where it is from."""
    found = count(load_model(model), Job(4096, 64, precision=precision), load_cluster(on), Layout(), engine)  # type: ignore[arg-type]
    low, high = found.step.band_seconds
    assert high - found.step.seconds == pytest.approx(found.step.seconds - low)
    assert {item.band for item in found.step.items} == {found.step.items[0].band}
    return high / found.step.seconds - 1, found.step.items[0].band


def test_a_band_is_the_sum_of_what_engine_precision_experts_and_accelerator_add() -> None:
    plain, _ = band_of("llama-3-8b", "8xh100-sxm")
    rows = {
        name: section("outlay.engines", "time_bands.toml", name)["of"] for name in ("engine", "precision", "experts")
    }
    shares = {name: {row["match"]: row["share"] for row in found} for name, found in rows.items()}

    assert plain == pytest.approx(shares["engine"]["^megatron"])
    assert band_of("llama-3-8b", "8xh100-sxm", precision="fp8")[0] == pytest.approx(plain + shares["precision"]["fp8"])
    assert band_of("mixtral-8x7b", "8xh100-sxm")[0] == pytest.approx(plain + shares["experts"]["experts"])


def test_a_band_is_measured_where_all_its_shares_are_and_wider_on_a_card_that_never_was() -> None:
    measured, kind = band_of("llama-3-8b", "8xh100-sxm")
    never, assumed = band_of("llama-3-8b", "8xrtx4090")

    assert (kind, assumed) == ("measured", "assumed")
    assert never > measured
    assert band_of("llama-3-8b", "8xh100-sxm", "nanotron")[1] == "assumed"


def test_the_parts_of_a_step_have_the_band_of_the_step() -> None:
    job, cluster = Job(4096, 64), load_cluster("8xh100-sxm")
    case = case_of(load_model("llama-3-8b"), job, cluster, Layout(tp=2), "megatron")[0]
    found = count(load_model("llama-3-8b"), job, cluster, Layout(tp=2))

    for item in found.step.items:
        assert item.high == pytest.approx(item.value * (1 + float(time_band(case))))
        assert item.low == pytest.approx(item.value * (1 - float(time_band(case))))


def test_every_engine_and_accelerator_has_a_band_and_none_reaches_down_to_nothing() -> None:
    for engine in engine_names():
        for accelerator in accelerator_names():
            found = time_bands(engine, "fp8", "experts", accelerator)
            assert 0 < found.engine + found.precision + found.experts + found.accelerator < 0.6


def test_every_share_of_a_band_says_its_kind_and_the_rows_that_it_rests_on() -> None:
    for name in ("engine", "precision", "experts", "accelerator"):
        rows = section("outlay.engines", "time_bands.toml", name)["of"]
        assert rows[-1]["match"] == ""
        for row in rows:
            assert row["kind"] in ("measured", "assumed")
            assert row["source"]

"""Peaks rank by rank, what of them is scored, and schedules that a search has found."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from outlay.errors import InputError
from outlay.validate import RANKS, Row, Validation, as_json, compare_files, lines
from outlay.validate.page import markdown
from outlay.validate.summary import summarise
from outlay.validate.table import Source, source_of, sources
from outlay.validate.words import case_of, schedule_of
from test_validate import PLAIN, bill_of, made, table

# MooreThreads/SimuMax @4dcaae5, docs/b200/b200_release_v1.2_summary.json: Llama-3 405B with four layers, two stages.
RUN = {
    "source": "MooreThreads/SimuMax B200 release v1.2", "model": "llama3-405b", "layers": "4", "hidden": "16384",
    "heads": "128", "kv_heads": "16", "ffn": "53248", "vocab": "128256", "seq_len": "4096", "accelerator": "B200-SXM",
    "n_accel": "8", "tp": "1", "pp": "2", "vpp": "1", "dp": "4", "zero_or_fsdp": "ZeRO-1", "micro_batch": "1",
    "global_batch": "16", "schedule": "1F1B (non-interleaved)", "step_time_s": "", "peak_mem_gb": "87.08",
    "other": "case=llama3_405b_l4_tp1_pp2_dp4_mbc4_cef; layers trimmed; sequence_parallel=on",
}  # fmt: skip
CASE = "llama3_405b_l4_tp1_pp2_dp4_mbc4_cef"
ALLOCATED = (88688.76, 88688.85, 88688.76, 88688.76, 89173.09, 89172.22, 89173.36, 89173.09)  # MiB, by rank


def readings(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    """A file of readings rank by rank."""
    text = io.StringIO()
    writer = csv.DictWriter(text, (*RANKS, "source_locator"))
    writer.writeheader()
    writer.writerows(rows)
    file = tmp_path / "ranks.csv"
    file.write_text(text.getvalue())
    return file


def eight(**changes: Any) -> list[dict[str, Any]]:
    """The readings of the eight ranks of the case."""
    return [
        {"case": CASE, "rank": rank, "max_allocated_mib": held, "max_reserved_mib": 1.05 * held} | changes
        for rank, held in enumerate(ALLOCATED)
    ]


@pytest.fixture
def joined(tmp_path: Path) -> Validation:
    return compare_files([table(tmp_path, RUN), readings(tmp_path, *eight())])


def test_readings_are_joined_to_the_row_of_their_case(joined: Validation) -> None:
    (case,) = joined.cases

    assert (case.case, case.status, case.model, case.worst_rank) == (CASE, "compared", "llama3-405b", 6)
    assert len(joined.rows) == 1  # readings are no rows of their own


def test_each_stage_is_compared_at_the_largest_of_its_ranks(joined: Validation) -> None:
    first, last = joined.cases[0].stages

    assert (first.stage, first.ranks, last.stage, last.ranks) == (0, 4, 1, 4)
    assert first.measured_allocated_gib == pytest.approx(88688.85 / 1024)
    assert last.measured_allocated_gib == pytest.approx(89173.36 / 1024)
    assert last.measured_reserved_gib == pytest.approx(1.05 * 89173.36 / 1024)


def test_stages_are_compared_with_the_stages_of_the_bill(joined: Validation, tmp_path: Path) -> None:
    _, bill = bill_of(RUN, tmp_path)

    for stage, rank in zip(joined.cases[0].stages, bill.memory.ranks, strict=True):
        assert stage.predicted_allocated_gib == pytest.approx(rank.allocated_bytes / 2**30)
        assert stage.allocated_error == pytest.approx(stage.predicted_allocated_gib / stage.measured_allocated_gib - 1)
        assert abs(stage.allocated_error) < 1e-3


def test_the_worst_rank_is_compared_with_the_worst_stage(joined: Validation) -> None:
    (case,) = joined.cases

    assert case.measured_peak_gib == pytest.approx(89173.36 / 1024)
    assert case.predicted_peak_gib == max(stage.predicted_allocated_gib for stage in case.stages)


def test_a_case_without_a_row_says_so(tmp_path: Path) -> None:
    found = compare_files([table(tmp_path, PLAIN), readings(tmp_path, *eight())])

    assert [case.status for case in found.cases] == ["skipped"]
    assert found.cases[0].reason == "no row of the other files has this case (case=NAME in its remarks)"
    assert any(CASE in line and "no row" in line for line in lines(found, 200))


def test_a_case_whose_row_is_skipped_says_why(tmp_path: Path) -> None:
    found = compare_files([table(tmp_path, RUN | {"micro_batch": ""}), readings(tmp_path, *eight())])

    assert found.cases[0].reason == "its row is skipped: micro-batch not published"


def test_a_case_with_a_rank_missing_is_not_compared(tmp_path: Path) -> None:
    found = compare_files([table(tmp_path, RUN), readings(tmp_path, *eight()[:7])])

    assert found.cases[0].reason == "7 readings, not one for each of 8 ranks"


def test_readings_alone_are_read(tmp_path: Path) -> None:
    found = compare_files([readings(tmp_path, *eight())])

    assert (found.rows, len(found.cases)) == ((), 1)


@pytest.mark.parametrize(
    ("changes", "got"),
    [
        ({"rank": "x"}, "line 2: case, rank and max_allocated_mib are needed"),
        ({"case": ""}, "line 2: case, rank and max_allocated_mib are needed"),
        ({"max_allocated_mib": "nan"}, "line 2: max_allocated_mib is not a number"),
        ({"max_reserved_mib": "-1"}, "line 2: max_reserved_mib is not above zero"),
    ],
)  # fmt: skip
def test_a_reading_that_is_none_is_a_fault_of_its_file(tmp_path: Path, changes: dict[str, str], got: str) -> None:
    with pytest.raises(InputError) as caught:
        compare_files([readings(tmp_path, *eight(**changes))])

    (fault,) = caught.value.faults
    assert fault.code == "VAL003"
    assert got in fault.got


def test_a_file_with_neither_header_is_refused_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("case,rank\na,0\n")
    with pytest.raises(InputError) as caught:
        compare_files([file])

    (fault,) = caught.value.faults
    assert fault.code == "VAL001"
    assert fault.got.startswith("missing: source, source_locator, model")


def test_readings_that_are_not_published_are_left_out(tmp_path: Path) -> None:
    found = compare_files([table(tmp_path, RUN), readings(tmp_path, *eight(max_reserved_mib=""))])
    stages = found.cases[0].stages

    assert [(stage.measured_reserved_gib, stage.reserved_error) for stage in stages] == [(None, None)] * 2
    assert {one.quantity for one in found.summary if one.by == "stage"} == {"allocated"}


def test_text_page_and_object_have_every_stage(joined: Validation) -> None:
    text, page, found = lines(joined, 100), markdown(joined), as_json(joined)

    assert sum("allocated" in line and line.startswith("  stage") for line in text) == 2
    assert sum(line.startswith(f"| {CASE} |") for line in page) == 2
    assert [stage["stage"] for stage in found["cases"][0]["stages"]] == [0, 1]
    assert max(map(len, text)) <= 100


def test_a_case_is_named_in_the_remarks() -> None:
    assert case_of("case=llama_tp2-x.1+y; num_microbatches=4") == "llama_tp2-x.1+y"
    assert case_of("lowercase=x") == case_of("") == ""


# --- what is scored ---------------------------------------------------------------------------------------------------


def peak_of(tmp_path: Path, **cells: str) -> Row:
    return compare_files([table(tmp_path, {"peak_mem_gb": "30"} | cells)]).rows[0]


@pytest.mark.parametrize(
    ("cells", "score", "why"),
    [
        (RUN, "allocator", ""),
        ({"source": "BigScience BLOOM-176B prequel", "precision": "fp16"}, "device", ""),
        ({"source": "BigScience 1B3 benchmarking (V100)", "accelerator": "V100-32GB", "precision": "fp16"}, "",
         "the unit of memory is not stated"),
        ({"source": "LitGPT resource tables", "precision": "bf16-true"}, "", "the nearest engine, not"),
        ({"source": "torchtune README"}, "", "how the loss is cut are not published"),
        ({"source": "a page"}, "", "the source is not known"),
    ],
)  # fmt: skip
def test_a_peak_is_scored_where_its_source_tells_level_unit_and_configuration(
    tmp_path: Path, cells: dict[str, str], score: str, why: str
) -> None:
    row = peak_of(tmp_path, **cells)

    assert row.status == "compared"
    assert row.peak_mem_score == score
    assert why in row.peak_mem_unscored and bool(why) == bool(row.peak_mem_unscored)


def test_a_reading_that_stands_twice_is_scored_once(tmp_path: Path) -> None:
    again = {"global_batch": "32"}  # more micro-batches of the same layout: the same peak
    first, second, other = compare_files([table(tmp_path, RUN, RUN | again, RUN | {"peak_mem_gb": "87.1"})]).rows

    assert [row.peak_mem_score for row in (first, second, other)] == ["allocator", "", "allocator"]
    assert second.peak_mem_unscored == "the reading and the count of line 2 again"


def test_scored_rows_are_a_group_of_their_own() -> None:
    def row(error: float, score: str) -> Row:
        return made(0.5, peak_mem_error=error, peak_mem_in_band=True, peak_mem_score=score)  # type: ignore[arg-type]

    found = {one.name: one for one in summarise([row(0.01, "allocator"), row(-0.03, "allocator"), row(0.9, ""),
                                                  row(-0.2, "device")]) if one.by == "score"}  # fmt: skip

    assert list(found) == ["complete rows at the allocator's level", "rows at the level of the device"]
    allocator, device = found.values()
    assert (allocator.count, allocator.median, allocator.worst) == (2, pytest.approx(0.02), -0.03)
    assert (device.count, device.bias) == (1, -0.2)


def test_every_source_of_memory_says_level_unit_and_why_rows_are_not_scored(tmp_path: Path) -> None:
    found = compare_files([table(tmp_path, RUN, RUN | {"global_batch": "32"}, {"peak_mem_gb": "30"})])
    facts = {fact["name"]: fact for fact in as_json(found)["sources"]}

    simumax, page = facts[RUN["source"]], facts["a page"]
    assert (simumax["level"], simumax["unit"], simumax["rows"], simumax["scored"]) == ("allocated", "GiB", 2, 1)
    assert simumax["why"] == "an earlier row's reading and count again (1)"
    assert (page["level"], page["scored"]) == ("reserved", 0)
    assert any("a page" in line and "not known" in line for line in markdown(found))
    assert any(line.startswith("| complete rows at the allocator's level | 1 |") for line in markdown(found))


def test_a_source_whose_rows_cannot_be_counted_is_in_the_table_with_its_reason(tmp_path: Path) -> None:
    file = table(tmp_path, {"source": "HF PEFT README", "peak_mem_gb": "14.4"})
    (fact,) = as_json(compare_files([file]))["sources"]

    assert (fact["name"], fact["rows"], fact["scored"]) == ("HF PEFT README", 1, 0)
    assert fact["why"] == "not compared: neither batch nor sequence is published (1)"


def test_a_source_that_is_not_scored_has_a_reason() -> None:
    assert Source().not_scored
    for source in sources():
        assert not (source.nearest or source.unscored) or source.not_scored, source.name
    assert source_of({"source": RUN["source"]}).not_scored == ""


# --- what a reading is of --------------------------------------------------------------------------------------------

# stas00/ml-engineering, H200 to B200: max_memory_reserved in GiB of Llama 3.1 8B under ZeRO-3, optimizer on the host.
ZERO_3 = {
    "source": "ml-engineering H200->B200 upgrade example", "model": "Llama 3.1 8B", "layers": "32", "hidden": "4096",
    "heads": "32", "kv_heads": "8", "ffn": "14336", "vocab": "128256", "accelerator": "H200-SXM", "n_accel": "8",
    "tp": "1", "pp": "1", "zero_or_fsdp": "ZeRO-3 opt-offload", "optimizer": "AdamW (CPU offload)", "micro_batch": "1",
    "global_batch": "8", "recompute": "full", "step_time_s": "",
}  # fmt: skip
RESERVED = [(131072, 66.5), (196608, 95.7), (262144, 124.5)]


@pytest.mark.parametrize(("sequence", "published"), RESERVED)
def test_what_zero_3_reserves_over_long_sequences_is_what_was_measured_within_five_percent(
    tmp_path: Path, sequence: int, published: float
) -> None:
    row = peak_of(tmp_path, **ZERO_3, seq_len=str(sequence), peak_mem_gb=str(published))

    assert row.memory_is == "GiB, reserved"
    assert row.predicted_peak_mem_gib == pytest.approx(published, rel=0.05)


def test_a_short_run_reads_what_stood_while_its_weights_were_loaded(tmp_path: Path) -> None:
    row = peak_of(tmp_path, **ZERO_3, seq_len="8192", peak_mem_gb="16.3")

    # 8.03 billion weights of two bytes, moved whole to each accelerator before they are partitioned
    assert row.predicted_peak_mem_gib == pytest.approx(2 * 8.03e9 * 1.02 / 2**30, rel=0.002)


# pytorch/torchtitan, docs and benchmarks: max_reserved in GiB of Llama 8B with every second matrix multiply recomputed.
TITAN = {
    "source": "torchtitan mxfp8/nvfp4 docs", "model": "Llama 3 8B", "layers": "32", "hidden": "4096", "heads": "32",
    "kv_heads": "8", "ffn": "14336", "vocab": "128256", "seq_len": "8192", "accelerator": "B200 (power limited)",
    "zero_or_fsdp": "FSDP2 full shard", "micro_batch": "1", "global_batch": "8", "recompute": "selective (per op)",
    "precision": "float8 tensorwise", "step_time_s": "", "tokens_per_s_per_accel": "10417",
}  # fmt: skip
TRAINY = TITAN | {"source": "torchtitan/Trainy H200 June 2025", "accelerator": "H200-SXM", "n_accel": "64",
                  "micro_batch": "2", "global_batch": "128"}  # fmt: skip


@pytest.mark.parametrize(("run", "published"), [(TITAN, 33.38), (TRAINY, 46.97)], ids=["B200", "H200"])
def test_what_torchtitan_reserves_is_what_was_measured_within_four_percent(
    tmp_path: Path, run: dict[str, str], published: float
) -> None:
    row = peak_of(tmp_path, **run, peak_mem_gb=str(published))

    assert (row.peak_mem_score, row.memory_is) == ("allocator", "GiB, reserved")
    assert abs(row.peak_mem_error or 1.0) < 0.04


def test_a_card_with_less_power_has_the_cards_memory_and_not_its_times(tmp_path: Path) -> None:
    limited = peak_of(tmp_path, **TITAN, peak_mem_gb="33.38")
    timed = peak_of(tmp_path, **TITAN, peak_mem_gb="")

    assert (limited.accelerator, limited.step_time_error) == ("b200", None)
    assert limited.peak_mem_error is not None
    assert timed.reason == "power limited: its times are not those of the card in the catalogue"


# --- schedules that a search has found ------------------------------------------------------------------------------

# Qi et al. 2024 (arXiv:2401.10241), Tables 4 and 6: GB of max_memory_allocated. The first and the last chunk hold one
# layer fewer. Interleaved has one layer a chunk.
ZERO_BUBBLE = {
    "source": "Zero Bubble Pipeline Parallelism Table 3+4 (arXiv:2401.10241)", "accelerator": "A100-80GB", "vocab": "",
    "tp": "1", "seq_len": "1024", "step_time_s": "", "recompute": "", "precision": "", "flash_attn": "no",
}  # fmt: skip
SMALL = {"model": "GPT-1.5B", "layers": "22", "hidden": "2304", "heads": "24", "kv_heads": "24", "ffn": "9216",
         "n_accel": "8", "pp": "8", "micro_batch": "6", "global_batch": "384"}  # fmt: skip
LARGE = {"model": "GPT-28.3B", "layers": "62", "hidden": "6144", "heads": "48", "kv_heads": "48", "ffn": "24576",
         "n_accel": "32", "pp": "32", "micro_batch": "1", "global_batch": "256"}  # fmt: skip
PUBLISHED = [
    (SMALL, "1F1B", "", 30), (SMALL, "ZB-1p", "", 32), (SMALL, "ZB-2p", "", 59),
    (SMALL, "1F1B-I", "1 layer per chunk", 40), (LARGE, "1F1B", "", 43), (LARGE, "ZB-1p", "", 44),
    (LARGE, "ZB-2p", "", 74),
]  # fmt: skip


@pytest.mark.parametrize(("model", "schedule", "chunks", "published"), PUBLISHED)
def test_peaks_of_zero_bubble_schedules_are_what_was_measured_within_six_percent(
    tmp_path: Path, model: dict[str, str], schedule: str, chunks: str, published: int
) -> None:
    row = peak_of(tmp_path, **ZERO_BUBBLE, **model, schedule=schedule, vpp=chunks, peak_mem_gb=str(published))

    assert row.status == "compared"
    assert abs(row.peak_mem_error or 1.0) < 0.06


def test_a_schedule_that_a_search_found_is_counted_as_the_order_of_its_limit_and_says_so() -> None:
    assert [schedule_of(text).name for text in ("ZB-1p", "ZB-2p", "ZB-V")] == ["zb_h1", "zb_h2", "zbv"]
    assert schedule_of("ZB-2p").note == (
        "ZB-2p is found by a search under a limit of 2 p micro-batches, and is counted as zb_h2"
    )


def test_the_two_chunks_of_zb_v_are_dealt_down_the_ranks_and_up_again(tmp_path: Path) -> None:
    row = ZERO_BUBBLE | LARGE | {"schedule": "ZB-V", "micro_batch": "2", "global_batch": "512"}
    _, bill = bill_of(row, tmp_path)

    assert (bill.layout.schedule, bill.layout.vpp) == ("zbv", 2)
    assert [rank.layers for rank in bill.memory.ranks] == [0] + [2] * 31  # embedding and head are on the first rank

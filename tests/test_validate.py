"""Measured against counted runs: how a table is read, what is compared and why not, and the arithmetic of errors."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outlay.bill import Bill
from outlay.errors import InputError
from outlay.job import Job
from outlay.model import catalogue
from outlay.quantities import GB, GIB
from outlay.undivided import sequence_flops
from outlay.validate import HEADER, OWN, Progress, Row, as_json, compare_files, lines
from outlay.validate import predict as module
from outlay.validate.page import markdown
from outlay.validate.predict import memory_at, source_flops
from outlay.validate.question import question_of
from outlay.validate.read import Run, Skip, read
from outlay.validate.summary import summarise
from outlay.validate.table import accelerator_of, source_of, sources
from outlay.validate.words import (
    adapter_of,
    context_kind_of,
    optimizer_of,
    precision_of,
    recompute_of,
    schedule_of,
    sharding_of,
)

# One row of a source that is not known: a small GPT on eight accelerators.
PLAIN = {
    "source": "a page", "model": "GPT of a page", "layers": "24", "hidden": "2304", "heads": "24", "kv_heads": "24",
    "ffn": "9216", "vocab": "51200", "seq_len": "2048", "accelerator": "A100-80GB", "n_accel": "8", "precision": "bf16",
    "tp": "1", "pp": "1", "micro_batch": "4", "global_batch": "32", "recompute": "none", "step_time_s": "1.0",
}  # fmt: skip


def table(tmp_path: Path, *rows: dict[str, str], header: tuple[str, ...] = HEADER) -> Path:
    """A file of rows, each PLAIN with some cells changed."""
    text = io.StringIO()
    writer = csv.DictWriter(text, header, extrasaction="ignore")
    writer.writeheader()
    writer.writerows([PLAIN | row for row in rows])
    file = tmp_path / "runs.csv"
    file.write_text(text.getvalue())
    return file


@pytest.fixture
def row_of(tmp_path: Path) -> Callable[..., Row]:
    """The row that comes of PLAIN with some cells changed."""
    return lambda **cells: compare_files([table(tmp_path, cells)]).rows[0]


def bill_of(row: dict[str, str], tmp_path: Path) -> tuple[Run, Bill]:
    run = read(table(tmp_path, row))[0]
    asked = question_of(run, source_of(run.cells))
    return run, module.count(asked.model, asked.job, asked.cluster, asked.layout, asked.engine)


# --- errors, bands, summaries ---------------------------------------------------------------------------------------


def test_an_error_is_predicted_over_measured_less_one(row_of: Callable[..., Row]) -> None:
    slow, fast = row_of(step_time_s="100"), row_of(step_time_s="0.01")

    assert slow.status == "compared"
    assert slow.step_time_error == pytest.approx((slow.predicted_step_time_s or 0) / 100 - 1)
    assert slow.step_time_error is not None and -1 < slow.step_time_error < 0
    assert fast.step_time_error is not None and fast.step_time_error > 0


def test_a_time_inside_the_printed_band_is_said_to_be(row_of: Callable[..., Row]) -> None:
    predicted = row_of().predicted_step_time_s

    assert row_of(step_time_s=str(predicted)).step_time_in_band is True
    assert row_of(step_time_s=str(2 * (predicted or 0))).step_time_in_band is False


def test_an_error_of_memory_is_taken_in_one_unit(row_of: Callable[..., Row]) -> None:
    row = row_of(step_time_s="", peak_mem_gb="40")

    assert row.measured_peak_mem_gib == 40
    assert row.peak_mem_error == pytest.approx((row.predicted_peak_mem_gib or 0) / 40 - 1)
    assert row.step_time_error is None and row.step_time_in_band is None


def made(error: float, inside: bool = False, **more: str) -> Row:
    names = {"file": "f", "line": 2, "source": "s", "model": "m", "accelerator": "a", "precision": "bf16"} | more
    return Row(**names, status="compared", step_time_error=error, step_time_in_band=inside)  # type: ignore[arg-type]


def test_a_summary_has_sizes_without_signs_and_a_bias_with_them() -> None:
    found = summarise([made(0.1, True), made(-0.3), made(0.2), made(-0.2)])[0]

    assert (found.by, found.name, found.quantity, found.count) == ("all", "all", "step_time", 4)
    assert found.mean == pytest.approx(0.2)
    assert found.median == pytest.approx(0.2)
    assert found.p90 == pytest.approx(0.27)
    assert found.worst == pytest.approx(-0.3)
    assert found.bias == pytest.approx(-0.05)
    assert found.in_band == pytest.approx(0.25)


def test_errors_are_summed_by_source_accelerator_precision_and_model() -> None:
    found = summarise([made(0.1), made(0.2, source="t", model="n")])

    assert {(one.by, one.name, one.count) for one in found} == {
        ("all", "all", 2), ("source", "s", 1), ("source", "t", 1), ("accelerator", "a", 2), ("precision", "bf16", 2),
        ("model", "m", 1), ("model", "n", 1),
    }  # fmt: skip


def test_nothing_compared_gives_no_summary_and_still_an_answer(tmp_path: Path) -> None:
    validation = compare_files([table(tmp_path, {"layers": ""})])

    assert validation.summary == ()
    assert lines(validation)[0] == "0 of 1 rows compared, 1 skipped"


# --- the measured time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "seconds", "column"),
    [
        ({"step_time_s": "2", "tokens_per_s_per_accel": "1"}, 2.0, "step_time_s"),
        ({"step_time_s": "", "tokens_per_s_per_accel": "4096"}, 2.0, "tokens_per_s_per_accel"),
    ],
)
def test_the_printed_time_comes_before_tokens_a_second(
    row_of: Callable[..., Row], cells: dict[str, str], seconds: float, column: str
) -> None:
    row = row_of(**cells)

    assert (row.measured_step_time_s, row.time_from) == (pytest.approx(seconds), column)


def test_a_derived_time_is_read_where_the_column_stands(tmp_path: Path) -> None:
    cells = {"step_time_s": "", "derived_step_time_s": "3", "tokens_per_s_per_accel": "1"}
    file = table(tmp_path, cells, header=(*HEADER, "derived_step_time_s"))

    assert compare_files([file]).rows[0].measured_step_time_s == 3


# Model FLOPs of GPT-175B with full attention, by hand: 72 B L s h^2 (1 + s/6h + V/12hL).
BATCH, LAYERS, SEQUENCE, HIDDEN, VOCAB = 64, 96, 2048, 12288, 51200
MODEL_FLOPS = (
    72 * BATCH * LAYERS * SEQUENCE * HIDDEN**2 * (1 + SEQUENCE / (6 * HIDDEN) + VOCAB / (12 * HIDDEN * LAYERS))
)


def test_the_convention_of_korthikanti_is_the_model_flops_of_full_attention() -> None:
    forward = sequence_flops(catalogue.load("gpt-175b"), Job(sequence_length=SEQUENCE, attention_flops="full"))

    assert 3 * BATCH * forward == pytest.approx(MODEL_FLOPS, rel=1e-6)


# Korthikanti et al. 2022, Table 5, selective recompute: seconds of a step, and MFU over 312 TFLOP/s.
PUBLISHED_MFU = {"GPT-22B": (1.10, 41.5), "GPT-175B": (13.75, 51.4), "GPT-530B": (37.83, 56.0), "GPT-1T": (71.49, 56.3)}


@pytest.mark.parametrize("name", PUBLISHED_MFU)
def test_the_published_mfu_gives_back_its_own_step_time(name: str, tmp_path: Path) -> None:
    seconds, mfu = PUBLISHED_MFU[name]
    own = next(run.cells for run in read(OWN) if run.text("model") == name and run.text("mfu"))
    _, bill = bill_of(dict(own), tmp_path)
    rate = 312e12 * bill.cluster.ranks

    assert bill.step.model_flops / (mfu / 100 * rate) == pytest.approx(seconds, rel=0.005)


# Narayanan et al. 2021, Table 1: model, global batch, GPUs, layers, hidden, printed TFLOP/s a GPU.
TABLE_1 = [
    ("GPT-1.7B", 512, 32, 24, 2304, 137),
    ("GPT-145B", 2304, 1536, 80, 12288, 148),
    ("GPT-1T", 3072, 3072, 128, 25600, 163),
]


@pytest.mark.parametrize(("name", "batch", "ranks", "layers", "hidden", "rate"), TABLE_1)
def test_the_convention_of_narayanan_counts_recompute(
    name: str, batch: int, ranks: int, layers: int, hidden: int, rate: float
) -> None:
    work = 96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
    row = next(row for row in compare_files([OWN]).rows if row.model == name and "Narayanan" in row.source)

    assert row.time_from == "tflops_per_accel"
    assert row.measured_step_time_s == pytest.approx(work / (ranks * rate * 1e12), rel=1e-6)


def test_the_training_days_of_narayanan_follow_from_its_rates() -> None:
    # Equation 4: days = 8 T P / (n X); 175 B on 1,024 GPUs at 140 TFLOP/s and 300 B tokens is 34 days
    days = 8 * 300e9 * 175e9 / (1024 * 140e12) / 86_400
    model = catalogue.load("gpt-175b")
    forward = sequence_flops(model, Job(sequence_length=2048, attention_flops="full")) / 2048
    counted = 4 * forward * 300e9 / (1024 * 140e12) / 86_400

    assert days == pytest.approx(34, abs=0.5)
    assert counted == pytest.approx(days, rel=0.05)  # the equation leaves out attention and the head


def test_a_convention_of_eight_a_parameter_has_no_attention(tmp_path: Path) -> None:
    cells = {
        "source": "BigScience 1B3 benchmarking (V100)",
        "accelerator": "V100-32GB",
        "recompute": "full",
        "precision": "fp16",
    }
    run, bill = bill_of(cells, tmp_path)

    assert source_flops(source_of(run.cells), bill) == pytest.approx(8 * bill.parameters.total * 32 * 2048)


# --- memory ---------------------------------------------------------------------------------------------------------


def test_memory_levels_differ_by_slack_then_buffers_and_context(tmp_path: Path) -> None:
    _, bill = bill_of({}, tmp_path)
    allocated, reserved, driver = (memory_at(level, bill)[0] for level in ("allocated", "reserved", "nvidia-smi"))

    assert allocated == bill.memory.allocated_bytes
    assert reserved == pytest.approx(allocated * (1 + bill.engine.slack_share))
    assert driver - reserved == pytest.approx(bill.engine.workspace_bytes + bill.cluster.accelerator.context_bytes)


@pytest.mark.parametrize("level", ["allocated", "reserved", "nvidia-smi"])
def test_a_prediction_lies_inside_its_own_band(tmp_path: Path, level: str) -> None:
    value, (low, high) = memory_at(level, bill_of({}, tmp_path)[1])

    assert low <= value < high


@pytest.mark.parametrize(("printed", "half"), [("59", 0.5), ("60.68", 0.005), ("87.1 GiB", 0.05), ("", 0.0)])
def test_a_reading_may_be_half_a_unit_of_its_last_digit_off(tmp_path: Path, printed: str, half: float) -> None:
    assert read(table(tmp_path, {"peak_mem_gb": printed}))[0].half("peak_mem_gb") == pytest.approx(half)


def test_a_reading_that_rounds_into_the_band_is_inside(row_of: Callable[..., Row]) -> None:
    cells = {"source": "MooreThreads/SimuMax", "step_time_s": ""}
    counted = row_of(**cells, peak_mem_gb="30").predicted_peak_mem_gib or 0.0
    low, far = f"{int(counted)}", f"{int(counted) - 1}"  # printed whole: up to half a unit below what is counted

    assert row_of(**cells, peak_mem_gb=low).peak_mem_in_band is (counted - int(counted) <= 0.5)
    assert row_of(**cells, peak_mem_gb=far).peak_mem_in_band is False


def test_a_source_in_decimal_units_is_read_so(row_of: Callable[..., Row]) -> None:
    cells = {
        "source": "Zero Bubble Pipeline Parallelism Table 12 (arXiv:2401.10241)", "layers": "30", "pp": "8",
        "schedule": "1F1B", "peak_mem_gb": "39", "step_time_s": "", "vocab": "",
    }  # fmt: skip
    row = row_of(**cells)

    assert row.memory_is == "GB, allocated"
    assert row.measured_peak_mem_gib == pytest.approx(39 * GB / GIB)


# --- sources --------------------------------------------------------------------------------------------------------


def test_a_source_that_is_not_known_is_read_as_gib_and_full_attention_and_the_output_says_so(tmp_path: Path) -> None:
    validation = compare_files([table(tmp_path, {"step_time_s": "", "tflops_per_accel": "100", "peak_mem_gb": "30"})])
    row = validation.rows[0]
    forward = sequence_flops(catalogue.load("gpt-1.7b"), Job(sequence_length=2048, attention_flops="full"))

    assert row.measured_peak_mem_gib == 30
    assert row.measured_step_time_s == pytest.approx(3 * forward * 32 / (100e12 * 8))
    assert "a page is not known: memory read as GiB, FLOPs with full attention" in lines(validation, 200)[-1]
    assert "not known" in as_json(validation)["notes"][0]


def test_every_source_of_the_table_names_an_engine_or_why_it_is_skipped() -> None:
    for source in sources():
        assert source.says, source.name
        assert bool(source.engine) != bool(source.skip), source.name
        assert source.unit in ("GB", "GiB")


def test_every_row_of_the_own_table_is_compared() -> None:
    rows = compare_files([OWN]).rows

    assert len(rows) == 17
    assert {row.status for row in rows} == {"compared"}
    assert {row.reason for row in rows} == {""}


def test_the_own_table_is_within_a_factor_of_two() -> None:
    # a bound of sanity: it finds a wrong unit or convention, and says nothing of accuracy
    for row in compare_files([OWN]).rows:
        assert row.step_time_error is not None
        assert -0.5 < row.step_time_error < 1, row


# --- reading --------------------------------------------------------------------------------------------------------


def faults_of(path: Path) -> Any:
    with pytest.raises(InputError) as caught:
        compare_files([path])
    return caught.value.faults


def test_a_file_without_the_header_is_refused_by_the_names_that_are_missing(tmp_path: Path) -> None:
    file = table(tmp_path, {}, header=tuple(name for name in HEADER if name not in ("layers", "hfu")))
    (fault,) = faults_of(file)

    assert fault.code == "VAL001"
    assert fault.got == "missing: layers, hfu"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "VAL002"), (b"\n\n", "VAL002"), (b"\xff\xfe\x00", "VAL003"), (b"a,a\n1,2\n", "VAL003"),
        (b'source,"model\n', "VAL003"), (b"a,b\n1,2\n", "VAL001"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_a_fault_of_input(tmp_path: Path, content: bytes, code: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)

    assert [fault.code for fault in faults_of(file)] == [code]


def test_a_missing_file_and_a_folder_are_faults_of_input(tmp_path: Path) -> None:
    assert faults_of(tmp_path / "none.csv")[0].code == "VAL003"
    assert faults_of(tmp_path)[0].code == "VAL003"


def test_the_faults_of_all_files_come_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        compare_files([tmp_path / "a.csv", tmp_path / "b.csv"])

    assert len(caught.value.faults) == 2


def test_extra_columns_and_a_byte_order_mark_are_read_over(tmp_path: Path) -> None:
    file = table(tmp_path, {"mine": "x"}, header=("mine", *HEADER))
    file.write_text("\ufeff" + file.read_text())

    assert compare_files([file]).rows[0].status == "compared"


def test_a_row_knows_the_line_on_which_it_begins(tmp_path: Path) -> None:
    rows = compare_files([table(tmp_path, {"notes": "two\nlines"}, {}, {})]).rows

    assert [row.line for row in rows] == [2, 4, 5]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"step_time_s": "nan"}, "step_time_s is not a number"),
        ({"step_time_s": "inf"}, "step_time_s is not a number"),
        ({"step_time_s": "-1"}, "step_time_s is not above zero"),
        ({"micro_batch": "<changeme>"}, "micro_batch is not a number"),
        ({"tp": "1.5"}, "tp is not a count"),
        ({"tp": "0"}, "tp is not above zero"),
        ({"hidden": "1e300"}, "hidden is beyond any run"),
        ({"step_time_s": "1e308"}, "step_time_s is beyond any run"),
        ({"pp": "8", "vpp": "1e6"}, "beyond any pipeline"),
        ({"pp": "8", "n_accel": "8", "layers": "5"}, "5 layers do not fill 8 stages"),
        ({"layers": ""}, "layers not published"),
        ({"hidden": ""}, "hidden not published"),
        ({"vocab": ""}, "vocab not published"),
        ({"seq_len": ""}, "sequence length not published"),
        ({"tp": ""}, "layout not published (tp)"),
        ({"micro_batch": ""}, "micro-batch not published"),
        ({"n_accel": ""}, "number of accelerators not published"),
        ({"n_accel": "1e12"}, "beyond any cluster"),
        ({"tp": "3"}, "does not divide 8 accelerators"),
        ({"dp": "3"}, "dp 3 does not follow"),
        ({"accelerator": "RTX A6000"}, "not in the catalogue"),
        ({"accelerator": ""}, "accelerator not published"),
        ({"step_time_s": ""}, "neither time nor memory published"),
        ({"notes": "OOM at step 2"}, "went out of memory"),
        ({"model": "Llama3 8b LORA", "ffn": "8192"}, "rank of the adapters not published"),
        ({"model": "Llama3 8b LORA r8", "ffn": "8192"}, "matrices with an adapter not published"),
        ({"other": "finetune=Adapter v2 1 GPU"}, "LLaMA-Adapter is not counted"),
        ({"step_time_s": "", "global_batch": "", "tokens_per_s_per_accel": "9"}, "a rate gives no time of a step"),
        ({"zero_or_fsdp": "FSDP within slice, DP across slices"}, "number of slices not published"),
        ({"accelerator": "TPU v5e", "other": "3 slices of v5e-256"}, "3 slices do not divide 8 accelerators"),
        ({"other": "MoE 2 experts topk 8"}, "experts are not in the header"),
        ({"other": "MoE"}, "experts are not in the header"),
        ({"model": "a thing"}, "the shape of the layers is not known"),
        ({"precision": "INT4"}, 'precision "INT4" is not counted'),
        ({"recompute": "Selective AC"}, "is not counted"),
        ({"pp": "2", "schedule": "ZB-2p variant"}, 'schedule "ZB-2p variant" is not counted'),
        ({"pp": "2", "schedule": "interleaved 1F1B"}, "chunks a rank (vpp) not published"),
        ({"zero_or_fsdp": "magic"}, 'sharding "magic" is not known'),
        ({"source": "HF PEFT README"}, "neither batch nor sequence is published"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_says_why(row_of: Callable[..., Row], cells: dict[str, str], reason: str) -> None:
    row = row_of(**cells)

    assert row.status == "skipped"
    assert reason in row.reason


def test_a_bad_row_does_not_hide_the_next_one(tmp_path: Path) -> None:
    rows = compare_files([table(tmp_path, {"layers": "nan"}, {})]).rows

    assert [row.status for row in rows] == ["skipped", "compared"]


def test_a_row_that_breaks_a_rule_is_compared_all_the_same(row_of: Callable[..., Row]) -> None:
    row = row_of(global_batch="33")

    assert row.status == "compared"
    assert row.reason.startswith("BAT001")
    assert row.step_time_error is not None


# --- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100-80GB-SXM (Selene)", "a100-sxm-80"), ("A100-SXM4-40GB", "a100-sxm-40"),
        ("H100-80GB-SXM (DGX)", "h100-sxm"),
        ("8xB200", "b200"), ("GB200", "gb200"), ("TPU v5p", "tpu-v5p"), ("V100-32GB", "v100-sxm2-32"),
        ("A100 (8 per node, NVLink) single node", "a100-sxm-80"), ("A100-PCIe-40GB", "a100-pcie-40"),
        ("GB300", "gb300"), ("B300", "b300"), ("B200/GB200", "b200"), ("H800-80GB", "h800-sxm"), ("H20", "h20"),
        ("H100-PCIe", "h100-pcie"), ("V100-16GB", "v100-sxm2-16"), ("TPU v4", "tpu-v4"), ("TPU v5e", "tpu-v5e"),
        ("TPU v6e (Trillium)", "tpu-v6e"), ("RTX 4090", "rtx4090"), ("RTX A6000", ""), ("B200 (power limited)", "b200"),
        ("H100-96GB (HBM2e 2.4TB/s, 500W)", "h100-sxm-96"),
        ("", ""),
    ],
)  # fmt: skip
def test_an_accelerator_is_found_by_the_name_that_tables_give_it(text: str, name: str) -> None:
    assert accelerator_of(text).name == name


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("", ""), ("fp16 mixed", "fp16"), ("bf16 + float8 rowwise", "fp8_rowwise"), ("MXFP8", "mxfp8"),
        ("bf16 + float8 tensorwise", "fp8_tensorwise"), ("NVFP4", "nvfp4"), ("fp8 blockwise", "fp8_blockwise"),
        ("amp_bf16/fsdp_mp=DEFAULT", "bf16"),
        ("fp16, Adam state fp32", "fp16"), ("16-bit class (MFU uses 989 peak)", "bf16"),
    ],
)  # fmt: skip
def test_a_precision_is_that_of_the_matrix_multiplies(text: str, precision: str) -> None:
    assert precision_of(text) == precision


def test_the_recipe_of_an_fp8_run_is_read_from_the_name_of_its_configuration() -> None:
    # NVIDIA-NeMo/Megatron-Bridge, scripts/performance: FP8_CS is per-tensor current scaling, FP8_MX is mxfp8
    assert precision_of("FP8", "recipe=LLAMA3_70B_PRETRAIN_CONFIG_H100_FP8_CS_V2@f83545d98") == "fp8_tensorwise"
    assert precision_of("FP8", "recipe=LLAMA31_405B_PRETRAIN_CONFIG_GB300_FP8_MX_V2@f83545d98") == "mxfp8"
    assert precision_of("BF16", "recipe=QWEN3_30B_A3B_PRETRAIN_CONFIG_H100_BF16_V2") == "bf16"


def test_adapters_are_read_from_the_remarks() -> None:
    assert adapter_of("Llama2-7B finetune=full").kind == ""
    plain = adapter_of("Llama2-7B finetune=LoRA r8 1 GPU; quantization=none")
    assert (plain.kind, plain.rank, plain.frozen_format) == ("lora", 8, "")
    assert adapter_of("finetune=LoRA r8 1 GPU; quantization=bnb.nf4").frozen_format == "nf4"
    double = adapter_of("finetune=LoRA r8 1 GPU; quantization=bnb.nf4-dq")
    assert (double.kind, double.frozen_format) == ("qlora", "nf4_double")
    assert adapter_of("finetune=QLoRA; packed").kind == "qlora"


def test_an_optimizer_is_adam_unless_it_is_named() -> None:
    assert optimizer_of("") == optimizer_of("AdamW") == "adam"
    assert optimizer_of("Muon") == "muon"


def test_sharding_is_read_from_its_words() -> None:
    assert sharding_of("").zero == -1
    assert sharding_of("ZeRO-1").zero == 1
    assert (sharding_of("FSDP FULL_SHARD").zero, sharding_of("FSDP SHARD_GRAD_OP").zero) == (3, 2)
    assert sharding_of("FSDP=64").group == 64
    assert sharding_of("HSDP").hybrid
    assert sharding_of("ZeRO-3 opt-offload").offload_optimizer == 1
    assert sharding_of("FSDP within slice, DP across slices").slices
    assert sharding_of("FSDP", "CPU offload with fused optimizer").offload_parameters == 1
    assert sharding_of("FSDP", "optimizer CPU offload").offload_parameters == 0


def test_recompute_and_schedule_are_read_from_their_words() -> None:
    assert recompute_of("full (use_checkpoint=true in the matching configs)").kind == "full"
    assert recompute_of("selective (attention core)").kind == "selective"
    assert recompute_of("selective layer (every other)").share == 0.5
    assert recompute_of("recipe sets none").kind == "none"
    assert recompute_of("minimal").kind == "selective"
    assert recompute_of("selective modules=layernorm/moe_act").modules == ("moe_act", "layernorm")
    assert recompute_of("selective (layernorm + moe_act)").modules == ("moe_act", "layernorm")
    assert recompute_of("selective (attention core)").modules == ()
    assert recompute_of("selective (per op)").modules == ("all_but_other_matrices",)
    assert recompute_of("none stated").kind == ""
    assert schedule_of("1F1B (non-interleaved)").name == "1f1b"
    assert schedule_of("interleaved 1F1B").name == "interleaved"
    assert schedule_of("no pipeline").name == ""
    with pytest.raises(Skip):
        schedule_of("DualPipe")


def test_a_number_may_have_a_multiplier_or_words_after_it(tmp_path: Path) -> None:
    run = read(table(tmp_path, {"vocab": "250k (approx, multilingual)", "hidden": "2,304", "global_batch": "4e1"}))[0]

    assert (run.count("vocab"), run.count("hidden"), run.count("global_batch")) == (250_000, 2304, 40)


def test_dimensions_of_a_catalogue_model_are_that_model(tmp_path: Path) -> None:
    _, bill = bill_of({"model": "whatever GPT"}, tmp_path)

    assert bill.model.name == "gpt-1.7b"


def test_a_model_found_by_name_fills_what_is_blank(row_of: Callable[..., Row]) -> None:
    blank = dict.fromkeys(("heads", "kv_heads", "ffn", "vocab"), "")
    row = row_of(model="Llama 3.1 8B", accelerator="H100", layers="32", hidden="4096", **blank)

    assert row.status == "compared"
    assert any("llama-3.1-8b of the catalogue" in said for said in row.assumed)


# --- sources that say more than their tables -------------------------------------------------------------------------

# One row of MaxText's table for TPU v5e: AI-Hypercomputer/maxtext src/maxtext/configs/tpu/v5e/README.md
MAXTEXT = dict.fromkeys(("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "pp", "step_time_s"), "") | {
    "source": "MaxText performance tables", "model": "64B", "accelerator": "TPU v5e", "n_accel": "1024", "tp": "1",
    "zero_or_fsdp": "FSDP within slice, DP across slices", "micro_batch": "2", "global_batch": "2048",
    "recompute": "full", "other": "4 slices of v5e-256; remat_policy=full", "tflops_per_accel": "110",
}  # fmt: skip


@pytest.mark.parametrize("size", [16, 32, 64, 128, 256, 512, 1024])
def test_a_size_of_maxtext_has_the_parameters_of_its_name(size: int, tmp_path: Path) -> None:
    _, bill = bill_of(MAXTEXT | {"model": f"{size}B"}, tmp_path)

    assert bill.parameters.total == pytest.approx(size * 1e9, rel=0.06)


def test_the_22b_of_tpu_v4_has_the_parameters_of_its_name(tmp_path: Path) -> None:
    cells = {
        "model": "22B", "layers": "48", "hidden": "6144", "heads": "24", "kv_heads": "24", "ffn": "24576",
        "seq_len": "", "accelerator": "TPU v4", "n_accel": "128", "other": "2 slices of v4-128",
    }  # fmt: skip
    _, bill = bill_of(MAXTEXT | cells, tmp_path)

    assert bill.parameters.total == pytest.approx(22e9, rel=0.01)
    assert bill.job.sequence_length == 2048


def test_slices_hold_copies_and_shards_stay_inside_one(tmp_path: Path) -> None:
    _, bill = bill_of(MAXTEXT, tmp_path)

    assert (bill.layout.dp_replicate, bill.layout.dp_shard) == (4, 256)
    assert (bill.cluster.inside.size, bill.engine.name) == (256, "maxtext")


def test_a_slice_of_tpu_v5p_is_called_by_its_cores(tmp_path: Path) -> None:
    # Google counts TensorCores in v5p-128, two to a chip: 2 slices of it are 128 chips
    cells = {"accelerator": "TPU v5p", "n_accel": "128", "tp": "4", "other": "2 slices of v5p-128"}
    _, bill = bill_of(MAXTEXT | cells, tmp_path)

    assert bill.cluster.inside.size == 64
    assert (bill.layout.dp_replicate, bill.layout.dp_shard) == (2, 16)


# One row of the resource tables of LitGPT: Lightning-AI/litgpt tutorials/resource-tables.md
LITGPT = {
    "source": "LitGPT resource tables", "model": "Llama2-7B", "layers": "32", "hidden": "4096", "heads": "32",
    "kv_heads": "32", "ffn": "11008", "vocab": "32000", "seq_len": "", "accelerator": "A100-SXM4-40GB",
    "n_accel": "1", "tp": "", "pp": "", "precision": "bf16-true", "micro_batch": "1", "global_batch": "128",
    "recompute": "", "step_time_s": "", "peak_mem_gb": "13.84",
    "other": "finetune=LoRA r8 1 GPU; quantization=bnb.nf4-dq; longest sample 1304 tokens (Alpaca, padded per batch)",
}  # fmt: skip


def test_adapters_of_a_row_are_those_that_its_source_trains(tmp_path: Path) -> None:
    _, bill = bill_of(LITGPT, tmp_path)

    assert (bill.job.adapter, bill.job.adapter_rank, bill.job.frozen_format) == ("qlora", 8, "nf4_double")
    assert bill.job.adapter_targets == ("q_proj", "v_proj")  # litgpt/finetune/lora.py
    assert bill.job.sequence_length == 1304
    # PEFT prints so for LoRA of rank 8 beside q_proj and v_proj of Llama 2 7B: trainable params: 4,194,304
    gradients = next(item.value for item in bill.memory.items if item.name == "gradients")
    assert gradients == 2 * 4_194_304  # in 16 bit


def test_a_padded_batch_is_compared_at_its_longest_sample(row_of: Callable[..., Row]) -> None:
    row = row_of(**LITGPT)

    assert row.status == "compared"
    assert row.memory_is == "GB, allocated"
    assert any("the longest sample" in said for said in row.assumed)


# One row of NVIDIA's table for Grok-1: NVIDIA/dgxc-benchmarking v25.05, 512 H100
GROK = {
    "source": "NVIDIA DGX Cloud benchmarking recipes", "model": "Grok 1 314b", "layers": "64", "hidden": "6144",
    "heads": "48", "kv_heads": "8", "ffn": "32768", "vocab": "128256", "seq_len": "8192", "n_accel": "512",
    "accelerator": "H100-80GB-SXM (DGX)", "tp": "4", "pp": "8", "vpp": "8", "cp": "2", "ep": "8", "dp": "1",
    "micro_batch": "1", "global_batch": "1024", "recompute": "", "other": "ETP=; MoE 8 experts topk 2",
}  # fmt: skip


def test_experts_that_are_all_alike_are_read_from_the_remarks(tmp_path: Path) -> None:
    _, bill = bill_of(GROK, tmp_path)

    assert bill.parameters.total == pytest.approx(314e9, rel=0.02)
    assert (bill.layout.ep, bill.layout.etp) == (8, 4)  # Megatron-Core cuts experts by tp unless it is told
    assert bill_of(GROK | {"other": "ETP=1; MoE 8 experts topk 2"}, tmp_path)[1].layout.etp == 1


def test_a_model_whose_layers_were_cut_keeps_its_dense_ones(tmp_path: Path) -> None:
    # MooreThreads/SimuMax docs/b200: DeepSeek-V3 with 4 layers, the first of them dense
    cells = {
        "source": "MooreThreads/SimuMax B200 release v1.2", "model": "deepseekv3", "layers": "4", "hidden": "7168",
        "heads": "128", "kv_heads": "128", "ffn": "18432", "vocab": "129280", "ep": "8", "accelerator": "B200",
        "other": "layers trimmed; MLA; dense_layers=1; experts=256 topk=8 moe_ffn=2048 shared=2048",
    }  # fmt: skip
    _, bill = bill_of(cells, tmp_path)
    kinds = [bill.model.blocks[kind].experts is not None for kind in bill.model.pattern]

    assert kinds == [False, True, True, True]


def test_one_source_may_run_two_engines(tmp_path: Path) -> None:
    maxtext = {"source": GROK["source"], "model": "Maxtext Llama3 70b"}

    assert source_of(GROK).engine == "megatron-0.15"
    assert source_of(maxtext).engine == "maxtext-gpu"


def test_a_gpt_that_is_called_by_its_size_alone_is_not_the_catalogues(row_of: Callable[..., Row]) -> None:
    blank = dict.fromkeys(("layers", "hidden", "heads", "kv_heads", "ffn", "vocab"), "")

    assert row_of(source="BigScience GPT2 experiments", model="GPT-18B", **blank).reason == "layers not published"
    assert row_of(model="GPT-OSS 20B", accelerator="H100", **blank).status == "compared"


# --- output, progress, interruption ---------------------------------------------------------------------------------


def test_the_object_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    found = as_json(compare_files([table(tmp_path, {}, {"layers": ""})]))

    assert {
        "line", "status", "reason", "measured_step_time_s", "predicted_step_time_s", "step_time_error",
        "step_time_in_band", "measured_peak_mem_gib", "predicted_peak_mem_gib", "peak_mem_error", "peak_mem_in_band",
    } <= set(found["rows"][0])  # fmt: skip
    assert [row["status"] for row in found["rows"]] == ["compared", "skipped"]
    assert {"by", "name", "quantity", "count", "mean", "median", "p90", "worst", "bias", "in_band"} == set(
        found["summary"][0]
    )


def test_the_answer_comes_first_and_no_line_is_wider_than_asked(tmp_path: Path) -> None:
    text = lines(compare_files([table(tmp_path, {}, {"layers": ""}, {"peak_mem_gb": "30"})]), 80)

    assert text[0] == "2 of 3 rows compared, 1 skipped"
    assert text[1].startswith("step time:    mean error ")
    assert text[2].startswith("peak memory:  mean error ")
    assert max(map(len, text)) <= 80
    assert any(line.strip() == "1  layers not published" for line in text)
    assert any(line.startswith("worst 2 rows") for line in text)


def test_a_stop_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def report(done: int, total: int) -> None:
        calls.append(done)
        if done == 2:
            raise KeyboardInterrupt

    validation = compare_files([table(tmp_path, {}, {}, {})], report)

    assert validation.stopped
    assert len(validation.rows) == 2
    assert validation.summary[0].count == 2
    assert "STOPPED: 2 of 3 rows were read" in lines(validation)


def test_progress_waits_two_seconds_and_writes_twice_a_second() -> None:
    now, written = [0.0], list[str]()
    progress = Progress(written.append, lambda: now[0])
    for done in range(1, 101):
        now[0] = done / 10
        progress(done, 100)
    progress.close()

    shown = [text for text in written if "rows" in text]
    assert shown[0] == "\r20 of 100 rows, 8 s left "
    assert len(shown) == 16
    assert written[-1].strip() == ""


def test_a_short_comparison_writes_no_progress() -> None:
    written: list[str] = []
    progress = Progress(written.append, lambda: 0.0)
    progress(1, 2)
    progress.close()

    assert written == []


@pytest.mark.parametrize(
    ("remark", "kind"),
    [("ce_fusion=TE; cp_comm_type=a2a", "ulysses"), ("cp_comm_type: p2p", "ring"), ("cp_comm_type=?", ""), ("", "")],
)
def test_how_context_parallel_ranks_exchange_is_read_from_megatrons_flag(remark: str, kind: str) -> None:
    assert context_kind_of(remark) == kind


def test_a_page_has_a_row_for_each_source_and_each_reason(tmp_path: Path) -> None:
    found = compare_files([OWN])
    page = markdown(found)
    sources = {row.source for row in found.rows if row.step_time_error is not None}

    assert page[0].startswith(f"{len(found.compared)} of {len(found.rows)} rows compared")
    assert all(any(line.startswith(f"| {source} |") for line in page) for source in sources)
    assert all(line.count("|") == 9 for line in page if line.startswith("| ") and line.endswith("% |"))


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_figure_of_a_table_is_cut_however_narrow_the_terminal(tmp_path: Path, width: int) -> None:
    text = lines(compare_files([table(tmp_path, {})]), width)
    rows = [line for line in text if "in band" in line]
    assert rows and all(line.endswith("in band") for line in rows)
    assert all(line.rstrip().endswith("%") for line in text if line.startswith("bf16"))

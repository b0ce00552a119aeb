"""Logs of jobs: sixteen public ones, each in lines of its framework's shape with the published figures.

What a case asserts is what its thread ended in: the figures are those that people posted, not ours.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.formats.logs.checks import Remark, cards_of, checks_of, outside_engine, peak_of
from outlay.formats.logs.known import READERS, read
from outlay.formats.logs.lines import chunks_of, lines_from, lines_in
from outlay.formats.logs.pace import Pace, Told, pace_of
from outlay.formats.logs.questions import found_of
from outlay.formats.logs.record import Held, Log
from outlay.model.model import Model
from outlay.undivided import parameters
from outlay.validate.watched import Watched, implied_bandwidth, sequences_of, watched, work_of

LOGS = Path(__file__).parent / "logs"
GIB = 2.0**30
LLAMA = load_model("llama-3.1-8b")


def log_of(name: str) -> Log:
    (path,) = LOGS.glob(f"{name}*.log")
    return read(lines_from(chunks_of(str(path))))


def beside(
    log: Log, model: Model, on: str, job: Job, layout: Layout | None = None, engine: str = "megatron"
) -> Watched:
    return watched(log, count(model, job, load_cluster(on), layout or Layout(), engine))


def bill_of(log: Log, on: str) -> Bill:
    """The bill of the arguments that a log holds."""
    found = found_of(log)
    assert found.model is not None
    return count(found.model, found.job, load_cluster(on), found.layout, found.engine)


def held(log: Log, kind: str) -> Held:
    return next(one for one in log.memory if one.kind == kind)


def remarks(log: Log, told: Told | None = None, peak: float | None = None) -> dict[str, str]:
    return {one.name: one.text for one in checks_of(log, pace_of(log, told), peak)}


def near(value: float | None, expected: float, share: float) -> bool:
    return value is not None and abs(value / expected - 1) <= share


# --- the sixteen cases ------------------------------------------------------------------------------------------------


def test_throughput_and_time_name_the_sequence_and_the_convention() -> None:
    """NVIDIA/Megatron-LM #756: six lines of Mixtral on 16 H100 are sequences of 2,048 under full attention."""
    log = log_of("c01")
    bill = bill_of(log, "16xh100-sxm")
    found = watched(log, bill)

    assert found.beside is not None and "megatron" in found.beside.counted_by
    assert not any("causal" in name for name in found.beside.counted_by)
    work = work_of(found.pace)
    assert work is not None
    assert {length for length, name in sequences_of(work, 128, bill) if name == "megatron"} == {2048}
    assert parameters(bill.model).active < 13e9  # two experts of eight
    each = [(step.flops_per_second or 0) * (step.seconds or 0) for step in log.steps]
    assert max(each) / min(each) < 1.001


def test_at_another_length_the_lines_say_which_length_fits() -> None:
    log = log_of("c01")
    wrong = bill_of(
        replace(log, dump=log.dump.replace("seq_length ..... 2048", "seq_length ..... 4096")), "16xh100-sxm"
    )
    found = watched(log, wrong)

    assert found.beside is not None and found.beside.counted_by == ()
    assert (2048, "megatron") in found.beside.lengths


def test_the_peak_after_step_1_is_not_the_peak() -> None:
    """pytorch/torchtitan #1789: 58.28 GiB at step 1, 73.32 at step 10; Adam's moments are 14.62 of the 15.04 more."""
    log = log_of("c02")
    found = beside(log, load_model("deepseek-v2-lite"), "8xh100-sxm", Job(4096, 32), engine="fsdp2-torchtitan")
    memory = held(log, "reserved")

    assert near(memory.bytes - memory.first_bytes, 15.04 * GIB, 1e-3)
    assert found.memory[0].optimizer_bytes == pytest.approx(14.62 * GIB, rel=5e-3)
    assert near(found.memory[0].optimizer_bytes / found.memory[0].grown, 0.97, 0.01)
    assert near(log.number("capacity_bytes"), 79.10 * GIB, 1e-3)
    assert near(peak_of(log), 989e12, 2e-3)
    assert "h100-sxm" in cards_of(log)


def test_steps_that_were_skipped_hide_the_optimizer_states() -> None:
    """NVIDIA/Megatron-LM #60: five steps of five skipped, 12,606 MB then, out of memory later."""
    log = log_of("c03")
    pace = pace_of(log)

    assert held(log, "allocated").bytes == 12606.1 * 2**20
    assert held(log, "allocated").before_states and "before_states" in remarks(log)
    assert (pace.seconds, pace.left_out[0].seconds, log.skipped) == (1.994, 16.491, 10)


def test_an_allocator_at_the_edge_is_told_with_the_card() -> None:
    """pytorch/torchtitan PR #2389: B200, 95.44 % reserved, 9 retries."""
    log = log_of("c04")
    said = remarks(log)

    assert cards_of(log) == ("b200",)
    assert near(log.number("capacity_bytes"), 178.4 * GIB, 1e-3) and near(peak_of(log), 2250e12, 1e-3)
    assert said["allocation_retries"].startswith("9 allocations") and "96.3 %" in said["memory_at_edge"]


def test_a_peak_of_another_card_is_told_and_the_share_said_again() -> None:
    """AMD-AGI/Primus PR #772: 563 % on MI355X is 70 %; torchtitan PR #3393: a card of 16 GB; nanoGPT #464."""
    log = log_of("c05-mi355x")
    assert "it is 70.3 %" in remarks(log, peak=2500e12)["peak_is_fallback"]
    assert "mi355x" in cards_of(log)

    small = log_of("c05-peak")
    assert near(small.number("capacity_bytes"), 14.56 * GIB, 1e-3) and 294e12 < (peak_of(small) or 0) < 318e12
    assert cards_of(small) == ("t4",) and "peak_is_fallback" in remarks(small)

    assert "it is 32.8 %" in remarks(log_of("c05-nanogpt"), peak=989.4e12)["peak_is_fallback"]


def test_a_rate_of_a_device_that_is_of_all_of_them() -> None:
    """axolotl #3362: 131,072 tokens in 1.93 s on 8 H100 are 8,489 a device, not 68,000."""
    log = log_of("c06")
    found = beside(log, LLAMA, "8xh100-sxm", Job(4096, 32), engine="hf_trainer")

    assert near(found.pace.tokens_per_second, 67_913, 1e-4) and near(
        found.pace.tokens_per_second_per_device, 8_489, 1e-3
    )
    said = {one.name: one.text for one in found.remarks}["rate_is_multiple"]
    assert "8.00 times more" in said and "all devices" in said


def test_a_rate_short_by_the_micro_batches_of_a_step() -> None:
    """karpathy/nanochat #177: tokens of one micro-step over the time of four."""
    said = remarks(log_of("c07"))["rate_is_part"]

    assert "4.00 times less" in said and "the micro-batches a step" in said


def test_two_frameworks_tell_of_one_step() -> None:
    """deepspeedai/DeepSpeed #3742: 32 sequences, 108 to 114 ms outside the engine, 29 % in the optimizer's step."""
    log = log_of("c08")
    pace = pace_of(log)

    assert (log.framework, list(log.others)) == ("neox", ["deepspeed"])
    assert pace.told.samples == 32
    assert 0.1075 <= outside_engine(log, pace) <= 0.1145
    assert round(log.timers["step"].seconds / (pace.seconds or 1), 2) == 0.29


def test_a_step_of_few_tokens_is_told_so() -> None:
    """NVIDIA-NeMo/RL #1844: 0.85 s at 21.56 TFLOP/s a rank are 6,086 tokens on 16 H100, about 380 a device."""
    log = log_of("c09")
    found = beside(log, LLAMA, "16xh100-sxm", Job(380, 16))
    work = work_of(found.pace)
    assert work is not None and found.beside is not None

    assert near(work / (6 * 8.03e9), 6_086, 2e-3)
    assert [cause.item for cause in found.beside.causes] == ["few tokens"]


def test_a_first_step_that_nobody_waited_for_is_left_out() -> None:
    """MaxText's guide: 44.9, 0.319, 5.658, 5.402, then 5.667 s; 134.9 of 459 TFLOP/s."""
    log = log_of("c10")
    pace = pace_of(log)

    assert [one.number for one in pace.left_out] == [0, 1, 3]
    assert near(pace.seconds, 5.667, 3e-4) and near(pace.flops_per_second, 134.93e12, 1e-3)
    assert near(pace.tokens_per_second_per_device, 8673.4, 1e-3)


def test_both_ways_to_count_attention_follow_from_the_model() -> None:
    """MaxText PR #1988: Llama-2-7B at 8,192, 1721.22 TFLOP of 32,768 tokens in full, 1510.11 causal."""
    model = load_model("llama-2-7b")
    for attention, work in (("full", 1721.22e12), ("causal", 1510.11e12)):
        bill = count(model, Job(8192, 4, attention_flops=attention), load_cluster("4xh100-sxm"), Layout(), "maxtext")
        assert near(bill.step.model_flops, work, 2e-4)


def test_logits_are_named_first_where_they_are_the_peak(tmp_path: Path) -> None:
    """deepspeedai/Megatron-DeepSpeed #199: 600 M parameters, 250k vocabulary: 13,808 MB, of it 883 of states."""
    log = log_of("c11")
    wide = tmp_path / "config.json"
    wide.write_text(
        '{"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 2048, "vocab_size": 250000}'
    )
    bill = count(load_model(str(wide)), Job(2048, 256), load_cluster("64xv100-sxm2-32"),
                 Layout(micro_batch=4, recompute="full"), "megatron_deepspeed")  # fmt: skip
    found = watched(log, bill)
    pace = found.pace

    assert near(pace.seconds, 2.6725, 1e-9) and pace.left_out[0].seconds == 5.4
    assert held(log, "allocated").bytes == 13808.2 * 2**20
    assert found.memory[0].largest[0][0] == "logits"


def test_another_model_than_the_planned_one_stops_the_comparison() -> None:
    """mosaicml/llm-foundry #1706: 13.53 % with a model of 124 M, planned as 7B: 9.7e8 FLOPs a token, not 4e10."""
    log = log_of("c12")
    found = beside(log, load_model("mpt-7b"), "8xh100-sxm", Job(2048, 128), engine="fsdp2-llm-foundry")

    assert found.beside is not None and near(found.beside.printed_flops, 9.7e8, 1e-3)
    assert "another model" in found.beside.other_job[0] and found.beside.causes == ()


def test_the_link_that_a_step_implies_stands_beside_the_bill() -> None:
    """hiyouga/LLaMA-Factory #3499: 60 s a step on three cards is 0.7 GB/s of exchange; why stays open."""
    log = log_of("c13")
    job = Job(1024, 6, adapter="lora")
    found = beside(log, load_model("llama-3-8b"), "3xa100-pcie-80", job, Layout(zero=3), "deepspeed")
    assert found.beside is not None and found.bill is not None
    implied = implied_bandwidth(found.beside, found.bill)

    assert implied is not None and implied[0] == "dp"
    assert 0.4e9 < implied[1] < 1.2e9 < implied[2]
    assert found.beside.causes == () and "p2p_disabled" in {one.name for one in found.remarks}


def test_the_work_of_a_step_is_the_same_on_any_machine() -> None:
    """NVIDIA-NeMo/Megatron-Bridge PR #5344: 18,739.67 TFLOP a step; a record with 9.330 is 6.56 times that."""
    a, b = (work_of(pace_of(log_of(name))) for name in ("c14-work-is-conserved-a", "c14-work-is-conserved-b"))

    assert near(a, 18_739.67e12, 1e-4) and near((b or 0) / (a or 1), 6.56, 1e-3)


def test_a_line_of_another_work_is_flagged() -> None:
    log = log_of("c14-work-is-conserved-a")
    odd = replace(log.steps[-1], number=99, seconds=68.58827, flops_per_second=9.330e12)

    assert "7.10 times" in remarks(replace(log, steps=(*log.steps, odd)))["work_differs"]
    assert "work_differs" not in remarks(log)


def test_one_line_names_work_peak_and_capacity() -> None:
    """pytorch/torchtitan PR #1287: 5.7917e10 FLOPs a token is Llama-3-8B at 8,192 in full; peak 989; 95.0 GiB."""
    log = log_of("c15")
    job = Job(8192, 8)
    found = beside(log, load_model("llama-3-8b"), "8xh100-sxm-96", job, engine="fsdp2-torchtitan")
    assert found.beside is not None

    assert near(found.beside.printed_flops, 5.7914e10, 1e-3) and "megatron" in found.beside.counted_by
    assert near(peak_of(log), 989e12, 1e-3) and near(log.number("capacity_bytes"), 95.0 * GIB, 1e-3)
    assert "h100-sxm-96" in cards_of(log)
    assert [(one.number, one.why) for one in found.pace.left_out] == [(1, "start-up"), (210, "profiler")]


def test_three_digits_are_enough_for_the_sequence_and_the_devices() -> None:
    """huggingface/nanotron #390: 22.8K tokens/s x 11.5 s / 64 = 4,097; two GPUs; a cut line, another run."""
    log = log_of("c16")
    pace = pace_of(log)

    assert (pace.told.devices, pace.told.sequence_length, pace.told.samples) == (2, 4096, 64)
    assert (log.runs, log.seen) == (2, 8)
    assert next(step for step in log.steps if step.number == 327_282).seconds is None
    assert near((pace.flops_per_second or 0) * 2 / 22.8e3, 3.36e9, 1e-3)


# --- each framework's lines, of one invented run ----------------------------------------------------------------------

# Llama-3.1-8B, 64 devices, sequences of 8,192, 128 a step: 2.5 s, 6,553.6 tokens/s a device, 61.2 GiB allocated.
SHAPES = {
    "megatron": " [2026-01-05 10:00:00.000000] iteration {step:8d}/    1000 | consumed samples: {samples:12d} |"
    " elapsed time per iteration (ms): 2500.0 | throughput per GPU (TFLOP/s/GPU): 337.3 | global batch size:   128 |"
    " lm loss: 7.1E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "neox": " samples/sec: 51.200 | iteration {step:8d}/    1000 | elapsed time per iteration (ms): 2500.0 |"
    " approx flops per GPU: 337.3TFLOPS | lm_loss: 7.100000E+00 | number of skipped iterations:   0 |",
    "megatron_deepspeed": " iteration {step:8d}/    1000 | consumed samples: {samples:12d} | consumed tokens:  1 |"
    " elapsed time per iteration (s): 2.50 | global batch size:   128 | samples per second: 51.200 | TFLOPs: 337.30 |",
    "megatron_bridge": "Step Time : 2.50s GPU utilization: 337.3MODEL_TFLOP/s/GPU",
    "nemo": "Training epoch 0, iteration {step}/999 | global_batch_size: 128 | global_step: {step} |"
    " reduced_train_loss: 7.1 | train_step_timing in s: 2.5 | TFLOPS_per_GPU: 337.3",
    "torchtitan": "[titan] 2026-01-05 10:00:00,123 - root - INFO - step: {step:2d}  loss:  7.10000  grad_norm:  1.2500"
    "  memory: 66.30GiB(83.82%)  tps: 6,554  tflops: 337.30  mfu: 34.10%",
    "nanotron": "01/05/2026 10:00:00 [INFO|DP=0|PP=0|TP=0]: iteration: {step} / 1000 | consumed_tokens: 21M |"
    " time_per_iteration_ms: 2.5K | tokens_per_sec: 419K | tokens_per_sec_per_gpu: 6.55K | global_batch_size: 1.05M |"
    " lm_loss: 7.1 | model_tflops_per_gpu: 337.3 | eta: 0:40:50",
    "maxtext": "completed step: {step}, seconds: 2.500, TFLOP/s/device: 337.300, Tokens/s/device: 6553.600,"
    " total_weights: 1048576, loss: 7.100, lm_loss: 7.100, perplexity: 1211.967",
    "xtuner": "Epoch 1 Step {step}/1000 data_time: 0.0100 lr: 3.0e-05 time: 2.5000 text_tokens: 16384 local_loss: 7.1"
    " max_memory: 61.20 GB reserved_memory: 66.30 GB tgs: 6553.6 exp_tgs: 6400.0 eta: 0:40:50 ",
    "internevo": "tflops=337.3 step={step} loss=7.1 tgs (tokens/gpu/second)=6553.6 tgs/last_tgs_1=6553.6 lr=3e-05 ",
    "torchtune": "Step {step} | loss:7.1 lr:3e-05 tokens_per_second_per_gpu:6553.6 peak_memory_active:61.2 ",
    "nanochat": "step {step:05d}/01000 (2.00%) | loss: 7.100000 | lrm: 1.00 | dt: 2500.00ms | tok/sec: 419,430 |"
    " mfu: 38.37 | total time: 0.83m",
    "nanogpt": "iter {step}: loss 7.1000, time 2500.00ms, mfu 38.37%",
    "deepspeed": "[2026-01-05 10:00:00,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=40/global_step={step},"
    " RunningAvgSamplesPerSec=50.9, CurrSamplesPerSec=51.2, MemAllocated=16.9GB, MaxMemAllocated=61.2GB",
    "trainer": "\r  2%|2         | {step}/1000 [00:50<40:50,  2.50s/it]\r{{'loss': '7.1', 'epoch': '0.02'}}",
    "composer": "[batch={step}/1000]:\n\t Train throughput/batches_per_sec: 0.4000\n\t Train throughput/device/"
    "tokens_per_sec: 6553.6000\n\t Train memory/peak_allocated_mem: 65.7130",
}
ALL = Told(64, 8192, 128, 128 * 8192)


def shaped(framework: str, steps: range = range(10, 60, 10)) -> str:
    return "".join(SHAPES[framework].format(step=step, samples=128 * step) + "\n" for step in steps)


@pytest.mark.parametrize("framework", SHAPES)
def test_every_framework_tells_the_same_run(framework: str) -> None:
    log = read(lines_in(shaped(framework)))
    pace = pace_of(log, ALL)

    assert log.framework == framework and log.seen == 5
    assert near(pace.seconds, 2.5, 1e-3), pace.how
    assert near(pace.tokens_per_second_per_device, 6553.6, 5e-3)
    assert pace.flops_per_second in (None, 337.3e12)


@pytest.mark.parametrize(
    ("framework", "kind", "gib"),
    [("torchtitan", "reserved", 66.3), ("xtuner", "allocated", 61.2), ("torchtune", "active", 61.2),
     ("deepspeed", "allocated", 61.2), ("composer", "allocated", 61.2)],
)  # fmt: skip
def test_memory_is_in_the_units_that_each_framework_prints(framework: str, kind: str, gib: float) -> None:
    assert near(held(read(lines_in(shaped(framework))), kind).bytes, gib * GIB, 1e-4)


def test_megatron_prints_mebibytes_and_bridge_decimal_gigabytes() -> None:
    text = shaped("megatron") + (
        "[Rank 0] (after 20 iterations) memory (MB) | allocated: 17304.00 | max allocated: 62668.80 | reserved: 1.0 |"
        " max reserved: 67891.20[Rank 4] (after 20 iterations) memory (MB) | max allocated: 60000.00\n"
        "[Rank 1] (after 2 iterations) memory (GB) | mem-max-allocated-gigabytes: 70.713 | mem-alloc-retires: 0\n"
    )
    log = read(lines_in(text))

    assert held(log, "reserved").bytes == 67891.2 * 2**20
    assert (held(log, "allocated").bytes, held(log, "allocated").rank) == (70.713e9, 1)


def test_every_reader_says_which_lines_it_looks_for() -> None:
    assert all(one.TITLE and one.LOOKS_FOR for one in READERS if one.NAME != "beside")


def pace(text: str) -> Pace:
    return pace_of(read(lines_in(text)), ALL)


def test_a_restart_is_another_run_and_its_first_line_is_left_out() -> None:
    again = shaped("megatron", range(10, 60, 10)) + "----- arguments -----\n" + shaped("megatron", range(30, 60, 10))
    log = read(lines_in(again))

    assert (log.runs, log.seen, len(log.steps)) == (2, 8, 8)
    assert [(one.run, one.number) for one in pace_of(log).left_out] == [(0, 10), (1, 30)]


def test_the_line_after_iteration_1_still_holds_it() -> None:
    text = shaped("megatron", range(1, 2)) + shaped("megatron")

    assert [one.number for one in pace(text).left_out] == [1, 10]


def test_a_slow_line_is_named_by_what_stands_before_it() -> None:
    lines = shaped("nanochat", range(30)).splitlines()
    lines[20] = lines[20].replace("dt: 2500.00", "dt: 9000.00")
    lines.insert(20, "saving the checkpoint to /checkpoints/20")

    assert [(one.number, one.why) for one in pace("\n".join(lines) + "\n").left_out] == [
        (0, "start-up"),
        (20, "checkpoint"),
    ]


def test_slow_lines_at_regular_steps_are_told_with_their_distance() -> None:
    lines = shaped("nanochat", range(60)).splitlines()
    for step in (15, 30, 45):
        lines[step] = lines[step].replace("dt: 2500.00", "dt: 3100.00")

    whys = {one.number: one.why for one in pace("\n".join(lines) + "\n").left_out}
    assert whys == {0: "start-up", **dict.fromkeys((15, 30, 45), "slow, as every 15 steps")}


def test_intervals_of_different_length_weigh_as_they_are_long() -> None:
    one = SHAPES["nanogpt"]
    text = "".join(
        one.format(step=step).replace("2500.00", f"{millis}.00") + "\n"
        for step, millis in ((1, 9000), (2, 1000), (3, 1000), (103, 1010), (203, 1010), (303, 1010))
    )

    assert pace(text).seconds == 1.01


def test_the_log_with_arguments_holds_its_whole_question() -> None:
    found = found_of(log_of("megatron"))

    assert found.model is not None and parameters(found.model).total == 8_030_261_248
    assert (found.layout.tp, found.layout.pp, found.job.global_batch, found.ranks) == (2, 2, 128, 16)


def test_no_cause_is_named_that_the_log_does_not_tell() -> None:
    log = log_of("megatron")
    slow = replace(log, steps=tuple(replace(step, seconds=30.0, flops_per_second=None) for step in log.steps))
    found = watched(slow, bill_of(log, "16xh100-sxm"))
    assert found.beside is not None

    assert found.beside.causes == () and found.beside.unexplained > 19 and found.outside


def test_a_timer_longer_than_its_item_is_named_with_its_seconds() -> None:
    text = shaped("megatron") + "    optimizer ......................................: (310.10, 352.40)\n"
    bill = count(LLAMA, Job(8192, 128), load_cluster("64xh100-sxm"), Layout(tp=2))
    found = watched(read(lines_in(text)), bill)
    assert found.beside is not None
    item = next(one for one in bill.step.items if one.name == "optimizer")

    assert [cause.item for cause in found.beside.causes] == ["optimizer"]
    assert near(found.beside.causes[0].seconds, 0.3524 - item.high, 1e-6)


def test_remarks_are_told_by_name() -> None:
    assert all(
        isinstance(one, Remark) and one.name.isidentifier() for one in checks_of(log_of("c04"), pace_of(log_of("c04")))
    )


@pytest.mark.parametrize(("name", "degree"), [("cp", 2), ("tp", 4)])
def test_a_rate_times_a_degree_of_the_layout_is_named_by_it(name: str, degree: int) -> None:
    """torchtitan #2983 (times cp), TRL #7100 (times tp)."""
    text = shaped("maxtext").replace("6553.600", f"{6553.6 * degree:.3f}")
    found = beside(read(lines_in(text)), LLAMA, "64xh100-sxm", Job(8192, 128), Layout(**{name: degree}))

    said = {one.name: one.text for one in found.remarks}["rate_is_multiple"]
    assert said.endswith(f": {degree}, which is {name}")


def test_time_on_the_clock_that_no_step_took_is_told() -> None:
    lines = [line.replace("10:00:00", f"10:0{index}:00") for index, line in enumerate(shaped("megatron").splitlines())]

    said = remarks(read(lines_in("\n".join([*lines, ""]))))["time_beside_steps"]
    assert said == "of 240 s on the clock the steps took 100: 58.3 % is beside them"


def test_a_peak_is_compared_with_the_stage_of_its_rank() -> None:
    bill = bill_of(log_of("megatron"), "16xh100-sxm")
    for rank, stage in ((0, 0), (7, 0), (8, 1), (15, 1)):
        text = shaped("megatron") + f"[Rank {rank}] (after 20 iterations) memory (MB) | max allocated: 19880.9\n"
        (found,) = watched(read(lines_in(text)), bill).memory
        assert near(found.predicted, bill.memory.ranks[stage].allocated_bytes, 1e-9)
    assert bill.memory.ranks[0].allocated_bytes < bill.memory.ranks[1].allocated_bytes


def test_a_line_that_a_terminal_broke_is_joined() -> None:
    """NVIDIA-NeMo/Megatron-Bridge PR #841 shows such a log, its TFLOP/s on a line of their own."""
    broken = []
    for line in shaped("megatron").splitlines():
        broken += [line[:88], *(line[at : at + 86] for at in range(88, len(line), 86))]
        broken += ["Step Time : 2.50s GPU utilization: 58.2TFLOP/s/GPU"]
    broken = [line.replace("throughput per GPU (TFLOP/s/GPU): 337.3 | ", "") for line in broken]
    log = read(lines_in("\n".join([*broken, ""])))

    assert [(step.number, step.seconds, step.samples) for step in log.steps] == [
        (number, 2.5, 128) for number in range(10, 60, 10)
    ]
    assert pace_of(log).flops_per_second in (58.2e12, 337.3e12)


def test_epochs_of_lightning_are_one_run() -> None:
    text = "".join(
        f"\rEpoch {epoch}:  22%|##        | {step}/18 [00:17<01:02,  4.47s/it, loss=10.07, v_num=1]"
        for epoch in range(3)
        for step in range(1, 19)
    )
    log = read(lines_in(text + "\n"))

    assert (log.runs, [step.number for step in log.steps]) == (1, list(range(1, 55)))
    assert pace_of(log).total is None


def test_without_its_bars_the_trainer_tells_the_mean_of_the_whole_run() -> None:
    text = "***** Running training *****\n  Total optimization steps = 1,000\n{'loss': 7.1, 'epoch': 0.5}\n"
    text += "{'train_runtime': 2600.0, 'train_samples_per_second': 49.2, 'train_steps_per_second': 0.4, 'epoch': 1.0}\n"
    log = read(lines_in(text))

    assert [(step.number, step.seconds) for step in log.steps] == [(1000, 2.5)] and "whole_run" in remarks(log)


def test_deepspeed_prints_the_sizes_of_its_batch() -> None:
    config = "[2026-01-05 10:00:00,123] [INFO] [config.py:964:print]   train_batch_size ............. 128\n"
    pace = pace_of(read(lines_in(config + shaped("deepspeed"))))

    assert (pace.seconds, pace.how) == (2.5, "sequences over their printed rate")


def test_the_log_file_of_llama_factory_tells_its_time_by_the_clock() -> None:
    line = '{{"current_steps": {0}, "total_steps": 1000, "loss": 7.1, "lr": 3e-05, "elapsed_time": "{1}",' \
        ' "remaining_time": "0:40:50", "throughput": 419430.4, "total_tokens": 20971520}}'  # fmt: skip
    times = ("0:00:50", "0:01:15", "0:01:40", "0:02:05", "1 day, 0:02:30")
    log = read(lines_in("".join(line.format(10 * index, time) + "\n" for index, time in enumerate(times, 1))))

    pace = pace_of(log)
    assert (pace.seconds, pace.how, pace.total) == (2.5, "time between lines", 1000)
    assert [one.number for one in pace.left_out] == [10, 50]


def test_a_table_of_nvidia_smi_tells_all_of_the_card() -> None:
    row = "| N/A   45C    P0            500W /  700W |   70123MiB /  81559MiB |     99%      Default |\n"
    log = read(lines_in(row + shaped("nanochat")))
    found = beside(log, LLAMA, "64xh100-sxm", Job(8192, 128), Layout(tp=2))

    assert held(log, "device").bytes == 70123 * 2**20 and "h100-sxm" in cards_of(log)
    assert found.memory[0].predicted == found.bill.memory.device_bytes if found.bill else False


def test_a_run_with_other_arguments_leaves_the_steps_before_it_out() -> None:
    def run(tp: int, port: int, millis: str) -> str:
        block = "".join(
            f"  {name} {'.' * (48 - len(name))} {value}\n"
            for name, value in {"num_layers": 32, "tensor_model_parallel_size": tp, "master_port": port}.items()
        )
        return f"---- arguments ----\n{block}" + shaped("megatron").replace("2500.0", millis)

    same = read(lines_in(run(2, 1, "2500.0") + run(2, 9, "2600.0")))
    other = read(lines_in(run(2, 1, "2500.0") + run(4, 1, "2600.0") + run(4, 5, "2600.0")))

    assert (same.runs, same.since, pace_of(same).lines) == (2, 0, 8)
    assert (other.runs, other.since, pace_of(other).lines) == (3, 1, 8) and pace_of(other).seconds == 2.6
    assert "tensor_model_parallel_size ..... 4" in other.dump and "with run 2" in remarks(other)["arguments_changed"]

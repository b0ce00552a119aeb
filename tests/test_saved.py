"""Checkpoints, offload and loading: published sizes, and laws that need no figures of ours."""

import json
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from outlay import Bill, Job, Layout, Model, count, load_cluster, load_model
from outlay.bill import Loaded, case_of, countable, load
from outlay.cli.main import main
from outlay.memory.saved import each_writes, first_writes, rank_reads, written_of
from outlay.show.record import record
from outlay.show.restore import restore
from outlay.show.terminal import bill_lines
from outlay.show.text import PLAIN
from outlay.step.offload import backward_cover, backward_moved, forward_cover, forward_moved, free_from, shown_seconds

GB, GIB, TIB = 1e9, 2.0**30, 2.0**40
LLAMA = load_model("llama-3.1-8b")
PARAMETERS = 8_030_261_248  # of Llama-3.1-8B: its model page
MIXTRAL, ROUTED = load_model("mixtral-8x7b"), 46_702_792_704  # its index of safetensors: 93,405,585,408 bytes in bf16


def bill(on: str, engine: str, model: Model = LLAMA, job: Job | None = None, **axes: Any) -> Bill:
    return count(model, job or Job(2048, load_cluster(on).ranks), load_cluster(on), Layout(**axes), engine)


def case_at(on: str, engine: str, **axes: Any) -> Loaded:
    case, _ = case_of(LLAMA, Job(2048, load_cluster(on).ranks), load_cluster(on), Layout(**axes), engine)
    return load(countable(case))


# --- published sizes ------------------------------------------------------------------------------------------------


def test_the_checkpoint_of_bloom_has_the_size_that_its_page_says() -> None:
    """BigScience: "only the bf16 weights are 329GB, the full checkpoint with optimizer states is 2.3TB".

    `du -h` counts in 1,024 and rounds up.
    """
    job = Job(2048, 2048, precision="bf16")
    saved = bill("384xa100-sxm-80", "megatron_deepspeed", load_model("bloom-176b"), job, tp=4, pp=12, zero=1).saved
    assert ceil(saved.weights_bytes / GIB) == 329
    assert ceil(10 * saved.bytes / TIB) == 23


def test_the_checkpoint_of_gpt_neox_has_the_size_that_its_readme_says() -> None:
    """EleutherAI/gpt-neox README: 268GB with optimizer states; the slim weights are files of 41,112,854,242 bytes."""
    job = Job(2048, 1536, precision="fp16")
    saved = bill("96xa100-sxm-40", "megatron_deepspeed", load_model("gpt-neox-20b"), job, tp=2, pp=4, zero=1).saved
    assert saved.weights_bytes == pytest.approx(41_112_854_242, rel=1e-3)
    assert saved.bytes / GIB == pytest.approx(268, rel=2e-3)


def test_deepspeed_under_the_trainer_writes_the_files_that_a_user_lists() -> None:
    """deepspeedai/DeepSpeed issue 6598, Llama-3.1-8B, ZeRO-2 on one card: 90G of optimizer, 15G of weights, and the
    Trainer's own files of 4.7G, 4.7G, 4.6G and 1.1G."""
    saved = bill("1xh100-sxm", "deepspeed", zero=2).saved
    assert ceil(saved.optimizer_bytes / GIB) == 90
    assert saved.weights_bytes / GIB == pytest.approx(15 + 4.7 + 4.7 + 4.6 + 1.1, rel=0.01)


def test_each_card_of_llama_405b_writes_what_its_report_says() -> None:
    """Llama Team 2024, section 3.3.1: from 1 MB to 4 GB a GPU."""
    saved = bill(
        "16384xh100-sxm", "fsdp2", load_model("llama-3.1-405b"), Job(8192, 2048), tp=8, pp=16, dp_shard=128, zero=2
    ).saved
    assert 1e6 < saved.per_rank_bytes < 4e9


@pytest.mark.parametrize(
    ("engine", "zero", "bytes_each"),
    [
        ("megatron", 1, 14),  # bf16 model, fp32 master and two moments
        ("megatron_deepspeed", 3, 12),  # the fp32 partitions alone
        ("nanotron", 1, 14),
        ("fsdp2", 3, 12),  # fp32 shards and two moments
        ("hf_trainer", 0, 12),
        ("deepspeed", 3, 14),
        ("maxtext", 3, 12),
    ],
)
def test_a_parameter_takes_so_many_bytes_in_a_checkpoint(engine: str, zero: int, bytes_each: int) -> None:
    found = bill("8xh100-sxm", engine, job=Job(2048, 8, precision="bf16"), zero=zero)
    assert found.saved.bytes == bytes_each * PARAMETERS


def test_megatron_writes_fp32_also_of_what_it_keeps_in_fewer_bits() -> None:
    """NVIDIA/Megatron-LM pull request 2790: "optimizer states are saved in FP32 format"."""
    job = Job(2048, 8, precision="bf16", moment_dtype="bf16", master_dtype="remainder")
    assert bill("8xh100-sxm", "megatron", job=job).saved.bytes == 14 * PARAMETERS


@pytest.mark.parametrize("engine", ["megatron", "fsdp2", "hf_trainer", "deepspeed"])
def test_adapters_are_written_alone(engine: str) -> None:
    """huggingface/peft: the state_dict only contains the parameters of the adapter module."""
    found = bill("8xh100-sxm", engine, job=Job(2048, 8, adapter="lora", precision="bf16"))
    trained = 41_943_040  # rank 16 on every projection of Llama-3.1-8B, as peft prints it
    assert 8 * trained <= found.saved.bytes <= 16 * trained


def test_frozen_layers_stay_in_the_model_that_is_written() -> None:
    whole, frozen = (bill("8xh100-sxm", "megatron", job=Job(2048, 8, frozen=parts)) for parts in ((), ("layers",)))
    assert frozen.saved.weights_bytes == whole.saved.weights_bytes
    assert frozen.saved.optimizer_bytes < whole.saved.optimizer_bytes / 4


# --- who writes and who reads -----------------------------------------------------------------------------------------


def test_ranks_that_share_the_writing_write_the_checkpoint_once() -> None:
    saved = bill("64xh100-sxm", "megatron", tp=1, pp=1, dp_shard=64).saved
    assert 64 * saved.per_rank_bytes == pytest.approx(saved.bytes, rel=1e-4)  # all but the padded vocabulary


def test_without_sharing_the_first_rank_writes_all_the_weights() -> None:
    saved = bill("8xh100-sxm", "hf_trainer", zero=0).saved
    assert saved.per_rank_bytes == saved.bytes
    assert saved.read_bytes == 8 * saved.bytes  # and every replica reads it


def test_sharing_never_makes_the_busiest_rank_write_more() -> None:
    for zero in (0, 1, 2, 3):
        at = case_at("8xh100-sxm", "megatron", zero=zero)
        written = written_of(at.case)
        shared = [float(each_writes(written, stage, at.case)) for stage in at.every]
        first = [float(first_writes(written, stage, at.case)) for stage in at.every]
        assert max(shared) <= max(first)


def test_ranks_of_fsdp_read_the_checkpoint_once_together() -> None:
    at = case_at("8xh100-sxm", "fsdp2", zero=3)
    reads = sum(8 * float(rank_reads(written_of(at.case), stage, at.case)) for stage in at.every)
    assert reads == pytest.approx(12 * PARAMETERS)


@pytest.mark.parametrize("ep", [1, 4, 8])
def test_ranks_that_share_experts_out_read_and_write_each_of_them_once_together(ep: int) -> None:
    read = bill("8xh100-sxm", "fsdp2", MIXTRAL, zero=3, ep=ep).saved
    written = bill("8xh100-sxm", "megatron", MIXTRAL, zero=1, ep=ep).saved

    assert read.read_bytes == pytest.approx(12 * ROUTED)  # fp32 shards and two moments
    assert 8 * written.per_rank_bytes == pytest.approx(14 * ROUTED)  # and bf16 weights


def test_storage_or_the_nic_of_the_busiest_rank_sets_the_time() -> None:
    def write(engine: str, storage: float) -> float | None:
        cluster = replace(load_cluster("8xh100-sxm"), storage_bandwidth=storage)
        return count(LLAMA, Job(2048, 8), cluster, Layout(zero=0), engine).saved.write_seconds

    size = 12 * PARAMETERS
    nic = load_cluster("8xh100-sxm").outside
    assert write("hf_trainer", 1 * GB) == pytest.approx(size / GB)
    assert write("hf_trainer", 1e4 * GB) == pytest.approx(size / (nic.bandwidth * nic.share))


def test_without_a_storage_there_is_no_time_but_a_size() -> None:
    saved = bill("8xh100-sxm", "megatron").saved
    assert (saved.write_seconds, saved.read_seconds) == (None, None)
    assert saved.bytes > 0


# --- offload ----------------------------------------------------------------------------------------------------------


OFFLOADS = (
    {"offload_activations": 1.0},
    {"offload_parameters": 1.0},
    {"offload_activations": 0.5, "offload_parameters": 0.25},
)


BOTH = {"offload_activations": 1.0, "offload_parameters": 1.0}


@pytest.mark.parametrize("axes", OFFLOADS)
def test_offload_is_free_from_just_the_bandwidth_that_the_answer_says(axes: dict[str, float]) -> None:
    at = case_at("8xh100-sxm", "fsdp2", zero=3, **axes)
    (stage,) = at.every
    needed = float(free_from(stage, 0.0, at.case))

    def shown(link: float) -> float:
        card = replace(at.case.cluster.accelerator, host_bandwidth=link)
        cluster = replace(at.case.cluster, accelerator=card)
        return float(shown_seconds(stage, 0.0, replace(at.case, cluster=cluster)))

    assert shown(needed * 1.001) == 0
    assert shown(needed * 0.9) > 0


def test_a_copy_that_is_longer_than_the_kernels_shows_the_difference() -> None:
    at = case_at("8xh100-sxm", "fsdp2", zero=3, offload_parameters=1.0)
    (stage,) = at.every
    read = 4 * PARAMETERS / 8  # the fp32 shard, an eighth on each card
    card = replace(at.case.cluster.accelerator, host_bandwidth=1 * GB)
    slow = replace(at.case, cluster=replace(at.case.cluster, accelerator=card))
    hidden = float(forward_cover(stage)) + float(backward_cover(stage, 0.0, slow))
    assert float(shown_seconds(stage, 0.0, slow)) == pytest.approx(2 * read / GB - hidden)


def test_both_directions_of_the_link_run_side_by_side() -> None:
    """In a forward pass activations go out while weights come in; in a backward pass both come in."""
    weights, kept, both = (case_at("8xh100-sxm", "fsdp2", zero=3, **axes) for axes in (*OFFLOADS[1::-1], BOTH))

    def moved(at: Loaded) -> tuple[float, float]:
        (stage,) = at.every
        return float(forward_moved(stage, 0.0, at.case)), float(backward_moved(stage, 0.0, at.case))

    (in_forward, in_backward), (out, back) = moved(weights), moved(kept)
    assert moved(both) == (max(in_forward, out), in_backward + back)
    assert min(in_forward, in_backward, out, back) > 0


def test_more_tokens_hide_weights_but_not_activations() -> None:
    """Weights are read once a pass, whatever its tokens; activations grow with the tokens as the kernels do."""

    def needed(micro_batch: int, **axes: float) -> float:
        job = Job(2048, 8 * micro_batch)
        found = bill("8xh100-sxm", "fsdp2", job=job, zero=3, micro_batch=micro_batch, **axes).offload[0]
        assert found.needed_bandwidth is not None
        return found.needed_bandwidth

    assert needed(8, offload_parameters=1.0) < needed(1, offload_parameters=1.0) / 4
    assert needed(8, offload_activations=1.0) > needed(1, offload_activations=1.0) / 2


@pytest.mark.parametrize(
    ("axes", "reads"),
    [({"zero": 3}, 2 * 4), ({"zero": 3, "gather_unit": "model"}, 4), ({"zero": 2}, 4)],
)
def test_weights_come_over_the_link_whenever_they_are_gathered(axes: dict[str, Any], reads: int) -> None:
    """Four micro-batches: layer by layer twice each, for the forward and for the backward pass; else they stay."""
    (said,) = bill("8xh100-sxm", "fsdp2", job=Job(2048, 4 * 8), offload_parameters=1.0, **axes).offload
    assert said.bytes == reads * 4 * PARAMETERS / 8


@pytest.mark.parametrize(("zero", "reads"), [(2, 1), (3, 8 + 1)])
def test_a_pipeline_of_torch_reads_weights_once_a_step_or_once_a_forward_pass_and_once_more(
    zero: int, reads: int
) -> None:
    """torch 2.13: M + 1 gathers a step under ZeRO-3. The last stage of two: 16 layers, the final norm and the head."""
    h, f, kv, v = 4096, 14336, 1024, 128256
    last = 16 * (2 * h * h + 2 * h * kv + 3 * h * f + 2 * h) + h + h * v
    found = bill("8xh100-sxm", "fsdp2-torchtitan", job=Job(2048, 8 * 4), zero=zero, pp=2, offload_parameters=1.0)
    assert found.offload[0].bytes == reads * 4 * last / 4


def test_nothing_is_said_and_nothing_shows_without_offload() -> None:
    found = bill("8xh100-sxm", "fsdp2", zero=3)
    assert found.offload == ()
    assert "offload" not in [item.name for item in found.step.items]


def test_the_step_is_longer_by_what_the_optimizer_on_the_host_adds() -> None:
    plain, away = (bill("8xh100-sxm", "megatron", zero=1, offload_optimizer=share) for share in (0.0, 1.0))
    (said,) = away.offload
    assert said.needed_bandwidth is None
    assert away.step.seconds - plain.step.seconds == pytest.approx(said.shown_seconds)
    assert said.bytes == pytest.approx(PARAMETERS / 8 * (4 + 2), rel=1e-3)  # fp32 gradients out, bf16 weights back


# --- loading ----------------------------------------------------------------------------------------------------------


def test_every_rank_of_the_trainer_loads_the_whole_model() -> None:
    """pytorch/pytorch issue 105840: Falcon-40B in fp32 takes 160 GB of host memory on each of 8 processes."""
    found = bill("8xa100-sxm-80", "hf_trainer", load_model("falcon-40b"), Job(2048, 8), zero=0).loading
    assert found is not None
    assert (found.by, found.host_bytes / GB) == ("rank", pytest.approx(160, rel=0.06))


@pytest.mark.parametrize(
    ("engine", "zero", "by"),
    [("hf_trainer", 3, "node"), ("deepspeed", 2, "rank"), ("deepspeed", 3, "job")],
)
def test_who_holds_the_whole_model_while_it_loads(engine: str, zero: int, by: str) -> None:
    found = bill("8xh100-sxm", engine, zero=zero).loading
    assert found is not None
    assert found.by == by


@pytest.mark.parametrize("engine", ["megatron", "fsdp2", "maxtext", "nanotron"])
def test_engines_that_read_in_parts_hold_no_whole_model(engine: str) -> None:
    assert bill("8xh100-sxm", engine).loading is None


def test_deepspeed_may_hold_more_as_it_loads_than_as_it_trains() -> None:
    """stas00/ml-engineering: Llama-3.1-8B at 8,192 tokens reserves 16.3 GiB on each of 8 cards, 15 of them 2 N."""
    job = Job(8192, 8, precision="bf16")
    found = bill("8xh200-sxm", "deepspeed-liger", job=job, zero=3, recompute="full", offload_optimizer=1.0).loading
    assert found is not None and found.accelerator_bytes is not None
    assert found.accelerator_bytes == 2 * PARAMETERS
    assert 0.9 * 16.3 * GIB < found.accelerator_bytes < 16.3 * GIB


def test_a_host_that_cannot_hold_a_model_for_every_rank_is_named() -> None:
    def said(model: str) -> str:
        found = bill("8xp4d.24xlarge", "deepspeed", load_model(model), Job(512, 64), zero=2)
        return " ".join(" ".join(bill_lines(found, PLAIN)).split())

    assert "more than the 144 GiB there" in said("llama-3.1-405b")
    assert "of 144 GiB there" in said("llama-3.1-8b")


# --- the faces --------------------------------------------------------------------------------------------------------


ASK = ["count", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "2048", "--batch", "8"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main([*ASK, *words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_bandwidth_on_the_command_line_gives_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--storage", "100GB/s")
    assert found["saved"]["write_seconds"] == pytest.approx(14 * PARAMETERS / 100e9)
    assert found["cluster"]["storage_bandwidth"] == 100e9


def test_a_bit_is_not_a_byte(capsys: pytest.CaptureFixture[str]) -> None:
    bits, size = (printed(capsys, "--storage", text)["cluster"]["storage_bandwidth"] for text in ("80Gb/s", "10 GB/s"))
    assert bits == size == 10e9


def test_a_file_of_a_cluster_can_say_its_storage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lab.toml"
    file.write_text('accelerator = "h100-sxm"\nranks = 8\nstorage_bandwidth = "1.6 Tb/s"\n')
    assert main(["hardware", str(file)]) == 2  # Gb/s is known, Tb/s is not
    assert "UNI001" in capsys.readouterr().err
    file.write_text(file.read_text().replace("1.6 Tb/s", "1600 Gb/s"))
    assert load_cluster(str(file)).storage_bandwidth == 200e9
    assert main(["hardware", str(file)]) == 0
    assert "200 GB/s to the storage of checkpoints" in capsys.readouterr().out
    assert main(["hardware", str(file), "--toml"]) == 0
    file.write_text(capsys.readouterr().out)
    assert load_cluster(str(file)).storage_bandwidth == 200e9


@pytest.mark.parametrize("text", ["200", "0GB/s", "fast", "-1GB/s", "1e30TB/s", "nanGB/s", "GB/s"])
def test_a_storage_without_a_rate_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*ASK, f"--storage={text}", "--json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert fault["code"] == "UNI005"


def test_a_printed_bill_gives_the_same_bill_again() -> None:
    cluster = replace(load_cluster("8xp5.48xlarge"), storage_bandwidth=2e11)
    layout = Layout(zero=3, offload_parameters=1.0, offload_optimizer=1.0)
    first = count(LLAMA, Job(2048, 64), cluster, layout, "deepspeed")
    made = record(first)
    asked = restore(json.loads(json.dumps(made)))
    again = record(count(asked.model, asked.job, asked.cluster, asked.layout, asked.engine))
    for section in ("saved", "offload", "loading"):
        assert again[section] == made[section]


def test_the_answer_says_each_in_a_line() -> None:
    layout = Layout(zero=3, offload_activations=1.0, offload_optimizer=0.5)
    text = "\n".join(bill_lines(count(LLAMA, Job(2048, 64), load_cluster("8xp5.48xlarge"), layout, "deepspeed"), PLAIN))
    assert "SAVED " in text and "--storage 200GB/s for the time" in text
    assert text.count("OFFLOAD ") == 2 and "hidden behind compute from" in text
    assert "LOADING " in text and "the first rank of all holds the whole model" in text


def test_the_checkpoint_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "saved", *ASK[1:]]) == 0
    text = capsys.readouterr().out
    assert "weights" in text and "master" in text and "112" in text

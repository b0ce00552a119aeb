"""Memory over a simulated step: its largest moment is the bill's where the closed form is exact, and never above it."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import DEEPSEEK_V3, GPT3, LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import Job, Layout, Model, load_cluster
from outlay.bill import case_of, load
from outlay.cli.main import main
from outlay.memory.activations import one_pass_bytes
from outlay.memory.moments import waiting_logits
from outlay.memory.peak import peak
from outlay.memory.states import gradient_bytes
from outlay.over_time import OverTime, over_time
from outlay.schedule.timeline import Track
from outlay.simulated import chunk_costs, simulated

EXACT = [
    ("megatron", {"schedule": "1f1b"}),
    ("megatron", {"schedule": "1f1b", "recompute": "full"}),
    ("megatron", {"schedule": "1f1b", "recompute": "selective"}),
    ("megatron", {"schedule": "interleaved", "vpp": 2}),
    ("megatron", {"schedule": "interleaved", "vpp": 4}),
    ("fsdp2-torchtitan", {"schedule": "gpipe"}),
    ("fsdp2-torchtitan", {"schedule": "gpipe", "recompute": "full"}),
    ("fsdp2-torchtitan", {"schedule": "looped_bfs", "vpp": 2}),
    ("fsdp2-torchtitan", {"schedule": "looped_bfs", "vpp": 2, "recompute": "full"}),
    ("deepspeed", {"schedule": "1f1b", "zero": 1}),
]
BOUNDED = [
    ("fsdp2-torchtitan", {"schedule": "interleaved_zb", "vpp": 2}),
    ("fsdp2-torchtitan", {"schedule": "zbv", "vpp": 2}),
    ("fsdp2-torchtitan", {"schedule": "zbv", "vpp": 2, "recompute": "full"}),
    ("fsdp2-torchtitan", {"schedule": "dualpipe_v", "vpp": 2}),
    ("fsdp2-torchtitan", {"schedule": "dualpipe_v", "vpp": 2, "recompute": "full"}),
    ("megatron", {"schedule": "1f1b", "split": (10, 8, 8, 6)}),
]


def run(model: Model, engine: str = "megatron", batch: int = 64, on: str = "8xh100-sxm", **axes: Any) -> OverTime:
    """A step of a layout, simulated."""
    job = Job(sequence_length=4096, global_batch=batch)
    loaded = load(case_of(model, job, load_cluster(on), Layout(**axes), engine)[0])
    return over_time(loaded, simulated(loaded))


@pytest.mark.parametrize("model", [LLAMA_8B, MIXTRAL])
@pytest.mark.parametrize(("engine", "axes"), EXACT)
def test_every_stage_holds_at_most_what_the_closed_form_says(engine: str, axes: dict[str, Any], model: Model) -> None:
    for rank in run(model, engine, pp=4, **axes).ranks:
        assert rank.peak.bytes == pytest.approx(rank.refined_bytes, rel=1e-9), rank.stage


@pytest.mark.parametrize(("engine", "axes"), BOUNDED)
def test_where_the_closed_form_is_a_bound_no_stage_holds_more(engine: str, axes: dict[str, Any]) -> None:
    found = run(LLAMA_8B, engine, pp=4, **axes)

    assert all(rank.peak.bytes <= rank.refined_bytes * (1 + 1e-9) for rank in found.ranks)
    assert any(rank.peak.bytes >= 0.9 * rank.refined_bytes for rank in found.ranks)


@given(st.sampled_from(EXACT + BOUNDED[:-1]), st.sampled_from([1, 2, 4]), st.sampled_from([8, 24, 72]))
def test_the_parts_of_a_moment_are_the_top_of_its_curve(kind: tuple[str, dict[str, Any]], pp: int, batch: int) -> None:
    engine, axes = kind
    if pp == 1:
        axes = {name: value for name, value in axes.items() if name in ("recompute", "zero")}
    for rank in run(LLAMA_8B, engine, batch * (8 // pp), pp=pp, **axes).ranks:
        assert rank.peak.bytes == pytest.approx(float(rank.bytes.max()), rel=1e-12)
        assert min(rank.peak.parts.values()) >= 0
        assert (np.diff(rank.seconds) >= 0).all()
        assert rank.bytes[int(np.argmax(rank.seconds >= rank.peak.seconds))] <= rank.peak.bytes * (1 + 1e-12)


def replayed(track: Track, tapes: list[float]) -> float:
    """The most that one rank keeps, pass after pass: a forward pass adds its chunk's tape, a finished one takes it."""
    held = most = 0.0
    for kind, stage, back in zip(track.kind.tolist(), track.stage.tolist(), track.back_stage.tolist(), strict=True):
        held += tapes[stage] if kind in "FP" else 0.0
        most = max(most, held)
        held -= tapes[back] if kind == "P" else tapes[stage] if kind in "BW" else 0.0
    return most


@pytest.mark.parametrize(("engine", "axes"), EXACT + BOUNDED)
def test_tapes_are_those_that_a_replay_of_the_order_holds(engine: str, axes: dict[str, Any]) -> None:
    job = Job(sequence_length=4096, global_batch=64)
    loaded = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(pp=4, **axes), engine)[0])
    once = simulated(loaded)
    tapes = [float(one_pass_bytes(chunk, loaded.case)) for chunk in chunk_costs(loaded.case)]

    for rank, track in zip(over_time(loaded, once).ranks, once.timeline.ranks, strict=True):
        assert float(rank.curves["activations"].max()) == pytest.approx(replayed(track, tapes), rel=1e-9)


def test_more_micro_batches_change_nothing_once_the_pipeline_is_full() -> None:
    few, many = (run(LLAMA_70B, batch=batch, on="32xh100-sxm", tp=8, pp=4) for batch in (64, 1024))

    assert many.left_out is not None
    for one, other in zip(few.ranks, many.ranks, strict=True):
        assert one.peak.bytes == other.peak.bytes
        assert one.peak.operation == other.peak.operation
        assert one.peak.seconds == other.peak.seconds


def test_the_first_stages_peak_as_the_backward_pass_begins_and_the_last_at_its_head() -> None:
    found = run(LLAMA_70B, batch=64, on="32xh100-sxm", tp=8, pp=4)

    assert [rank.peak.operation for rank in found.ranks] == [
        "backward pass, its first layer, micro-batch 1, chunk 0",
        "backward pass, its first layer, micro-batch 1, chunk 1",
        "backward pass, its first layer, micro-batch 1, chunk 2",
        "backward pass at the head, micro-batch 1, chunk 3",
    ]
    assert found.worst.stage == 0


def test_gradients_that_come_with_the_backward_pass_are_not_there_at_the_head() -> None:
    found = run(LLAMA_8B, "fsdp2", batch=8).worst

    assert found.peak.parts["gradients"] == 0
    assert found.curves["state"][-1] > found.curves["state"][0]


def test_a_batch_that_keeps_little_peaks_where_its_gradients_are_complete() -> None:
    job = Job(sequence_length=16, global_batch=8)
    loaded = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(zero=2), "fsdp2")[0])
    found = over_time(loaded, simulated(loaded)).worst

    assert found.peak.bytes == pytest.approx(found.refined_bytes, rel=1e-9)
    assert found.peak.parts["gradients"] == float(gradient_bytes(loaded.every[0], loaded.case))
    assert found.peak.parts["activations"] == 0
    assert found.peak.operation == "end of the backward pass, micro-batch 1"


def test_a_dropout_mask_counts_for_the_passes_of_its_own_chunk() -> None:
    """The closed form spreads the embedding's mask over all chunks of the rank; the first chunk holds more passes."""
    found = run(GPT3, batch=128, on="128xh100-sxm", tp=8, pp=8, vpp=3)

    assert 1 < found.ranks[0].peak.bytes / found.ranks[0].refined_bytes < 1.001
    assert all(rank.peak.bytes == pytest.approx(rank.refined_bytes, rel=1e-9) for rank in found.ranks[1:])


@pytest.mark.parametrize(("schedule", "passes"), [("zbv", 0), ("dualpipe_v", 1)])
def test_logits_of_a_pass_that_runs_beside_the_backward_pass_wait(schedule: str, passes: int) -> None:
    """A token of Llama-3.1-8B: its logits in fp32, the inputs of final norm and head in bf16, the norm's statistic."""
    job, cluster = Job(sequence_length=4096, global_batch=64), load_cluster("8xh100-sxm")
    layout = Layout(pp=4, vpp=2, schedule=schedule)  # type: ignore[arg-type]
    at = load(case_of(LLAMA_8B, job, cluster, layout, "fsdp2-torchtitan")[0])

    first = float(waiting_logits(at.every[0], at.case))  # the first rank has the head, too
    assert first == passes * 4096 * (4 * 128_256 + 2 * 4096 + 2 * 4096 + 4)


def test_unlike_stages_each_hold_their_own_layers() -> None:
    found = run(DEEPSEEK_V3, batch=256, on="256xh100-sxm", pp=4, ep=32, split=(16, 16, 16, 13))

    assert all(rank.peak.bytes == pytest.approx(rank.refined_bytes, rel=1e-9) for rank in found.ranks)
    assert found.ranks[3].peak.parts["activations"] < found.ranks[2].peak.parts["activations"] / 2


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_head_is_done_after_the_same_time_however_many_layers_stand_before_it(recompute: str) -> None:
    """Of one forward and one backward pass: its begin, the moment at which the head is done, its end."""

    def head_and_layers(layers: int) -> tuple[float, float]:
        model = replace(LLAMA_8B, pattern=LLAMA_8B.pattern[:layers])
        begin, done, end = run(model, "fsdp2", batch=8, recompute=recompute).worst.seconds[5:8]
        return float(done - begin), float(end - done)

    (head, few), (same, many) = head_and_layers(8), head_and_layers(32)
    assert head == pytest.approx(same, rel=1e-3) and head > 0
    assert many == pytest.approx(4 * few, rel=1e-3)


# --- the faces ------------------------------------------------------------------------------------------------------

FITS = "llama-3.1-70b --on 32xh100-sxm --tp 8 --pp 4 --seq 4096 --batch 512"


def test_the_answer_names_moment_time_and_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", *FITS.split(), "--simulate"]) == 0
    text = capsys.readouterr().out
    found = run(LLAMA_70B, batch=512, on="32xh100-sxm", tp=8, pp=4).worst

    assert f"{found.peak.bytes / 2**30:.1f} GiB allocated at most, on stage 0" in text
    assert "~ the same again, not drawn" in text


def test_the_record_has_the_curve_of_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", *FITS.split(), "--simulate", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["over_time"]

    assert [rank["stage"] for rank in made["ranks"]] == [0, 1, 2, 3]
    for rank in made["ranks"]:
        assert max(size for _, size in rank["curve"]) == pytest.approx(rank["allocated_bytes"], rel=1e-12)
        assert sum(item["bytes"] for item in rank["items"]) == pytest.approx(rank["allocated_bytes"], rel=1e-12)
        assert rank["curve"][-1][0] == pytest.approx(made["step_seconds"])


def test_without_simulate_the_record_has_no_curve(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", *FITS.split(), "--json"]) == 0

    assert "over_time" not in json.loads(capsys.readouterr().out)


def test_the_picture_says_the_moment_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.svg"
    assert main(["memory", *FITS.split(), "--svg", str(path)]) == 0
    tree = ET.fromstring(path.read_text())
    said = "".join(tree.itertext())

    assert f"WROTE     {path}"[:20] in capsys.readouterr().out
    assert "backward pass, its first layer, micro-batch 1, chunk 0" in said
    assert "the same again" in said


def test_a_picture_is_never_written_over_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.svg"
    path.write_text("mine")

    assert main(["memory", *FITS.split(), "--svg", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "OUT001" in capsys.readouterr().err


def test_a_layout_that_breaks_a_rule_is_not_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.svg"

    assert main(["memory", *["llama-3.1-8b", "--on", "8xh100-sxm", "--tp", "3", "--simulate", "--svg"], str(path)]) == 1
    assert not path.exists()
    assert "NOT LEGAL" in capsys.readouterr().out


def test_the_ladder_climbs_to_the_simulated_peak(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "memory", *FITS.split(), "--simulate", "--json"]) == 0
    rungs = {rung["name"]: rung["value"] for rung in json.loads(capsys.readouterr().out)["ladder"]}
    job = Job(sequence_length=4096, global_batch=512)
    loaded = load(case_of(LLAMA_70B, job, load_cluster("32xh100-sxm"), Layout(tp=8, pp=4))[0])

    assert rungs["simulated"] == pytest.approx(float(peak(loaded.stages, loaded.case)), rel=1e-9)


def test_a_layout_that_breaks_rules_is_not_simulated_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "none.svg"
    task = "memory llama-3.1-8b --on 8xh100-sxm --seq 8192 --batch 32 --engine fsdp2 --loss-chunks 7"
    assert main([*task.split(), "--svg", str(path)]) == 1
    assert "no picture is written" in capsys.readouterr().out
    assert not path.exists()

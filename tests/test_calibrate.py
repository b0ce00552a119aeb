"""outlay calibrate, as far as it needs no torch: constants that are known come back from times that they make."""

import json
import random
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import outlay
from outlay.bill import case_of
from outlay.cli.main import main
from outlay.cluster.accelerator import Cluster
from outlay.cluster.catalogue.tables import accelerator_names
from outlay.cluster.network import all_reduce_time, all_to_all_time, gather_time, group
from outlay.engines.profile_file import read_profile
from outlay.engines.profiled import profiled
from outlay.engines.tables import engine
from outlay.errors import InputError
from outlay.show.calibrated import calibrated_lines, calibrated_record
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style
from outlay.verify import versions
from outlay.verify.calibration.calibrated import Around, Asked, Calibrated, calibrated, subject_of, tasks_of
from outlay.verify.calibration.devices import DEVICES, accelerator_of
from outlay.verify.calibration.estimators import cost_line, rate_and_depth, start_and_step, weighted_quantile
from outlay.verify.calibration.machine_file import Names, Rank
from outlay.verify.calibration.shapes import collective_tasks, common_tasks, model_tasks, standard_tasks
from outlay.verify.calibration.tasks import FORWARD, KINDS, SEND, Measured, Run, Task, measured, on_core
from outlay.verify.calibration.working import Working, working_path
from test_json import faults

SMALL = str(Path(__file__).parent.parent / "docs" / "small-llama.json")
RATE = {"bf16": 800e9, "fp32": 120e9}  # FLOP/s of large multiplies on the machine that is made up here
DEPTH, CORE, CORE_BACK, MEMORY, LAUNCH = 90.0, 160e9, 70e9, 12e9, 3e-6
EAGER = {"rms_norm": 8.0, "rotate": 4.0, "gated_activation": 2.0, "residual": 1.0, "loss": 3.0}
START, STEP, LINK = 80e-6, 25e-6, 2e9
AROUND = Around("a machine that is made up", False, 4, 4, Rank("made up", "nobody", 8e9, "one core"))
NAMES = Names("own", "own-machine.toml", "own.toml")


def seconds_of(task: Task) -> float:
    """What a task takes there, from the constants above."""
    if task.kind == "matmul":
        return LAUNCH + task.work / RATE[task.precision] * (1 + DEPTH / task.inner)
    if task.kind == "attention":
        return LAUNCH + task.work / (CORE if task.what == FORWARD else CORE_BACK)
    if task.kind == "memory":
        return LAUNCH + task.work / MEMORY
    if task.kind == "elementwise":
        return LAUNCH + EAGER[task.what.removesuffix("_back")] * task.work / MEMORY
    if task.kind == "launch":
        return LAUNCH
    buffer, ranks, _ = task.sizes
    passes = {"all_reduce": 2}.get(task.what, 1)
    around = 1.0 if task.what == SEND else passes * (ranks - 1) / ranks
    steps = 1 if task.what in (SEND, "all_to_all") else passes * (ranks - 1)
    return START + steps * STEP + around * buffer / LINK


def timed(tasks: Sequence[Task], seconds: Callable[[Task], float] = seconds_of) -> list[Measured]:
    """Nine times of each task, 2 % around what it takes, and two that something else disturbed."""
    draw = random.Random(7)
    return [
        measured(task, [seconds(task) * each for each in (*(draw.uniform(0.98, 1.02) for _ in range(9)), 6.0, 20.0)])
        for task in tasks
    ]


def made(asked: Asked = Asked("own", "bf16"), around: Around = AROUND, tasks: Sequence[Task] = ()) -> Calibrated:
    of = tasks or tasks_of(asked, around)[0]
    return calibrated(asked, around, timed(of), NAMES, "2026-11-30")


def written(found: Calibrated, folder: Path) -> tuple[str, str]:
    """The paths of its two files."""
    profile, machine = folder / "own.toml", folder / "own-machine.toml"
    profile.write_text(found.text)
    machine.write_text(found.machine)
    return str(profile), str(machine)


def values(found: Calibrated) -> dict[str, float]:
    return {each.name: each.value for each in found.profile.hardware}


# --- estimators -----------------------------------------------------------------------------------------------------


def test_a_median_takes_the_weight_and_lies_between_two_halves() -> None:
    assert weighted_quantile([5, 1, 9], [1, 1, 1]) == 5
    assert weighted_quantile([1, 2, 3], [10, 1, 1]) == 1
    assert weighted_quantile([1, 3], [1, 1]) == 2
    assert weighted_quantile([4, 1, 2, 3], [1, 1, 1, 1], 0.25) == 1.5


def test_rate_and_depth_of_multiplies_come_back_whatever_two_of_them_do() -> None:
    points = [(k, 1e12 / (1 + 150 / k), 1.0) for k in (256, 512, 1024, 2048, 4096, 8192, 16384)]
    rate, depth = rate_and_depth(points)
    spoilt = [(k, r / (3 if k in (512, 8192) else 1), w) for k, r, w in points]
    now, deep = rate_and_depth(spoilt)

    assert rate.value == pytest.approx(1e12, rel=1e-9) and depth == pytest.approx(150, rel=1e-9)
    assert now.value == pytest.approx(1e12, rel=0.02) and deep == pytest.approx(150, rel=0.2)


def test_multiplies_of_one_inner_dimension_fix_a_rate_and_no_depth() -> None:
    rate, depth = rate_and_depth([(512, 1e12, 1.0), (512, 3e12, 1.0), (512, 2e12, 1.0)])

    assert rate.value == 2e12 and depth is None


def test_a_rate_that_falls_with_the_inner_dimension_gives_a_depth_of_nothing() -> None:
    assert rate_and_depth([(256, 2e12, 1.0), (4096, 1e12, 1.0), (8192, 1e12, 1.0)])[1] == 0


def test_a_line_of_time_over_size_comes_back_whatever_one_of_six_points_does() -> None:
    points = [(size, 50e-6 + size / 1e9) for size in (4e3, 6e4, 1e6, 4e6, 1.6e7, 6.4e7)]
    line = cost_line(points)
    spoilt = cost_line([*points[:3], (4e6, 1.0), *points[4:]])

    assert (line.start, 1 / line.slope) == (pytest.approx(50e-6), pytest.approx(1e9))
    assert (spoilt.start, 1 / spoilt.slope) == (pytest.approx(50e-6, rel=0.01), pytest.approx(1e9, rel=0.01))


def test_no_start_and_no_slope_is_below_nothing() -> None:
    falling = cost_line([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)])
    steep = cost_line([(1.0, 1.0), (2.0, 3.0), (3.0, 5.0)])

    assert falling.slope == 0 and falling.start > 0
    assert steep.slope == 2 and steep.start == 0


def test_the_start_of_a_collective_is_told_from_its_steps() -> None:
    assert start_and_step([(1, 30e-6), (3, 70e-6), (6, 130e-6)]) == (pytest.approx(10e-6), pytest.approx(20e-6))
    assert start_and_step([(1, 20e-6), (2, 20e-6)]) == (20e-6, 0)
    assert start_and_step([(1, 1e-6), (2, 3e-6)]) == (0, pytest.approx(1.25e-6))


def test_times_that_something_disturbed_do_not_move_a_median_and_are_said_as_spread() -> None:
    quiet = measured(standard_tasks("bf16", False)[0], [1.0] * 9)
    some = measured(quiet.task, [1.0] * 9 + [50.0, 80.0])
    loud = measured(quiet.task, [1.0, 1.0, 1.0, 2.0, 2.0])

    assert (quiet.seconds, quiet.spread) == (1, 0)
    assert (some.seconds, some.spread, some.runs) == (1, 0, 11)
    assert loud.spread == 0.5


def test_on_a_cpu_a_kernel_takes_the_time_that_its_rank_has_a_core() -> None:
    runs = [Run(1.0, 1.0), Run(4.0, 0.25), Run(2.0, 0.5)]

    assert on_core(runs, cpu=True) == ([1.0, 1.0, 1.0], 3 / 7)
    assert on_core(runs, cpu=False) == ([1.0, 4.0, 2.0], 1.0)


def test_a_machine_that_was_not_quiet_is_said_to_be() -> None:
    tasks = tasks_of(Asked("own", "bf16"), AROUND)[0]
    busy = [replace(one, core=0.4) for one in timed(tasks)]
    said = calibrated(Asked("own", "bf16"), AROUND, busy, NAMES, "2026-11-30").said

    assert any(each.startswith("NOT QUIET: a rank had its core for 40 %") for each in said)
    assert not any("NOT QUIET" in each for each in made().said)


# --- constants ------------------------------------------------------------------------------------------------------


def test_every_constant_of_a_made_up_machine_comes_back() -> None:
    found = values(made())
    machine = tomllib.loads(made().machine)
    peak, memory = (float(machine["accelerator"][key].split()[0]) for key in ("bf16_flops", "memory_bandwidth"))
    link = float(machine["levels"][0]["bandwidth"].split()[0])

    assert found["matmul_share"] * peak * 1e12 == pytest.approx(RATE["bf16"], rel=0.02)
    assert found["matmul_depth"] == pytest.approx(DEPTH, rel=0.15)
    assert found["attention_share"] * peak * 1e12 == pytest.approx(CORE, rel=0.02)
    assert found["attention_back_share"] * peak * 1e12 == pytest.approx(CORE_BACK, rel=0.02)
    assert found["memory_share"] * memory * 1e9 == pytest.approx(MEMORY, rel=0.02)
    assert found["launch_seconds"] == pytest.approx(LAUNCH, rel=0.02)
    assert found["link_share"] * link * 1e9 == pytest.approx(LINK, rel=0.02)
    assert found["collective_seconds"] == pytest.approx(START, rel=0.05)
    assert found["link_latency_seconds"] == pytest.approx(STEP, rel=0.05)


def test_the_kernels_of_an_eager_engine_take_what_a_step_of_them_takes_over_their_bytes() -> None:
    found = made()
    hidden, width, keys, vocab, layers = 1024, 2816, 512, 8192, 16
    counted = {  # values of a token that the kernels of PyTorch without a compiler move
        "rms_norm": (2 + 4) * hidden * (2 * layers + 1),
        "rotate": (2 + 2) * (hidden + 2 * keys) * layers,
        "gated_activation": (2.5 + 4) * 2 * width * layers,
        "residual": (3 + 2) * hidden * 2 * layers,
        "loss": (6 + 6) * vocab,
    }
    expected = sum(EAGER[name] * values for name, values in counted.items()) / sum(counted.values())
    (held,) = found.profile.kernels

    assert (found.profile.engine, held.name, held.kind) == ("fsdp2-uncompiled", "elementwise", "measured")
    assert held.value == pytest.approx(expected, rel=0.03)
    assert all(f"{name} " in held.source and f"{name}_back " in held.source for name in EAGER)


def test_a_bill_with_both_files_counts_the_times_that_were_measured(tmp_path: Path) -> None:
    profile, machine = written(made(), tmp_path)
    held, driver = profiled(read_profile(profile), outlay.load_cluster(f"4x{machine}"), engine("fsdp2-uncompiled"))
    inside = group(4, 1, held)
    by_name = {task.what: task for task in collective_tasks(False, 4, 4) if task.sizes == (16 * 2**20, 4, 1)}

    assert driver.profile is not None
    for what, counted in (
        ("all_gather", gather_time),
        ("reduce_scatter", gather_time),
        ("all_reduce", all_reduce_time),
        ("all_to_all", all_to_all_time),
    ):
        assert counted(16 * 2**20, inside) == pytest.approx(seconds_of(by_name[what]), rel=0.03)


@pytest.mark.parametrize("what", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "send"])
def test_each_collective_is_said_with_the_bandwidth_of_its_wire(what: str) -> None:
    (said,) = (each for each in made().said if each.startswith(f"{what} over 4 ranks"))
    start, bandwidth = re.findall(r"([\d.]+) (?:us|GB/s)", said)
    steps = {"all-reduce": 6, "all-gather": 3, "reduce-scatter": 3}.get(what, 1)

    assert float(bandwidth) * 1e9 == pytest.approx(LINK, rel=0.03)
    assert float(start) * 1e-6 == pytest.approx(START + steps * STEP, rel=0.05)


def test_both_precisions_have_their_own_peak() -> None:
    card = tomllib.loads(made().machine)["accelerator"]
    half, full = (float(card[key].split()[0]) * 1e12 for key in ("bf16_flops", "fp32_flops"))

    assert RATE["bf16"] * 0.8 < half < RATE["bf16"] * 1.03
    assert RATE["fp32"] * 0.8 < full < RATE["fp32"] * 1.03


def test_two_machines_have_a_wire_between_them() -> None:
    tasks = collective_tasks(False, 4, 2)
    strides = {(task.sizes[1], task.sizes[2]) for task in tasks}
    found = made(around=replace(AROUND, local=2))
    levels = tomllib.loads(found.machine)["levels"]

    assert strides == {(2, 1), (2, 2)}
    assert {task.far for task in collective_tasks(False, 2, 1)} == {True}
    assert {"link_share", "nic_share", "nic_latency_seconds"} <= set(values(found))
    assert [level["size"] for level in levels] == [2, 4]
    assert values(found)["nic_latency_seconds"] == pytest.approx(STEP, rel=0.1)


def test_shares_of_a_known_card_are_of_its_specified_rates() -> None:
    cluster: Cluster = outlay.load_cluster("8xh100-sxm")
    asked = Asked("mine", "bf16", ("matmul", "attention", "memory", "launch"), cluster=cluster)
    tasks = tasks_of(asked, replace(AROUND, gpu=True))[0]

    def seconds(task: Task) -> float:
        if task.kind == "attention":  # few blocks leave a device idle: 0.7 of one to each of 132 multiprocessors
            return 5e-6 + task.work / 400e12 * (1 + 0.7 * 132 / task.blocks)
        rates = {"matmul": 640e12, "memory": 3e12}
        return 5e-6 + task.work / rates.get(task.kind, 1.0)

    found = calibrated(asked, AROUND, timed(tasks, seconds), NAMES, "2026-11-30")

    assert not found.machine and found.profile.accelerator == "h100-sxm"
    assert values(found)["matmul_share"] == pytest.approx(640 / 989, rel=0.02)
    assert values(found)["attention_share"] == pytest.approx(400 / 989, rel=0.02)
    assert values(found)["memory_share"] == pytest.approx(3e12 / cluster.accelerator.memory_bandwidth, rel=0.02)


def test_what_is_above_its_specification_is_left_out_and_said() -> None:
    asked = Asked("mine", "bf16", ("matmul", "memory", "launch"), cluster=outlay.load_cluster("1xt4"))
    tasks = tasks_of(asked, AROUND)[0]
    found = calibrated(asked, AROUND, timed(tasks, lambda task: 5e-6 + task.work / 60e12), NAMES, "2026-11-30")

    assert "memory_share" not in values(found)
    assert any(said.startswith("memory_share is left out: ") for said in found.said)


def test_each_constant_says_what_it_rests_on() -> None:
    for each in made().profile.hardware:
        assert (each.kind, each.date) == ("measured", "2026-11-30")
        assert each.rows and AROUND.where in each.source and "of their median" in each.source


def test_times_that_fix_too_little_are_no_profile() -> None:
    asked = Asked("own", "bf16")
    only_launch = [task for task in tasks_of(asked, AROUND)[0] if task.kind == "launch"]
    with pytest.raises(InputError) as failed:
        made(asked, tasks=only_launch)

    assert failed.value.faults[0].code == "CAL003" and "matmul_share" in failed.value.faults[0].what


# --- what is measured -----------------------------------------------------------------------------------------------


def test_a_model_is_measured_over_the_operations_of_a_rank() -> None:
    model = outlay.load_model("llama-3.1-8b")
    job = outlay.Job(sequence_length=1024, global_batch=2)
    case = case_of(model, job, outlay.load_cluster("2xh100-sxm"), outlay.Layout(tp=2, sp=False), "fsdp2-uncompiled")[0]
    tasks, left = model_tasks(case)
    multiplies = {task.sizes: task.weight for task in tasks if task.kind == "matmul" and task.what == FORWARD}
    cores = {task.sizes for task in tasks if task.kind == "attention"}

    assert not left
    assert multiplies == {  # tokens, ins, outs: half of the heads, of the width and of the vocabulary; 32 layers
        (1024, 4096, 3072): 32, (1024, 2048, 4096): 32, (1024, 4096, 14336): 32, (1024, 7168, 4096): 32,
        (1024, 4096, 64128): 1,
    }  # fmt: skip
    assert cores == {(1, 16, 4, 128, 1024)}
    parts = {task.what: (task.sizes, task.weight) for task in tasks if task.kind == "elementwise"}
    assert parts["rms_norm"] == ((1024, 4096, 0, 0), 65) and parts["loss_back"] == ((1024, 64128, 0, 0), 1)
    assert parts["rotate"] == ((1024, 3072, 2560, 128), 32)  # 16 heads, 4 of keys and 4 of values
    assert parts["gated_activation"] == ((1024, 14336, 0, 0), 32) and parts["residual"] == ((1024, 4096, 0, 0), 64)


def test_a_part_that_is_not_measured_is_said() -> None:
    model = outlay.load_model("mixtral-8x7b")
    case = case_of(model, outlay.Job(1024, 1), outlay.load_cluster("1xh100-sxm"), outlay.Layout(), "fsdp2")[0]

    assert any("experts" in said for said in model_tasks(case)[1])


def test_every_task_has_a_name_of_its_own() -> None:
    tasks = tasks_of(Asked("own", "fp32"), AROUND)[0]

    assert len({task.key for task in tasks}) == len(tasks) > 50
    assert [kind for kind in KINDS if any(task.kind == kind for task in tasks)] == list(KINDS)
    assert all(task.kind == "launch" for task in tasks_of(Asked("own", "bf16", ("launch",)), AROUND)[0])


def test_peaks_are_measured_in_both_precisions_and_move_no_share() -> None:
    best = [task for task in common_tasks("bf16", False, 1, 1) if task.kind == "matmul"]

    assert {task.precision for task in best} == {"bf16", "fp32"} and {task.weight for task in best} == {0}
    assert not [task for task in common_tasks("bf16", False, 1, 1) if task.kind == "collectives"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 MIG 3g.71gb", ""),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4090 D", ""),
        ("a card that nobody knows", ""),
    ],
)
def test_a_device_is_known_by_the_name_that_its_driver_gives(said: str, name: str) -> None:
    assert accelerator_of(said) == name


def test_every_device_is_in_the_catalogue() -> None:
    assert {name for _, name in DEVICES} <= set(accelerator_names())


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_profile_that_was_written_is_read_as_the_same(tmp_path: Path) -> None:
    found = made()
    profile, machine = written(found, tmp_path)
    cluster = outlay.load_cluster(f"2x{machine}")

    assert read_profile(profile) == found.profile
    assert (cluster.ranks, cluster.accelerator.name, cluster.inside.size) == (2, "own", 4)
    assert cluster.accelerator.matmul_share == values(found)["matmul_share"]


def test_no_more_ranks_are_counted_on_a_machine_than_were_measured(tmp_path: Path) -> None:
    _, machine = written(made(), tmp_path)
    with pytest.raises(InputError) as failed:
        outlay.load_cluster(f"8x{machine}")

    assert failed.value.faults[0].code == "HW008"


def test_every_command_that_counts_takes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, machine = written(made(), tmp_path)
    asked = [SMALL, "--on", f"2x{machine}", "--profile", profile, "--engine", "fsdp2-uncompiled", "--seq", "256"]
    for command in (["count"], ["memory"], ["traffic"], ["recompute"], ["plan"], ["explain", "step"]):
        code = main([*command, *asked])
        said = capsys.readouterr()
        assert code == 0, (command, said.err)
    main(["count", *asked])
    assert "profile own: 9 constants of own, 1 constant of fsdp2-uncompiled" in " ".join(
        capsys.readouterr().out.split()
    )


def test_one_rank_has_nobody_to_send_to_and_every_answer_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = made(around=replace(AROUND, ranks=1, local=1))
    profile, machine = written(found, tmp_path)

    assert "link_share" not in values(found)
    assert main(["count", SMALL, "--on", machine, "--profile", profile, "--seq", "256"]) == 0
    assert "link bandwidth" in capsys.readouterr().out


def test_the_answer_names_each_constant_and_both_files() -> None:
    found = made()
    text = " ".join(calibrated_lines(found, "own.toml", "own-machine.toml", "4xown-machine.toml", Style()))

    assert "own.toml and own-machine.toml are written" in text and "--on 4xown-machine.toml" in text
    assert "10 constants of own" in text
    assert all(each.name in text for each in found.profile.hardware)


def test_the_schema_of_a_calibration_holds() -> None:
    record = json.loads(json.dumps(calibrated_record(made(), "own.toml", "own-machine.toml")))

    assert faults(OUTPUT_SCHEMAS["calibrate"](), record) == []
    assert faults(OUTPUT_SCHEMAS["calibrate"](), record | {"date": 1}) != []


# --- an interrupted run ---------------------------------------------------------------------------------------------


def working(folder: Path, **more: str) -> tuple[Working, list[Task]]:
    asked = Asked("own", "bf16")
    tasks = tasks_of(asked, AROUND)[0]
    return Working(working_path(str(folder / "own.toml")), {**subject_of(asked, AROUND, tasks), **more}), tasks


def test_a_run_goes_on_with_what_is_done(tmp_path: Path) -> None:
    held, tasks = working(tmp_path)
    some = timed(tasks[:5])
    held.begin({})
    for one in some:
        held.add(one)
    found = held.done(tasks)

    assert held.count() == 5
    assert list(found.values()) == some


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    held, tasks = working(tmp_path)
    held.begin({one.task.key: one for one in timed(tasks[:3])})
    held.path.write_text(held.path.read_text()[:-20])

    assert len(held.done(tasks)) == 2


@pytest.mark.parametrize(
    "text",
    ["no JSON\n", "[1]\n", '{"a": 1}\n', "\x00\n", "words without an end"],
    ids=["words", "list", "other object", "bytes", "no line"],
)
def test_a_file_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    held, tasks = working(tmp_path)
    held.path.write_text(text)
    with pytest.raises(InputError) as failed:
        held.done(tasks)

    assert failed.value.faults[0].code == "CAL004" and held.path.read_text() == text


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    held, tasks = working(tmp_path)
    held.begin({one.task.key: one for one in timed(tasks[:1])})
    held.path.write_text(held.path.read_text().replace('"seconds": ', '"seconds": -'))
    with pytest.raises(InputError) as failed:
        held.done(tasks)

    assert failed.value.faults[0].code == "CAL004"


def test_a_run_of_another_machine_is_refused_with_what_differs(tmp_path: Path) -> None:
    held, tasks = working(tmp_path)
    held.begin({})
    other, _ = working(tmp_path, on="another machine")
    with pytest.raises(InputError) as failed:
        other.done(tasks)

    assert "on " in failed.value.faults[0].got and "another machine" in failed.value.faults[0].got


def test_a_folder_that_takes_no_file_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    held, _ = working(tmp_path / "none")
    with pytest.raises(InputError) as failed:
        held.begin({})

    assert failed.value.faults[0].code == "OUT002"


# --- the command ----------------------------------------------------------------------------------------------------


def no_torch(monkeypatch: pytest.MonkeyPatch, found: str = "") -> None:
    def version(name: str) -> str:
        if not found:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(versions, "version", version)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["calibrate", *words])
    return code, capsys.readouterr().err


def test_without_torch_the_way_to_it_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_torch(monkeypatch)
    code, said = asked(capsys)

    assert code == 2 and "VER002" in said and "torch is not installed" in said and "outlay calibrate runs" in said


def test_another_torch_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    no_torch(monkeypatch, "2.4.0")

    assert "VER003" in asked(capsys)[1]


def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_torch(monkeypatch)
    there = tmp_path / "own.toml"
    there.write_text("mine")
    words = ("--only", "matmull", "--ranks", "0", "--precision", "fp8", "--tp", "2", "--output", str(there))
    code, said = asked(capsys, *words)

    assert code == 2
    assert all(each in said for each in ("CAL001", "UNI003", "CAL002", "--tp stands without a MODEL", "OUT001"))
    assert "--only matmul" in said
    assert [file.name for file in tmp_path.iterdir()] == ["own.toml"] and there.read_text() == "mine"


def test_the_file_of_the_machine_is_not_written_over_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_torch(monkeypatch)
    (tmp_path / "own-machine.toml").write_text("mine")

    assert "OUT001" in asked(capsys, "--output", str(tmp_path / "own.toml"))[1]
    assert "OUT001" not in asked(capsys, "--output", str(tmp_path / "own.toml"), "--force")[1]

"""outlay recompute: what it answers beside the bill, what it says to the engine, what it refuses."""

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from models import DEEPSEEK_V3, GEMMA, GPT3, LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import Cluster, Job, Layout, Model, count, load_cluster, load_model
from outlay.bill import case_of
from outlay.cli.main import main
from outlay.layer import model_costs
from outlay.quantities import GIB
from outlay.search.recompute.offered import MODULES, effect, present
from outlay.search.recompute.room import rooms, without_recompute
from outlay.search.recompute.stages import Recompute, recompute
from outlay.show.recompute.answer import curve, drawn
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style
from test_json import faults, refused

SMALL = "llama-3.1-8b --on 8xh100-sxm --seq 4096 --batch 64 --mbs 2"
TORCH = "llama-3.1-8b --engine fsdp2 --on 8xh100-sxm --seq 8192 --batch 64 --mbs 2"
FITS = "llama-3.1-70b --on 64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512"
LONG = "llama-2-7b --on 1xa100-sxm-80 --seq 32768 --batch 1"
BROKEN = "llama-3.1-8b --on 8xh100-sxm --tp 3"
CASES: list[tuple[Model, str, str, dict[str, Any]]] = [
    (LLAMA_8B, "8xh100-sxm", "megatron", {"micro_batch": 2}),
    (LLAMA_8B, "8xh100-sxm", "fsdp2", {"micro_batch": 2}),
    (LLAMA_70B, "64xh100-sxm", "megatron", {"tp": 4, "pp": 4, "micro_batch": 2}),
    (GPT3, "128xa100-sxm-80", "megatron-2021", {"tp": 8, "pp": 16}),
    (GPT3, "128xh100-sxm", "megatron", {"tp": 8, "pp": 8, "vpp": 3}),
    (MIXTRAL, "64xh100-sxm", "megatron", {"tp": 2, "ep": 8, "pp": 4}),
    (GEMMA, "16xh100-sxm", "megatron", {"tp": 2}),
    (DEEPSEEK_V3, "512xh100-sxm", "megatron", {"ep": 64}),
]


def found(model: Model, on: str, engine: str, budget: float | None = None, **axes: Any) -> Recompute:
    """The best recompute of a layout."""
    job, cluster = task(on)
    return recompute(case_of(model, job, cluster, Layout(**axes), engine)[0], budget)


def task(on: str) -> tuple[Job, Cluster]:
    """One job on a cluster."""
    return Job(sequence_length=4096, global_batch=512), load_cluster(on)


def run(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main(["recompute", *words.split()])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    """The JSON object."""
    made: dict[str, Any] = json.loads(run(capsys, f"{words} --json")[1], parse_constant=refused)
    return made


def codes(capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    code, out, _ = run(capsys, f"{words} --json")
    assert code == 2
    return [fault["code"] for fault in json.loads(out)["errors"]]


# --- beside the bill ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "on", "engine", "axes"), CASES)
def test_the_engines_own_choices_are_those_of_its_bills(
    model: Model, on: str, engine: str, axes: dict[str, Any]
) -> None:
    got = found(model, on, engine, **axes)
    most = max(choice.name.count(",") for choice in got.choices)
    for choice in got.choices:
        kind, _, names = choice.name.partition(": ")
        if names.count(",") in (0, most) and (kind == "selective" or not names):
            modules = {"recompute_modules": tuple(names.split(", "))} if names else {}
            bill = count(model, *task(on), Layout(**axes, recompute=kind, **modules), engine)  # type: ignore[arg-type]
            assert choice.peak == pytest.approx(bill.memory.peak_bytes, rel=1e-9)
            seconds = got.plain_seconds + got.choice_seconds(choice)
            assert seconds == pytest.approx(bill.step.seconds, rel=1e-9)


@pytest.mark.parametrize(("model", "on", "engine", "axes"), CASES)
def test_the_operations_of_a_layer_keep_its_tape_and_take_its_forward_pass(
    model: Model, on: str, engine: str, axes: dict[str, Any]
) -> None:
    job, cluster = task(on)
    loaded = without_recompute(case_of(model, job, cluster, Layout(**axes), engine)[0])
    case = loaded.case
    costs = {one.name: one for one in model_costs(model, case.job, cluster, case.layout, case.engine).layers}
    for layer in rooms(loaded).layers:
        freed = sum(each.freed for each in layer.operations)
        moved = sum(getattr(costs[layer.name], axis).forward for axis in ("tp", "ep", "etp"))
        shown = costs[layer.name].forward + moved

        assert layer.reads + freed <= costs[layer.name].kept * (1 + 1e-12)
        assert layer.entry == costs[layer.name].entry
        assert costs[layer.name].forward <= layer.forward * (1 + 1e-9) and layer.forward <= shown * (1 + 1e-9)
        assert all(need < place for place, each in enumerate(layer.operations) for need in each.needs)


def test_every_byte_of_a_llama_layer_but_its_input_can_be_freed() -> None:
    layer = rooms(without_recompute(case_of(LLAMA_8B, *task("8xh100-sxm"), Layout())[0])).layers[0]

    assert layer.reads + sum(each.freed for each in layer.operations) == pytest.approx(layer.kept, rel=1e-12)


# --- the best -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "on", "engine", "axes"), CASES)
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_the_best_is_never_worse_than_what_the_engine_offers(
    model: Model, on: str, engine: str, axes: dict[str, Any], share: float
) -> None:
    whole = found(model, on, engine, **axes).choices[0].needed
    got = found(model, on, engine, share * whole, **axes)

    assert got.best is not None and got.outcome is not None
    assert got.needed(got.best) <= share * whole
    if got.offered:
        assert got.seconds(got.best) <= got.choice_seconds(got.offered) * (1 + 1e-9)


def test_where_rounding_hides_it_the_engines_own_choice_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-405b --on 128xh100-sxm --tp 8 --seq 4096 --batch 512"
    least = next(one for one in answer(capsys, words)["choices"] if one["name"] == "selective: core_attn")
    got = answer(capsys, f"{words} --budget {least['bytes']:.0f}B")

    assert got["best"]["seconds"] <= least["seconds"]
    assert got["best"]["choice"] in (None, "selective: core_attn")


def test_the_curve_falls_and_ends_with_all_tapes_and_no_time() -> None:
    got = found(LLAMA_8B, "8xh100-sxm", "megatron")
    points = got.plan.points

    assert [point.needed for point in points] == sorted({point.needed for point in points})
    assert all(before.extra > after.extra for before, after in pairwise(points))
    assert points[-1].extra == 0 and got.needed(points[-1]) == pytest.approx(got.choices[0].needed, rel=1e-12)


@pytest.mark.parametrize("engine", ["megatron", "fsdp2"])
def test_no_choice_of_the_engine_lies_under_the_curve(engine: str) -> None:
    got = found(LLAMA_8B, "8xh100-sxm", engine, micro_batch=2)
    spots = curve(got)

    assert all(before[0] < after[0] and before[1] > after[1] for before, after in pairwise(spots))
    for choice in got.choices:
        under = [more for memory, more in spots if memory <= choice.needed]
        assert min(under) <= got.choice_seconds(choice) + 1e-9


def test_the_cheapest_bytes_go_first_norms_and_the_activation() -> None:
    got = found(LLAMA_8B, "8xh100-sxm", "megatron", 18 * GIB, micro_batch=2)  # about half of all tapes
    again = {name for group in got.groups if group.layers > 3 for name in group.again}  # few fill what is left

    assert again == {"input_norm", "post_norm", "mlp_up", "mlp_activation"}
    assert sum(group.layers for group in got.groups) == LLAMA_8B.layers


def test_latent_attention_gives_back_its_keys_and_values_by_both_up_projections() -> None:
    job, cluster = task("512xh100-sxm")
    layer = rooms(without_recompute(case_of(DEEPSEEK_V3, job, cluster, Layout(ep=64))[0])).layers[-1]
    names = [each.name for each in layer.operations]
    rotate = layer.operations[names.index("rotate")]

    assert {names[need] for need in rotate.needs} == {"q_up", "kv_up"}
    assert effect(layer, ("mla_up_proj",)).freed == rotate.output


def test_a_layout_that_fits_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, FITS)

    assert code == 0
    assert out.startswith("RECOMPUTE  nothing: all tapes take 21.0 GiB")
    assert "none: leave --recompute-granularity out" in out


def test_the_peak_of_the_best_is_under_what_is_usable(capsys: pytest.CaptureFixture[str]) -> None:
    got, bill = answer(capsys, SMALL), count(LLAMA_8B, Job(4096, 64), load_cluster("8xh100-sxm"), Layout(micro_batch=2))

    assert got["best"]["peak_bytes"] <= bill.memory.usable_bytes < bill.memory.peak_bytes
    assert got["verdict"] == "fits" and 0.05 < got["best"]["share"] < 0.15
    assert got["best"]["bytes"] <= got["stage"]["room_bytes"]


def test_a_budget_below_the_floor_says_the_floor_and_what_makes_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, f"{LONG} --budget 3GiB")
    floor = answer(capsys, f"{LONG} --budget 3GiB")

    assert code == 1 and out.startswith("BELOW THE FLOOR")
    assert "of inputs" in out and "layers run again" in out
    assert (floor["verdict"], floor["best"]) == ("below_floor", None)
    assert floor["floor"]["bytes"] > 3 * GIB
    assert answer(capsys, f"{LONG} --budget 5GiB")["verdict"] == "fits"


@pytest.mark.parametrize(
    "words",
    [FITS, f"{LONG} --budget 3GiB", "llama-3.1-8b --on 16xh100-sxm --pp 2 --vpp 4 --mbs 2 --seq 4096 --batch 64"],
)
def test_nothing_that_is_shown_needs_less_than_the_floor(capsys: pytest.CaptureFixture[str], words: str) -> None:
    got = answer(capsys, words)
    under = f"{words} --budget {0.99 * got['floor']['bytes']:.0f}B"

    assert got["floor"]["bytes"] <= min(choice["bytes"] for choice in got["choices"]) * (1 + 1e-12)
    assert run(capsys, under if "--budget" not in words else words)[0] == 1


def test_between_the_square_root_and_the_floor_one_input_serves_several_layers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups = answer(capsys, f"{LONG} --budget 8GiB")["groups"]

    assert any(group["layers_from_one_input"] > 1 for group in groups)


# --- what is said to the engine -------------------------------------------------------------------------------------


def test_the_answer_is_written_as_megatrons_flags(capsys: pytest.CaptureFixture[str]) -> None:
    got = answer(capsys, SMALL)
    flags = [choice["flags"] for choice in got["choices"]]

    assert got["flags"].startswith("--recompute-granularity full --recompute-method block --recompute-num-layers 20;")
    assert "--recompute-granularity selective --recompute-modules core_attn" in flags
    assert "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4" in flags


def test_the_answer_is_written_as_a_policy_where_torch_drives(capsys: pytest.CaptureFixture[str]) -> None:
    got = answer(capsys, TORCH)

    assert got["flags"] is None
    assert all(set(group["again"]).isdisjoint(group["saved"]) for group in got["groups"])
    assert any("MUST_SAVE" in group["policy"] and "mlp_up" in group["saved"] for group in got["groups"])


def test_modules_of_megatron_are_those_that_a_model_has() -> None:
    def had(model: Model, **axes: Any) -> list[str]:
        return present(rooms(without_recompute(case_of(model, *task("512xh100-sxm"), Layout(**axes))[0])))

    assert had(LLAMA_8B) == ["core_attn", "mlp"]  # its norms are one kernel with the matrices behind them
    assert had(MIXTRAL, ep=8) == ["core_attn", "moe_act", "layernorm", "moe"]
    assert had(DEEPSEEK_V3, ep=64) == list(MODULES)


def test_modules_that_are_asked_for_stand_beside_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    got = answer(capsys, f"{SMALL} --modules mlp,core_attn")

    assert got["asked"]["name"] == "selective: core_attn, mlp"
    assert "selective: core_attn, mlp" in run(capsys, f"{SMALL} --modules core_attn,mlp")[1]


def test_a_module_frees_its_inside_and_what_it_discards() -> None:
    layer = rooms(without_recompute(case_of(LLAMA_8B, *task("8xh100-sxm"), Layout())[0])).layers[0]
    tokens, hidden, ffn = 4096, 4096, 14336  # Mixtral's too

    assert effect(layer, ("core_attn",)).freed == 4 * 32 * tokens  # a statistic a head
    assert effect(layer, ("mlp",)).freed == 2 * tokens * 3 * ffn  # gate, up and their product; the input is kept
    assert effect(layer, ("layernorm",)).freed == 0

    case = case_of(MIXTRAL, *task("64xh100-sxm"), Layout(ep=8))[0]
    routed = rooms(without_recompute(case)).layers[0]
    assert effect(routed, ("layernorm",)).freed == 2 * tokens * hidden + 4 * tokens  # output and statistic, of one


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (f"{SMALL} --modules moe", ["RCP002"]),
        (f"{SMALL} --modules mla_up_proj,attn", ["RCP002", "RCP001"]),
        ("deepseek-v3 --on 512xh100-sxm --ep 64 --modules moe,moe_act", ["RCP003"]),
        (f"{SMALL} --budget much", ["RCP004"]),
        (f"{SMALL} --budget 0", ["RCP004"]),
        (f"{SMALL} --budget 1e999", ["RCP004"]),
        (f"{SMALL} --budget nan", ["RCP004"]),
        (f"{SMALL} --modules ,", ["RCP001"]),
        (f"{SMALL} --svg /no/such/folder/x.svg", ["OUT002"]),
        ("llama-3.1-8b --budget x", ["RCP004", "HW003"]),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], words: str, wanted: list[str]
) -> None:
    assert codes(capsys, words) == wanted


def test_a_tape_very_much_larger_than_an_input_is_planned_in_larger_units(capsys: pytest.CaptureFixture[str]) -> None:
    got = answer(capsys, f"{SMALL} --adapter lora --rank 1000000000")

    assert got["verdict"] == "below_floor" and got["floor"]["bytes"] > 0


def test_a_layout_that_breaks_a_rule_is_not_planned(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, BROKEN)

    assert code == 1 and "LAY001" in out and "RECOMPUTE" not in out


# --- the faces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [SMALL, TORCH, FITS, f"{LONG} --budget 3GiB", f"{SMALL} --modules mlp", "llama-3.1-8b --on 8xh100-sxm --tp 3"],
)
def test_a_plan_is_what_its_schema_says(capsys: pytest.CaptureFixture[str], words: str) -> None:
    got = answer(capsys, words)

    assert faults(OUTPUT_SCHEMAS["recompute"](), got) == []
    assert faults(OUTPUT_SCHEMAS["recompute"](), got | {"version": 1}) != []


def test_the_curve_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    code, out, _ = run(capsys, f"{SMALL} --svg {path}")
    drawing = ET.fromstring(path.read_text())

    assert code == 0 and str(path) in out
    assert drawing.tag.endswith("svg") and drawing.find("{http://www.w3.org/2000/svg}desc") is not None
    assert "full: 20 of 32 layers" in path.read_text()
    assert codes(capsys, f"{SMALL} --svg {path}") == ["OUT001"]
    assert run(capsys, f"{SMALL} --svg -")[1] == path.read_text()


@pytest.mark.parametrize("words", [SMALL, TORCH, LONG, FITS])
def test_no_choice_is_drawn_under_the_stair_and_its_own_steps_are_drawn(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    picture, got = run(capsys, f"{words} --svg -")[1], answer(capsys, words)
    (stair,) = re.findall(r'<path class="line" d="M([^"]*V[^"]*)"', picture)[:1]
    corners = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+)V([\d.]+)", stair.replace(" 66V", "V"))]
    dots = [(float(x), float(y)) for x, y in re.findall(r'class="line dot" d="M([\d.]+) ([\d.]+)h0', picture)]
    high = max(choice["seconds"] for choice in got["choices"])

    assert len(corners) > 100 and corners == sorted(corners)
    assert len(dots) > 2 and high > 0
    for x, y in dots:
        assert y <= max([down for right, down in corners if right <= x + 0.05] + [0.0]) + 0.1
    none = max(dots)  # all tapes, and no time: an end of the stair itself
    assert none == corners[-1]


def test_the_textbooks_forms_stand_beside_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama-2-7B: 32 layers, a tape of 16.1 inputs; sqrt(L) stores 96.7 of them, and the best g, 22.7, stores 45.4."""
    book = answer(capsys, f"{LONG} --budget 8GiB")["textbook"]
    forms = {form["name"]: form for form in book["forms"]}

    assert (book["layers"], book["tape_inputs"]) == (32, pytest.approx(16.1, abs=0.05))
    assert [(name, form["held"], form["inputs"]) for name, form in forms.items()][:4] == [
        ("uniform", pytest.approx(32**0.5), pytest.approx(2 * 32**0.5 - 1)),
        ("revolve", 10, 10),
        ("tapes", pytest.approx(32**0.5), pytest.approx(96.7, abs=0.1)),
        ("best", pytest.approx(22.7, abs=0.05), pytest.approx(45.4, abs=0.1)),
    ]
    assert forms["uniform"]["runs"] == pytest.approx((32**0.5 - 1) ** 2 / 32)
    assert (forms["tapes"]["runs"], forms["best"]["runs"], forms["twice"]["held"]) == (1, 1, 7)  # C(7 + 2, 2) = 36
    assert forms["twice"]["runs"] * 32 == 2 * 32 - 9  # t L - C(s + t, s + 1)
    assert forms["best"]["bytes"] == pytest.approx(45.4 * 32768 * 4096 * 2, rel=2e-3)


@pytest.mark.parametrize("words", [SMALL, TORCH, LONG, FITS, "mamba2-2.7b --on 8xh100-sxm"])
def test_in_as_much_memory_the_program_is_never_worse_than_segments(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    forms = {form["name"]: form for form in answer(capsys, words)["textbook"]["forms"]}

    assert forms["program"]["bytes"] <= forms["best"]["bytes"]
    assert forms["program"]["runs"] <= min(1, forms["best"]["runs"])


def test_the_drawn_curve_keeps_to_the_width_and_shows_the_room() -> None:
    lines = drawn([(1 * GIB, 3.0), (2 * GIB, 1.0), (4 * GIB, 0.0)], 3 * GIB, Style(80, False, True))

    assert max(map(len, lines)) <= 80
    assert sum(line.count("*") for line in lines) == 3
    assert all("|" in line[12:] for line in lines[1:10]) and "room 3.00 GiB" in lines[-1]


@pytest.mark.parametrize("words", [SMALL, TORCH, LONG, FITS])
def test_no_line_is_wider_than_the_terminal(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert max(map(len, run(capsys, words)[1].splitlines())) <= 100


def test_what_the_layout_says_of_recompute_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    plain, full = run(capsys, SMALL)[1], run(capsys, f"{SMALL} --recompute full")[1]

    assert "--recompute full is left out" in full
    assert plain.splitlines()[0] == full.splitlines()[0]


@pytest.mark.parametrize(
    "name",
    [
        "mamba2-2.7b",
        "jamba-1.5-mini",
        "gpt-oss-20b",
        "kimi-linear-48b-a3b",
        "gemma-3n-e4b",
        "deepseek-v3.2",
        "falcon-7b",
    ],
)
def test_layers_of_every_kind_have_a_curve_that_ends_in_nothing_again(name: str) -> None:
    got = found(load_model(name), "8xh100-sxm", "fsdp2")

    assert len(got.plan.points) > 10
    assert (got.plan.points[-1].extra, got.plan.groups(got.plan.points[-1])[0].again) == (0, ())
    assert 0 < got.floor.needed < got.choices[0].needed / 2


def test_the_rooms_label_stands_clear_of_the_axis_and_inside_the_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    task = "llama-2-7b --on 1xa100-sxm-80 --seq 32768 --batch 1"
    for budget, side in (("3GiB", ""), ("10GiB", ""), ("60GiB", "e")):
        path = tmp_path / f"{budget}.svg"
        run(capsys, f"{task} --budget {budget} --svg {path}")
        (label,) = re.findall(r'<text x="([0-9.]+)" y="62" class="(e?)">room ', path.read_text())
        assert label[1] == side and float(label[0]) > 70, budget

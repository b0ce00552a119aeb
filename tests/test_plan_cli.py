"""outlay plan: what it answers, what narrows it, what it refuses, and what its exit says."""

import io
import json
import sys
from typing import Any

import pytest

from outlay import Layout, count, load_cluster, load_engine, load_model
from outlay.cli import planning
from outlay.cli.main import main
from outlay.cli.waiting import Waiting, announcement
from outlay.job import Job
from outlay.search.plan import plan
from outlay.show.layouts import layout_flags, option_words
from outlay.show.money import price_of
from outlay.show.plan.answer import Answer, plan_lines
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style
from test_json import faults, refused

DEMO = "llama-3.1-70b --on 64xh100-sxm --seq 8192 --batch 512"
SMALL = "llama-3.1-8b --on 8xh100-sxm --seq 4096 --batch 16"
LEAN = f"{SMALL} --space lean"
EMPTY = f"{SMALL} --tp 8 --pp 3,5"
TOO_LARGE = "llama-3.1-405b --on 8xh100-sxm --seq 8192 --batch 8 --space lean"
KEYS = [
    "schema", "version", "model", "job", "cluster", "engine", "space", "objective", "best", "frontier", "baselines",
    "rejected", "search", "smallest", "tried", "simulated", "worth", "why", "violations", "assumptions",
]  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one plan."""
    code = main(["plan", *words.split()])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    """The JSON object that a plan prints."""
    _, out, _ = run(capsys, f"{words} --json")
    found: dict[str, Any] = json.loads(out, parse_constant=refused)
    return found


def refusals(capsys: pytest.CaptureFixture[str], words: str) -> list[dict[str, str]]:
    """The faults of a plan that cannot be read."""
    code, out, _ = run(capsys, f"{words} --json")
    assert code == 2
    found: list[dict[str, str]] = json.loads(out)["errors"]
    return found


def codes(capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    return [fault["code"] for fault in refusals(capsys, words)]


# --- the answer -----------------------------------------------------------------------------------------------------


def test_the_best_layout_comes_first_and_then_what_proves_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, DEMO)
    keys = [line.split("  ")[0] for line in out.splitlines() if line[:1].isupper()]

    assert (code, err) == (0, "")
    assert keys == [
        "BEST", "PROVED", "CLOSE", "BASELINES", "FRONTIER", "WHY", "BINDS", "WORTH", "REJECTED", "MODEL", "JOB",
        "SPACE", "ASSUMED", "COUNTS", "MORE",
    ]  # fmt: skip
    assert "gap 0" in out and "GiB" in out and "tokens/s" in out and "MFU" in out


def test_the_ranking_is_sorted_fits_and_is_the_bill_of_each_layout(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, f"{SMALL} --best 5")
    seconds = [each["bill"]["step"]["seconds"] for each in found["best"]]
    first = found["best"][0]
    again = count(load_model("llama-3.1-8b"), Job(4096, 16), load_cluster("8xh100-sxm"), Layout(**restored(first)))

    assert len(seconds) == 5 and seconds == sorted(seconds)
    assert {each["bill"]["memory"]["verdict"] for each in found["best"]} == {"fits"}
    assert again.step.seconds == first["bill"]["step"]["seconds"]
    assert all(each["layout"] == each["bill"]["layout"] for each in found["best"])


def restored(ranked: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if name == "split" else value for name, value in ranked["layout"].items()}


def test_the_flags_of_a_layout_make_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the frontier too, whose layouts are of every kind; and of experts, whose replicas are counted apart."""
    for words, name in ((SMALL, "llama-3.1-8b"), (f"{LEAN} --engine fsdp2", "llama-3.1-8b")):
        found = answer(capsys, words)
        model, engine = load_model(name), load_engine(found["engine"])
        for point in (*found["frontier"][::4], *found["best"][::4]):
            flags = layout_flags(Layout(**restored(point)), model, engine).split() if point else []
            question = words.split("--space")[0].split()
            more = ["--engine", engine.name, "--json", *(flags if flags[0] != "no" else [])]
            main(["count", *question, *more])
            bill = json.loads(capsys.readouterr().out)
            seconds = point["seconds"] if "seconds" in point else point["bill"]["step"]["seconds"]
            assert bill["step"]["seconds"] == pytest.approx(seconds, rel=1e-9), flags


def test_a_plan_has_exactly_the_keys_of_its_description(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, f"{SMALL} --best 3")
    search = found["search"]

    assert list(found) == KEYS
    assert list(search) == [
        "space", "illegal", "duplicates", "legal", "pruned", "counted", "did_not_fit", "seconds",
        "layouts_per_second", "proved", "gap",
    ]  # fmt: skip
    assert search["space"] == search["illegal"] + search["duplicates"] + search["legal"]
    assert search["legal"] == search["counted"] + search["pruned"]
    assert (search["proved"], search["gap"]) == (True, 0)
    assert sum(each["count"] for each in found["rejected"]) == search["illegal"]
    assert [each["name"] for each in found["baselines"]] == ["data parallel", "FSDP", "best without a pipeline"]
    assert list(found["best"][0]) == ["layout", "bill"]


@pytest.mark.parametrize("words", [LEAN, EMPTY, TOO_LARGE, f"{LEAN} --tokens 1T --best 1"])
def test_a_plan_is_what_its_schema_says(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert faults(OUTPUT_SCHEMAS["plan"](), answer(capsys, words)) == []


def test_equal_questions_give_equal_bytes_measured_durations_aside(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = answer(capsys, LEAN), answer(capsys, LEAN)
    for found in (first, second):
        del found["search"]["seconds"], found["search"]["layouts_per_second"]

    assert json.dumps(first) == json.dumps(second)


def test_a_printed_plan_stands_for_the_bill_of_its_best(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = tmp_path / "plan.json"
    found = answer(capsys, f"{LEAN} --best 2")
    file.write_text(json.dumps(found))
    main(["count", str(file), "--json"])
    bill = json.loads(capsys.readouterr().out)
    again = answer(capsys, f"{file} --space lean --best 2")
    code = main(["compare", str(file), str(file)])

    assert bill == found["best"][0]["bill"]
    assert again["best"] == found["best"]
    assert code == 0 and capsys.readouterr().out.startswith("EQUAL")


def test_a_plan_without_a_layout_is_no_bill(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(answer(capsys, EMPTY)))

    assert main(["count", str(file)]) == 2
    assert "CFG004" in capsys.readouterr().err


def test_days_hours_and_dollars_are_of_the_whole_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-8b --on 1xp5.48xlarge --seq 4096 --batch 16 --space lean --tokens 100B"
    bill = answer(capsys, words)["best"][0]["bill"]
    _, out, _ = run(capsys, words)
    steps = -(-100_000_000_000 // (16 * 4096))
    hours = steps * bill["step"]["seconds"] / 3600

    said = " ".join(out.split())
    assert f"{hours / 24:,.1f} days" in said and f"{8 * hours:,.0f} card-hours" in said
    assert "USD at 6.88 a card-hour (list price of 2026-11-29)" in said


def test_an_accelerator_by_itself_has_no_price() -> None:
    price = price_of(load_cluster("2xp5.48xlarge"))

    assert price_of(load_cluster("16xh100-sxm")) is None
    assert price is not None and price.dollars == pytest.approx(2 * 55.04)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("words", [DEMO, LEAN, EMPTY, TOO_LARGE, f"mixtral-8x7b {SMALL[12:]} --space lean --best 50"])
def test_no_line_is_too_wide_and_no_figure_of_the_ranking_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = run(capsys, words)

    assert [line for line in out.splitlines() if len(line) > width] == []
    assert out.isascii() and "\x1b" not in out
    assert ("peak GiB" in out and "step s" in out) == (words != EMPTY)


def test_the_ranking_has_ten_columns_at_most_and_says_what_all_share(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, DEMO)
    head = next(line for line in out.splitlines() if line.lstrip().startswith("# "))

    assert len(head.replace("step s", "step").replace("peak GiB", "peak").split()) <= 10
    assert "in all of them: " in out


# --- what narrows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "name", "values"),
    [
        ("--tp 1,2,8", "tp", {1, 2, 8}),
        ("--tp 2..4", "tp", {2, 4}),
        ("--tp 4..", "tp", {4, 8}),
        ("--pp 1..3,8", "pp", {1, 2, 8}),
        ("--mbs 2", "micro_batch", {2}),
        ("--micro-batch 1..3", "micro_batch", {1, 2, 3}),
        ("--vpp 2,2", "vpp", {2}),
        ("--sp", "sp", {True}),
        ("--no-sp", "sp", {False}),
        ("--cp-kind all_gather,ring", "cp_kind", {"all_gather", "ring"}),
    ],
)
def test_flags_keep_the_values_they_name(
    capsys: pytest.CaptureFixture[str], flags: str, name: str, values: set[Any]
) -> None:
    degrees = answer(capsys, f"{LEAN} {flags} --best 1")["space"]["degrees"]
    assert set(degrees[name]) == values and len(degrees[name]) == len(values)


@pytest.mark.parametrize(
    ("flags", "field", "values"),
    [
        ("--no-offload", "offload_optimizer", [0.0]),
        ("--offload-optimizer 0,50%", "offload_optimizer", [0.0, 0.5]),
        ("--no-recompute", "recompute", [["none", 0]]),
        ("--recompute none,selective", "recompute", [["none", 0], ["selective", 0]]),
        ("--zero 1,3 --no-hybrid", "zero", [[1, False], [3, False]]),
        ("--zero 2..3 --hybrid", "zero", [[2, True], [3, True]]),
        ("--schedule 1f1b,gpipe", "schedules", ["1f1b", "gpipe"]),
        ("--overlap-tp", "overlap_tp", [True]),
        ("--no-overlap-dp", "overlap_dp", [False]),
    ],
)
def test_options_keep_the_values_they_name(
    capsys: pytest.CaptureFixture[str], flags: str, field: str, values: list[Any]
) -> None:
    assert answer(capsys, f"{SMALL} {flags} --best 1")["space"][field] == values


def test_headroom_is_memory_that_no_layout_of_the_answer_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of 80 GB more than without it."""
    free, held = (
        answer(capsys, f"{LEAN} --best 3{more}")["best"][0]["bill"]["memory"]["usable_bytes"]
        for more in ("", " --headroom 10%")
    )
    assert free - held == pytest.approx(load_cluster("8xh100-sxm").accelerator.memory_bytes / 10)
    assert codes(capsys, f"{LEAN} --headroom 200GiB") == codes(capsys, f"{LEAN} --headroom some") == ["PLN003"]


def test_a_full_space_is_as_fast_as_a_wide_one_or_faster_and_says_what_it_passed_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide, full = (answer(capsys, f"{DEMO} --best 2 --space {width}") for width in ("wide", "full"))
    assert full["best"][0]["bill"]["step"]["seconds"] <= wide["best"][0]["bill"]["step"]["seconds"]
    assert full["search"]["pruned"] > 0 == wide["search"]["pruned"]
    assert full["search"]["proved"] and full["search"]["space"] > wide["search"]["space"]


def test_tp_stays_within_the_scale_up_domain(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-8b --on 16xh100-sxm --seq 4096 --batch 16 --space lean --best 1 --tp 4,8,16"

    assert answer(capsys, words)["space"]["degrees"]["tp"] == [4, 8, 16]
    assert answer(capsys, f"{words} --tp-within-node")["space"]["degrees"]["tp"] == [4, 8]


def test_a_file_narrows_as_flags_do_and_flags_override_it(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('model = "llama-3.1-8b"\non = "8xh100-sxm"\n[job]\nsequence_length = 4096\nglobal_batch = 16\n'
                    "[layout]\ntp = [1, 2]\npp = 2\nsp = true\n")  # fmt: skip
    main(["plan", "llama-3.1-8b", "--config", str(file), "--pp", "1", "--space", "lean", "--best", "1", "--json"])
    space = json.loads(capsys.readouterr().out)["space"]["degrees"]

    assert (space["tp"], space["pp"], space["sp"]) == ([1, 2], [1], [True])


def test_a_narrower_space_is_never_faster(capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = (answer(capsys, f"{SMALL} --best 1 {flags}") for flags in ("", "--no-offload --tp 1,2 --pp 2"))
    times = [found["best"][0]["bill"]["step"]["seconds"] for found in (whole, part)]

    assert times[0] <= times[1]
    assert part["search"]["space"] < whole["search"]["space"]


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--tp 0", "PLN003"),
        ("--tp 1,two", "PLN003"),
        ("--tp 2.5", "PLN003"),
        ("--tp 1..x", "PLN003"),
        ("--zero 4", "PLN003"),
        ("--schedule dualpipe9", "PLN003"),
        ("--offload-optimizer 1.5", "PLN003"),
        ("--offload-optimizer 0..1", "PLN003"),
        ("--space huge", "PLN003"),
        ("--objective glory", "PLN003"),
        ("--best 0", "UNI003"),
        ("--tp ,", "PLN002"),
        ("--pp 9..4", "PLN004"),
        ("--pp 5..6", "PLN006"),
        ("--hybrid --space lean", "PLN006"),
        ("--no-offload --offload-optimizer 0.5", "PLN005"),
        ("--no-recompute --recompute full", "PLN005"),
        ("--tp 16 --tp-within-node", "PLN005"),
        ("--objective accelerators", "PLN007"),
        ("--dp-shard 4", "CLI001"),
    ],
)
def test_what_no_search_could_hold_is_refused(capsys: pytest.CaptureFixture[str], flags: str, code: str) -> None:
    (fault,) = refusals(capsys, f"{SMALL} {flags}")

    assert fault["code"] == code
    assert all(fault[part] for part in ("what", "rule", "got", "fix"))


def test_all_faults_are_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"{SMALL} --tp 0 --pp 9..4 --no-offload --offload-optimizer 1 --engine megatronn --space big --bach 3"

    assert sorted(codes(capsys, words)) == ["CLI001", "ENG001", "PLN003", "PLN003", "PLN004", "PLN005"]


def test_several_clusters_need_the_objective_that_compares_them(capsys: pytest.CaptureFixture[str]) -> None:
    for on in ("8..64xh100-sxm", "8,16xh100-sxm"):
        (fault,) = refusals(capsys, f"llama-3.1-8b --on {on} --seq 4096 --batch 16")
        assert fault["code"] == "PLN007" and "--objective accelerators" in fault["fix"]


def test_a_field_that_is_not_searched_is_refused_in_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = tmp_path / "plan.toml"
    file.write_text("[layout]\nsplit = [16, 16]\n")

    assert codes(capsys, f"{SMALL} --config {file}") == ["PLN001"]


def test_a_space_that_cannot_be_listed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    values = ",".join(map(str, range(1, 61)))

    assert codes(capsys, f"{SMALL} --tp {values} --cp {values} --pp {values} --vpp {values}") == ["PLN008"]


# --- the answer is no -----------------------------------------------------------------------------------------------


def test_an_empty_space_names_the_rule_and_the_nearest_that_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, EMPTY)
    found = answer(capsys, EMPTY)

    assert code == 1
    assert out.startswith("NO LAYOUT") and "LAY001" in out and "NEAREST" in out and "legal: --tp 4 --pp 2" in out
    assert found["best"] == [] and found["smallest"] is None and found["search"]["legal"] == 0
    assert found["violations"][0]["code"] == "LAY001" and found["violations"][0]["nearest"]


def test_where_nothing_fits_the_smallest_layout_and_its_bill_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, TOO_LARGE)
    found = answer(capsys, TOO_LARGE)
    peaks = [each["bill"]["memory"]["peak_bytes"] for each in found["baselines"] if each["bill"]]

    assert code == 1
    assert out.startswith("IMPOSSIBLE") and "SMALLEST" in out and "MEMORY" in out and "times too much" in out
    assert found["best"] == [] and found["search"]["did_not_fit"] == found["search"]["counted"] > 0
    assert found["smallest"]["bill"]["memory"]["verdict"] == "impossible"
    assert found["smallest"]["bill"]["memory"]["peak_bytes"] <= min(peaks)


@pytest.mark.parametrize("cards", [7, 13])
def test_a_prime_number_of_accelerators_is_planned(capsys: pytest.CaptureFixture[str], cards: int) -> None:
    words = f"llama-3.1-8b --on {cards}xh100-sxm --seq 4096 --batch {2 * cards} --space lean"
    layout = answer(capsys, words)["best"][0]["layout"]

    assert layout["tp"] * layout["cp"] * layout["pp"] * layout["dp_shard"] * layout["dp_replicate"] == cards


def test_a_batch_smaller_than_the_data_parallel_ways_leaves_other_axes(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "llama-3.1-8b --on 64xh100-sxm --seq 4096 --batch 3 --space lean --best 1")
    layout, bill = found["best"][0]["layout"], found["best"][0]["bill"]

    assert 3 % (bill["derived"]["dp"] * layout["micro_batch"]) == 0
    assert [each["bill"] for each in found["baselines"][:2]] == [None, None]


# --- the fewest accelerators ----------------------------------------------------------------------------------------


def test_the_fewest_accelerators_are_the_smallest_cluster_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-70b --seq 4096 --batch 64 --space lean --best 1 --objective accelerators --on"
    code, out, _ = run(capsys, f"{words} 4..64xh100-sxm")
    found = answer(capsys, f"{words} 4..64xh100-sxm")
    ranks = [each["ranks"] for each in found["tried"]]

    assert code == 0 and out.startswith(f"FEWEST    {ranks[-1]}xh100-sxm")
    assert ranks == [4, *range(8, ranks[-1] + 1, 8)] and len(ranks) > 1
    assert [each["verdict"] for each in found["tried"]][-1] == "fits"
    assert all(each["verdict"] != "fits" for each in found["tried"][:-1])
    assert found["objective"] == "accelerators" and found["cluster"]["ranks"] == ranks[-1]


def test_where_no_cluster_fits_the_last_one_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-405b --on 2,4xh100-sxm --seq 4096 --batch 8 --space lean --objective accelerators"
    code, out, _ = run(capsys, words)
    found = answer(capsys, words)

    assert code == 1 and out.startswith("IMPOSSIBLE") and "TRIED" in out
    assert [each["ranks"] for each in found["tried"]] == [2, 4] and found["cluster"]["ranks"] == 4


def test_clusters_are_compared_at_one_batch(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-8b --on 1..16xh100-sxm --seq 4096 --space lean --objective accelerators --best 1"
    found = answer(capsys, words)

    assert found["job"]["global_batch"] == 16
    assert found["assumptions"][0].startswith("GLOBAL BATCH 16 ON EVERY CLUSTER")


def test_a_batch_that_was_not_given_is_named_by_the_cards_since_layouts_cut_it_differently(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys, "llama-3.1-8b --on 8xh100-sxm --seq 4096 --space lean --best 1 --pp 8")
    assert "NOTE      GLOBAL BATCH 8: ONE SEQUENCE A CARD (--batch)" in out
    assert "8 micro-batches a pipeline" in out


def test_one_layout_that_fits_is_counted_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "llama-3.1-8b --on 1xb200 --seq 2048 --batch 1 --space lean --best 1 --no-recompute")
    assert "best of 1 legal layout, 1 of which fits;" in out


def test_nodes_are_counted_as_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3.1-8b --on 1..4xp5.48xlarge --seq 4096 --batch 64 --space lean --objective accelerators --best 1"

    assert answer(capsys, words)["cluster"]["name"] == "1xp5.48xlarge"


@pytest.mark.parametrize(
    ("on", "code"),
    [
        ("64..8xh100-sxm", "PLN004"),
        ("9..15xh100-sxm", "PLN007"),
        ("8..9999999xh100-sxm", "PLN007"),
        ("8..64xh100-smx", "HW001"),
    ],
)
def test_a_range_of_clusters_that_holds_none_is_refused(capsys: pytest.CaptureFixture[str], on: str, code: str) -> None:
    assert codes(capsys, f"llama-3.1-8b --on {on} --seq 4096 --batch 64 --objective accelerators") == [code]


# --- stopping and waiting -------------------------------------------------------------------------------------------


def test_a_search_that_is_stopped_says_so_and_keeps_the_best(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C does: after the first block that holds a layout that fits."""

    def stop(counted: int, legal: int, best: float, *_: object) -> None:
        if best < float("inf"):
            raise KeyboardInterrupt

    searched = planning.answer_of
    monkeypatch.setattr(planning, "answer_of", lambda asked, progress, simulate: searched(asked, stop, simulate))
    code, out, _ = run(capsys, DEMO)
    found = answer(capsys, DEMO)
    search = found["search"]

    assert code == 0
    assert out.startswith("BEST") and "\nNOT PROVED" in out and "\nPROVED" not in out
    assert (search["proved"], search["gap"]) == (False, None)
    assert search["pruned"] > 0 and search["counted"] + search["pruned"] == search["legal"]
    assert any(text.startswith("search.gap is null") for text in found["assumptions"])


def test_the_line_for_who_waits_comes_after_two_seconds_and_twice_a_second_at_most() -> None:
    said: list[str] = []
    now = iter([0.0, 1.0, 2.5, 2.7, 3.1, 4.0])
    waiting = Waiting(said.append, lambda: next(now))
    for counted in (10, 20, 30, 40, 50):
        waiting(counted * 1_000_000, 100_000_000, 51.7 if counted > 20 else float("inf"))
    waiting.close()

    assert len(said) == 4
    assert "20.00 million of 100.0 million layouts, 8.000 million a second, none fits yet, 10 s left" in said[0]
    assert "best 51.7 s" in said[1]
    assert said[-1].strip() == ""


def test_who_waits_for_a_search_that_passes_layouts_over_is_told_no_time_left() -> None:
    written, seconds = list[str](), iter((0.0, 3.0))
    waiting = Waiting(written.append, lambda: next(seconds))
    waiting(3_000_000, 0, 12.5)
    assert written == [
        "\r3.000 million layouts, 1.000 million a second, best 12.5 s, those that cannot be faster are passed over"
    ]


def test_a_quick_search_writes_nothing_for_who_waits() -> None:
    said: list[str] = []
    waiting = Waiting(said.append, iter([0.0, 0.1, 9.0]).__next__)
    waiting(1, 2, 1.0)
    waiting(2, 2, 1.0)
    waiting.close()

    assert said == []
    assert announcement(10_000_000) == "" and "2.000 billion combinations" in announcement(2_000_000_000)


# --- the parts ------------------------------------------------------------------------------------------------------


def test_the_frontier_is_drawn_for_people_and_listed_otherwise() -> None:
    found = plan(load_model("llama-3.1-70b"), Job(8192, 512), load_cluster("64xh100-sxm"), best=3)
    drawn = "\n".join(plan_lines(Answer(found, "wide"), Style(100, bars=True)))
    listed = "\n".join(plan_lines(Answer(found, "wide"), Style(100)))

    assert "wall 79.1 GiB" in drawn and "+----" in drawn and "*" in drawn
    assert "wall" not in listed and "more between them: --json" in listed


def test_why_names_the_largest_differences_in_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Data-parallel exchange is all that differs between hiding it and not."""
    _, out, _ = run(
        capsys,
        f"{SMALL} --tp 2 --pp 1 --cp 1 --mbs 1 --zero 1 --sp --overlap-tp --no-hybrid --no-recompute --no-offload",
    )
    line = next(line for line in out.splitlines() if line.startswith("WHY"))

    assert "1 beats 2 by" in line and "data-parallel exchange -" in line


def test_options_that_mean_nothing_in_a_layout_are_not_said() -> None:
    dense = Layout.grid(**vars(Layout(tp=1, sp=False, cp=1, pp=1, vpp=1, ep=1, etp=1, dp_replicate=1, dp_shard=1,
        zero=0, micro_batch=1, schedule="1f1b", recompute="none", recompute_layers=0, split=(), overlap_tp=True,
        overlap_dp=False, offload_optimizer=0.0, offload_parameters=0.0, offload_activations=0.0)))  # fmt: skip
    words = option_words(dense, load_model("llama-3.1-8b"))

    assert {name for name, text in words.items() if not text} == {"etp", "schedule", "sp", "zero", "overlap"}
    assert layout_flags(dense, load_model("llama-3.1-8b"), load_engine("megatron")) == "no flag: every axis 1"


def test_schema_prints_the_description_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "plan"]) == 0
    assert list(json.loads(capsys.readouterr().out)["properties"]) == [
        *KEYS,
        "mixed",
        "orders",
    ]  # the last two only where they are asked for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_picture_and_no_line_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert main(["plan", *LEAN.split()]) == 0
    assert err.getvalue() == "" and "\x1b[1;32mBEST\x1b[0m" in out.getvalue()


def test_a_layout_that_was_asked_about_is_answered_before_the_ranking(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, f"{DEMO} --why tp=4,pp=7")
    assert code == 0
    assert out.index("WHY NOT   --tp 4 --pp 7: not legal.") < out.index("BASELINES")
    found = answer(capsys, f"{LEAN} --why mbs=2")
    assert found["why"]["asked"] == {"micro_batch": 2}
    assert found["why"]["answer"] in ("slower", "best")


@pytest.mark.parametrize("why", ["tp4", "foo=3", "tp=2,tp=4"])
def test_what_cannot_be_asked_about_is_refused(capsys: pytest.CaptureFixture[str], why: str) -> None:
    code, _, err = run(capsys, f"{LEAN} --why {why}")
    assert code == 2
    assert "PLN009" in err

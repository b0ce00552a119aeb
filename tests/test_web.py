"""The questions over HTTP: their figures are those that the command prints with --json."""

import json
from base64 import b64decode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from outlay.cli.main import main
from serving import WORDS, served

CONFIGS = Path(__file__).parent / "configs"
CASES = Path(__file__).parent / "check_cases"
MEASURED = ("seconds", "layouts_per_second")  # of a search: how long it took on this machine


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served() as (made, _):
        yield made


def ask(client: httpx.Client, command: str, words: dict[str, Any], **more: Any) -> Any:
    return client.post(f"/api/{command}", json={"words": words, **more})


def printed(capsys: pytest.CaptureFixture[str], *line: str) -> Any:
    main([*line, "--json"])
    return json.loads(capsys.readouterr().out)


def flags(words: dict[str, Any]) -> list[str]:
    return [
        part for word, text in words.items() for part in ([f"--{word}", text] if text is not True else [f"--{word}"])
    ]


JOB = {"on": "64xh100-sxm", "seq": "8192", "batch": "512"}
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("count", "llama-3.1-70b", {**JOB, "tp": "8", "pp": "4"}),
    ("count", "llama-3.1-70b", {**JOB, "tp": "8", "pp": "4", "advise": True}),
    ("count", "deepseek-v3", {"on": "2048xh100-sxm", "tp": "2", "pp": "16", "ep": "8", "batch": "15360"}),
    ("count", "llama-3.1-70b", {**JOB, "tp": "3"}),  # NOT LEGAL
    ("count", "llama-3.1-8b", {"on": "8,16,32xh100-sxm", "batch": "64"}),
    ("count", "llama-3.1-8b", {"on": "8xh100-sxm", "optimizer": "galore", "overlap-tp": True, "tp": "2"}),
    ("draw", "llama-3.1-70b", {**JOB, "tp": "8", "pp": "4"}),
    ("draw", "llama-3.1-70b", {**JOB, "tp": "3"}),
    ("plan", "llama-3.1-8b", {"on": "8xh100-sxm", "seq": "8192", "batch": "64", "best": "3"}),
    ("plan", "llama-3.1-8b", {"on": "8xh100-sxm", "seq": "8192", "batch": "64", "why": "tp=8", "space": "lean"}),
]


@pytest.mark.parametrize(("command", "model", "words"), QUESTIONS)
def test_an_answer_is_the_object_that_the_command_prints(
    client: httpx.Client, capsys: pytest.CaptureFixture[str], command: str, model: str, words: dict[str, Any]
) -> None:
    expected = printed(capsys, command, model, *flags(words))

    said = ask(client, command, {"model": model, **words})

    found = said.json()["record"] if command == "draw" else said.json()
    for name in MEASURED if command == "plan" else ():
        found["search"][name] = expected["search"][name] = 0
    for each in found.get("violations", []):
        assert each.pop("flag") in {**words, "model": model, "on": ""}  # who is to blame is said over HTTP alone
    assert said.status_code == 200
    assert found == expected


def test_a_figure_is_explained_as_by_the_command(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    expected = printed(capsys, "explain", "memory.activations", "llama-3.1-70b", *flags(JOB))

    found = ask(client, "explain", {"quantity": "memory.activations", "model": "llama-3.1-70b", **JOB})

    assert found.json() == expected


def test_a_bubble_is_that_of_the_command(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"pp": "8", "micro-batches": "32", "slot": "30ms"}

    assert ask(client, "bubble", words).json() == printed(capsys, "bubble", *flags(words))


def test_an_export_is_that_of_the_command(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"on": "8xh100-sxm", "tp": "2"}
    expected = printed(capsys, "export", "megatron", "llama-3.1-8b", *flags(words))

    assert ask(client, "export", {"framework": "megatron", "model": "llama-3.1-8b", **words}).json() == expected


def test_two_layouts_are_compared_as_by_the_command(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    expected = printed(capsys, "compare", "tp=8,pp=4", "tp=4,pp=8", "llama-3.1-70b", *flags(JOB))
    one, other = ({"model": "llama-3.1-70b", **JOB, "tp": tp, "pp": pp} for tp, pp in (("8", "4"), ("4", "8")))

    assert ask(client, "compare", one, other={"words": other}).json() == expected


def test_a_file_of_a_run_is_checked_as_by_the_command(
    client: httpx.Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    path = Path("batch_lowered.sh")
    words = {"on": "64xh100-sxm", "model": "llama-3.1-70b"}
    expected = printed(capsys, "check", str(path), "llama-3.1-70b", "--on", "64xh100-sxm")

    found = ask(client, "check", words, file={"name": str(path), "text": path.read_text()})

    assert found.json() == expected


def test_a_pasted_config_counts_as_the_same_file(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    path = CONFIGS / "llama-3.1-70b.json"
    expected = printed(capsys, "count", str(path), *flags(JOB))

    found = ask(client, "count", JOB, config=json.loads(path.read_text())).json()

    assert found["memory"] == expected["memory"]
    assert found["step"] == expected["step"]


def test_a_printed_bill_can_be_pasted_and_changed(client: httpx.Client) -> None:
    bill = ask(client, "count", WORDS).json()

    again = ask(client, "count", {"tp": "4"}, config=bill).json()

    assert again["layout"]["tp"] == 4
    assert again["step"] == ask(client, "count", {**WORDS, "tp": "4"}).json()["step"]


def test_legal_values_are_those_that_break_no_rule(client: httpx.Client) -> None:
    legal = ask(client, "legal", WORDS).json()

    for field, tried in {"tp": (1, 2, 3, 4, 8, 16, 32), "vpp": (1, 2, 3, 5, 7, 20), "zero": (0, 1, 2, 3)}.items():
        for value in tried:
            broken = ask(client, "count", {**WORDS, field: str(value)}).json()["violations"]
            assert (value in legal[field]) == (not broken), (field, value)


def test_the_parts_of_the_heaviest_rank_are_those_of_the_bill(client: httpx.Client) -> None:
    memory = ask(client, "count", WORDS).json()["memory"]

    assert ask(client, "ranks", WORDS).json()["ranks"][memory["worst_rank"]["stage"]]["items"] == memory["items"]


def test_a_diagram_comes_with_the_passes_of_each_rank(client: httpx.Client) -> None:
    words = {"pp": "4", "micro-batches": "8", "forward": "10ms", "backward": "20ms", "schedule": "1f1b"}

    found = ask(client, "draw", words).json()

    operations = found["operations"]
    assert found["svg"].startswith("<svg")
    assert operations["ranks"] == 4
    assert operations["makespan_s"] == pytest.approx((8 + 4 - 1) * 0.03)  # (M + P - 1)(F + B)
    assert all(sorted(kind for kind, *_ in row) == ["B"] * 8 + ["F"] * 8 for row in operations["rows"])
    assert operations["rows"][3][0] == ["F", 3, 0, pytest.approx(0.03), pytest.approx(0.04)]


def test_a_pair_is_two_passes_at_the_same_time(client: httpx.Client) -> None:
    words = {"pp": "4", "micro-batches": "16", "forward": "10ms", "backward": "20ms", "schedule": "dualpipe_v"}

    rows = ask(client, "draw", words).json()["operations"]["rows"]

    assert {kind for row in rows for kind, *_ in row} <= {"F", "B", "I", "W"}
    assert all(sum(kind == "F" for kind, *_ in row) == 32 for row in rows)  # 16 micro-batches, 2 chunks a rank


def test_the_corrected_copy_is_what_the_command_writes(client: httpx.Client, tmp_path: Path) -> None:
    path, copy = CASES / "common_errors.sh", tmp_path / "copy.sh"
    main(["check", str(path), "llama-3.1-70b", "--on", "64xh100-sxm", "--fix", "-o", str(copy)])

    words = {"on": "64xh100-sxm", "model": "llama-3.1-70b"}
    found = ask(client, "fix", words, file={"name": path.name, "text": path.read_text()}).json()["files"]

    assert found == [{"name": "common_errors.fixed.sh", "text": copy.read_text()}]


def test_a_report_is_what_the_command_writes(client: httpx.Client, tmp_path: Path) -> None:
    paths = {form: tmp_path / f"report.{form}" for form in ("html", "md", "csv")}
    main(["report", "llama-3.1-70b", *flags(JOB), *(p for form in paths for p in (f"--{form}", str(paths[form])))])

    found = ask(client, "report", {"model": "llama-3.1-70b", **JOB}).json()["files"]

    assert found == [{"name": path.name, "text": path.read_text()} for path in paths.values()]


def test_a_report_of_a_layout_that_breaks_a_rule_says_so(client: httpx.Client) -> None:
    said = ask(client, "report", WORDS | {"tp": "3"})

    assert said.status_code == 200
    assert all("NOT LEGAL" in one["text"] or "LAY" in one["text"] for one in said.json()["files"])


@pytest.mark.parametrize("more", [{}, {"vpp": "2"}, {"schedule": "zb_h1"}])
def test_a_trace_is_what_the_command_writes(client: httpx.Client, tmp_path: Path, more: dict[str, str]) -> None:
    path = tmp_path / "timing.pftrace"
    words = {**JOB, "tp": "8", "pp": "4", **more}
    main(["draw", "llama-3.1-70b", *flags(words), "--perfetto", str(path)])

    found = ask(client, "trace", {"model": "llama-3.1-70b", **words}).json()

    assert found["violations"] == []
    assert [one["name"] for one in found["files"]] == [path.name]
    assert b64decode(found["files"][0]["base64"]) == path.read_bytes()


def test_a_trace_of_a_layout_that_breaks_a_rule_is_none_and_says_why(client: httpx.Client) -> None:
    said = ask(client, "trace", WORDS | {"tp": "3"})

    assert said.status_code == 200 and said.json()["files"] == []
    assert said.json()["violations"] == ask(client, "count", WORDS | {"tp": "3"}).json()["violations"]


def test_a_trace_over_http_has_a_bound(client: httpx.Client) -> None:
    words = {"pp": "64", "micro-batches": "2000", "schedule": "1f1b", "forward": "10ms", "backward": "20ms"}

    said = ask(client, "trace", words)

    assert said.status_code == 422
    assert [fault["code"] for fault in said.json()["errors"]] == ["DRW003"]
    assert "200,000" in said.json()["errors"][0]["rule"]


@pytest.mark.parametrize("command", ["report", "trace"])
@pytest.mark.parametrize("word", ["html", "md", "perfetto", "config", "profile", "force"])
def test_no_word_of_a_file_is_a_path(client: httpx.Client, command: str, word: str) -> None:
    said = ask(client, command, WORDS | {word: "/tmp/outlay-never"})

    assert said.status_code == 422
    assert said.json()["errors"][0]["code"] in ("WEB002", "CLI001")
    assert not Path("/tmp/outlay-never").exists()


def test_what_is_written_is_described(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()

    for name, about in (("report", "text"), ("trace", "base64")):
        post = described["paths"][f"/api/{name}"]["post"]
        assert post["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(f"/{name}_question")
        files = described["components"]["schemas"][name]["properties"]["files"]
        assert files["items"]["required"] == ["name", about]
        words = described["components"]["schemas"][f"{name}_question"]["properties"]["words"]["properties"]
        assert "tp" in words and not {"html", "perfetto", "force"} & words.keys()


# --- pages without a script -----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The fields of a page's form, the text of its parts, and its record."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.parts: dict[str, str] = {}
        self.open: list[str] = []
        self.styled = 0
        self.scripts: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.styled += "style" in about or tag == "style" or any(name.startswith("on") for name in about)
        if tag == "input" and about.get("name"):
            self.fields[str(about["name"])] = about.get("value") or ""
        if tag == "script":
            self.scripts.append(about)
        if about.get("id"):
            self.open.append(str(about["id"]))

    def handle_data(self, data: str) -> None:
        for name in self.open[-1:]:
            self.parts[name] = self.parts.get(name, "") + data


def page(client: httpx.Client, path: str, **words: str) -> Page:
    return Page(client.get(path, params=words).text)


def test_the_first_paint_holds_the_answer_the_form_and_the_record(client: httpx.Client) -> None:
    made = page(client, "/bill", **WORDS)
    record = json.loads(made.parts["record"])

    assert "FITS" in made.parts["answer"] and "50.3 GiB" in made.parts["answer"]
    assert "activations" in made.parts["memory"] and "arithmetic" in made.parts["step"]
    assert {word: made.fields[word] for word in WORDS} == WORDS
    assert record["words"] == WORDS and record["command"] == "count"
    bill = ask(client, "count", WORDS).json()
    record["answer"].pop("advice", None)
    assert record["answer"] == bill


def test_the_first_paint_holds_no_script_or_style_of_its_own(client: httpx.Client) -> None:
    made = page(client, "/bill", **WORDS)

    assert made.styled == 0
    assert all(
        one.get("src", "").startswith("/static/") or one.get("type") == "application/json" for one in made.scripts
    )


def test_words_without_a_field_are_sent_again(client: httpx.Client) -> None:
    made = page(client, "/bill", **WORDS, storage="200GB/s")

    assert made.fields["storage"] == "200GB/s"


def test_a_broken_rule_stands_on_the_page(client: httpx.Client) -> None:
    made = page(client, "/bill", **WORDS | {"tp": "3"})

    assert "NOT LEGAL" in made.parts["answer"] and "LAY" in made.parts["errors"]


def test_a_page_without_words_is_that_of_an_example(client: httpx.Client) -> None:
    assert page(client, "/").parts["answer"] == page(client, "/bill", **WORDS).parts["answer"]


def test_a_search_without_a_script_lists_the_best_layouts(client: httpx.Client) -> None:
    words = {"model": "llama-3.1-8b", "on": "8xh100-sxm", "seq": "8192", "batch": "64", "space": "lean"}
    best = ask(client, "plan", words).json()["best"][0]["layout"]

    shown = client.get("/search", params=words | {"tp": "8"}).text  # what a search chooses does not narrow it

    assert "/search?" in client.get("/plan", params=words).text
    assert "Ranking" in shown and (f"--tp {best['tp']}" in shown or best["tp"] == 1)


def test_a_comparison_without_a_script_names_the_difference(client: httpx.Client) -> None:
    shown = client.get("/compare", params=WORDS | {"b": "tp=4,pp=8"}).text

    assert "B is A with tp=4,pp=8" in shown
    assert "WEB002" in client.get("/compare", params=WORDS | {"b": "on=/etc/hosts"}).text


def test_the_description_says_that_a_broken_rule_has_its_word(client: httpx.Client) -> None:
    held = client.get("/openapi.json").json()["components"]["schemas"]
    rule = held["plan"]["properties"]["violations"]["items"]
    assert "flag" in rule["properties"] and "flag" not in rule["required"]

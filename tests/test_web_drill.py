"""Exercises over HTTP: the grades of the command, nothing right in a page before an answer, no answer breaks it."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from outlay.cli.desk.answers import answer
from outlay.cli.main import main
from outlay.drill.exercise import Exercise, Part
from outlay.drill.grading import grade_in_turn
from outlay.drill.sets import AT, TOPICS, exercise, exercises
from outlay.show.drill import shown
from outlay.show.drill_page import Sheet, exercise_html
from serving import HEADERS, served

SETS = [(topic, level) for level, topics in AT.items() for topic in topics]
MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served() as (made, _):
        yield made


class Form(HTMLParser):
    """The form of the answers: what it would send, in order, and the grade of each part."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self.marks: list[str] = []
        self.open: list[int] = []  # places of boxes that can be typed into
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        self.inside |= about.get("id") == "answers"
        if "data-part" in about:
            self.marks.append(about["data-mark"])
        if self.inside and tag in ("input", "select", "textarea") and "name" in about:
            if about.get("type") != "hidden":
                self.open.append(len(self.sent))
            self.sent.append((about["name"], about.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "form"

    def filled(self, *texts: str) -> list[tuple[str, str]]:
        """What it sends with these texts in its open boxes."""
        sent = list(self.sent)
        for place, text in zip(self.open, texts, strict=True):
            sent[place] = ("answer", text)
        return sent


def open_page(client: httpx.Client, *answers: str, **words: Any) -> httpx.Response:
    query = [*((word, str(text)) for word, text in words.items()), *(("answer", text) for text in answers)]
    return client.get("/drill", params=query)


def said(page: httpx.Response) -> str:
    """The text of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


# --- what is right stays unsaid -------------------------------------------------------------------------------------


def sheet(one: Exercise, *typed: str) -> Sheet:
    texts = [*typed, *([""] * (len(one.parts) - len(typed)))]
    return Sheet({"level": str(one.level), "seed": "7"}, 5, 1, one, tuple(texts), grade_in_turn(texts, one))


def other(part: Part) -> Part:
    """The same question with another answer."""
    of = part.answer
    changed: Any = of + 12345 if isinstance(of, Fraction) else f"not {of}"
    if isinstance(of, tuple):
        changed = tuple("9" * len(row) for row in of)
    return replace(part, answer=changed, why=("because",), slips=(), stairs=(3, 9))


@pytest.mark.parametrize(("topic", "level"), SETS)
def test_a_page_without_an_answer_is_the_same_whatever_is_right(topic: str, level: int) -> None:
    for one in exercises(topic, level, seed=3, count=10):
        changed = replace(one, parts=tuple(map(other, one.parts)))

        assert exercise_html(sheet(one)) == exercise_html(sheet(changed))


@pytest.mark.parametrize(("topic", "level"), [each for each in SETS if each[1] > 1])
@pytest.mark.parametrize("typed", ["1", "?", "12.5 GB", "nothing", "1/.1"])
def test_an_answer_says_nothing_of_the_parts_that_are_open(topic: str, level: int, typed: str) -> None:
    for one in exercises(topic, level, seed=5, count=4):
        changed = replace(one, parts=(one.parts[0], *map(other, one.parts[1:])))

        assert exercise_html(sheet(one, typed)) == exercise_html(sheet(changed, typed))


@pytest.mark.parametrize(("topic", "level"), [each for each in SETS if each[1] > 1])
@pytest.mark.parametrize("first", ["", "?"])
def test_an_answer_waits_for_the_one_above_whose_value_its_derivation_may_say(
    client: httpx.Client, topic: str, level: int, first: str
) -> None:
    one = exercise(topic, level, 6, 1)
    texts = [first, *map(typed_right, one.parts[1:])]
    changed = replace(one, parts=tuple(map(other, one.parts)))

    assert exercise_html(sheet(one, *texts)) == exercise_html(sheet(changed, *texts))
    page = open_page(client, *texts, topic=topic, level=level, seed=6)
    assert Form(page.text).marks == ["again" if first else "", *["waits"] * (len(one.parts) - 1)]
    assert "graded once the one above is" in page.text or len(one.parts) == 1
    form = Form(page.text).filled(typed_right(one.parts[0]), *texts[1:])
    assert Form(client.get("/drill", params=form).text).marks == ["right"] * len(one.parts)


@pytest.mark.parametrize(("topic", "level"), SETS)
def test_an_answer_that_cannot_be_read_says_nothing_of_what_is_right(topic: str, level: int) -> None:
    for one in exercises(topic, level, seed=6, count=3):
        changed = replace(one, parts=tuple(map(other, one.parts)))

        assert exercise_html(sheet(one, "?")) == exercise_html(sheet(changed, "?"))


def test_what_was_asked_and_read_off_does_not_say_the_share_that_is_asked_next() -> None:
    one = exercise("staircase", 2, 7, 1)
    share = shown(one.parts[1]).partition(" =")[0]

    assert share not in exercise_html(sheet(one, "1"))
    assert share in exercise_html(sheet(one, "1", "1"))


@pytest.mark.parametrize(("topic", "level"), SETS)
def test_the_first_answer_of_the_server_holds_no_right_answer(client: httpx.Client, topic: str, level: int) -> None:
    page = open_page(client, topic=topic, level=level, seed=11)

    assert page.status_code == 200 and page.headers["cache-control"] == "no-store"
    for part in exercise(topic, level, 11, 1).parts:
        text = said(page).replace(part.wanted, "")  # whose example may be right by chance
        right = shown(part).partition(" (")[0].partition(" =")[0]
        if part.unit in ("share", "bytes", "seconds", "rows") and part.answer:
            assert not re.search(rf"(?<![\d.]){re.escape(right)}", text), right
    assert set(Form(page.text).marks) == {""}
    assert "verdict" not in page.text and "derivation" not in page.text


# --- grades ---------------------------------------------------------------------------------------------------------


def graded_by_the_command(capsys: pytest.CaptureFixture[str], topic: str, level: int, typed: str) -> Any:
    main(["drill", topic, "--level", str(level), "--seed", "4", "--number", "2", "--answer", typed, "--json"])
    return json.loads(capsys.readouterr().out)


def typed_right(part: Part) -> str:
    return shown(part).partition(" (")[0].partition(" =")[0]


@pytest.mark.parametrize(("topic", "level"), SETS)
@pytest.mark.parametrize("right", [True, False])
def test_an_answer_is_graded_as_by_the_command(
    client: httpx.Client, capsys: pytest.CaptureFixture[str], topic: str, level: int, right: bool
) -> None:
    usual = {"share": "99.9 %", "bytes": "1 B", "seconds": "1 h", "rows": "1/.1", "word": "state"}
    parts = exercise(topic, level, 4, 2).parts
    texts = [typed_right(part) if right else usual.get(part.unit, "54321") for part in parts]
    expected = graded_by_the_command(capsys, topic, level, "; ".join(texts))
    marks = ["right" if one["right"] else "wrong" for one in expected["grades"]]

    page = open_page(client, *texts, topic=topic, level=level, seed=4, number=2)
    answered = client.post(
        "/api/drill",
        json={"words": {"topic": topic, "level": level, "seed": 4, "number": 2, "answer": "; ".join(texts)}},
    )

    assert answered.json() == expected
    assert Form(page.text).marks == marks and (set(marks) == {"right"} or not right)
    for part in expected["exercises"][0]["parts"]:
        assert part["shown"] in said(page)
        for line in part["why"] if part["unit"] != "rows" else ():
            assert " ".join(line.replace("  # ", " ").split()) in said(page)


def test_one_text_with_all_answers_is_taken_as_on_the_command_line(client: httpx.Client) -> None:
    one = exercise("bubble", 2, 7, 3)
    text = "; ".join(map(typed_right, one.parts))

    assert Form(open_page(client, text, topic="bubble", level=2, seed=7, number=3).text).marks == ["right", "right"]


@pytest.mark.parametrize(
    ("topic", "typed", "wanted"),
    [
        ("bubble", "17.9 GB", "'GB' is not a unit of what is asked; wanted is a share: 17.9 %, 7/39 or 0.179"),
        ("bubble", "abc", "it is not a number; wanted is a share"),
        ("bubble", "44.1", "with a percent sign it would be read"),
        ("state", "800", "it has no unit; wanted is a size with its unit: 12.5 GB or 11.6 GiB"),
        ("state", "800 s", "'s' is not a unit of what is asked; wanted is a size"),
        ("bubble", "15/19", "idle slots over useful ones"),
        ("bubble", "19/34", "that is the share that works"),
    ],
)
def test_a_wrong_unit_and_a_known_mistake_are_said(client: httpx.Client, topic: str, typed: str, wanted: str) -> None:
    assert wanted in said(open_page(client, typed, topic=topic, seed=7, number=1))


def test_without_a_script_the_form_goes_on_where_it_was(client: httpx.Client) -> None:
    one = exercise("bubble", 2, 7, 3)
    first, second = map(typed_right, one.parts)

    form = Form(open_page(client, topic="bubble", level=2, seed=7, number=3).text)
    form = Form(client.get("/drill", params=form.filled(first, "14")).text)
    assert form.marks == ["right", "again"]
    form = Form(client.get("/drill", params=form.filled(second)).text)
    assert form.marks == ["right", "right"] and form.open == []


def test_a_staircase_is_drawn_by_lines_and_a_wrong_one_is_shown_beside_the_right_one(client: httpx.Client) -> None:
    words = {"topic": "staircase", "level": 3, "seed": 7}
    rows = exercise("staircase", 3, 7, 1).parts[0].answer
    assert isinstance(rows, tuple)

    right = open_page(client, "\r\n".join(rows), **words)
    wrong = open_page(client, "\r\n".join(["1", *rows[1:]]), **words)

    assert Form(right.text).marks == ["right", "", ""] and Form(wrong.text).marks == ["wrong", "", ""]
    slots = len(rows[0])
    for page in (right, wrong):
        assert f"M + P - 1 = {slots} slots" in page.text
    assert "Yours" in wrong.text and 'class="off"' in wrong.text
    assert "Yours" not in right.text and 'class="off"' not in right.text


def test_a_picture_has_a_cell_for_every_slot_and_the_boundary_cases_are_drawn(client: httpx.Client) -> None:
    one = exercise("staircase", 3, 7, 1)
    pp, many = (int(one.given[name]) for name in ("pp", "micro_batches"))

    page = open_page(client, *map(typed_right, one.parts), topic="staircase", level=3, seed=7)
    pictures = re.findall(r"<svg.*?</svg>", page.text)

    for picture, (ranks, batches) in zip(pictures, [(pp, many), (pp, 1), (1, many)], strict=True):
        assert picture.count('class="F edge"') == ranks * batches
        assert picture.count('class="rest"') == ranks * (ranks - 1)
        assert f"M + P - 1 = {batches + ranks - 1} slots" in picture


# --- sets -----------------------------------------------------------------------------------------------------------


def test_a_link_without_a_seed_leads_to_a_set_that_is_drawn(client: httpx.Client) -> None:
    first, second = (client.get("/drill?topic=bubble&level=2&count=9") for _ in range(2))

    assert first.status_code == second.status_code == 303
    assert re.fullmatch(r"/drill\?topic=bubble&level=2&seed=\d+&count=9", first.headers["location"])
    assert first.headers["location"] != second.headers["location"]


def test_equal_links_give_equal_pages_and_another_seed_another_one(client: httpx.Client) -> None:
    one, same, more = (open_page(client, level=2, seed=seed, number=2).text for seed in (7, 7, 8))

    assert one == same != more


def test_a_page_shows_the_exercise_of_the_command(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    main(["drill", "--level", "2", "--seed", "7", "--number", "4", "--json"])
    (one,) = json.loads(capsys.readouterr().out)["exercises"]

    page = said(open_page(client, level=2, seed=7, number=4))

    assert one["text"] in page and all(part["ask"] in page and part["wanted"] in page for part in one["parts"])
    assert "outlay drill --level 2 --seed 7 --number 4" in page


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"level": "4"}, "DRL001"), ({"topic": "bubbel"}, "DRL001"), ({"topic": "binds"}, "DRL001"),
        ({"seed": "seven"}, "DRL002"), ({"seed": "9" * 30}, "DRL002"), ({"number": "0"}, "UNI003"),
        ({"count": "1e9"}, "UNI003"), ({"solutions": "true"}, "WEB002"), ({"debug": "true"}, "WEB002"),
        ({"model": "x"}, "CLI001"), ({MARKUP: MARKUP}, "CLI001"), ({"level": MARKUP}, "DRL001"),
        ({"topic": MARKUP}, "DRL001"), ({"seed": MARKUP}, "DRL002"),
    ],
    ids=str,
)  # fmt: skip
def test_a_set_that_cannot_be_made_is_said_beside_the_fields(
    client: httpx.Client, words: dict[str, str], code: str
) -> None:
    page = open_page(client, **{"seed": "7", "level": "1", **words})

    assert page.status_code == 422 and code in page.text
    assert 'id="s-topic"' in page.text and 'id="s-seed"' in page.text
    assert "<script>alert" not in page.text and "<img" not in page.text


def test_an_answer_without_its_set_is_a_fault(client: httpx.Client) -> None:
    assert "DRL002" in open_page(client, "7/39", topic="bubble").text


# --- answers that nobody means --------------------------------------------------------------------------------------

HOSTILE = [
    "nan", "inf", "-inf", "1e999", "1e-999", "1e99", "9" * 300, "9" * 1_900, "1" + "0" * 150, "0x1F", "1_000", "1/0",
    "0/0", "7/39/2", "--answer", "; ; ;", ";" * 300, "\x00", "\x1b[31m", "\u202e7/39", "١٧٫٩", "٧/٣٩", "१३", "十七",
    "𝟕/𝟑𝟗", "²", "½", "1e1e1", "1,,2", ",", ".", "-", "+", "%", "%%", "1 %%", " " * 50, "\n" * 50, "${x}", "{{7*7}}",
    MARKUP, "'; DROP TABLE x; --", "/etc/passwd", "../../x.json", "1" * 200 + "e99", "1 " * 90, "1," * 90, "a" * 1_000,
]  # fmt: skip
ASKED = [("bubble", 1), ("state", 1), ("traffic", 2), ("needed", 2), ("checkpoints", 2), ("binds", 3), ("staircase", 3)]


@pytest.mark.parametrize("typed", HOSTILE, ids=ascii)
def test_no_answer_breaks_the_page_or_is_taken_for_right(client: httpx.Client, typed: str) -> None:
    for topic, level in ASKED:
        parts = exercise(topic, level, 7, 1).parts
        page = open_page(client, *[typed] * len(parts), topic=topic, level=level, seed=7)
        answered = client.post(
            "/api/drill", json={"words": {"topic": topic, "level": level, "seed": 7, "number": 1, "answer": typed}}
        )

        assert page.status_code in (200, 422) and answered.status_code in (200, 422)
        assert "<script>alert" not in page.text and "<img" not in page.text and "WEB005" not in page.text
        assert "right" not in Form(page.text).marks
        if answered.status_code == 422:
            assert {one["code"] for one in answered.json()["errors"]} <= {"DRL003", "WEB003"}


def test_digits_of_another_script_are_digits(client: httpx.Client) -> None:
    words = {"topic": "checkpoints", "level": 1, "seed": 7}
    right = int(shown(exercise("checkpoints", 1, 7, 1).parts[0]))
    hindi, wide = ("".join(chr(zero + int(digit)) for digit in str(right)) for zero in (0x966, 0xFF10))

    for typed in (hindi, wide):
        assert Form(open_page(client, typed, **words).text).marks == ["right"]


def test_an_answer_that_is_too_long_is_refused(client: httpx.Client) -> None:
    words = {"topic": "bubble", "seed": "7"}

    assert open_page(client, "9" * 3_000, **words).status_code == 422
    assert open_page(client, "9" * 9_000, **words).status_code == 414
    body = {"words": {**words, "answer": "9" * 3_000}}
    assert client.post("/api/drill", json=body).status_code == 422
    body = {"words": {**words, "answer": "9" * 2**20}}
    assert client.post("/api/drill", json=body).status_code == 413


@pytest.mark.parametrize("words", [{"answer": None}, {"answer": ["7/39"]}, {"seed": {}}, {"answer": "\ud800"}])
def test_a_body_that_is_no_set_is_a_fault(client: httpx.Client, words: dict[str, Any]) -> None:
    body = json.dumps({"words": {"topic": "bubble", "seed": "7", **words}}).encode()
    found = client.post("/api/drill", content=body, headers=HEADERS)

    assert found.status_code == 422 and found.json()["errors"]


# --- the interface --------------------------------------------------------------------------------------------------


def test_the_question_stands_in_the_description_with_its_words_and_its_answer(client: httpx.Client) -> None:
    api = client.get("/openapi.json").json()
    about = api["paths"]["/api/drill"]["post"]
    schemas = api["components"]["schemas"]

    assert about["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/drill")
    assert schemas["drill"]["properties"]["schema"] == {"const": "outlay.drill.1"}
    words = schemas["drill_question"]["properties"]["words"]["properties"]
    assert words["topic"]["enum"] == list(TOPICS)
    assert set(words) == {"topic", "level", "seed", "count", "number", "answer", "solutions"}


def test_a_set_over_http_is_that_of_the_command_and_holds_no_answer(
    client: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["drill", "--level", "2", "--seed", "9", "--count", "20", "--json"])
    expected = json.loads(capsys.readouterr().out)

    found = client.post("/api/drill", json={"words": {"level": "2", "seed": "9", "count": "20"}})

    assert found.json() == expected
    assert "why" not in found.text and '"answer"' not in found.text and '"shown"' not in found.text


def test_the_page_of_exercises_carries_the_headers_of_safety_and_no_script_of_its_own(client: httpx.Client) -> None:
    page = open_page(client, "1/2", MARKUP, topic="bubble", level=2, seed=7)

    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert not re.search(r"\sstyle=|\son\w+=|<style", re.sub(r'value="[^"]*"', "", page.text))
    assert re.findall(r"<script(?![^>]*src=)", page.text) == []


def test_a_desk_makes_the_page_of_a_long_set_without_listing_it() -> None:
    made = answer("drilled", {"words": {"seed": "7", "count": "1000", "number": "500"}, "answers": []})

    assert made["html"]["numbers"].count("<li>") == 2

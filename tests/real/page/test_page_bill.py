"""The tab Bill as a person uses it: figures of the command line, and an address of the command line's words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import WORDS, Opening, address, answered, flags, printed

CONFIGS = Path(__file__).parents[2] / "configs"
GIB = 2**30


def text_of(page: Any, selector: str) -> str:
    """The text of an element, blanks folded."""
    return " ".join(page.text_content(selector).split())


def seconds(page: Any) -> str:
    """The line of the step, as it is said."""
    return str(line(page, "STEP"))


def line(page: Any, key: str) -> str:
    """One line of the answer by its keyword."""
    rows = page.locator("#answer > .line")
    return next(
        " ".join(text.split()) for text in rows.all_text_contents() if text.strip().lstrip("✓✗! ").startswith(key)
    )


QUESTIONS = {
    "fits": WORDS,
    "tight": {**WORDS, "tp": "4", "pp": "8", "vpp": "2"},
    "does not fit": {**WORDS, "tp": "4", "pp": "2"},
    "impossible": {"model": "llama-3.1-70b", "on": "8xh100-sxm"},
    "no pipeline": {"model": "llama-3.1-8b", "on": "8xh100-sxm", "tp": "2", "seq": "4096", "batch": "64"},
    "mixture": {"model": "deepseek-v3", "on": "512xh100-sxm", "tp": "4", "pp": "8", "ep": "32", "batch": "4096"},
    "money": {**WORDS, "tokens": "100B"},
}  # fmt: skip


@pytest.mark.parametrize("words", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_lines_of_the_answer_are_those_of_the_terminal(visit: Opening, words: dict[str, str]) -> None:
    told = printed("count", *flags(words))
    page = visit(address(words))
    page.wait_for_selector("#answer .why")

    for said in page.locator("#answer > .line").all_text_contents():
        flat = " ".join(said.split()).lstrip("✓✗! ")
        flat = flat.replace(" said under the fields.", " listed below.")
        assert flat in told.replace("; without failures (--mtbf)", ""), flat


def test_every_part_of_the_memory_and_of_the_step_is_that_of_the_record(visit: Opening) -> None:
    bill = answered("count", *flags(WORDS))
    page = visit(address(WORDS))
    page.wait_for_selector("#step .parts")

    found = rows(page, "#memory .parts")
    assert [row[1] for row in found[:-1]] and len(found) == 1 + len(bill["memory"]["items"])
    for row, item in zip(found, bill["memory"]["items"], strict=False):
        assert abs(float(row[1].replace(",", "")) - item["bytes"] / GIB) <= 0.01
        assert ("exact" in row[3]) == (item["kind"] == "exact")
    parts = {row[0]: row for row in rows(page, "#step .parts")}
    for item in bill["step"]["items"]:
        assert any(abs(float(row[1]) - item["seconds"]) <= 0.01 for row in parts.values())
    assert sum(float(row[1]) for row in list(parts.values())[:-1]) == pytest.approx(float(parts["step"][1]), abs=1e-9)


def rows(page: Any, table: str) -> list[list[str]]:
    """The cells of a table."""
    return [
        [" ".join(cell.split()) for cell in row.locator("th, td").all_text_contents()]
        for row in page.locator(f"{table} tbody tr").all()
    ]


def test_every_stage_stands_against_the_wall_and_modelled_parts_are_hatched(visit: Opening) -> None:
    bill = answered("count", *flags(WORDS))
    page = visit(address(WORDS))
    page.wait_for_selector("#memory .m-logits")

    said = page.locator("#memory svg").get_attribute("aria-label")
    for rank in bill["memory"]["ranks"]:
        assert f"{rank['peak_bytes'] / GIB:.1f} GiB" in said
    assert page.locator("#memory svg .wall").count() == 1
    assert page.locator('#memory svg [fill="url(#modelled)"]').count() == len(bill["memory"]["ranks"])
    page.click('[data-tools="memory"] button >> nth=0')
    assert len(rows(page, "#table-memory table")) == 4


def test_number_boxes_step_through_legal_values_alone(visit: Opening) -> None:
    tried = [str(2**power) for power in range(1, 7)]
    legal = [each for each in tried if not answered("count", *flags({**WORDS, "tp": each}))["violations"]]
    page = visit(address({**WORDS, "tp": "1"}))
    page.wait_for_selector("#answer .why")

    assert 0 < len(legal) < len(tried)
    for value in legal:
        page.click('[data-word="tp"] button[aria-label="larger tp"]')
        page.wait_for_function("value => document.querySelector('#f-tp').value === value", arg=value)
        page.wait_for_url(f"**tp={value}&**")
    page.click('[data-word="tp"] button[aria-label="larger tp"]')
    page.wait_for_selector('[data-word="tp"] .legal button[aria-pressed="true"]')
    assert page.input_value("#f-tp") == legal[-1]
    assert page.locator('[data-word="tp"] .legal button').all_text_contents() == ["1", *legal]


def test_a_suggestion_is_applied_by_one_press_and_says_what_it_gave(visit: Opening) -> None:
    page = visit(address(WORDS))
    button = page.locator("#suggestions button").first
    flag = button.get_attribute("data-flags")
    old = seconds(page)
    button.click()
    page.wait_for_selector(".flash")

    assert answered("count", *flags(WORDS), "--advise")["advice"][0]["flag"] == flag
    bill = answered("count", *flags(WORDS), *flag.split())
    assert f"{bill['step']['seconds']:.1f} s" in seconds(page) != old
    assert f"→ {bill['step']['seconds']:.1f} s" in text_of(page, ".flash")
    assert flag.lstrip("-").split()[0] in page.url
    assert "(2)" in text_of(page, "#tried-count")
    page.go_back()
    page.wait_for_selector("#answer:not(:has(.flash))")
    assert seconds(page) == old


def test_what_is_typed_is_asked_once_it_settles_and_the_address_follows(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#suggestions button")
    page.fill("#f-batch", "1024")
    page.wait_for_url("**batch=1024**")
    page.wait_for_function("() => document.querySelector('#derived').textContent.includes('512 micro')")

    page.click("#copy-cli")
    command = page.text_content("#dialog pre").split()
    assert command[:3] == ["outlay", "count", "llama-3.1-70b"]
    bill = answered(*command[1:])
    assert bill["job"]["global_batch"] == 1024
    assert f"{bill['step']['seconds']:.0f} s" in seconds(page)


def test_a_pasted_config_travels_in_the_fragment_and_the_link_is_the_result(visit: Opening) -> None:
    config = CONFIGS / "llama-3.1-8b.json"
    page = visit(address({"model": "llama-3.1-70b", "on": "8xh100-sxm", "seq": "4096", "batch": "64", "tp": "2"}))
    page.wait_for_selector("#answer .why")
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text', text);"
        " document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })); }",
        config.read_text(),
    )
    page.wait_for_url("**#config=**")
    bill = answered("count", str(config), "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--tp", "2")
    said = f"{bill['memory']['peak_bytes'] / GIB:.1f} GiB"
    page.wait_for_function("said => document.querySelector('#answer .line')?.textContent.includes(said)", arg=said)

    assert "travels in the link" in text_of(page, "#notice")
    link = page.url
    page.go_back()  # to the name that stood there before
    page.wait_for_function("() => document.querySelector('#notice').textContent === ''")
    assert page.input_value("#f-model") == "llama-3.1-70b" and "#" not in page.url
    page.go_forward()
    page.wait_for_url("**#config=**")
    again = visit("/" + link.split("/", 3)[3])
    again.wait_for_function("said => document.querySelector('#answer .line')?.textContent.includes(said)", arg=said)
    packed = link.split("config=")[1][:40]
    assert not any(packed in request.split("#")[0] for request in page.watched.requests + again.watched.requests)


def test_what_a_config_says_is_text_and_never_markup(visit: Opening) -> None:
    hostile = json.loads((CONFIGS / "llama-3.1-8b.json").read_text())
    hostile |= {"model_type": "<img src=x onerror=alert(1)>", "architectures": ["<script>alert(1)</script>"]}
    page = visit(address(WORDS), expected="422")
    page.wait_for_selector("#answer .why")
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text', text);"
        " document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })); }",
        json.dumps(hostile),
    )
    page.wait_for_selector('[data-verdict="not_legal"]')

    assert "<img" in text_of(page, "main") + text_of(page, "#errors") + text_of(page, ".bar")
    assert page.locator("img, main script").count() == 0


def test_an_unknown_name_in_a_link_is_said_and_never_replaced(visit: Opening) -> None:
    page = visit(address({**WORDS, "model": "llama-3.1-7xb"}), expected="422")
    page.wait_for_selector("#e-model:not([hidden])")

    fault = answered("count", "llama-3.1-7xb", "--on", "64xh100-sxm")["errors"][0]
    assert page.input_value("#f-model") == "llama-3.1-7xb"
    assert page.get_attribute("#f-model", "aria-describedby") == "e-model"
    assert fault["what"] in text_of(page, "#e-model")
    assert "llama-3.1-70b" in text_of(page, "#e-model")  # close, and offered as text alone
    assert "CANNOT BE READ" in text_of(page, "#answer")


def test_an_unknown_flag_in_a_link_is_said(visit: Opening) -> None:
    page = visit(address({**WORDS, "warp": "9"}), expected="422")
    page.wait_for_selector('[data-verdict="not_legal"]')

    assert "warp" in text_of(page, "#e-other") and "warp=9" in page.url


def test_a_broken_rule_stands_under_its_field_over_the_last_legal_answer(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    page.fill("#f-tp", "3")
    page.wait_for_selector("#e-tp:not([hidden])")

    broken = answered("count", *flags({**WORDS, "tp": "3"}))["violations"]
    assert page.get_attribute("#f-tp", "aria-invalid") == "true"
    assert page.get_attribute("#f-tp", "aria-describedby") == "e-tp"
    under = text_of(page, ".bar") + text_of(page, ".layout") + text_of(page, "#errors")
    for each in broken:
        assert each["what"] in under and each["rule"] in under and each["got"] in under
    assert "NOT LEGAL" in text_of(page, "#answer .first")
    assert "The last legal answer, for tp 8" in text_of(page, "#answer .last")
    page.click(f'[data-flags="{broken[0]["nearest"][0]}"]')
    page.wait_for_selector("#answer:not(:has(.last))")
    assert page.locator("[aria-invalid]").count() == 0


@pytest.mark.parametrize(
    ("place", "quantity"),
    [("#answer .first", "memory"), ("#memory .parts", "memory.activations"), ("#step .parts", "traffic.tp")],
)
def test_a_figure_that_is_clicked_gives_its_derivation_and_ladder(visit: Opening, place: str, quantity: str) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#step .parts")
    page.click(f'{place} button[data-why="{quantity}"]')
    page.wait_for_selector("#explained .derivation")

    record = answered("explain", quantity, *flags(WORDS))
    assert record["derivation"]["formula"] in text_of(page, "#explained")
    assert record["derivation"]["sentence"] in text_of(page, "#explained")
    number = re.search(r"[\d,.]+", text_of(page, "#explained .value"))
    assert number and float(number[0].replace(",", "")) == pytest.approx(
        record["value"] / (GIB if record["unit"] == "B" else 1), rel=1e-3
    )
    assert [row[0] for row in rows(page, "#explained .ladder")] == [rung["name"] for rung in record["ladder"]]
    page.keyboard.press("Escape")
    assert page.locator("#drawer").is_hidden()
    assert page.evaluate("() => document.activeElement.dataset.why") == quantity


def test_a_derivation_has_a_link_of_its_own(visit: Opening) -> None:
    page = visit(address(WORDS) + "#why=bubble")
    page.wait_for_selector("#explained .derivation")

    assert answered("explain", "bubble", *flags(WORDS))["derivation"]["sentence"] in text_of(page, "#explained")


@pytest.mark.parametrize(
    ("more", "place", "code"),
    [
        ({"tp": "8", "pp": "3", "on": "24xh100-sxm"}, "#e-pp", "LAY009"),
        ({"tp": "8", "pp": "4", "split": "20,20,20,21"}, "#e-other", "LAY011"),
        ({"split": "many"}, "#e-other", "LAY000"),
        ({"tp": "8", "pp": "3"}, "#e-pp", "LAY001"),
    ],
)
def test_a_fault_stands_under_the_field_that_caused_it(
    visit: Opening, more: dict[str, str], place: str, code: str
) -> None:
    page = visit(address({**WORDS, **more}), expected="422" if code == "LAY000" else "")
    page.wait_for_selector(f"{place}:not([hidden])")
    assert code in text_of(page, place)
    assert text_of(page, "#errors") == ""

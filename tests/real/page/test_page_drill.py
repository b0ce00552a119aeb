"""The exercises, as a person does them: by keys, with and without a script, on a phone, and shared by a link."""

import re
from typing import Any

import pytest
from asking import WORDS, Opening, address
from test_page_reading import serious

from outlay.drill.exercise import Part
from outlay.drill.sets import exercise
from outlay.show.drill import shown

BUBBLE = "/drill?topic=bubble&level=1&seed=7"
MARKUP = "<img src=x onerror=alert(1)>"


def typed(part: Part) -> str:
    """A right answer as somebody types it."""
    return shown(part).partition(" (")[0].partition(" =")[0]


def right(topic: str, level: int, number: int) -> list[str]:
    """The right answers of an exercise of the set 7."""
    return [typed(part) for part in exercise(topic, level, 7, number).parts]


def graded(page: Any, part: int = 0) -> str:
    """The verdict of one part, once it stands there."""
    return " ".join(page.locator(f'[data-part="{part}"] .verdict').inner_text().split())


def focused(page: Any) -> str:
    found: str = page.evaluate("() => document.activeElement.id")
    return found


def test_a_set_is_answered_by_keys_and_the_score_runs_with_it(visit: Opening) -> None:
    page = visit(BUBBLE)
    page.focus("#answer-0")
    page.keyboard.type(right("bubble", 1, 1)[0])
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=right]")

    assert graded(page).startswith("✓ RIGHT 44.12 % = 15/34")
    assert "(16 - 1) / (19 + 16 - 1) = 44.12 %" in page.inner_text(".derivation")
    assert page.inner_text("#score") == "Score: 1 of 1."
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('RIGHT')")
    assert page.get_attribute("#said", "aria-live") == "polite"

    assert focused(page) == "next"
    page.keyboard.press("Enter")
    page.wait_for_url("**number=2")
    assert "Exercise 2 of 5" in page.inner_text("h1") and focused(page) == "answer-0"
    given = exercise("bubble", 1, 7, 2).given
    pp, many = int(given["pp"]), int(given["micro_batches"])
    page.keyboard.type(f"{pp - 1}/{many}")  # over the useful slots, not over all
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=wrong]")
    assert "idle slots over useful ones" in graded(page) and typed(exercise("bubble", 1, 7, 2).parts[0]) in graded(page)
    assert page.inner_text("#score") == "Score: 1 of 2; to practise: bubble."
    assert page.locator('.numbers [data-mark="wrong"]').count() == 1

    page.go_back()
    page.wait_for_selector("[data-mark=right]")  # what was answered there stands there
    assert page.inner_text("#score").startswith("Score: 1 of 2")
    assert "answer" not in page.url
    assert page.evaluate("() => localStorage.length + sessionStorage.length + document.cookie.length") == 0


def test_what_cannot_be_read_is_sent_back_and_does_not_count(visit: Opening) -> None:
    page = visit("/drill?topic=state&level=1&seed=7")
    page.fill("#answer-0", "17.9 %")
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=again]")

    assert "'%' is not a unit of what is asked; wanted is a size with its unit: 12.5 GB" in graded(page)
    assert page.inner_text("#score") == "No answer yet."
    assert focused(page) == "answer-0" and page.get_attribute("#answer-0", "aria-invalid") == "true"
    assert "verdict-0" in str(page.get_attribute("#answer-0", "aria-describedby"))
    assert page.locator(".derivation").count() == 0
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('AGAIN')")
    page.fill("#answer-0", right("state", 1, 1)[0])
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=right]")
    assert page.inner_text("#score") == "Score: 1 of 1."


def test_parts_are_answered_one_after_the_other_and_each_counts_once(visit: Opening) -> None:
    page = visit("/drill?topic=bubble&level=2&seed=7&number=3")
    first, second = right("bubble", 2, 3)
    page.fill("#answer-0", "1 %")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=wrong]")
    assert focused(page) == "answer-1" and second not in page.inner_text("#answers")
    page.fill("#answer-1", second)
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=right]")
    assert page.inner_text("#score") == "Score: 1 of 2; to practise: bubble."
    page.click('.numbers a[data-number="3"]')
    page.wait_for_timeout(300)
    assert page.inner_text("#score").startswith("Score: 1 of 2")
    assert first in page.inner_text("#answers")


def test_an_answer_to_a_later_part_waits_for_the_one_above(visit: Opening) -> None:
    page = visit("/drill?topic=checkpoints&level=2&seed=7")
    first, second, _ = right("checkpoints", 2, 1)
    page.fill("#answer-1", second)
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=waits]")
    assert focused(page) == "answer-0" and page.input_value("#answer-1") == second
    assert page.inner_text("#score") == "No answer yet." and page.locator(".derivation").count() == 0
    page.fill("#answer-0", first)
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-mark=right] >> nth=1")
    assert page.inner_text("#score") == "Score: 2 of 2." and focused(page) == "answer-2"
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('Score: 2 of 2')")


def test_topic_level_and_seed_choose_a_set_and_another_draws_one(visit: Opening) -> None:
    page = visit(BUBBLE)
    page.select_option("#s-topic", "binds")  # level 1 does not have it
    page.wait_for_url("**level=2**")
    assert page.input_value("#s-level") == "2" and "memory of one rank" in page.inner_text("#answers")
    page.select_option("#s-level", "1")
    page.wait_for_url(re.compile(r"level=1"))
    assert page.input_value("#s-topic") == "" and "topic" not in page.url
    page.fill("#s-seed", "12")
    page.keyboard.press("Enter")
    page.wait_for_url("**seed=12**")
    assert exercise("", 1, 12, 1).text in page.inner_text("#question")

    page.fill("#answer-0", "1 %")
    page.click("text=Grade")
    page.wait_for_selector(".verdict")
    page.click("#another")
    page.wait_for_function("() => !location.search.includes('seed=12')")
    seed = int(re.search(r"seed=(\d+)", page.url)[1])  # type: ignore[index]
    page.wait_for_function("seed => document.querySelector('#s-seed').value === seed", arg=str(seed))
    assert exercise("", 1, seed, 1).text in page.inner_text("#question")
    assert page.inner_text("#score") == "No answer yet."
    page.go_back()
    page.wait_for_url("**seed=12**")


def test_a_link_is_the_set_without_the_answers(visit: Opening) -> None:
    page = visit(BUBBLE)
    page.fill("#answer-0", "1 %")
    page.click("text=Grade")
    page.wait_for_selector(".verdict")

    shared = visit(page.url)
    assert shared.inner_text("#question") == page.inner_text("#question")
    assert shared.locator(".verdict").count() == 0 and "44.12" not in shared.content()
    drawn = visit("/drill")
    assert re.search(r"/drill\?level=1&seed=\d+$", drawn.url)


def test_a_staircase_is_drawn_while_it_is_typed_and_beside_the_right_one(visit: Opening) -> None:
    page = visit("/drill?topic=staircase&level=3&seed=7")
    one = exercise("staircase", 3, 7, 1)
    pp, many = int(one.given["pp"]), int(one.given["micro_batches"])
    page.focus("#answer-0")
    page.keyboard.type("12.x")
    assert page.locator(".preview rect.F").count() == 2
    assert page.locator(".preview .rest").count() == page.locator(".preview .off").count() == 1
    assert page.locator("figure svg").count() == 0

    page.fill("#answer-0", "\n".join(["1" * many] * pp))
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=wrong]")
    assert page.locator("figure svg").count() == 2 and page.locator("rect.off").count() > 0
    assert f"M + P - 1 = {many + pp - 1} slots" in page.inner_text("#answers figure >> nth=1")
    assert [focused(page)] == ["answer-1"]
    for part, text in enumerate(right("staircase", 3, 1)[1:], 1):
        page.fill(f"#answer-{part}", text)
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-part="2"][data-mark=right]')
    boundary = page.locator("figure").all()[-2:]
    assert [each.locator("rect.F").count() for each in boundary] == [pp, many]
    assert page.inner_text("#score").startswith("Score: 2 of 3")
    page.click("figure >> nth=1 >> summary")
    assert "rank 0" in page.inner_text("figure >> nth=1 >> pre")


def test_axe_finds_nothing_serious_in_the_exercises_in_light_and_dark(visit: Opening) -> None:
    page = visit("/drill?topic=staircase&level=3&seed=7", expected="422")
    page.fill("#answer-0", "12\n.12")
    assert serious(page) == []
    page.fill("#answer-1", "1")
    page.fill("#answer-2", "5 GB")
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=again]")
    assert serious(page) == []
    page.fill("#answer-2", "0")
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=right]")
    assert serious(page) == []
    page.goto("/drill?level=1&seed=7&topic=staircase")
    assert serious(page) == []
    page.goto("/drill?level=9&seed=x")
    assert serious(page) == []


def test_without_a_script_the_exercises_are_graded_by_their_form(visit: Opening) -> None:
    page = visit("/drill?topic=bubble&level=2&seed=7&number=3", java_script_enabled=False)
    first, second = right("bubble", 2, 3)
    assert not page.locator("#copy-link").is_visible()
    page.fill("#answer-0", first)
    page.fill("#answer-1", "14")
    page.click("text=Grade")
    assert "RIGHT" in graded(page) and "it has no unit" in graded(page, 1)
    page.fill("#answer-1", second)
    page.click("text=Grade")
    assert "RIGHT" in graded(page, 0) and "RIGHT" in graded(page, 1)
    page.click("#next")
    assert "Exercise 4 of 5" in page.inner_text("h1") and "answer" not in page.url
    page.select_option("#s-topic", "staircase")
    page.click("text=Show")
    assert page.locator("figure svg rect.F").count() > 0
    page.click("#another")
    assert "seed=7&" not in f"{page.url}&"


@pytest.mark.parametrize("width", [360, 768])
def test_exercises_fit_a_narrow_screen_and_a_thumb(visit: Opening, width: int) -> None:
    page = visit(
        "/drill?topic=bubble&level=2&seed=7", viewport={"width": width, "height": 800}, has_touch=True, is_mobile=True
    )
    page.fill("#answer-0", "1 %")
    page.click("text=Grade")
    page.wait_for_selector(".stairs svg")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    box = page.locator("#question").bounding_box()
    assert box and box["y"] < 300
    if width < 760:
        small = page.evaluate(
            "() => [...document.querySelectorAll('button, .button, .numbers a, input, select')]"
            ".filter(each => each.checkVisibility() && each.getBoundingClientRect().height < 43.5)"
            ".map(each => each.outerHTML.slice(0, 80))"
        )
        assert small == []


def test_the_way_from_a_bill_to_the_exercises_and_back_keeps_the_question(visit: Opening) -> None:
    page = visit(address({**WORDS, "tp": "4"}))
    page.wait_for_selector("#answer .why")
    page.click("nav >> text=Drill")
    page.wait_for_url(re.compile(r"/drill\?level=1&seed=\d+$"))
    page.click("#another")
    page.wait_for_timeout(500)
    page.click("nav >> text=Bill")
    page.wait_for_selector("#answer .why")
    assert page.input_value("#f-tp") == "4" and page.input_value("#f-model") == WORDS["model"]


def test_hostile_answers_show_as_text_and_the_page_goes_on(visit: Opening) -> None:
    page = visit(BUBBLE, expected="4")  # 422 and 414
    page.fill("#answer-0", MARKUP)
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=again]")
    assert page.locator("img").count() == 0 and page.input_value("#answer-0") == MARKUP
    for long, code in (("9" * 3_000, "WEB003"), ("9" * 9_000, "WEB003")):
        page.fill("#answer-0", long)
        page.click("text=Grade")
        page.wait_for_selector("#errors .faults")
        assert code in page.inner_text("#errors") and page.input_value("#answer-0") == long
    page.fill("#answer-0", "nan")
    page.click("text=Grade")
    page.wait_for_selector("[data-mark=again]")
    page.wait_for_function("() => document.querySelector('.verdict').textContent.includes('it is not a number')")
    assert page.inner_text("#errors") == ""

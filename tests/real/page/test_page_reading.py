"""Reading without eyes, without a script, on a phone, in the dark; and numbers written as in the terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
from asking import WORDS, Opening, address, answered, flags

from outlay.show import text

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
RUN = "async rules => (await axe.run(document, { resultTypes: ['violations'], ...rules })).violations"
SCRIPT = (Path(__file__).parents[2] / "check_cases" / "common_errors.sh").read_text()


def serious(page: Any) -> list[str]:
    """What axe finds serious or critical; in the dark again of the colours, which are all that differs there."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(RUN, {"runOnly": ["color-contrast"]})
    page.emulate_media(color_scheme="light")
    return [
        f"{each['id']}: {each['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for each in [*dark, *page.evaluate(RUN, {})]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


def test_axe_finds_nothing_serious_on_any_tab_in_light_and_dark(visit: Opening) -> None:
    page = visit(address(WORDS), expected="422")
    page.wait_for_selector("#suggestions button")
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    page.click('[data-tools="memory"] button >> nth=0')
    for place in ("memory", "timeline"):
        page.click(f'[data-tools="{place}"] button:text-is("All 64 ranks")')
    page.focus("#f-tp")
    page.wait_for_selector(".legal:not([hidden])")
    assert serious(page) == []
    page.click('#memory .parts button[data-why="memory.activations"]')
    page.wait_for_selector("#explained .derivation")
    assert serious(page) == []
    page.click("#close-drawer")
    page.fill("#f-tp", "3")
    page.wait_for_selector("#e-tp:not([hidden])")
    page.wait_for_timeout(100)
    page.evaluate("() => document.body.classList.remove('stale')")  # greyed on purpose, as what is disabled
    assert serious(page) == []
    page.fill("#f-tp", "4")
    page.wait_for_function("() => document.querySelector('#tried-count').textContent === '(2)'")
    page.click("nav [data-tab=compare]")
    page.wait_for_selector("#compare .items")
    page.wait_for_selector(".pair-diagram svg[data-drawn-ms] >> nth=1")
    assert serious(page) == []
    page.click("nav [data-tab=check]")
    page.fill("#check-text", SCRIPT)
    page.click("#check form button.main")
    page.wait_for_selector(".finding")
    page.wait_for_selector(".corrected ins, .corrected del")
    assert serious(page) == []
    page.click("nav [data-tab=plan]")
    page.wait_for_selector("table.best")
    assert serious(page) == []
    page.click("#open-export")
    page.wait_for_selector("#dialog pre")
    assert serious(page) == []


def test_the_colours_can_be_chosen_and_stay(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.select_option("#theme", "dark")
    assert page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor") == "rgb(14, 17, 19)"
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_without_a_script_the_page_answers_by_its_form(visit: Opening) -> None:
    page = visit(address(WORDS), java_script_enabled=False)
    bill = answered("count", *flags(WORDS))
    assert f"{bill['step']['seconds']:.1f} s" in page.locator("#answer").inner_text()
    assert page.locator("#memory table").is_visible() and page.locator("#step table").is_visible()

    page.fill("#f-tp", "4")
    page.select_option("#f-recompute", "full")
    page.click("#ask-now")
    bill = answered("count", *flags({**WORDS, "tp": "4"}), "--recompute", "full")
    assert f"{bill['step']['seconds']:.1f} s" in page.locator("#answer").inner_text()
    assert page.input_value("#f-tp") == "4" and page.input_value("#f-recompute") == "full"


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_never_scrolls_sideways_and_is_pressed_with_a_thumb(visit: Opening, width: int) -> None:
    page = visit(address(WORDS), viewport={"width": width, "height": 800}, has_touch=True, is_mobile=True)
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    answer = page.locator("#answer").bounding_box()
    assert answer and answer["y"] < 300
    if width < 760:
        small = page.evaluate(
            "() => [...document.querySelectorAll('button:not(.why, .sort), .bar input, .layout input, .layout select')]"
            ".filter(each => each.checkVisibility() && each.type !== 'checkbox')"
            ".filter(each => each.getBoundingClientRect().height < 43.5).map(each => each.outerHTML.slice(0, 80))"
        )
        assert small == []
    page.click("nav [data-tab=plan]")
    page.wait_for_selector("table.best")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_keyboard_reaches_the_answer_first(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "To the answer"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "answer"


def test_a_change_is_said_to_a_screen_reader(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    page.fill("#f-batch", "1024")
    page.wait_for_url("**batch=1024**")
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('FITS')")
    assert page.get_attribute("#said", "aria-live") == "polite"


def test_no_style_and_no_script_stands_in_the_page_itself(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    assert page.locator("[style]").count() == 0
    assert page.locator("script:not([src]):not([type='application/json'])").count() == 0


VALUES = [0, 1, 3, 9.995, 10, 50.345, 99.95, 100, 999.5, 1023.4, 1182.7, 12345.6, 5.05e6, 7.2e9, 2.5e12, 3e13, 2e16]


def test_numbers_are_written_as_the_terminal_writes_them(visit: Opening) -> None:
    page = visit(address(WORDS))
    values = [sign * value * scale for value in VALUES for scale in (1, 1e-3, 1e-6, 0.37, 1.005) for sign in (1, -1)]
    found = page.evaluate(
        """async values => {
          const n = await import("/static/numbers.js");
          return values.map(v => [n.figure(v), n.figure(v, 4), n.both(v), n.duration(v), n.percent(v)]);
        }""",
        values,
    )
    for value, said in zip(values, found, strict=True):
        expected = [
            text.figure(value),
            text.figure(value, 4),
            text.both(value),
            text.duration(value),
            text.percent(value),
        ]
        assert said == expected, json.dumps([value, said, expected])
    parts = [[52.11, 18.63, 0.849, 0.7957, 0.1619], [1 / 3] * 3, [0.005, 0.005, 0.99]]
    for each in parts:
        added = page.evaluate("async v => (await import('/static/numbers.js')).addingUp(v, 2)", each)
        assert added == text.adding_up(each, 2)

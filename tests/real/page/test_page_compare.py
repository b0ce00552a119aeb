"""The two diagrams of a comparison: folded where they repeat, in one time scale, moved together."""

import re
from typing import Any

import pytest
from asking import WORDS, Opening, address, answered, flags

OTHER = {**WORDS, "tp": "4", "pp": "8"}


@pytest.fixture
def page(visit: Opening) -> Any:
    """Two layouts, of 256 micro-batches each."""
    found = visit(address({**WORDS, "b": "tp=4,pp=8"}, "compare"))
    found.wait_for_selector(".pair-diagram svg[data-drawn-ms] >> nth=1")
    return found


def axis(page: Any, side: int) -> list[str]:
    """The texts of the axis of one side."""
    found: list[str] = page.locator(".pair-diagram").nth(side).locator("svg g:nth-of-type(4) text").all_text_contents()
    return found


def first_width(page: Any, side: int) -> float:
    """How wide the first operation of rank 0 is, px."""
    path = page.locator(".pair-diagram").nth(side).locator("svg .rows path.F").first.get_attribute("d")
    found = re.match(r"M0 [\d.]+h([\d.]+)", path)
    assert found
    return float(found[1])


def test_both_are_folded_and_say_what_is_left_out(page: Any) -> None:
    for side, words in enumerate((WORDS, OTHER)):
        folded = answered("draw", *flags(words))["folded"]
        said = [text for text in axis(page, side) if "the same pattern" in text]
        assert len(said) == 1 and said[0].startswith(f"{folded['micro_batches']:,} more micro-batches")


def test_a_second_is_as_long_in_one_as_in_the_other(page: Any) -> None:
    scales = []
    for side, words in enumerate((WORDS, OTHER)):
        first = answered("draw", *flags(words))["critical_path"][0]
        assert first["rank"] == 0 and first["start"] == 0
        scales.append(first_width(page, side) / (first["end"] - first["start"]))
    assert scales[0] == pytest.approx(scales[1], rel=0.01)
    assert axis(page, 0)[:3] == axis(page, 1)[:3]  # both begin at 0, before what is left out

    page.locator(".pair-diagram svg[role=application]").first.focus()
    page.keyboard.press("e")
    ends = [axis(page, side)[-1] for side in range(2)]
    longest = max(answered("draw", *flags(words))["makespan"] for words in (WORDS, OTHER))
    assert ends == [f"{longest:.1f} s"] * 2 and axis(page, 0) == axis(page, 1)


def test_keys_and_buttons_move_both(page: Any) -> None:
    pictures = page.locator(".pair-diagram svg[role=application]")
    whole = [axis(page, 0), axis(page, 1)]
    pictures.nth(1).focus()
    page.keyboard.press("w")
    page.keyboard.press("a")
    page.keyboard.press("a")
    assert axis(page, 0) != whole[0] and axis(page, 0)[:3] == axis(page, 1)[:3]
    pictures.first.focus()
    page.keyboard.press("f")
    assert [axis(page, 0), axis(page, 1)] == whole
    page.click('.pair-diagram button[data-key="e"]')
    assert not any("the same pattern" in text for side in range(2) for text in axis(page, side))
    page.click('.pair-diagram button[data-key="c"]')
    assert page.locator(".pair-diagram svg .path").count() == 2


def test_one_that_repeats_beside_one_that_does_not_keep_one_scale(visit: Opening) -> None:
    few = {**WORDS, "batch": "16"}
    page = visit(address({**few, "b": "batch=512"}, "compare"))
    page.wait_for_selector(".pair-diagram svg[data-drawn-ms] >> nth=1")

    assert answered("draw", *flags(few))["folded"] is None
    scales = []
    for side, words in enumerate((few, WORDS)):
        first = answered("draw", *flags(words))["critical_path"][0]
        scales.append(first_width(page, side) / (first["end"] - first["start"]))
    assert scales[0] == pytest.approx(scales[1], rel=0.01)

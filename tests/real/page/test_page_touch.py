"""Fingers on the timing diagram: one pans, two zoom, up and down scrolls the page, a tap says what is there."""

from typing import Any

import pytest
from asking import WORDS, Opening, address

ROW = 68  # px from the top of the picture: inside the first row
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Fingers:
    """What fingers do, as the browser gets it from a screen."""

    def __init__(self, page: Any, place: str) -> None:
        self.page, self.place = page, place
        self.session = page.context.new_cdp_session(page)
        self.picture = page.locator(f"{place} svg[role=application]").first
        self.picture.evaluate("picture => picture.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(100)

    def send(self, kind: str, *places: tuple[float, float]) -> None:
        """Fingers at places of the picture."""
        box = self.picture.bounding_box()
        points = [{"x": box["x"] + x, "y": box["y"] + y, "id": at} for at, (x, y) in enumerate(places)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(self, *ways: tuple[tuple[float, float], tuple[float, float]], lift: bool = True, steps: int = 12) -> None:
        """Each finger from one place to another, in steps of some frames."""
        box = self.picture.bounding_box()  # of where it begins: the page may scroll under the fingers
        for step in range(steps + 1):
            at = [(a + (c - a) * step / steps, b + (d - b) * step / steps) for (a, b), (c, d) in ways]
            points = [{"x": box["x"] + x, "y": box["y"] + y, "id": n} for n, (x, y) in enumerate(at)]
            kind = "touchStart" if step == 0 else "touchMove"
            self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            self.page.wait_for_timeout(16)
        if lift:
            self.send("touchEnd")
            self.page.wait_for_timeout(60)

    def lift(self, finger: int, x: float, y: float) -> None:
        """One of several fingers leaves."""
        box = self.picture.bounding_box()
        point = {"x": box["x"] + x, "y": box["y"] + y, "id": finger}
        self.session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": [point]})
        self.page.wait_for_timeout(60)

    def tap(self, x: float, y: float = ROW) -> str:
        """What a tap says."""
        self.send("touchStart", (x, y))
        self.send("touchEnd")
        self.page.wait_for_timeout(30)
        return " ".join(self.page.text_content(f"{self.place} .readout").split())

    def shown(self) -> tuple[float, float]:
        """Where the window stands in the overview, and how wide it is, px."""
        found = self.page.locator(f"{self.place} svg .viewport").first
        return float(found.get_attribute("x")), float(found.get_attribute("width"))


@pytest.fixture
def fingers(visit: Opening) -> Fingers:
    """The diagram of the bill on a phone."""
    page = visit(address({**WORDS, "batch": "16"}), **PHONE)  # eight micro-batches: nothing is folded
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    page.wait_for_selector("#suggestions button")
    return Fingers(page, "#timeline")


def test_two_fingers_zoom_about_what_lies_between_them(fingers: Fingers) -> None:
    middle = 200.0
    said, (_, whole) = fingers.tap(middle), fingers.shown()
    assert "rank 0" in said

    fingers.drag(((middle - 30, ROW), (middle - 90, ROW)), ((middle + 30, ROW), (middle + 90, ROW)))

    _, wide = fingers.shown()
    assert wide == pytest.approx(whole / 3, rel=0.05)  # three times as far apart
    assert fingers.tap(middle) == said
    page = fingers.page
    assert page.evaluate("() => visualViewport.scale") == 1  # the page itself is not zoomed

    fingers.drag(((middle - 90, ROW), (middle - 30, ROW)), ((middle + 90, ROW), (middle + 30, ROW)))
    assert fingers.shown()[1] == pytest.approx(whole, rel=0.05)


def test_two_fingers_one_over_the_other_zoom_too_and_do_not_scroll(fingers: Fingers) -> None:
    whole, top = fingers.shown()[1], fingers.page.evaluate("() => scrollY")

    fingers.drag(((200, ROW), (200, ROW - 40)), ((200, ROW + 40), (200, ROW + 80)))

    assert fingers.shown()[1] == pytest.approx(whole / 3, rel=0.05)
    assert fingers.page.evaluate("() => scrollY") == top


def test_one_finger_takes_the_picture_along(fingers: Fingers) -> None:
    fingers.drag(((170, ROW), (110, ROW)), ((230, ROW), (290, ROW)))
    before, top = fingers.shown(), fingers.page.evaluate("() => scrollY")
    said = fingers.tap(250)

    fingers.drag(((250, ROW), (170, ROW)))

    after = fingers.shown()
    assert after[1] == pytest.approx(before[1]) and after[0] > before[0] + 5
    assert fingers.tap(170) == said
    fingers.drag(((170, ROW), (250, ROW)))
    assert fingers.shown()[0] == pytest.approx(before[0], abs=0.5)
    assert fingers.page.evaluate("() => scrollY") == top


def test_a_finger_that_stays_when_the_other_leaves_goes_on_without_a_leap(fingers: Fingers) -> None:
    fingers.drag(((170, ROW), (110, ROW)), ((230, ROW), (290, ROW)), lift=False)
    fingers.page.wait_for_timeout(60)
    before = fingers.shown()
    fingers.lift(1, 290, ROW)
    assert fingers.shown() == before
    fingers.send("touchMove", (70, ROW))
    fingers.page.wait_for_timeout(60)

    room = float(fingers.picture.get_attribute("width")) - 60  # between the margins of a narrow picture
    after = fingers.shown()
    assert after[0] == pytest.approx(before[0] + 40 * before[1] / room, abs=0.5)
    assert after[1] == pytest.approx(before[1])
    fingers.send("touchEnd")


def test_two_fingers_that_go_up_together_do_not_scroll(fingers: Fingers) -> None:
    before, top = fingers.shown(), fingers.page.evaluate("() => scrollY")

    fingers.drag(((150, ROW + 100), (150, ROW - 100)), ((250, ROW + 100), (250, ROW - 100)))

    assert fingers.page.evaluate("() => scrollY") == top
    assert fingers.shown()[1] == pytest.approx(before[1], rel=0.02)


def test_up_and_down_scrolls_the_page_and_leaves_the_picture(fingers: Fingers) -> None:
    before, top = fingers.shown(), fingers.page.evaluate("() => scrollY")

    fingers.drag(((200, ROW + 100), (200, ROW - 160)))

    assert fingers.page.evaluate("() => scrollY") > top + 50
    assert fingers.shown() == before


def test_a_finger_in_the_overview_moves_the_window(fingers: Fingers) -> None:
    fingers.drag(((170, ROW), (80, ROW)), ((230, ROW), (320, ROW)))
    fingers.drag(((80, 12), (300, 12)))
    right = fingers.shown()[0]
    fingers.drag(((300, 12), (100, 12)))

    assert fingers.shown()[0] < right


def test_what_to_do_with_fingers_is_said_where_there_is_no_pointer(fingers: Fingers) -> None:
    assert "Tap an operation" in fingers.page.text_content("#timeline .readout")


def test_two_diagrams_beside_each_other_move_together_under_a_finger(visit: Opening) -> None:
    page = visit(address({**WORDS, "b": "tp=4,pp=8"}, "compare"), **PHONE)
    page.wait_for_selector(".pair-diagram svg[data-drawn-ms] >> nth=1")
    fingers = Fingers(page, ".pair-diagram")
    fingers.drag(((170, ROW), (110, ROW)), ((230, ROW), (290, ROW)))
    fingers.drag(((250, ROW), (170, ROW)))

    windows = page.locator(".pair-diagram svg .viewport")
    found = [[float(windows.nth(at).get_attribute(name)) for name in ("x", "width")] for at in range(2)]
    assert found[0] == pytest.approx(found[1]) and found[0][0] > 5

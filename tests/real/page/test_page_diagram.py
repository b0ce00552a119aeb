"""The timing diagram of the page: few elements for many operations, the figures of the terminal, and its keys."""

from typing import Any

import pytest
from asking import WORDS, Opening, address, answered, flags

SHOW = """async words => {
  const { Diagram } = await import("/static/diagram.js");
  const { ask } = await import("/static/ask.js");
  const host = document.createElement("div");
  host.id = "tried-diagram";
  document.body.append(host);
  const answer = await ask("draw", { words });
  const diagram = window.diagram = new Diagram(host);
  diagram.show(answer);
  return answer.record;
}"""
BARE = {"forward": "10ms", "backward": "20ms"}
APART = {"forward": "10ms", "input-gradient": "10ms", "weight-gradient": "10ms"}
LARGE = {"schedule": "interleaved", "pp": "64", "vpp": "2", "micro-batches": "512", **BARE}
SCHEDULES = {
    "gpipe": {"pp": "4", "micro-batches": "8", **BARE},
    "1f1b": {"pp": "4", "micro-batches": "8", **BARE},
    "interleaved": {"pp": "4", "vpp": "2", "micro-batches": "8", **BARE},
    "zb_h1": {"pp": "4", "micro-batches": "8", **APART},
    "zbv": {"pp": "4", "micro-batches": "8", **APART},
    "dualpipe_v": {"pp": "4", "micro-batches": "12", **APART},
}  # fmt: skip


@pytest.fixture
def page(visit: Opening) -> Any:
    """The bill, with its diagram drawn."""
    found = visit(address(WORDS))
    found.wait_for_selector("#timeline svg[data-drawn-ms]")
    return found


def test_sixty_four_ranks_of_512_micro_batches_in_two_chunks_are_few_elements(page: Any) -> None:
    record = page.evaluate(SHOW, LARGE)
    page.wait_for_selector("#tried-diagram svg[data-drawn-ms]")
    # Unfolded: every operation stands in the picture.
    times = page.evaluate(
        "() => { if (diagram.view.folded && diagram.view.cut) diagram.view.toggle(); const found = [];"
        " for (let at = 0; at < 7; at++) { diagram.paint(); found.push(Number(diagram.svg.dataset.drawnMs)); }"
        " return found; }"
    )
    operations = page.evaluate("() => diagram.tracks.reduce((sum, track) => sum + track.start.length, 0)")
    nodes = page.evaluate("() => diagram.svg.querySelectorAll('*').length")
    said = f"{operations:,} operations of {len(record['ranks'])} ranks: {min(times):.0f} ms, {nodes} elements"
    print(said)  # noqa: T201 it is asked for, and never held against the machine

    assert operations == 64 * 512 * 2 * 2
    assert nodes < 150
    assert page.evaluate("() => diagram.svg.dataset.bucketed") == "true"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_in_flight_and_idle_is_as_the_terminal_says(page: Any, schedule: str) -> None:
    words = {"schedule": schedule, **SCHEDULES[schedule]}
    told = answered("draw", *(each for name, value in words.items() for each in (f"--{name}", value)))
    record = page.evaluate(SHOW, words)
    found = page.evaluate(
        """async () => {
          const { inFlight } = await import("/static/tracks.js");
          return diagram.tracks.map(track => ({ ranks: track.ranks, peak: inFlight(track).peak, idle: track.idle,
            waited: track.gaps.reduce((sum, [, from, to]) => sum + to - from, 0) }));
        }"""
    )

    assert record == {**told, "files": record["files"]}
    for row in found:
        for rank in row["ranks"]:
            assert row["peak"] == pytest.approx(told["ranks"][rank]["peak_in_flight"])
            assert row["waited"] == pytest.approx(told["ranks"][rank]["idle"], abs=1e-9)


def test_the_table_behind_the_picture_has_each_rank(page: Any) -> None:
    page.click('[data-tools="timeline"] button >> nth=0')
    told = answered("draw", *flags(WORDS))

    found = page.locator("#table-timeline tbody tr").all()
    assert len(found) == len(told["ranks"])
    for row, rank in zip(found, told["ranks"], strict=True):
        cells = row.locator("td").all_text_contents()
        assert cells[0] == f"{rank['busy']:.1f} s" and float(cells[-1]) == rank["peak_in_flight"]


def test_keys_zoom_pan_walk_unfold_and_show_the_critical_path(page: Any) -> None:
    def axis() -> list[str]:
        found: list[str] = page.locator("#timeline svg g:nth-of-type(4) text").all_text_contents()
        return found

    page.focus("#timeline svg")
    whole = axis()
    page.keyboard.press("w")
    assert axis() != whole
    page.keyboard.press("f")
    assert axis() == whole and any("the same pattern" in each for each in whole)
    page.keyboard.press("e")
    assert not any("the same pattern" in each for each in axis())
    page.keyboard.press("e")
    page.keyboard.press("c")
    assert page.locator("#timeline svg .path").count() == 1
    page.keyboard.press("ArrowRight")
    said = page.text_content("#timeline .readout")
    assert "rank 0, forward of micro-batch 1, stage 0, 0 s to" in said
    page.keyboard.press("ArrowDown")
    assert "rank 1" in page.text_content("#timeline .readout")
    page.wait_for_function("() => document.querySelector('#said').textContent.startsWith('rank 1')")
    page.keyboard.press("g")
    page.keyboard.type("r3 m250")
    page.keyboard.press("Enter")
    assert "rank 3, forward of micro-batch 250" in page.text_content("#timeline .readout")
    page.keyboard.press("Escape")


def test_the_pointer_says_what_it_is_over(page: Any) -> None:
    picture = page.locator("#timeline svg[role=application]")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 66)

    assert "rank 0, forward of micro-batch 1" in page.text_content("#timeline .readout")
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 66, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert "busy" in page.text_content("#timeline .readout") and "idle" in page.text_content("#timeline .readout")

"""What leaves the page as a file: the bytes of the command line, and pictures that need nothing of the page."""

import base64
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from asking import WORDS, Opening, address, answered, flags, run

from outlay.show.text import duration

STEM = "llama-3.1-70b-64xh100-sxm-tp8-pp4"
SVG = "{http://www.w3.org/2000/svg}"
COLOURS = """async text => {
  const image = new Image();
  image.src = `data:image/png;base64,${text}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height), found = {};
  for (let at = 0; at < data.length; at += 4) {
    const name = `${data[at]},${data[at + 1]},${data[at + 2]},${data[at + 3]}`;
    found[name] = (found[name] ?? 0) + 1;
  }
  return found;
}"""


def exports(page: Any) -> None:
    """Open the dialog, once the diagram of the bill is there."""
    page.wait_for_selector("#timeline-card:not([hidden])", state="attached")
    page.click("#open-export")
    page.wait_for_selector("#dialog pre")


def saved(page: Any, button: str) -> tuple[str, bytes]:
    """The name and the bytes of the file that a button gives."""
    with page.expect_download() as found:
        page.click(f'#dialog button:text-is("{button}")')
    return str(found.value.suggested_filename), Path(found.value.path()).read_bytes()


@pytest.mark.parametrize(("button", "form"), [("Page (HTML)", "html"), ("Markdown", "md"), ("CSV", "csv")])
def test_the_answer_is_saved_as_the_report_of_the_command(visit: Opening, button: str, form: str) -> None:
    page = visit(address(WORDS))
    exports(page)

    name, content = saved(page, button)

    assert name == f"{STEM}-report.{form}"
    assert content.decode() == run("report", *flags(WORDS), f"--{form}", "-")
    assert page.text_content("#dialog .status") == f"{name} is saved."


def test_the_trace_and_the_whole_diagram_are_those_of_the_command(visit: Opening, tmp_path: Path) -> None:
    trace, picture = tmp_path / "timing.pftrace", tmp_path / "timing.svg"
    run("draw", *flags(WORDS), "--perfetto", str(trace), "--svg", str(picture))
    page = visit(address(WORDS))
    exports(page)

    assert saved(page, "Perfetto trace") == (f"{STEM}-timing.pftrace", trace.read_bytes())
    assert saved(page, "SVG, whole step") == (f"{STEM}-timing.svg", picture.read_bytes())


def test_the_picture_as_shown_needs_nothing_of_the_page(visit: Opening) -> None:
    page = visit(address(WORDS), color_scheme="dark")
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    page.focus("#timeline svg")
    page.keyboard.press("w")
    axis = page.locator("#timeline svg g:nth-of-type(4) text").all_text_contents()
    exports(page)

    name, content = saved(page, "SVG, as shown")

    told = answered("draw", *flags(WORDS))
    made = ET.fromstring(content)
    texts = ["".join(each.itertext()) for each in made.iter(f"{SVG}text")]
    assert name == f"{STEM}-timing-shown.svg"
    assert texts[0] == told["title"] == made.findtext(f"{SVG}title")
    assert set(axis) <= set(texts)
    assert f"idle {100 * told['idle']['share']:.2f} %" in " ".join(texts)
    for rank in told["ranks"]:
        idle = f"{duration(rank['idle'])}  {100 * rank['idle_share']:.1f} %"
        assert idle in texts
    for each in made.iter():
        assert not {"class", "style"} & each.attrib.keys()
    assert "var(" not in content.decode()
    assert set(re.findall(r"https?://[\w./-]+", content.decode())) == {"http://www.w3.org/2000/svg"}
    used = set(re.findall(r"url\(#([\w-]+)\)", content.decode()))
    assert used and used <= {each.get("id") for each in made.iter(f"{SVG}pattern")}


def test_the_png_has_the_light_colours_at_twice_the_size_also_where_the_page_is_dark(visit: Opening) -> None:
    page = visit(address(WORDS), color_scheme="dark")
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    exports(page)
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    before = page.evaluate(ground)

    name, content = saved(page, "PNG, as shown")

    made = ET.fromstring(saved(page, "SVG, as shown")[1])
    assert name == f"{STEM}-timing.png"
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", content[16:24])
    assert size == (2 * float(made.get("width") or 0), 2 * float(made.get("height") or 0))
    found = page.evaluate(COLOURS, base64.b64encode(content).decode())
    assert max(found, key=found.get) == "255,255,255,255"  # paper
    assert found["37,107,159,255"] > 1000 and found["196,98,42,255"] > 1000  # forward and backward, in light
    assert "74,161,213,255" not in found  # forward, in the dark
    assert page.evaluate(ground) == before
    assert page.evaluate("() => document.documentElement.dataset.theme") is None


def test_a_picture_is_saved_from_a_tab_that_does_not_show_it(visit: Opening) -> None:
    page = visit(address(WORDS, "check"))
    exports(page)

    made = ET.fromstring(saved(page, "SVG, as shown")[1])

    fills = {each.get("fill") for each in made.iter(f"{SVG}path")}
    assert {"rgb(37, 107, 159)", "rgb(196, 98, 42)"} <= fills


def test_a_layout_without_a_diagram_has_a_report_alone(visit: Opening) -> None:
    words = {"model": "llama-3.1-8b", "on": "8xh100-sxm", "tp": "2", "seq": "4096", "batch": "64"}
    page = visit(address(words))
    page.wait_for_selector("#answer .why")
    page.click("#open-export")
    page.wait_for_selector("#dialog pre")

    assert page.locator('#dialog button:text-is("Perfetto trace")').count() == 0
    assert saved(page, "Markdown")[1].decode() == run("report", *flags(words), "--md", "-")


def test_a_broken_layout_is_reported_as_such_and_never_drawn(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#timeline svg[data-drawn-ms]")
    page.fill("#f-tp", "3")
    page.wait_for_selector("#e-tp:not([hidden])")
    page.click("#open-export")
    page.wait_for_selector("#dialog .files")

    assert page.locator('#dialog button:text-is("PNG, as shown")').count() == 0
    assert "NOT LEGAL" in saved(page, "Markdown")[1].decode()


def test_a_step_that_is_too_long_for_a_trace_says_so(visit: Opening) -> None:
    page = visit(address({**WORDS, "batch": "131072"}), expected="422")
    exports(page)
    page.click('#dialog button:text-is("Perfetto trace")')
    page.wait_for_selector("#dialog .status .faults")

    said = page.text_content("#dialog .status")
    assert "DRW003" in said and "outlay draw --perfetto" in said


def test_a_name_of_a_config_is_no_path(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    stem = """async name => (await import("/static/saving.js")).stem(
      { model: { name }, cluster: { name: "8xh100" }, layout: { tp: 2 } })"""

    assert page.evaluate(stem, '../../etc/"x y"\n<b>') == "etc-x-y-b-8xh100-tp2"

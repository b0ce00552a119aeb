"""The files of the page, read as texts: colours and words of the terminal, and nothing that leaves the host."""

import re
from pathlib import Path

import pytest

from outlay.show.labels import AXES, AXIS_OF, LABELS, VERDICTS
from outlay.show.palette import (
    EDGE_DARK,
    EDGE_LIGHT,
    HATCH_DARK,
    HATCH_LIGHT,
    INK_DARK,
    INK_LIGHT,
    PAPER_DARK,
    PAPER_LIGHT,
    TONES,
)
from outlay.web.fields import number_fields

STATIC = Path(__file__).parent.parent / "src" / "outlay" / "web" / "static"
MODULES = sorted(STATIC.glob("*.js"))
SHEET = (STATIC / "page.css").read_text()
THEMES = {
    "light": SHEET.split(":root {")[1].split("}")[0],
    "dark": SHEET.split(':root[data-theme="dark"] {')[1].split("}")[0],
    "dark as the system": SHEET.split(':root:not([data-theme="light"]) {')[1].split("}")[0],
}
SKELETONS = sorted(STATIC.glob("*.html"))
MODULE_LINES = 300


def colours(theme: str) -> dict[str, str]:
    """The colours of a theme by their names."""
    return {name: colour.upper() for name, colour in re.findall(r"--([\w-]+): (#\w+)", THEMES[theme])}


@pytest.mark.parametrize("theme", THEMES)
def test_the_colours_of_operations_are_those_of_the_pictures(theme: str) -> None:
    found, dark = colours(theme), theme != "light"

    for name, tone in TONES.items():
        assert found[name] == (tone.dark if dark else tone.light).upper()
        assert found[f"t{name}"] == (tone.text_dark if dark else tone.text_light).upper()
    pairs = [("paper", PAPER_LIGHT, PAPER_DARK), ("ink", INK_LIGHT, INK_DARK), ("edge", EDGE_LIGHT, EDGE_DARK)]
    for name, light, night in [*pairs, ("hatch", HATCH_LIGHT, HATCH_DARK)]:
        assert found[name] == (night if dark else light).upper()


def test_both_ways_into_the_dark_have_the_same_colours() -> None:
    assert colours("dark") == colours("dark as the system")
    assert colours("light").keys() == colours("dark").keys()


def table(name: str) -> dict[str, str]:
    """An object of words in labels.js."""
    text = (STATIC / "labels.js").read_text().split(f"export const {name} = {{")[1].split("}")[0]
    return dict(re.findall(r'(\w+): "([^"]*)"', text))


def test_parts_are_called_as_in_the_terminal() -> None:
    assert table("LABELS") == LABELS
    assert table("AXES") == AXES
    assert table("AXIS_OF") == AXIS_OF
    assert table("VERDICTS") == VERDICTS


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_a_module_is_short_and_writes_texts_as_texts(module: Path) -> None:
    text = module.read_text()

    assert len(text.splitlines()) <= MODULE_LINES
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert not re.search(r"\bstyle\s*[:=]|setAttribute\(.style", text)  # the policy takes no style of an element
    assert text.startswith(("/**", "//")), "a module says first what it is for"


@pytest.mark.parametrize("file", [*MODULES, *SKELETONS, *STATIC.glob("*.css")], ids=lambda file: file.name)
def test_nothing_is_asked_of_another_host(file: Path) -> None:
    addresses = set(re.findall(r"https?://[\w./-]+", file.read_text()))

    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a language, which nobody opens


@pytest.mark.parametrize("page", SKELETONS, ids=lambda page: page.name)
def test_the_page_has_no_script_and_no_style_of_its_own(page: Path) -> None:
    text = page.read_text()

    assert re.findall(r"<script(?![^>]*(?:src=|application/json))", text) == []
    assert not re.search(r"\sstyle=|\son\w+=|<style", text)


def test_every_module_that_is_imported_is_there_and_every_module_is_used() -> None:
    named = {name for module in MODULES for name in re.findall(r'from "\./(\w+\.js)"', module.read_text())}
    named |= {name for page in SKELETONS for name in re.findall(r'src="/static/(\w+\.js)"', page.read_text())}

    assert named == {module.name for module in MODULES}


def test_each_number_box_has_one_name_and_shows_what_was_typed_as_text() -> None:
    made = number_fields({"tp": '8"><b>{x}'}, {"pp": 4})

    words = re.findall(r'name="([\w-]+)"', made)
    assert words == ["tp", "pp", "cp", "vpp", "ep", "mbs"]
    for word in words:
        assert all(made.count(f'{about}-{word}"') == 1 for about in ('id="f', 'for="f', 'id="e'))
    assert 'value="8&quot;&gt;&lt;b&gt;{x}" placeholder=""' in made
    assert 'name="pp" form="ask" value="" placeholder="4"' in made


def test_every_place_of_the_page_is_listed() -> None:
    listed = (STATIC / "placeholders.txt").read_text()

    for name in {name for page in SKELETONS for name in re.findall(r"\$\{(\w+)\}", page.read_text())}:
        kind, _, word = name.partition("_")
        assert name in listed if kind not in ("v", "d", "o") else word in listed, name

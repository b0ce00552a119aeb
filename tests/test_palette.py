"""The colours of the diagrams: apart for every kind of sight and in grey, with readable text, in both themes."""

import itertools
import re

import pytest

from colours import SIGHTS, contrast, distance
from outlay.show.palette import PAPER_DARK, PAPER_LIGHT, TONES, style_sheet

KINDS = "FBWRCO"  # X is a mixture and stands beside its parts
# Worst pairs over both themes, each measured once when the colours were chosen.
APART = {
    "light": {"normal": 24.1, "deuteranopic": 22.0, "protanopic": 20.9, "tritanopic": 17.3, "grey": 9.5},
    "dark": {"normal": 22.9, "deuteranopic": 15.9, "protanopic": 15.9, "tritanopic": 18.0, "grey": 7.7},
}


def fills(theme: str) -> dict[str, str]:
    """The fill of each class, read from the style sheet that the pictures carry."""
    light, dark = style_sheet().split("@media (prefers-color-scheme:dark)")
    return dict(re.findall(r"\.(\w+)(?:,text)?\{fill:(#\w+)\}", {"light": light, "dark": dark}[theme]))


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_two_kinds_of_operation_never_look_alike(theme: str, sight: str) -> None:
    found = fills(theme)
    worst = min(distance(found[a], found[b], sight) for a, b in itertools.combinations(KINDS, 2))

    assert round(worst, 1) >= APART[theme][sight]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_are_readable_on_every_fill(theme: str) -> None:
    found = fills(theme)

    for kind in KINDS:
        assert contrast(found[kind], found[f"t{kind}"]) >= 4.5, kind


def test_dark_fills_stand_out_from_dark_paper_and_light_ones_have_an_outline() -> None:
    dark, outline = fills("dark"), re.search(r"\.edge\{stroke:(#\w+)\}", style_sheet())

    assert all(contrast(dark[kind], PAPER_DARK) >= 3 for kind in KINDS)
    assert outline and contrast(outline[1], PAPER_LIGHT) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_are_readable_on_paper(theme: str) -> None:
    found, paper = fills(theme), {"light": PAPER_LIGHT, "dark": PAPER_DARK}[theme]

    assert contrast(found["ink"], paper) >= 7


def test_every_tone_has_a_class_in_both_themes() -> None:
    assert {*TONES} <= fills("light").keys() and {*TONES} <= fills("dark").keys()


# --- the measure itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "sight", "expected"),
    [
        ("#256B9F", "#C4622A", "normal", 54.188),
        ("#256B9F", "#C4622A", "protanopic", 42.495),
        ("#E49F5B", "#94D8AC", "deuteranopic", 15.856),
        ("#B1B3F7", "#2FB09B", "tritanopic", 18.736),
        ("#000000", "#FFFFFF", "normal", 100.024),
    ],
)
def test_distances_are_those_of_colorspacious(one: str, other: str, sight: str, expected: float) -> None:
    """Expected: deltaE in CAM02-UCS by colorspacious 1.1.2, sight by its Machado et al. 2009 at severity 100."""
    assert distance(one, other, sight) == pytest.approx(expected, abs=0.01)


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000", "#FFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)  # the guidelines' well-known near miss


def test_colours_that_are_said_to_be_alike_are_found_alike() -> None:
    """Okabe and Ito's orange and sky blue are one grey: the reason why their colours are not taken as they are."""
    assert distance("#E69F00", "#56B4E9", "grey") < 1.5
    assert distance("#E69F00", "#56B4E9") > 40

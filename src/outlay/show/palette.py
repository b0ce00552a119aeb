"""The colours of a timing diagram, light and dark, and the style sheet made of them.

Chosen so that any two operations stay apart under normal, deuteranopic, protanopic and tritanopic sight and in grey; a
test recomputes the distances. Idle time is never a colour: it is paper with a light hatch.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Tone:
    """One kind of operation: its word, its fill and the text on it in both themes."""

    word: str
    light: str
    dark: str
    text_light: str = "#000"
    text_dark: str = "#000"


PAPER_LIGHT, PAPER_DARK = "#FFFFFF", "#14171A"
INK_LIGHT, INK_DARK = "#1B1F23", "#E8EAED"
EDGE_LIGHT, EDGE_DARK = "#444", "#0B0D0F"  # the outline of an operation: pale fills need it on white
HATCH_LIGHT, HATCH_DARK = "#9AA0A6", "#6B7178"

# By the letters of passes; X is what no operation is: a bucket of several kinds.
TONES = {
    "F": Tone("forward", "#256B9F", "#4AA1D5", "#FFF", "#000"),
    "B": Tone("backward", "#C4622A", "#E49F5B"),
    "W": Tone("weight gradient", "#2FB09B", "#94D8AC"),
    "R": Tone("recompute", "#B1B3F7", "#5263C0", "#000", "#FFF"),
    "C": Tone("communication", "#912A37", "#ED2E59", "#FFF", "#000"),
    "O": Tone("optimizer, other", "#E1E1E1", "#F1F1F1"),
    "X": Tone("several kinds in 2 px", "#8A8480", "#8A8480"),
}
ALIKE = {"I": "B"}  # an input gradient is drawn as a backward pass: no schedule shows both side by side

# How idle time is hatched: the lines of a tile of 6 px.
CAUSES = {
    "fill": "M-1 1l2-2M0 6l6-6M5 7l2-2",
    "drain": "M-1 5l2 2M0 0l6 6M5-1l2 2",
    "dependency": "M1 1.5h.6M4 4.5h.6",
    "communication": "M1 1l4 4M1 5l4-4",
}


def tone_of(kind: str) -> str:
    """The letter of the tone in which a kind of operation is drawn."""
    return ALIKE.get(kind, kind)


def _rules(dark: bool) -> Iterator[str]:
    paper, ink = (PAPER_DARK, INK_DARK) if dark else (PAPER_LIGHT, INK_LIGHT)
    edge, hatch = (EDGE_DARK, HATCH_DARK) if dark else (EDGE_LIGHT, HATCH_LIGHT)
    yield f".paper{{fill:{paper}}}.ink,text{{fill:{ink}}}.edge{{stroke:{edge}}}.line{{stroke:{ink}}}"
    yield f".halo{{stroke:{paper}}}.hatch path{{stroke:{hatch}}}.rule{{stroke:{hatch}}}"
    for name, tone in TONES.items():
        fill, text = (tone.dark, tone.text_dark) if dark else (tone.light, tone.text_light)
        yield f".{name}{{fill:{fill}}}.t{name}{{fill:{text}}}"


def style_sheet() -> str:
    """The style sheet of a picture: light, and dark where the reader's system asks for it."""
    fixed = (
        "text{font:12px system-ui,'DejaVu Sans',sans-serif}.n{text-anchor:middle;font-size:11px}.i{font-style:italic}"
        ".b{font-weight:600}.e{text-anchor:end}.m{text-anchor:middle}"
        ".edge{stroke-width:1}.line,.halo,.rule{fill:none}.line{stroke-width:1.2}.halo{stroke-width:3.4}"
        ".dot{stroke-width:5;stroke-linecap:round}.hatch path{fill:none;stroke-width:.9;stroke-linecap:round}"
    )
    return f"{fixed}{''.join(_rules(False))}@media (prefers-color-scheme:dark){{{''.join(_rules(True))}}}"

"""The number boxes of a layout: one list, and the HTML that is made of it."""

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple


class Number(NamedTuple):
    """One box: its word, what stands over it, and what the pointer is told."""

    word: str
    label: str
    about: str


NUMBERS = (
    Number("tp", "tp", "tensor parallel"),
    Number("pp", "pp", "pipeline parallel: stages"),
    Number("cp", "cp", "context parallel: the sequence is cut"),
    Number("vpp", "vpp", "chunks of layers a rank (virtual stages)"),
    Number("ep", "ep", "expert parallel"),
    Number("mbs", "micro-batch", "sequences in a micro-batch"),
)
BOX = """
      <div class="field" data-word="{word}">
        <label for="f-{word}" title="{about}">{label}</label>
        <input id="f-{word}" name="{word}" form="ask" value="{value}" placeholder="{assumed}" inputmode="numeric"
          autocomplete="off" data-step>
        <div class="fault" id="e-{word}" hidden></div>
      </div>"""


def number_fields(words: Mapping[str, str], assumed: Mapping[str, Any]) -> str:
    """The boxes with what was typed, and in grey what is assumed where nothing was."""
    return "".join(
        BOX.format(**each._asdict(), value=_text(words, each.word), assumed=_text(assumed, each.word))
        for each in NUMBERS
    )


def _text(values: Mapping[str, Any], word: str) -> str:
    return escape(str(values.get(word, "")))

"""The page's skeleton and its places: `${name}`, filled with text that is escaped already; what has no value is empty.

The list of the places stands beside page.html, in placeholders.txt.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

STATIC = Path(__file__).parent / "static"


@cache
def _skeleton(name: str) -> Template:
    return Template((STATIC / name).read_text(encoding="utf-8"))


def filled(places: Mapping[str, str], name: str = "page.html") -> str:
    """A page with its places filled."""
    return _skeleton(name).substitute(defaultdict(str, places))


def json_in_page(value: Any) -> str:
    """JSON that no markup inside it can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def options(choices: Iterable[str], chosen: str) -> str:
    """The elements of a list to choose from, the first of which says that nothing was."""
    known = list(choices)
    extra = [chosen] if chosen and chosen not in known else []  # an unknown value is shown, and said to be wrong
    return '<option value="">default</option>' + "".join(
        f"<option{' selected' if each == chosen else ''}>{escape(each)}</option>" for each in [*known, *extra]
    )


def titled(names: Iterable[tuple[str, str]]) -> str:
    """Names and titles for a list of suggestions."""
    return "".join(f'<option value="{escape(name)}">{escape(title)}</option>' for name, title in names)


def hidden(words: Mapping[str, str], form: str = "ask") -> str:
    """The words that no field of the page holds, so that they are sent again."""
    return "".join(
        f'<input type="hidden" name="{escape(word)}" value="{escape(text)}" form="{form}">'
        for word, text in words.items()
    )

"""Faults and broken rules as HTML."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any


def faults_html(faults: Iterable[Mapping[str, Any]]) -> str:
    """Everything that is wrong, each with its rule and a way out."""
    return "\n".join(
        f'<div class="faults"><p><b>{escape(one["what"])}</b> <code>{escape(one["code"])}</code></p>'
        f"<dl><dt>rule</dt><dd>{escape(one['rule'])}</dd><dt>got</dt><dd>{escape(one['got'])}</dd>"
        f"<dt>fix</dt><dd>{escape(one['fix'])}</dd></dl></div>"
        for one in faults
    )

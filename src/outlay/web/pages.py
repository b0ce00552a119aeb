"""The pages: the skeleton, filled with the words of the address and with their answer."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse

from outlay import __version__

from ..show.report.faults import faults_html
from .desks import Desks
from .fields import NUMBERS, number_fields
from .template import filled, hidden, json_in_page, options, titled

EXAMPLE = {"model": "llama-3.1-70b", "on": "64xh100-sxm", "tp": "8", "pp": "4", "seq": "8192", "batch": "512"}
FIELDS = ("model", "on", "seq", "batch", "tokens")
CHOICES = ("schedule", "recompute", "zero", "engine", "precision", "optimizer")
BOXES = ("overlap-tp",)
TRUE = ("true", "1", "yes", "on")
OTHER = "b"  # the second layout of a comparison without a script
TABS = {"search": "plan"}
COMPARE = (
    '<noscript><form id="beside" method="get" action="/compare">{hidden}<label>beside the layout <input name="b" '
    'placeholder="tp=4,pp=8"></label> <button>Compare</button></form></noscript>'
)
TITLES = {"bill": "bill", "plan": "plan", "compare": "compare", "check": "check"}


class Pages:
    """What every page needs: the workers, and what is known by name, read once."""

    def __init__(self, desks: Desks) -> None:
        self.desks = desks
        self.known: dict[str, Any] | None = None

    async def page(self, path: str, given: Sequence[tuple[str, str]]) -> HTMLResponse:
        """One tab with the answer to its words; without words, that of an example."""
        words = {word: text for word, text in given if text.strip()} or dict(EXAMPLE)
        tab = TABS.get(path, path)
        more = await self._without_script(path, words)
        words.pop(OTHER, None)
        answer = {} if tab == "plan" or "model" not in words else await self._first(words)
        if self.known is None:
            self.known = json.loads((await self.desks.ask({"command": "known"})).content)
        places = self._form(tab, words, answer) | _shown(answer) | more
        kept = {"words": words, "command": "count", "answer": answer.get("record", answer)}
        page = filled(places | {"record": json_in_page(kept)})
        return HTMLResponse(page, 422 if "errors" in answer else 200, {"cache-control": "no-store"})

    async def _first(self, words: Mapping[str, str]) -> dict[str, Any]:
        """The bill of the words and its lines, or what is wrong with them."""
        answer: dict[str, Any] = json.loads((await self.desks.ask({"command": "first", "words": dict(words)})).content)
        return answer

    async def _without_script(self, path: str, words: Mapping[str, str]) -> dict[str, str]:
        """What the tabs beside the bill say where no script runs: a way on, or its answer."""
        if path == "plan":
            link = f'<a href="/search?{escape(urlencode(words))}">Search the whole space</a>'
            return {"plan": f"<noscript><p>{link} for this model, cluster and job.</p></noscript>"}
        if path == "check":
            return {
                "check": "<noscript><p>Files are checked by the script of this page, or by outlay check.</p></noscript>"
            }
        if path == "compare" and OTHER not in words:
            return {"compare": COMPARE.format(hidden=hidden(words, "beside"))}
        if path in ("search", "compare"):
            command = "ranking" if path == "search" else "beside"
            made = json.loads((await self.desks.ask({"command": command, "words": dict(words)})).content)
            return {TABS.get(path, path): made.get("html") or faults_html(made["errors"])}
        return {}

    def _form(self, tab: str, words: Mapping[str, str], answer: Mapping[str, Any]) -> dict[str, str]:
        """The places of the form."""
        known = self.known or {}
        named = {*FIELDS, *CHOICES, *BOXES, *(each.word for each in NUMBERS)}
        others = {word: text for word, text in words.items() if word not in named}
        return {
            "title": escape(f"outlay: {TITLES[tab]} of {words.get('model', 'a model')[:60]}"),
            "version": __version__,
            "tab": tab,
            "query": escape(f"?{urlencode(words)}"),
            "others": hidden(others),
            "models": titled(known.get("models", [])),
            "hardware": titled(known.get("hardware", [])),
            **{f"v_{word}": escape(words.get(word, "")) for word in FIELDS},
            "numbers": number_fields(words, answer.get("defaults", {})),
            **{f"o_{word}": options(known.get("choices", {}).get(word, ()), words.get(word, "")) for word in CHOICES},
            **{f"c_{word.replace('-', '_')}": "checked" * (words.get(word, "") in TRUE) for word in BOXES},
        }


def _shown(answer: Mapping[str, Any]) -> dict[str, str]:
    """The places of the answer, HTML already; none where nothing was asked: a model may stand behind the #."""
    if not answer:
        return {}
    made: dict[str, str] = answer.get("html") or {"errors": faults_html(answer["errors"])}
    return made

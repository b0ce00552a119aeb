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
from .template import filled, hidden, json_in_page, options, titled

EXAMPLE = {"model": "llama-3.1-70b", "on": "64xh100-sxm", "tp": "8", "pp": "4", "seq": "8192", "batch": "512"}
FIELDS = ("model", "on", "seq", "batch", "tp", "pp", "cp", "vpp", "ep", "mbs", "tokens")
CHOICES = ("schedule", "recompute", "zero", "engine", "precision", "optimizer")
BOXES = ("overlap-tp",)
TRUE = ("true", "1", "yes", "on")
TITLES = {"bill": "bill", "plan": "plan", "compare": "compare", "check": "check"}


class Pages:
    """What every page needs: the workers, and what is known by name, read once."""

    def __init__(self, desks: Desks) -> None:
        self.desks = desks
        self.known: dict[str, Any] | None = None

    async def page(self, tab: str, given: Sequence[tuple[str, str]]) -> HTMLResponse:
        """One tab with the answer to its words; without words, that of an example."""
        words = {word: text for word, text in given if text.strip()} or dict(EXAMPLE)
        said = await self.desks.ask({"command": "first", "words": words})
        answer = json.loads(said.content)
        if self.known is None:
            self.known = json.loads((await self.desks.ask({"command": "known"})).content)
        places = self._form(tab, words, answer) | _shown(answer)
        kept = {"words": words, "command": "count", "answer": answer.get("record", answer)}
        page = filled(places | {"record": json_in_page(kept)})
        return HTMLResponse(page, 422 if said.kind == "errors" else 200, {"cache-control": "no-store"})

    def _form(self, tab: str, words: Mapping[str, str], answer: Mapping[str, Any]) -> dict[str, str]:
        """The places of the form."""
        known = self.known or {}
        filled_in = answer.get("defaults", {})
        others = {word: text for word, text in words.items() if word not in (*FIELDS, *CHOICES, *BOXES)}
        return {
            "title": escape(f"outlay: {TITLES[tab]} of {words.get('model', 'a model')[:60]}"),
            "version": __version__,
            "tab": tab,
            "query": escape(f"?{urlencode(words)}"),
            "others": hidden(others),
            "models": titled(known.get("models", [])),
            "hardware": titled(known.get("hardware", [])),
            **{f"v_{word}": escape(words.get(word, "")) for word in FIELDS},
            **{f"d_{word}": escape(str(filled_in.get(word, ""))) for word in FIELDS},
            **{f"o_{word}": options(known.get("choices", {}).get(word, ()), words.get(word, "")) for word in CHOICES},
            **{f"c_{word.replace('-', '_')}": "checked" * (words.get(word, "") in TRUE) for word in BOXES},
        }


def _shown(answer: Mapping[str, Any]) -> dict[str, str]:
    """The places of the answer, which are HTML already."""
    made: dict[str, str] = answer.get("html") or {"errors": faults_html(answer["errors"])}
    return made

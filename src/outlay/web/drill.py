"""The page of exercises: the words of `outlay drill` as an address, with and without answers."""

import json

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from outlay import __version__

from .desks import Desks
from .template import filled

router = APIRouter()
ANSWER = "answer"  # the word that each box of an exercise has
NOT_KEPT = {"cache-control": "no-store"}


@router.get("/drill", include_in_schema=False, response_class=HTMLResponse)
async def page(request: Request) -> Response:
    """One exercise, and the grades of its answers; without a seed, the way to a set that is drawn."""
    desks: Desks = request.app.state.desks
    given = request.query_params.multi_items()
    words = {word: text.strip() for word, text in given if word != ANSWER and text.strip()}
    answers = [text for word, text in given if word == ANSWER]
    said = await desks.ask({"command": "drilled", "words": words, "answers": answers})
    made = json.loads(said.content)
    if "address" in made:
        return RedirectResponse(made["address"], 303, NOT_KEPT)
    text = filled(made["html"] | {"version": __version__}, "drill.html")
    return HTMLResponse(text, 422 if "errors" in made else 200, NOT_KEPT)

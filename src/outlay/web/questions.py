"""The questions over HTTP: each is answered by a worker, a search as events while it goes on."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from ..errors import Fault
from .body import Question
from .desks import BusyError, Desks, FailedError
from .guard import Receive, Scope, Send, errors

router = APIRouter()
EVENTS = "text/event-stream"
FAULTS = "errors"  # the name of their schema
ABOUT = {
    "count": "The whole bill of one layout; several clusters in `on` make a scaling table.",
    "plan": "The best layouts of a whole space. With `Accept: text/event-stream`, progress and then the answer.",
    "compare": "Two layouts, item by item, the largest difference first.",
    "check": "The file of a run: what it says, what is wrong with it, and its bill.",
    "fix": "The corrected copies of the files of a run.",
    "explain": "A figure down to the arithmetic and its ladder of fidelity: the word `quantity` names it.",
    "draw": "The timing diagram of a pipeline: the picture, its record, and the passes of each rank.",
    "export": "A layout as the file of a framework: the word `framework` names it.",
    "bubble": "Idle time of a pipeline without a model.",
    "drill": "A set of exercises without their answers; with `seed`, `number` and `answer`, the grade and why.",
    "advice": "The changes that would make a layout fit, or shorter.",
    "legal": "The values of each degree that break no rule, with the others as they are.",
    "ranks": "The parts of the peak of every stage, as a bill has those of the worst rank.",
    "report": "The report of a bill as texts: a page, Markdown, CSV.",
    "trace": "The timing diagram of a pipeline as a Perfetto trace, in base64.",
}
WRONG = {
    403: "the request is not from this server's own page", 413: "the body is too large",
    415: "the body is not JSON", 422: "the question cannot be read", 429: "too many questions at a time",
}  # fmt: skip
BUSY = Fault(
    "WEB004",
    "the server is busy",
    "so many questions are answered at a time",
    "more than that",
    "ask again in a second",
)
STATUS = {"answer": 200, "errors": 422}


def answers(name: str) -> dict[int | str, dict[str, Any]]:
    """The answers of one question by their status; their schemas are named here, and made when they are asked for."""
    kinds: dict[str, Any] = {"application/json": {"schema": _named(name)}}
    if name == "plan":
        kinds[EVENTS] = {"schema": {"type": "string"}}
    errors = {"application/json": {"schema": _named(FAULTS)}}
    said: dict[int | str, dict[str, Any]] = {
        200: {"description": "the answer, also where it is no", "content": kinds},
        **{status: {"description": why, "content": errors} for status, why in WRONG.items()},
    }
    return said


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _desks(request: Request) -> Desks:
    desks: Desks = request.app.state.desks
    return desks


async def _ask(request: Request, asked: dict[str, Any]) -> Response:
    said = await _desks(request).ask(asked)
    return Response(said.content, STATUS[said.kind], media_type="application/json")


def _post(command: str) -> Callable[..., Any]:
    async def ask(request: Request, question: Question) -> Response:
        return await _ask(request, question.asked(command))

    ask.__doc__ = ABOUT[command]
    return ask


for name in ABOUT:
    if name != "plan":
        router.add_api_route(
            f"/api/{name}", _post(name), methods=["POST"], name=name, responses=answers(name), response_class=Response
        )


@router.post("/api/plan", name="plan", description=ABOUT["plan"], responses=answers("plan"), response_class=Response)
async def plan(request: Request, question: Question) -> Response:
    asked = question.asked("plan")
    if EVENTS not in request.headers.get("accept", ""):
        return await _ask(request, asked)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Events(_events(_desks(request), asked), media_type=EVENTS, headers=headers)


class Events(StreamingResponse):
    """Events as they come. However it ends, also by a connection that closes, what makes them ends at once."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them all."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.body_iterator.aclose()  # type: ignore[attr-defined]


async def _events(desks: Desks, asked: dict[str, Any]) -> AsyncIterator[bytes]:
    """Progress, and then the answer or what is wrong. A connection that closes ends this, and with it the worker."""
    try:
        async with desks.asking(asked) as words:
            async for said in words:
                yield b"event: %s\ndata: %s\n\n" % (said.kind.encode(), said.content)
    except (FailedError, BusyError) as error:
        fault = error.fault if isinstance(error, FailedError) else BUSY
        yield b"event: errors\ndata: %s\n\n" % json.dumps(errors(fault)).encode()


@router.get("/api/models", responses=answers("models"), response_class=Response)
async def models(request: Request) -> Response:
    """The models of the catalogue."""
    return await _ask(request, {"command": "models"})


@router.get("/api/hardware", responses=answers("hardware"), response_class=Response)
async def hardware(request: Request) -> Response:
    """The accelerators and node types of the catalogue."""
    return await _ask(request, {"command": "hardware"})

"""The application: the addresses of the page and of the questions, and what each answers with."""

import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from outlay import __version__

from ..errors import Fault
from . import drill, questions
from .desks import BusyError, Desks, FailedError
from .guard import Guard, errors
from .pages import Pages
from .template import STATIC

MOST_FAULTS = 20


def application(desks: Desks, hosts: Collection[str]) -> FastAPI:
    """The whole server. `hosts` are the names that it answers to."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await desks.open()
        try:
            yield
        finally:
            await desks.close()

    app = FastAPI(
        title="outlay",
        version=__version__,
        summary="Counts what a layout of a distributed training run costs.",
        description="A question is the words of a command line; an answer is the object that it prints with --json.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    app.state.desks = desks
    app.include_router(questions.router)
    app.include_router(drill.router)
    _pages(app, desks)
    _faults(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, hosts=hosts)
    return app


def _pages(app: FastAPI, desks: Desks) -> None:
    pages = Pages(desks)

    async def page(request: Request) -> Response:
        return await pages.page(request.url.path.strip("/") or "bill", request.query_params.multi_items())

    for path in ("/", "/bill", "/plan", "/search", "/compare", "/check"):
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False, response_class=HTMLResponse)

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        from .schemas import described

        words = await desks.ask({"command": "described"})
        return JSONResponse(described(app.openapi(), json.loads(words.content)))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(STATIC / "vendor" / "swagger-ui" / "index.html", media_type="text/html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")


def _faults(app: FastAPI) -> None:
    """Every answer that is no answer is one object of errors, without a place in a file of ours."""

    @app.exception_handler(RequestValidationError)
    async def unreadable(_: Request, error: RequestValidationError) -> Response:
        return JSONResponse(errors(*(_of_body(each) for each in error.errors()[:MOST_FAULTS])), 422)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        rule = "the addresses and methods that /docs lists"
        what = {404: "there is no such address", 405: "the address has no such method"}.get(error.status_code)
        got = repr(f"{request.method} {request.url.path}"[:80])
        fault = Fault("WEB001", what or "the request cannot be read", rule, got, "/docs")
        return JSONResponse(errors(fault), error.status_code, error.headers)

    @app.exception_handler(FailedError)
    async def failed(_: Request, error: FailedError) -> Response:
        return JSONResponse(errors(error.fault), 500 if error.fault.code == "WEB005" else 422)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        return JSONResponse(errors(questions.BUSY), 429, {"Retry-After": "1"})


def _of_body(error: Any) -> Fault:
    """What is wrong with a body, in our words."""
    place = ".".join(map(str, error["loc"]))[:80]
    rule = error["msg"][:1].lower() + error["msg"][1:200]
    got = repr(error.get("input"))
    got = got if len(got) <= 60 else got[:57] + "..."
    return Fault("WEB007", f"{place} cannot be read", rule, got, "a body as /docs describes it")

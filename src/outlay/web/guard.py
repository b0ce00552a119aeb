"""What every request passes, and every answer carries: whose host it names, where it comes from, how large it is."""

import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ..errors import Fault

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 2**20  # bytes
LONGEST_ADDRESS = 8_192  # bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)


def own_hosts(host: str) -> frozenset[str]:
    """Names that this server answers to, beside addresses in figures: a name of somebody else may be rebound to it."""
    return frozenset(name.lower() for name in ("localhost", host, socket.gethostname()) if name)


def is_own(host: str, hosts: Collection[str]) -> bool:
    """Whether a Host header names this server: by an address in figures, or by one of its names."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in hosts
    return True


class Guard:
    """Around the application: refuses what it must not see, and adds the headers of safety to every answer."""

    def __init__(self, app: App, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        answer = _with_headers(send)
        refusal = self._refusal(scope)
        if refusal:
            await _refuse(answer, *refusal)
            return
        body = await _read(receive)
        if body is None:
            await _refuse(answer, 413, _too_large("more than that"))
            return
        await self.app(scope, _again(body, receive), answer)

    def _refusal(self, scope: Scope) -> tuple[int, Fault] | None:
        """Why a request is refused before it is read."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
        host = headers.get("host", "")
        if len(hosts) != 1 or not is_own(host, self.hosts):
            rule = "a request names this server by its address or its own name, so that no other site's name leads here"
            return 403, Fault(
                "WEB006", "the Host is not this server's", rule, repr(host[:60]), "localhost and its port"
            )
        posts = scope["method"] not in ("GET", "HEAD")
        if foreign := _foreign(headers, host, posts):
            rule = "questions are asked by this server's own page, or by a program that is no browser"
            return 403, Fault("WEB006", "the request comes from another site", rule, foreign, "its own page")
        if posts and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            got = repr(headers.get("content-type", "")[:60])
            rule = "a body is JSON, with Content-Type: application/json"
            return 415, Fault("WEB007", "the body is not JSON", rule, got, "Content-Type: application/json")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 12 or int(length) > LARGEST_BODY:
            return 413, _too_large(f"{length[:20]} bytes")
        if len(scope.get("query_string", b"")) > LONGEST_ADDRESS:
            rule = f"a query has {LONGEST_ADDRESS:,} bytes or less"
            return 414, Fault("WEB003", "the address is too long", rule, "more than that", "POST, with a body")
        return None


def _foreign(headers: dict[str, str], host: str, posts: bool) -> str:
    """The other site that a browser says a request is from; nothing where it is our own or no browser."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return repr(origin[:60])
    opened = not posts and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return "" if site in ("none", "same-origin") or opened else f"sec-fetch-site: {site[:20]}"


def _too_large(got: str) -> Fault:
    return Fault("WEB003", "the body is too large", f"{LARGEST_BODY:,} bytes or less", got, "the command line")


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None where it is larger than one may be, whatever it said."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """What is received: the body, once more, and then what comes after it."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", [])}
            more = [(name.encode(), value.encode()) for name, value in HEADERS if name.encode() not in own]
            message["headers"] = [*message.get("headers", []), *more]
        await send(message)

    return answer


def errors(*faults: Fault) -> dict[str, Any]:
    """Faults as the object that says them."""
    names = ("code", "what", "rule", "got", "fix")
    return {"errors": [{name: getattr(fault, name) for name in names} for fault in faults]}


async def _refuse(send: Send, status: int, fault: Fault) -> None:
    content = json.dumps(errors(fault)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": content})

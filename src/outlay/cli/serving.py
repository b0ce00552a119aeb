"""outlay serve: the page and its questions over HTTP, on this machine unless told otherwise."""

import asyncio
import errno
import importlib.util
import socket
import sys
from contextlib import closing, suppress

from ..errors import Fault, InputError, quoted
from .flags import Given
from .streams import complain, say
from .values import Faults, count

HOST, PORT = "127.0.0.1", 8000
MOST_PORT, TRIED = 65_535, 100
NEEDED = ("fastapi", "uvicorn")
WORKER = ("-P", "-m", "outlay.cli.desk.worker")
WILD = ("0.0.0.0", "::", "")


def serve(given: Given) -> int:
    """Serve until it is interrupted. Exit 2 where that cannot begin."""
    faults = Faults()
    port = count(given.text("port") or str(PORT), "--port", faults, MOST_PORT)
    host = given.text("host") or HOST
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        rule, fix = "outlay serve needs the extra `web`: fastapi and uvicorn", 'pip install "outlay[web]"'
        faults.add(Fault("WEB008", "the server is not installed", rule, f"no {' and no '.join(missing)}", fix))
    faults.stop()
    assert port is not None
    with closing(listening(host, port)) as at, suppress(KeyboardInterrupt):
        asyncio.run(_run(at, host, port))
    return 0


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises InputError (WEB009) where it cannot, with the next port that is free."""
    try:
        return _bound(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            rule, fix = "--host is an address or a name of this machine", f"--host {HOST}"
            why = error.strerror or str(error)
            raise InputError(Fault("WEB009", f"{quoted(host)} cannot be served", rule, why, fix)) from None
    free = next((each for each in range(port + 1, min(port + TRIED, MOST_PORT) + 1) if _is_free(host, each)), None)
    fix = f"--port {free}" if free else "another --port"
    rule = "one program listens on a port"
    raise InputError(Fault("WEB009", f"port {port} is in use", rule, f"{host}:{port}", fix))


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)  # named, or asyncio does not see that it is TCP, and waits to send
    try:
        if sys.platform != "win32":  # there it would share a port that is in use
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def _is_free(host: str, port: int) -> bool:
    try:
        _bound(host, port).close()
    except OSError:
        return False
    return True


async def _run(at: socket.socket, host: str, port: int) -> None:
    from ..web.desks import Desks

    desks = Desks((sys.executable, *WORKER))
    await desks.open()  # a worker starts while the rest is loaded
    import uvicorn

    from ..web.app import application
    from ..web.guard import own_hosts

    app = application(desks, own_hosts(host))
    shown = f"[{host}]" if ":" in host else host
    say(f"outlay serves http://{'localhost' if host in WILD else shown}:{port}   (Ctrl-C ends it)")
    if host not in (HOST, "localhost", "::1"):
        complain("everyone who reaches this address can ask it; there is no password")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    await uvicorn.Server(config).serve(sockets=[at])

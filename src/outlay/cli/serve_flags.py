"""The flags of outlay serve."""

from .flags import Flag

SERVED = (
    Flag("port", ("--port",), "the port to listen on; default: 8000"),
    Flag("host", ("--host",), "the address to listen on; default: 127.0.0.1, which this machine alone reaches"),
)


def serve_flags() -> tuple[Flag, ...]:
    """The flags of outlay serve."""
    return SERVED

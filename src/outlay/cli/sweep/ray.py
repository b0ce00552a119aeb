"""A Ray cluster for the length of a sweep. Ray is loaded here alone, and late."""

import contextlib
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import Fault, InputError, quoted
from .workers import ONE_CORE

PATIENCE = 5.0  # s, for a first answer of a cluster
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
FIX = (
    "--address HOST:PORT of `ray start --head`, with RAY_AUTH_MODE=token where it asks for one; --workers ray without"
    " --address; or --workers 2 without Ray"
)


@contextlib.contextmanager
def cluster_of(address: str | None) -> Iterator[Any]:
    """Ray, connected. Raises InputError (SWP010 not installed, SWP011 a cluster that cannot be reached)."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        rule, fix = "--workers ray needs Ray, an optional dependency", "pip install 'outlay[ray]', or --workers 2"
        raise InputError(Fault("SWP010", "Ray is not installed", rule, "no module ray", fix)) from None
    if address:
        _reach(address)
    environment: dict[str, Any] = {"env_vars": dict(ONE_CORE)}
    if address:  # other machines are sent this package; NumPy and Polars they have
        environment["py_modules"] = [str(Path(__file__).parents[1])]
    try:
        ray.init(
            address=address or "local",
            runtime_env=environment,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise InputError(_unreached(address, str(error))) from None
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Ray says there what dies; standard output is for the answer
            yield ray
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """A quick first look: Ray itself tries for a minute."""
    match = re.fullmatch(r"(?:ray://)?(.+):(\d{1,5})", address)
    if not match:
        return
    try:
        socket.create_connection((match[1], int(match[2])), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InputError(_unreached(address, str(error))) from None


def _unreached(address: str | None, why: str) -> Fault:
    rule = "a running cluster answers at its address; without one, Ray is started on this machine"
    got = f"{quoted(address or 'this machine')}: {' '.join(why.split())[:120]}"
    return Fault("SWP011", "the Ray cluster cannot be reached", rule, got, FIX)

"""One piece of work on several ranks at once: processes of this machine, or those that torchrun started. Loads torch.

The processes are torchrun's own either way. None outlives the call, whatever ends it: the work, a fault of one rank, a
signal; a parent that is killed takes them along.
"""

import json
import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.agent.server.api import SignalException
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ..errors import Fault, InputError
from .launched import launched

PATIENCE = 300.0  # s that ranks wait for each other
LONGEST = 200  # characters of another's complaint
LOST = ("gloo/transport", "NCCL")  # in what a rank says that lost another one
GRACE = 10.0  # s
ENDED = "all ranks end together, and none is left"


def together(work: Callable[..., Any], inputs: tuple[Any, ...], ranks: int, patience: float = PATIENCE) -> list[Any]:
    """What each rank returns, in order of ranks; on any but the first rank of torchrun an empty list.

    `work` is a function of a module, called with `inputs` on each rank within a process group: of NCCL where every rank
    has a GPU of its own, else of gloo. Under torchrun its ranks do the work, else `ranks` processes are started here.
    Raises InputError: VER005 where torchrun has another number of ranks, VER006 where the ranks do not find each other,
    VER007 where one ends before its work is done. KeyboardInterrupt and SystemExit of a signal pass through.
    """
    return _as_launched(work, inputs, ranks, patience) if launched() else _started(work, inputs, ranks, patience)


def accelerated(ranks: int) -> bool:
    """Whether each rank of this machine has a GPU of its own."""
    found: bool = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
    return found


def here() -> torch.device:
    """The device of this rank."""
    if not accelerated(int(os.environ.get("LOCAL_WORLD_SIZE", "1"))):
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


@contextmanager
def group_of_ranks(patience: float) -> Iterator[None]:
    """The process group that torchrun's variables describe."""
    device = here()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(seconds=patience))
    try:
        yield
    finally:
        dist.destroy_process_group()


def on_a_rank(work: Callable[..., Any], inputs: tuple[Any, ...], patience: float) -> Any:
    """What one started process does; on a CPU with one core for its kernels."""
    torch.set_num_threads(1)
    try:
        with group_of_ranks(patience):
            found = work(*inputs)
            dist.barrier()  # a rank that ends early is taken for a failed one
            return found
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or any(words in str(error) for words in LOST):
            time.sleep(GRACE)  # the launcher names the rank that it sees first: let it be the one that was lost
        raise


def _as_launched(work: Callable[..., Any], inputs: tuple[Any, ...], ranks: int, patience: float) -> list[Any]:
    world = int(os.environ["WORLD_SIZE"])
    if world != ranks:
        fix = f"torchrun --nproc-per-node {ranks} -m outlay .., or without torchrun"
        raise InputError(Fault("VER005", "torchrun has another number of ranks", f"{ranks} ranks", str(world), fix))
    try:
        with group_of_ranks(patience):
            gathered: list[Any] | None = [None] * ranks if dist.get_rank() == 0 else None
            dist.gather_object(work(*inputs), gathered)
            dist.barrier()
    except dist.DistError as error:
        raise InputError(_unmet(error, patience)) from None
    return gathered or []


def _started(work: Callable[..., Any], inputs: tuple[Any, ...], ranks: int, patience: float) -> list[Any]:
    with tempfile.TemporaryDirectory(prefix="outlay-") as folder, _silent():
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=ranks,
            run_id=str(os.getpid()),
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",  # a free port
            rdzv_configs={"timeout": patience},
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder, redirects=Std.ALL),
            shutdown_timeout=5,
        )
        try:
            found = elastic_launch(config, on_a_rank)(work, inputs, patience)
        except ChildFailedError as error:
            raise InputError(_failed(error, ranks)) from None
        except SignalException as error:
            if error.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(128 + int(error.sigval)) from None
        except (dist.DistError, OSError) as error:
            raise InputError(_unmet(error, patience)) from None
    return [found[rank] for rank in range(ranks)]


@contextmanager
def _silent() -> Iterator[None]:
    """torch's launcher logs a traceback for what is said here in a line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _failed(error: ChildFailedError, ranks: int) -> Fault:
    """The first rank that ended too early, and how."""
    rank, first = error.get_first_failure()
    if first.exitcode < 0:
        fix = "if the system ended it for its memory, fewer ranks or a smaller case; else run it again"
        got = f"{first.signal_name()}, as from the system when memory runs out"
        if first.exitcode != -signal.SIGKILL:
            got, fix = str(first.signal_name()), "run it again"
    else:
        got, fix = _said(first.message), "run it again; with fewer ranks if memory ran out"
    return Fault("VER007", f"rank {rank} of {ranks} ended before its work was done", ENDED, got, fix)


def _said(message: str | Mapping[str, Any]) -> str:
    """The last words of an exception in one line, out of what torch's error file holds."""
    text = message if isinstance(message, str) else str(message.get("message", json.dumps(message)))
    return " ".join(text.split())[:LONGEST]


def _unmet(error: Exception, patience: float) -> Fault:
    rule = f"all ranks meet at one address within {patience:,.0f} s"
    fix = "a free port and an address that every rank reaches: torchrun's --rdzv-endpoint, or run it without torchrun"
    return Fault("VER006", "the ranks did not find each other", rule, _said(str(error)), fix)

"""The devices at hand: how many, of how much memory, and what they say of themselves. Loads torch."""

import os

import torch

from ..launched import launched
from .profiled import Device
from .sizing import ROOM, AtHand

HIDDEN = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def at_hand(asked: str, ranks: int) -> AtHand | None:
    """The devices that ranks can have: accelerators, or the cores of a CPU where that is asked for; else nothing.

    A CPU hides the accelerators from all that runs, from here on.
    """
    world = int(os.environ["WORLD_SIZE"]) if launched() else 0
    if asked == "cpu":
        os.environ.update(dict.fromkeys(HIDDEN, ""))
        cores = world or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return AtHand("cpu", cores, ROOM * held / min(cores, ranks))
    if not torch.cuda.is_available():
        return None
    here = range(torch.cuda.device_count())
    memory = min(torch.cuda.get_device_properties(number).total_memory for number in here)
    return AtHand("cuda", world or len(here), memory)


def described(device: torch.device) -> Device:
    """What a device says of itself."""
    libraries = {"torch": torch.__version__}
    if device.type == "cpu":
        return Device("cpu", processor(), 0, libraries)
    of = torch.cuda.get_device_properties(device)
    libraries |= {"cuda": str(torch.version.cuda or torch.version.hip), "driver": driver()}
    libraries |= {"nccl": ".".join(map(str, torch.cuda.nccl.version())), "cudnn": str(torch.backends.cudnn.version())}
    return Device("cuda", of.name, int(of.total_memory), libraries)


def processor() -> str:
    """The processor as the system calls it."""
    import platform

    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def driver() -> str:
    """The driver's version."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return next((word for word in file.readline().split() if word[:1].isdigit()), "")
    except OSError:
        return ""

"""What this machine is: its device, its versions, and what one rank of it has. Loads torch."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from ..launched import launched
from ..together import accelerated
from .devices import accelerator_of
from .machine_file import Rank

MOST_CORES = 8  # ranks that are started by themselves on a CPU


@dataclass(frozen=True)
class Machine:
    """The machine, before anything is measured."""

    title: str  # of a device
    accelerator: str  # as the catalogue calls it; empty where it does not have it
    versions: str
    gpu: bool
    ranks: int  # of the run
    local: int  # of them, on one machine
    rank: Rank

    @property
    def where(self) -> str:
        """In a line: for the source of a constant."""
        return f"{self.title}, {self.ranks} rank{'' if self.ranks == 1 else 's'} at once, {self.versions}"


def machine(ranks: int) -> Machine:
    """This machine, with so many ranks; with 0, as many as torchrun started, its GPUs, or its cores (2 at least)."""
    ranks = ranks or _usual()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", ranks)) if launched() else ranks
    gpu = accelerated(local)
    return _gpu(ranks, local) if gpu else _cpu(ranks, local)


def _usual() -> int:
    if launched():
        return int(os.environ["WORLD_SIZE"])
    return torch.cuda.device_count() if torch.cuda.is_available() else max(2, min(MOST_CORES, _cores()))


def _gpu(ranks: int, local: int) -> Machine:
    about = torch.cuda.get_device_properties(0)
    title, memory = str(about.name), float(about.total_memory)
    maker = "ROCm" if torch.version.hip else "CUDA"
    versions = [f"torch {torch.__version__}", f"{maker} {torch.version.hip or torch.version.cuda}", _driver()]
    vendor = "AMD" if torch.version.hip else "NVIDIA"
    rank = Rank(title, vendor, memory, "one GPU")
    return Machine(title, accelerator_of(title), _joined(versions), True, ranks, local, rank)


def _cpu(ranks: int, local: int) -> Machine:
    cores, title = _cores(), _processor()
    shared = f"one core of {cores}" if local <= cores else f"{cores / local:.3g} of a core"
    said = f"{shared}, one thread for its kernels"
    versions = [f"torch {torch.__version__}", f"kernels for {torch.backends.cpu.get_cpu_capability()}", "gloo"]
    return Machine(title, "", _joined(versions), False, ranks, local, Rank(title, "CPU", _memory() / local, said))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine() or "CPU")[:50]


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")


def _driver() -> str:
    """The version of NVIDIA's driver, where the system says it."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return ""
    return f"driver {next((word for word in words if word[:1].isdigit() and '.' in word), '?')}"


def _joined(parts: list[str]) -> str:
    return ", ".join(part for part in parts if part)

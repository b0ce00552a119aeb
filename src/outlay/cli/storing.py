"""The storage that checkpoints go to, in a command line or a file: a bandwidth with its unit."""

from dataclasses import replace
from typing import Any

from ..cluster.accelerator import Cluster
from ..errors import Fault, quoted
from .values import Faults, number

BANDWIDTHS = {"GB/s": 1e9, "TB/s": 1e12, "Gb/s": 1e9 / 8, "MB/s": 1e6}  # a byte and a bit differ by their letter
LARGEST = 1e18  # B/s


def with_storage(clusters: tuple[Cluster, ...], said: Any, faults: Faults) -> tuple[Cluster, ...]:
    """The clusters with the storage that --storage names; as they are where it is not given."""
    if said is None:
        return clusters
    text = str(said).strip()
    unit = next((name for name in BANDWIDTHS if text.endswith(name)), "")
    value = number(text[: len(text) - len(unit)]) if unit else None
    if value is None or not 1 <= value * BANDWIDTHS[unit] <= LARGEST:
        rule = f"a bandwidth above 0 with its unit, {', '.join(BANDWIDTHS)}: of all accelerators together"
        faults.add(Fault("UNI005", "--storage is not a bandwidth", rule, quoted(said), "--storage 200GB/s"))
        return clusters
    return tuple(replace(cluster, storage_bandwidth=value * BANDWIDTHS[unit]) for cluster in clusters)

"""What a cluster costs an hour, where its price was published."""

import re
from dataclasses import dataclass

from ..cluster.accelerator import Cluster
from ..cluster.catalogue import figures, node, node_names


@dataclass(frozen=True)
class Price:
    """List price of a whole cluster, on demand."""

    dollars: float  # USD an hour
    date: str
    unverified: bool


def price_of(cluster: Cluster) -> Price | None:
    """The price of a cluster that is named as nodes; None where none was published."""
    match = re.fullmatch(r"(\d+)x(.+)", cluster.name)
    if not match or match[2] not in node_names():
        return None
    nodes = cluster.ranks / node(match[2]).accelerators
    found = next((each for each in figures(match[2]) if each.name == "price"), None)
    return Price(found.si * nodes, found.date, found.unverified) if found else None

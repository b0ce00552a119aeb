"""The hardware that outlay knows by name, each figure with its unit, kind, date and source; and what `--on` means."""

from .named import cluster, clusters
from .own import MOST
from .tables import Figure, Node, accelerator, accelerator_names, figures, node, node_names
from .template import template
from .units import UNITS, convert

__all__ = [
    "MOST",
    "UNITS",
    "Figure",
    "Node",
    "accelerator",
    "accelerator_names",
    "cluster",
    "clusters",
    "convert",
    "figures",
    "node",
    "node_names",
    "template",
]

"""BY WHAT a run is driven: one table of facts an engine and release."""

from .engine import Engine, Kernel, KernelSet
from .recipe import Recipe
from .tables import engine, engine_names, kernel_set, kernel_set_names

__all__ = [
    "Engine",
    "Kernel",
    "KernelSet",
    "Recipe",
    "engine",
    "engine_names",
    "kernel_set",
    "kernel_set_names",
]

"""BY WHAT a run is driven: one table of facts an engine and release."""

from .engine import Engine, Kernel, KernelSet, Recipe
from .tables import engine, engine_names, kernel_set, kernel_set_names, recipe

__all__ = [
    "Engine",
    "Kernel",
    "KernelSet",
    "Recipe",
    "engine",
    "engine_names",
    "kernel_set",
    "kernel_set_names",
    "recipe",
]

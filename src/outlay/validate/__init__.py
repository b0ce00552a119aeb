"""Measured runs against counted ones: a table of published runs is read, each row counted, and the errors summed."""

from .predict import Validation, compare_files
from .progress import Progress
from .ranks import RANKS
from .read import HEADER
from .report import as_json, lines
from .row import Row
from .summary import Summary
from .table import OWN

__all__ = ["HEADER", "OWN", "RANKS", "Progress", "Row", "Summary", "Validation", "as_json", "compare_files", "lines"]

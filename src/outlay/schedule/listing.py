"""An order as text, in the form of PyTorch's "compute only" CSV: one row a rank, one action a cell.

`2F0` is the forward pass of micro-batch 0 through stage 2; `B` a whole backward pass, `I` and `W` its input and its
weight gradient; `(0F7;7B3)OVERLAP_F_B` a pair. Empty cells are padding.
"""

import re
from typing import cast

from ..errors import Fault, InputError, quoted
from .checks import checked, few, named
from .passes import Kind, Operation, Order, Pair, Pass

_PASS = re.compile(r"([0-9]{1,7})([FBIW])([0-9]{1,7})")
_PAIR = re.compile(r"\(([^;()]*);([^;()]*)\)OVERLAP_F_B")
_FORM = "a cell is like 0F3, 2B0, 2I0, 2W0 or (0F7;7B3)OVERLAP_F_B; messages and gathers are left out"
MOST_CHARACTERS = 2**28


def to_csv(order: Order) -> str:
    """The order, a row a rank. `from_csv` reads it back, and PyTorch does where the model is held once."""
    return "".join(",".join(action(each) for each in row) + "\n" for row in order.ranks)


def action(operation: Operation) -> str:
    """One operation as PyTorch writes it."""
    if isinstance(operation, Pair):
        return f"({named(operation.forward)};{named(operation.backward)})OVERLAP_F_B"
    return named(operation)


def from_csv(text: str, name: str = "custom", copies: int = 1) -> Order:
    """The order of a listing of `copies` of a model, end to end. Raises InputError with all that is wrong with it.

    ORD001 a cell that is not an action, ORD007 no cells; once all can be read, the faults of `checked`.
    """
    cells = [[_bare(cell) for cell in line.split(",")] for line in _lines(text)]
    read = [[(cell, _operation(cell)) for cell in row if cell] for row in cells]
    wrong = [f"{quoted(cell)} on rank {rank}" for rank, row in enumerate(read) for cell, each in row if each is None]
    if wrong:
        raise InputError(Fault("ORD001", "a cell is not an action", _FORM, few(wrong), "correct the cell, or empty it"))
    return checked(tuple(tuple(each for _, each in row if each is not None) for row in read), name, copies)


def _lines(text: str) -> list[str]:
    """The rows. Blank lines at the end are none; one before is a rank that does nothing."""
    lines = text.lstrip("\ufeff").rstrip(" ,\r\n\t").splitlines()
    if not lines or len(text) > MOST_CHARACTERS:
        rule = f"one row a rank, one action a cell, at most {MOST_CHARACTERS:,} characters"
        got = f"{len(text):,} characters"
        raise InputError(Fault("ORD007", "there is no order to read", rule, got, "outlay draw --csv writes one"))
    return lines


def _bare(cell: str) -> str:
    return cell.strip().strip('"').strip()


def _operation(cell: str) -> Operation | None:
    if match := _PAIR.fullmatch(cell):
        forward, backward = (_pass(part.strip()) for part in match.groups())
        if forward and backward and forward.kind == "F" and backward.kind in ("B", "I"):
            return Pair(forward, backward)
        return None
    return _pass(cell)


def _pass(cell: str) -> Pass | None:
    if match := _PASS.fullmatch(cell):
        stage, kind, micro_batch = match.groups()
        return Pass(cast(Kind, kind), int(stage), int(micro_batch))
    return None

"""The textbook's closed forms of checkpoints, beside the program: in the terminal and as a record."""

from ...quantities import GIB
from ...search.recompute.stages import Recompute
from ...search.recompute.textbook import SAID, textbook
from ..record import Record, plain
from ..text import Style, block, counted, figure, table


def textbook_part(found: Recompute, style: Style) -> list[str]:
    """What segments and Revolve store, and how many forward passes they add."""
    book = textbook(found)
    about = f"closed forms for {counted(book.layers, 'equal layer')}, L; a tape is c = {figure(book.tape)} inputs"
    rows = [
        (SAID[each.name], _held(each.held), figure(each.inputs), figure(each.bytes / GIB), figure(each.runs))
        for each in book.forms
    ]
    heads = ("plan", "g or slots", "inputs", "tapes GiB", "forward passes more")
    return [*block("TEXTBOOK", about, style), *table(heads, rows, style, "l")]


def _held(held: float | None) -> str:
    return "" if held is None else f"{held:g}" if held == int(held) else figure(held)


def textbook_record(found: Recompute) -> Record:
    """The same as a record."""
    book = textbook(found)
    forms = [plain(each) | {"said": SAID[each.name]} for each in book.forms]
    return {"layers": book.layers, "tape_inputs": book.tape, "forms": forms}

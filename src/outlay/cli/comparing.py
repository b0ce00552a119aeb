"""outlay compare: two bills, two layouts, or one of each."""

import os
from collections.abc import Mapping

from ..bill import Bill
from ..errors import Fault, InputError
from ..show.answer import says_yes
from ..show.compare import compare_lines, compare_record
from ..show.restore import Asked
from .flags import Given
from .output import Told
from .printed import read_bill
from .question import read_question
from .values import Faults, assignments


def compare(given: Given) -> Told:
    """Both bills counted again, and their difference item by item."""
    texts = [given.text("a"), given.text("b")]
    if None in texts:
        rule = "compare takes two bills printed with --json, or two layouts with a common MODEL and --on"
        fix = 'outlay compare "tp=8,pp=4" "tp=4,pp=8" llama-3.1-70b --on 64xh100-sxm --batch 512'
        raise InputError(Fault("CLI004", "there are not two things to compare", rule, f"{2 - texts.count(None)}", fix))
    faults = Faults()
    files = [faults.attempt(read_bill, text) if is_file(str(text)) else None for text in texts]
    faults.stop()
    common = next((asked for asked in files if asked), None)
    made = [faults.attempt(_bill, given, str(text), asked, common) for text, asked in zip(texts, files, strict=True)]
    faults.stop()
    return compared(*made)


def compared(a: Bill, b: Bill) -> Told:
    """The difference of two bills."""
    yes = says_yes(a) or says_yes(b)
    return Told(lambda: compare_record(a, b), lambda style: compare_lines(a, b, style), yes)


def is_file(text: str) -> bool:
    """Whether a side is a printed bill, and not a layout in words."""
    return text == "-" or text.endswith(".json") or os.path.exists(text)


def bill_of(given: Given, extra: Mapping[str, str], base: Asked | None = None) -> Bill:
    """The bill of common flags, and of what one side says over them."""
    return read_question(given, extra, base).bill()


def _bill(given: Given, text: str, asked: Asked | None, common: Asked | None) -> Bill:
    """One side: a bill as it was printed; a layout over the common flags, or over the other side's bill."""
    if asked:
        return read_question(Given({}), base=asked).bill()
    faults = Faults()
    extra = assignments(text, faults)
    base = common if given.text("model") is None else None
    bill = faults.attempt(bill_of, given, extra, base)
    faults.stop()
    assert isinstance(bill, Bill)
    return bill

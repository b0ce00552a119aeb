"""outlay count, memory and traffic: one case, read in the same way, and shown in three ways."""

from ..show.answer import says_yes
from .flags import Given
from .output import tell
from .question import read_question


def count(given: Given) -> int:
    """The whole bill, or a scaling table."""
    from ..search.advice import advise
    from ..show.record import record, table
    from ..show.terminal import bill_lines, scaling_lines

    bills = read_question(given).bills()
    if len(bills) > 1:
        tell(given, lambda: table(bills), lambda style: scaling_lines(bills, style))
        return 0 if any(says_yes(bill) for bill in bills) else 1
    (bill,) = bills
    advice = advise(bill)
    tell(given, lambda: record(bill, advice), lambda style: bill_lines(bill, style, advice))
    return 0 if says_yes(bill) else 1


def memory(given: Given) -> int:
    """The memory of a bill, with its parameters by component."""
    from ..show.single import memory_lines, memory_record

    bill = read_question(given).bill()
    tell(given, lambda: memory_record(bill), lambda style: memory_lines(bill, style))
    return 0 if says_yes(bill) else 1


def traffic(given: Given) -> int:
    """The traffic of a bill, axis by axis."""
    from ..show.single import traffic_lines, traffic_record

    bill = read_question(given).bill()
    tell(given, lambda: traffic_record(bill), lambda style: traffic_lines(bill, style))
    return 0 if says_yes(bill) else 1

"""outlay count, memory and traffic: one case, read in the same way, and shown in three ways."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..show.answer import says_yes
from .files import STDOUT, picture, write
from .flags import Given
from .mixing import read_mixed
from .output import Told
from .question import read_question
from .values import Faults

if TYPE_CHECKING:
    from ..bill import Bill
    from ..over_time import OverTime
    from ..search.mixed.best import Mixes
    from ..search.split.best import Split


def count(given: Given) -> Told:
    """The whole bill, or a scaling table."""
    from ..search.advice import advise
    from ..search.faster import faster
    from ..show.record import record, table
    from ..show.terminal import bill_lines, scaling_lines

    what = read_mixed(given)
    question = read_question(given)
    bills = (question.bill(),) if what else question.bills()
    sought = given.on("advise")
    if len(bills) > 1:
        one = _advised(bills) if sought else None
        found = (advise(one) or faster(one)) if one else ()
        yes = any(says_yes(bill) for bill in bills)
        return Told(lambda: table(bills, one, found), lambda style: scaling_lines(bills, style, one, found), yes)
    (bill,) = bills
    advice = advise(bill) or (faster(bill) if sought else ())
    split, mixed = _split(bill), _mixed(bill, what)
    return Told(
        lambda: record(bill, advice, split, mixed),
        lambda style: bill_lines(bill, style, advice, split, sought, mixed),
        says_yes(bill),
    )


def _mixed(bill: "Bill", what: tuple[str, ...]) -> "Mixes | None":
    """A strategy for each layer of a bill's layout, where that is asked for."""
    if not what:
        return None
    from ..search.mixed.best import best_mixes
    from ..search.split.best import unfilled
    from .waiting import Waiting

    waiting = Waiting(sys.stderr.write) if sys.stderr.isatty() else None
    question = bill.model, bill.job, bill.cluster, unfilled(bill), bill.engine
    found = best_mixes(*question, what, progress=waiting)
    if waiting:
        waiting.close()
    return found


def _advised(bills: "Sequence[Bill]") -> "Bill":
    """The bill of a table that advice is sought for: the first that does not fit for sure; else the first of all."""
    legal = [bill for bill in bills if not bill.violations]
    return next((bill for bill in legal if bill.memory.verdict != "fits"), (legal or list(bills))[0])


def _split(bill: "Bill") -> "Split | None":
    """The split of a bill beside the engine's own cut, where it has one."""
    if not bill.layout.split:
        return None
    from ..search.split.best import given_split

    return given_split(bill)


def memory(given: Given) -> Told | int:
    """The memory of a bill, with its parameters by component; simulated, over a step."""
    from ..show.single import memory_lines, memory_record

    faults = Faults()
    path = picture(given, faults)
    question = faults.attempt(read_question, given)
    faults.stop()
    bill = question.bill()
    asked = bool(given.on("simulate") or path)
    found = _over_time(bill) if asked and not bill.violations else None
    if found and path:
        from ..show.over_time_svg import over_time_svg

        title = f"{bill.model.name} on {bill.cluster.name}"
        write(path, over_time_svg(found, title, bill.memory.usable_bytes).encode(), given.on("force"))
    files = (path,) if found and path else ()
    told = Told(
        lambda: memory_record(bill, found, files),
        lambda style: memory_lines(bill, style, found, files, asked),
        says_yes(bill),
    )
    return told.code if STDOUT in files else told


def _over_time(bill: "Bill") -> "OverTime":
    from ..bill import case_of, load
    from ..over_time import over_time
    from ..simulated import simulated

    loaded = load(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0])
    return over_time(loaded, simulated(loaded))


def traffic(given: Given) -> Told:
    """The traffic of a bill, axis by axis."""
    from ..show.single import traffic_lines, traffic_record

    bill = read_question(given).bill()
    return Told(lambda: traffic_record(bill), lambda style: traffic_lines(bill, style), says_yes(bill))

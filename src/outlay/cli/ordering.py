"""`outlay plan --orders ..`: which other orders of passes the best pipelines are run in, and how long one is sought."""

from dataclasses import dataclass

from ..errors import Fault, InputError, nearest, quoted
from .flags import Flag, Given
from .values import Faults, seconds

ALL, BEST = "all", "best"
SECONDS = 20.0  # that orders are sought for, unless said
ORDERS = Flag(
    "orders",
    ("--orders",),
    "the first pipelines of the answer again, pass by pass in other orders: all, schedules by name (v_half,zbv), or "
    "best, one that is sought for them within their memory",
)
TIME_LIMIT = Flag("time_limit", ("--time-limit",), "how long --orders best seeks: 60s; default: 20s")


@dataclass(frozen=True)
class Wanted:
    """Orders by name, and for how many seconds one is sought."""

    names: tuple[str, ...]
    seconds: float


def read_orders(given: Given, faults: Faults) -> Wanted | None:
    """The words of --orders; None where it is not given."""
    text, limit = given.text("orders"), given.text("time_limit")
    wanted = () if text is None else faults.attempt(_names, text) or ()
    if limit is not None and BEST not in wanted:
        rule, got = "it is of a search for an order", "no --orders" if text is None else f"--orders {text}"
        faults.add(Fault("PLN003", "--time-limit is of no use here", rule, got, "--orders best"))
    if text is None:
        return None
    return Wanted(wanted, SECONDS if limit is None else seconds(limit, "--time-limit", faults) or SECONDS)


def _names(text: str) -> tuple[str, ...]:
    """Each name once. Raises InputError (PLN011) for those that are none."""
    from ..schedule.orders import names  # late: these flags are read by every command

    known = (*names(), BEST)
    words = tuple(dict.fromkeys(text.lower().replace(",", " ").split()))
    if words == (ALL,):
        return known
    wrong = [word for word in words if word not in known]
    if words and not wrong:
        return words
    rule = f"all alone, or some of {', '.join(known)}"
    close = [name for word in wrong for name in nearest(word, known)[:1]]
    fix = f"--orders {close[0] if close else ALL}"
    got = ", ".join(map(quoted, wrong)) or quoted(text)
    raise InputError(Fault("PLN011", "--orders names something that is no order", rule, got, fix))

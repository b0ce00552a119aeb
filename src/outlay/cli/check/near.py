"""A better layout that is a few changes away, in the settings of the framework that the file is of."""

from collections.abc import Iterator
from types import ModuleType

from ...bill import Bill
from ...formats.changed import settings_of
from ...formats.known import FORMATS
from ...formats.setting import Run
from ...layout.case import Case
from ...search.advice import Way, advice_of, ways_to_fit
from ...search.faster import faster_ways
from ...show.check.answer import Near


def near(bill: Bill, text: str) -> tuple[Near, ...]:
    """The ways to fit, or where it fits for sure the faster ones; none where a rule is broken.

    In settings of the format that a text is in, where that format holds runs of the bill's engine.
    """
    if bill.violations:
        return ()
    form = next((form for form in FORMATS.values() if form.is_of(text)), None)
    own = form if form is not None and bill.engine.name in form.ENGINES else None
    return tuple(_near(ways_to_fit(bill) or faster_ways(bill), bill, own))


def _near(ways: tuple[Way, ...], bill: Bill, form: ModuleType | None) -> Iterator[Near]:
    for made, after in ways:
        said = advice_of(made, after)
        same = form and after.case.cluster.ranks == bill.cluster.ranks
        settings = settings_of(form, _run(bill), _run(after.case)) if form and same else None
        yield Near(said.change, said.flag, settings or (), said.peak_bytes, said.seconds)


def _run(of: Bill | Case) -> Run:
    return Run(of.model, of.job, of.cluster, of.layout, of.engine)

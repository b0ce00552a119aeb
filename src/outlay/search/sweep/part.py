"""The answers of one part of a sweep: what a process needs is the study and the part's number."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...bill import Bill, case_of, count
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...engines.profiled import profiled
from ...engines.tables import engine as find_engine
from ...errors import InputError
from ...job import Job
from ...layout.axes import Layout
from ...model.model import Model
from ..split.best import best_count
from .best import plan_row
from .count import count_layouts
from .rows import (
    SEARCHED_BY,
    Columns,
    job_columns,
    joined_rows,
    limited,
    plainly,
    priced,
    row_of,
    schema,
    split_column,
    taken,
)
from .study import ALONE, BEST, JOB, Run, Study

LAYOUT = (*(field.name for field in fields(Layout)), "hybrid")


@dataclass(frozen=True)
class Context:
    """What the questions of one context have in common."""

    model: Model
    cluster: Cluster
    engine: Engine
    job: Job
    picked: Mapping[str, Any]

    @property
    def fixed(self) -> dict[str, Any]:
        """Fields of a layout that do not vary in it, but for a split that is sought."""
        given = {name: value for name, value in self.picked.items() if name in LAYOUT}
        return {name: value for name, value in given.items() if (name, value) != ("split", BEST)}

    def bill(self, given: Mapping[str, Any]) -> Bill:
        """The bill of one of its layouts, with the best split of each where that is asked for."""
        how = best_count if self.picked.get("split") == BEST else count
        return how(self.model, self.job, self.cluster, Layout(**self.fixed, **given), self.engine)

    @property
    def price(self) -> float:
        """Dollars an hour of one accelerator; NaN where the catalogue has none."""
        dollars = self.cluster.dollars()
        return float("nan") if dollars is None else dollars / self.cluster.ranks


def context_of(picked: Mapping[str, Any]) -> Context:
    """One context, under its profile. Raises InputError where the profile is of another accelerator."""
    cluster, driver = picked["on"], find_engine(picked["engine"])
    if picked.get("profile") is not None:
        cluster, driver = profiled(picked["profile"], cluster, driver)
    job = Job(**{name: value for name, value in picked.items() if name in JOB})
    return Context(picked["model"], cluster, driver, job, picked)


def answers(study: Study, part: int) -> list[tuple[int, Columns]]:
    """The rows of a part, context by context: how many they are, and their columns."""
    return [(run.stop - run.start, _answered(study, run)) for run in study.runs(part)]


def _answered(study: Study, run: Run) -> Columns:
    prices, price = len(study.prices), np.nan
    low, high = run.start // prices, (run.stop - 1) // prices + 1
    places = _places(study, low, high)
    try:
        context = context_of(study.picked(run.context))
        price = context.price
        found = _counted(study, context, places, study.texts(run.context))
    except InputError as error:
        found = _unasked(study, run.context, error, places)
    questions = np.arange(run.start, run.stop)
    if prices > 1:
        found = taken(found, questions // prices - low)
    paid = np.asarray([price if own is None else own for own in study.prices], float)[questions % prices]
    found = _site(study, run.context) | found | {"question": questions + float(run.context * study.together)}
    found = limited(priced(found, paid), study.limits, len(questions))
    return {name: found.get(name) for name in schema(study)}


def _places(study: Study, low: int, high: int) -> list[Any]:
    """Which value of each axis of the grid some layouts have."""
    shape = tuple(len(axis.values) for axis in study.grid)
    return list(np.unravel_index(np.arange(low, high), shape)) if shape else []


def _site(study: Study, context: int) -> Columns:
    """The columns that say what was asked."""
    texts = study.texts(context)
    found: Columns = {name: texts[name] for name in ("model", "on", "engine", "profile", "space") if name in texts}
    if study.kind == "plan":
        found |= {SEARCHED_BY + name: text for name, text in texts.items() if name in LAYOUT}
    return found | {"ranks": float(study.picked(context)["on"].ranks)}


def _counted(study: Study, at: Context, places: list[Any], texts: Mapping[str, str]) -> Columns:
    """The rows of some layouts of a context, or the one of its plan."""
    if study.kind == "plan":
        found, job = plan_row(at.model, at.job, at.cluster, at.engine, at.picked)
        return job_columns(job, texts) | found
    if not study.by_grid:
        return _bills(study, at, places, texts)
    case, _ = case_of(at.model, at.job, at.cluster, Layout(**at.fixed), at.engine)
    lists: Columns = {name: plainly(name, at.picked[name], texts[name]) for name in ALONE if name in texts}
    return job_columns(case.job, texts) | lists | count_layouts(case, at.fixed, study.grid, places)


def _bills(study: Study, at: Context, places: list[Any], texts: Mapping[str, str]) -> Columns:
    """The same, a bill a layout."""
    rows = []
    for given, row in _given(study, places):
        try:
            bill = at.bill(given)
            row |= job_columns(bill.job, texts) | row_of(bill)
            row |= split_column(bill) if at.picked.get("split") == BEST else {}
        except InputError as error:
            row |= {"verdict": None, "broken": _codes(error)}
        rows.append(row)
    lists: Columns = {name: plainly(name, at.picked[name], texts[name]) for name in ALONE if name in texts}
    return lists | joined_rows(rows, schema(study))


def _given(study: Study, places: list[Any]) -> list[tuple[dict[str, Any], Columns]]:
    """The fields that the axes of the grid give each layout, as values and as columns."""
    size = len(places[0]) if places else 1
    found = []
    for row in range(size):
        at = [(axis, int(place[row])) for axis, place in zip(study.grid, places)]
        values = {axis.name: axis.values[place] for axis, place in at}
        found.append((values, {name: plainly(name, value) for name, value in values.items()}))
    return found


def _codes(error: InputError) -> str:
    return " ".join(dict.fromkeys(fault.code for fault in error.faults))


def _unasked(study: Study, context: int, error: InputError, places: list[Any]) -> Columns:
    """Questions that cannot be asked: their fields, and the codes of what is wrong."""
    picked, texts = study.picked(context), study.texts(context)
    names = (*JOB, *LAYOUT) if study.kind == "count" else JOB
    given: Columns = {name: plainly(name, value, texts[name]) for name, value in picked.items() if name in names}
    rows = joined_rows([row for _, row in _given(study, places)], schema(study))
    return given | rows | {"verdict": None, "broken": _codes(error)}

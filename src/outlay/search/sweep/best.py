"""One question of a sweep of plans: the best layout of its space, as a row."""

from collections.abc import Mapping
from typing import Any

from ...bill import count
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...errors import Fault, InputError
from ...job import Job
from ...layout.complete import flag
from ...model.model import Model
from ..blocks import Grid
from ..narrow import NAMES, Span, narrow, unsearchable
from ..plan import asked, plan, sweep
from ..rows import legal_rows
from ..space import DEGREES, Space, declare
from ..split.best import takes_split
from ..split.plan import resplit
from .rows import Columns, row_of, split_column
from .study import BEST

TRIED = 20  # layouts of a plan that are given their best split, as `outlay plan` does


def plan_row(
    model: Model, job: Job, cluster: Cluster, engine: Engine, picked: Mapping[str, Any]
) -> tuple[Columns, Job]:  # fmt: skip
    """The row of the fastest layout that fits; where none does, of the one that needs least memory; and the whole job.

    Raises InputError for what cannot be asked.
    """
    case, _ = asked(model, job, cluster, engine)
    space = declare(model, case.job, cluster, case.engine, picked.get("space", "wide"))
    space = narrow(space, **_narrowed(picked, space))
    if faults := unsearchable(space):
        raise InputError(*faults)
    if picked.get("split") == BEST:
        return _split_row(model, case.job, cluster, engine, picked), case.job
    grid = Grid(case, space, legal_rows(case, space))
    found = sweep(grid, 1)
    if not found.whole:
        raise KeyboardInterrupt
    searched: Columns = {"legal": float(grid.layouts), "fitting": float(found.best.fitting)}
    kept = found.best.found or found.least.found
    if not kept:
        code = list(grid.rows.rejected)[-1] if grid.rows.rejected else "LAY012"
        return searched | {"verdict": None, "broken": code}, case.job
    (layout,) = grid.layouts_at([kept[0].row], [kept[0].cell])
    return searched | row_of(count(model, case.job, cluster, layout, case.engine)), case.job


def _split_row(model: Model, job: Job, cluster: Cluster, engine: Engine, picked: Mapping[str, Any]) -> Columns:
    """The same of the best layouts, each with its best split."""
    takes_split(engine)
    width = picked.get("space", "wide")
    narrowed = _narrowed(picked, declare(model, job, cluster, engine, width))
    first = plan(model, job, cluster, engine, width=width, best=TRIED, **narrowed)
    if not first.search.proved:
        raise KeyboardInterrupt
    found, search = resplit(first, TRIED), first.search
    searched: Columns = {"legal": float(search.legal), "fitting": float(search.counted - search.did_not_fit)}
    kept = found.best[0] if found.best else found.smallest
    if kept is None:
        return searched | {"verdict": None, "broken": found.emptied.code if found.emptied else "LAY012"}
    return searched | row_of(kept.bill) | split_column(kept.bill)


def _narrowed(picked: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """The values that each field keeps, ranges as the declared values inside them."""
    found = {}
    for name in NAMES:
        if name not in picked:
            continue
        declared = space.degrees[name] if name in DEGREES else tuple({stage for stage, _ in space.zero})
        kept = [each for value in picked[name] for each in _inside(value, declared)]
        if not kept:
            rule = f"a range keeps declared values: {', '.join(map(str, declared))}"
            raise InputError(Fault("PLN006", f"no declared value of {flag(name)} is in the range", rule, "", ""))
        found[name] = tuple(dict.fromkeys(kept))
    return found


def _inside(value: Any, declared: tuple[Any, ...]) -> tuple[Any, ...]:
    return value.inside(declared) if isinstance(value, Span) else (value,)

"""Why a space is empty: the rule that leaves nothing of it, and the nearest layouts, or batches, that are legal."""

from dataclasses import dataclass, replace

import numpy as np

from ..job import Job
from ..layout.axes import Layout
from ..layout.case import Case
from ..layout.complete import flag
from ..layout.degrees import divisors
from ..layout.rules import RULES
from .rows import Array, Rows, legal_rows
from .space import Space, declare

SHOWN = ("tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch")
MOST = 3


@dataclass(frozen=True)
class Emptied:
    """The rule that was the last to reject a layout, and ways out that work."""

    code: str
    what: str
    rule: str
    nearest: tuple[str, ...]


def emptied(case: Case, space: Space, rows: Rows) -> Emptied:
    """What empties a space that has no legal row."""
    code = list(rows.rejected)[-1] if rows.rejected else "LAY012"
    rule = next(rule for rule in RULES if rule.code == code)
    return Emptied(code, rule.what, rule.rule, _near_layouts(case, space) or _near_batches(case))


def _near_layouts(case: Case, space: Space) -> tuple[str, ...]:
    """Legal rows of the whole declared space, closest to the values that were asked for."""
    found = legal_rows(case, declare(case.model, case.job, case.cluster, case.engine)).layout
    if not np.size(found.tp):
        return ()
    far = sum(_distance(np.asarray(getattr(found, name)), space.degrees[name]) for name in SHOWN)
    texts = (_text(found, int(row)) for row in np.argsort(far, kind="stable"))
    return tuple(dict.fromkeys(text for _, text in zip(range(200), texts, strict=False)))[:MOST]


def _distance(values: Array, wanted: tuple[int, ...]) -> Array:
    """How often each value is doubled or halved to reach the nearest of those wanted."""
    far: Array = np.min([abs(np.log2(values / want)) for want in wanted], axis=0)
    return far


def _text(rows: Layout, row: int) -> str:
    degrees = {name: int(np.broadcast_to(getattr(rows, name), np.shape(rows.tp))[row]) for name in SHOWN}
    return " ".join(f"{flag(name)} {degree}" for name, degree in degrees.items() if degree > 1 or name in ("tp", "pp"))


def _near_batches(case: Case) -> tuple[str, ...]:
    """Batches close to the one asked for that leave some layout: multiples of the data-parallel ways."""
    now = case.job.global_batch
    ways = divisors(case.cluster.ranks)
    tried = sorted(
        {way * max(1, round(now / way)) for way in ways} | {way for way in ways if way > now},
        key=lambda b: abs(b - now),
    )
    kept = [batch for batch in tried if _has_layout(case, replace(case.job, global_batch=batch))]
    return tuple(f"{flag('global_batch')} {batch}" for batch in kept[:MOST])


def _has_layout(case: Case, job: Job) -> bool:
    asked = replace(case, job=job)
    return bool(np.size(legal_rows(asked, declare(case.model, job, case.cluster, case.engine)).layout.tp))

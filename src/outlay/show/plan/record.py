"""A plan as a record, for JSON. Equal questions give equal records, measured durations aside."""

from dataclasses import fields

from ...search.empty import Emptied
from ...search.plan import Baseline, FrontierPoint, Plan, Ranked
from ...search.retimed import Simulation
from ...search.why import Reason
from ...search.worth import Worth
from ...undivided import parameters
from ..record import Record, head, plain, record, shape
from .answer import Answer, split_text
from .sought import STOPPED


def plan_record(answer: Answer) -> Record:
    """The ranking, the frontier, the baselines, and what was searched."""
    found = answer.plan
    return head("plan") | {
        "model": shape(found.model, parameters(found.model)),
        "job": plain(found.job),
        "cluster": plain(found.cluster),
        "engine": found.engine.name,
        "space": {"width": answer.width, **plain(found.space)},
        "objective": answer.objective,
        "best": [ranked(each) for each in found.best],
        "frontier": [_point(point) for point in found.frontier],
        "baselines": [_baseline(each) for each in found.baselines],
        "rejected": plain(found.rejected),
        "search": plain(found.search),
        "smallest": ranked(found.smallest) if found.smallest else None,
        "tried": plain(answer.tried),
        "simulated": _simulation(answer.simulation) if answer.simulation else None,
        "worth": [_worth(each) for each in answer.worths],
        "why": _why(answer.why) if answer.why else None,
        "violations": [_violation(found, found.emptied)] if found.emptied else [],
        "assumptions": [*answer.notes, *filter(None, [split_text(answer)]), *found.assumptions, *_unknown(answer)],
        **_mixed(answer),
        **_orders(answer),
    }


def _mixed(answer: Answer) -> Record:
    if answer.mixed is None:
        return {}
    from ..mixed import mixed_record

    return {"mixed": mixed_record(answer.mixed)}


def _orders(answer: Answer) -> Record:
    if answer.orders is None:
        return {}
    from .orders import orders_record

    return {"orders": orders_record(answer.orders)}


def ranked(each: Ranked) -> Record:
    """One layout and its bill."""
    return {"layout": plain(each.layout), "bill": record(each.bill)}


def _worth(each: Worth) -> Record:
    names = [field.name for field in fields(each) if field.name != "layout"]
    return {name: plain(getattr(each, name)) for name in names} | {
        "layout": plain(each.layout) if each.layout else None
    }


def _simulation(of: Simulation) -> Record:
    ranking = [{"place": each.place, "seconds": each.seconds} for each in of.ranking]
    return {"ranking": ranking, "proved": of.proved, "gap": of.gap}


def _why(reason: Reason) -> Record:
    found = ranked(reason.ranked) if reason.ranked else {"layout": None, "bill": None}
    names = [field.name for field in fields(reason) if field.name not in ("asked", "ranked")]
    return {"asked": dict(reason.asked)} | {name: plain(getattr(reason, name)) for name in names} | found


def _point(point: FrontierPoint) -> Record:
    names = [field.name for field in fields(point) if field.name != "layout"]
    return {name: plain(getattr(point, name)) for name in names} | {"layout": plain(point.layout)}


def _baseline(each: Baseline) -> Record:
    found = ranked(each.ranked) if each.ranked else {"layout": None, "bill": None}
    return {"name": each.name} | found


def _violation(found: Plan, why: Emptied) -> Record:
    """The rule that empties a space, in the form of a bill's violations."""
    fix = "; or ".join(why.nearest) or "another batch or another cluster"
    return {
        "code": why.code,
        "what": why.what,
        "rule": why.rule,
        "got": f"none of {found.search.space:,} combinations is legal",
        "fix": fix,
        "legal_values": [],
        "nearest": list(why.nearest),
    }


def _unknown(answer: Answer) -> list[str]:
    """What is null in the record, and why; and whether a search was stopped before the answer was sure."""
    several = answer.several is not None and not answer.several.proved
    said = [STOPPED] if several else []
    if not answer.plan.search.proved:
        said.append("search.gap is null: the search was stopped before it counted every layout")
    return said

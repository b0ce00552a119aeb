"""For each degree of a layout, the values that break no rule, with the others as they are."""

from dataclasses import replace
from typing import Any

from ...bill import case_of, load
from ...errors import InputError
from ...layout.degrees import divisors
from ...layout.rules import rules_of
from ...memory.hosted import hosted, unhosted
from ..question import Question

MOST = 64  # values of one field that are tried
NAMES = {"micro_batch": "mbs"}
OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


def legal_values(question: Question) -> dict[str, list[int]]:
    """The values of each field, by the name of its flag."""
    case = case_of(question.model, question.job, question.clusters[0], question.layout, question.engine)[0]
    found = {}
    for field, tried in candidates(case).items():
        values = sorted({*tried[:MOST], int(getattr(case.layout, field))})
        found[NAMES.get(field, field)] = [value for value in values if is_legal(question, field, value)]
    return found


def candidates(case: Any) -> dict[str, tuple[int, ...]]:
    """Values of each field that are worth a try."""
    ranks, experts, layers = case.cluster.ranks, case.model.experts, case.model.layers
    return {
        "tp": divisors(ranks, 1024),
        "cp": divisors(ranks, 1024),
        "pp": tuple(value for value in divisors(ranks, 1024) if value <= layers),
        "vpp": tuple(range(1, min(layers, MOST) + 1)),
        "ep": divisors(experts, 1024) if experts else (1,),
        "etp": divisors(ranks, 64) if experts else (1,),
        "dp_replicate": divisors(ranks, 1024),
        "micro_batch": divisors(int(case.job.global_batch), 1024),
        "zero": (0, 1, 2, 3),
    }


def is_legal(question: Question, field: str, value: int) -> bool:
    """Whether the question breaks no rule with one field changed."""
    changed: dict[str, Any] = {field: value}
    layout = replace(question.layout, **changed)
    try:
        case, _ = case_of(question.model, question.job, question.clusters[0], layout, question.engine)
    except InputError:
        return False
    if not all(bool(rule.legal(case)) for rule in rules_of(case.engine.name)):
        return False
    if not any(getattr(case.layout, name) for name in OFFLOADS):
        return True
    return unhosted(float(hosted(load(case).stages, case)), case) is None

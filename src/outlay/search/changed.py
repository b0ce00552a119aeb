"""A bill's question with something changed: whether it fits, its peak and its time, without the rest of a bill."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..bill import Bill, case_of, countable
from ..cluster.accelerator import Cluster
from ..errors import InputError
from ..job import AUTO
from ..layer import ModelCosts, costs_of
from ..layout.case import Case
from ..layout.rules import rules_of
from ..layout.stages import candidates, whole
from ..memory.hosted import hosted, unhosted
from ..memory.peak import Stages, peak
from ..stage import stage_costs
from ..step.total import step_seconds
from .fitting import limits


@dataclass(frozen=True)
class After:
    """A legal layout with its peak; its time is counted where it is read."""

    case: Case
    costs: ModelCosts
    stages: Stages  # among which the worst one is

    @cached_property
    def peak_bytes(self) -> float:
        """Peak of the worst rank."""
        return float(peak(self.stages, self.case))

    @cached_property
    def fits(self) -> bool:
        """Whether it fits for sure."""
        return self.peak_bytes <= limits(self.case).fits

    @cached_property
    def seconds(self) -> float:
        """One step."""
        all_layers = stage_costs(whole(self.case.model), self.costs, self.case.layout.pp)
        return float(step_seconds(self.stages, all_layers, self.case))

    @property
    def tokens_per_second_per_device(self) -> float:
        """What one accelerator yields."""
        job = self.case.job
        tokens: float = job.global_batch * job.sequence_length * job.useful_share / self.seconds
        return tokens / self.case.cluster.ranks


def grown(cluster: Cluster, times: int) -> Cluster:
    """So many times the accelerators, joined in the same way."""
    ranks = times * cluster.ranks
    larger = replace(cluster, name=f"{ranks}x{cluster.accelerator.name}", ranks=ranks)
    if cluster.spine:
        return replace(larger, spine=replace(cluster.spine, size=ranks))
    return replace(larger, outside=replace(cluster.outside, size=max(ranks, cluster.outside.size)))


def after_of(bill: Bill, layout: dict[str, Any], job: dict[str, Any], times: int = 1) -> After | None:
    """A bill's question with some fields of its layout and job changed, on so many times its accelerators; nothing
    where it cannot be counted or is not legal."""
    again: dict[str, Any] = {"frozen_format": AUTO} if "adapter" in job else {}
    cluster = grown(bill.cluster, times) if times > 1 else bill.cluster
    task = replace(bill.job, **job, **again) if job else bill.job
    try:
        case = case_of(bill.model, task, cluster, replace(bill.layout, **layout), bill.engine)[0]
    except InputError:
        return None
    if not all(bool(rule.legal(case)) for rule in rules_of(case.engine.name)):
        return None
    counted = countable(case)
    # The groups of one layer's exchanges lie inside what they had before: more accelerators change none of its costs.
    costs = costs_of(replace(counted, cluster=bill.cluster))
    stages = tuple(
        stage_costs(stage, costs) for stage in candidates(case.model, counted.layout, case.engine.counts_ends)
    )
    return None if unhosted(float(hosted(stages, counted)), case) else After(counted, costs, stages)

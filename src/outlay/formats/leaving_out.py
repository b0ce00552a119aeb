"""What a format leaves out: fields that it has no word for, where they are not what the framework takes by itself."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from ..cluster.accelerator import Cluster
from ..engines.tables import engine
from ..job import Job
from ..layout.axes import Layout
from ..layout.complete import complete_job, complete_layout, flag
from .setting import Lost, Run

STATE = ("bytes_per_parameter", "master_dtype", "moment_dtype", "gradient_dtype", "reduce_dtype", "gather_dtype")
ASKED = "it is part of outlay's question, not of the run"
# Fields of the question that no framework has: how to count, what else is on the cards, what was measured.
QUESTION = ("attention_flops", "expert_imbalance", "reserved_bytes", "beside", "measured")
AXES = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "dp_shard", "micro_batch", "schedule", "split")


def left_out(run: Run, driver: str, held: Collection[str], reasons: Mapping[str, str]) -> Iterator[Lost]:
    """Every field beside those that the format holds, where its value is not the framework's own."""
    same = Layout(**{name: getattr(run.layout, name) for name in AXES})
    layout, _ = complete_layout(run.model, run.cluster, same, engine(driver))
    plain = Job(run.job.sequence_length, run.job.global_batch, precision=run.job.precision)
    job, _ = complete_job(run.model, plain, run.cluster, layout, engine(driver))
    idle = without_effect(run)
    for record, usual in ((run.layout, layout), (run.job, job)):
        for field in fields(record):
            value, own = getattr(record, field.name), getattr(usual, field.name)
            if (
                field.name in held
                or field.name in idle
                or field.name in STATE
                or value == own
                or _as_list(value) == _as_list(own)
            ):
                continue
            usual_why = ASKED if field.name in QUESTION else "it has no setting for it"
            yield lost(run, field.name, reasons.get(field.name, usual_why))


def without_effect(run: Run) -> frozenset[str]:
    """Fields that change nothing in a layout, whatever they hold."""
    at = run.layout
    idle = {"cp_kind"} if at.cp == 1 else set()
    idle |= set() if at.sp and at.tp > 1 else {"keep_gathered", "overlap_tp"}
    idle |= set() if at.ep > 1 else {"moe_dispatch", "overlap_ep"}
    idle |= set() if at.recompute == "full" else {"recompute_group"}
    return frozenset(idle | (set() if run.job.optimizer == "galore" else {"galore_rank"}))


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | list) else value


def lost(run: Run, name: str, why: str) -> Lost:
    """One field that a format cannot hold, by its flag."""
    record = run.layout if name in {field.name for field in fields(Layout)} else run.job
    value = getattr(record, name)
    shown = ",".join(map(str, value)) if isinstance(value, tuple | list) else f"{value}"
    kind = "layout" if record is run.layout else "job"
    return Lost(f"{kind}.{name}", f"({flag(name)} {shown[:80]})", why)


def completed(run: Run, job: Job, layout: Layout, driver: str) -> Run:
    """A run as a file says it, on the cluster and with the model of another one, every field filled."""
    other = engine(driver)
    whole, _ = complete_layout(run.model, run.cluster, layout, other)
    task, _ = complete_job(run.model, job, run.cluster, whole, other)
    return replace(run, job=task, layout=whole, engine=other)


def cards_of(cluster: Cluster) -> tuple[int, int]:
    """Cards of a node, and nodes: the scale-up domain, at most eight of it, where it shares the ranks out."""
    each = max((size for size in range(1, min(8, cluster.inside.size) + 1) if cluster.ranks % size == 0), default=1)
    return each, cluster.ranks // each

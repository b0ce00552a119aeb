"""The same formulas on arrays: a cell of a grid is the bill of its layout, to rounding."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from models import MODELS, loaded
from outlay import Job, Model, load_cluster, load_engine
from outlay.bill import load
from outlay.job import recipe_of
from outlay.layer import model_costs
from outlay.layout.axes import Layout
from outlay.layout.case import Case
from outlay.layout.stages import candidates, whole
from outlay.memory.peak import peak
from outlay.schedule.laws import SCHEDULES
from outlay.stage import stage_costs
from outlay.step.total import step_seconds

CELLS = 400  # for each model: 2,000 in all


def axis(place: int, *values: Any) -> np.ndarray:
    """Values along one of the six axes of a block."""
    return np.asarray(values).reshape([-1 if place == other else 1 for other in range(6)])


def block(model: Model, schedule: str, random: np.random.Generator) -> Layout:
    """Forty random rows of degrees, times options that constrain nothing."""
    experts = model.experts
    tp, cp, pp, dp = (random.choice([1, 2, 4, 8], 40).reshape(-1, 1, 1, 1, 1, 1).astype(float) for _ in range(4))
    vpp = np.full_like(pp, 2.0 if schedule == "interleaved" else 1.0)
    return Layout.grid(
        tp=tp, sp=(tp > 1) & (random.random(tp.shape) < 0.7), cp=cp, pp=pp, vpp=vpp, dp_shard=dp,
        dp_replicate=random.choice([1, 2], 40).reshape(-1, 1, 1, 1, 1, 1).astype(float),
        ep=np.minimum(random.choice([1, 2, 4], 40).reshape(-1, 1, 1, 1, 1, 1), tp * cp * dp) if experts else 1.0,
        etp=1.0, cp_kind=random.choice(["ring", "ulysses"], 40).reshape(-1, 1, 1, 1, 1, 1), moe_dispatch="all_to_all",
        micro_batch=random.choice([1, 2, 3], 40).reshape(-1, 1, 1, 1, 1, 1).astype(float), schedule=schedule, split=(),
        zero=axis(1, 0.0, 1.0, 2.0, 3.0), recompute=axis(2, "none", "selective", "full"),
        recompute_layers=axis(2, 0.0, 0.0, 3.0), overlap_tp=axis(3, False, True), overlap_dp=axis(4, False, True),
        offload_optimizer=axis(5, 0.0, 0.5), offload_parameters=0.0, offload_activations=0.0,
    )  # fmt: skip


def counted(case: Case) -> tuple[Any, Any]:
    """Peak and step of a case whose layout holds arrays."""
    costs = model_costs(case.model, case.job, case.cluster, case.layout, case.engine)
    found = candidates(case.model, case.layout, case.engine.counts_ends)
    stages = tuple(stage_costs(stage, costs) for stage in found)
    return peak(stages, case), step_seconds(stages, stage_costs(whole(case.model), costs, case.layout.pp), case)


def cell(layout: Layout, where: tuple[int, ...]) -> Layout:
    """One cell of a grid of layouts, as Python numbers."""
    picked = {}
    for field in fields(layout):
        value = getattr(layout, field.name)
        if isinstance(value, np.ndarray):
            value = value[tuple(min(at, size - 1) for at, size in zip(where, value.shape, strict=True))].item()
        picked[field.name] = int(value) if isinstance(value, float) and value == int(value) else value
    return Layout(**picked)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_cell_of_a_grid_is_the_bill_of_its_layout(model: Model) -> None:
    random, worst, seen = np.random.default_rng(7), 0.0, 0
    cluster = load_cluster("4096xh100-sxm")
    job = replace(loaded(model).case.job, sequence_length=2048, global_batch=4608)
    for schedule in SCHEDULES:
        for engine in ("megatron", "fsdp2"):
            driver = load_engine(engine)
            case = Case(
                model,
                job,
                cluster,
                driver,
                recipe_of(job, driver, cluster.accelerator),
                SCHEDULES[schedule],
                block(model, schedule, random),
            )
            peaks, times = counted(case)
            shape = np.broadcast_shapes(np.shape(peaks), np.shape(times), (40, 4, 3, 2, 2, 2))
            peaks, times = np.broadcast_to(peaks, shape), np.broadcast_to(times, shape)
            for _ in range(CELLS // 6 + 1):
                at = tuple(int(random.integers(0, size)) for size in shape)
                alone = load(replace(case, layout=cell(case.layout, at)))
                one = float(peak(alone.stages, alone.case)), float(step_seconds(alone.stages, alone.whole, alone.case))
                worst = max(worst, abs(peaks[at] / one[0] - 1), abs(times[at] / one[1] - 1))
                seen += 1
    assert seen >= CELLS
    assert worst <= 1e-12


def test_a_count_of_a_scalar_layout_is_a_python_number() -> None:
    at = loaded(MODELS[3], "2048xh100-sxm", tp=1, pp=16, ep=64, batch=15360)
    assert type(peak(at.stages, at.case)) in (int, float)
    assert type(step_seconds(at.stages, at.whole, at.case)) in (int, float)
    assert type(Job(4096, 1, precision="bf16").activation_bytes) is int

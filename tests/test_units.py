"""Every formula of the package runs on its units: data, time and work are dimensions, all else are plain numbers."""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import outlay
from models import DEEPSEEK_V3, loaded
from outlay.cluster.network import DeepGroup
from outlay.engines.rates import rates
from outlay.engines.tables import kernel_set, precision
from outlay.job import Beside, Packing
from outlay.layout.sizes import sizes
from outlay.memory.saved import written_of
from outlay.model.blocks import rows
from outlay.model.head import Head
from outlay.model.modules import checkpoints
from outlay.model.moves import Move
from outlay.model.operations import Attention, Linear, Pointwise, Row
from outlay.model.policies import Saved
from outlay.model.quantised import Quantised
from outlay.model.scan import Scan, Scores
from outlay.quantities import unit_of
from outlay.reading import check, field_units, formulas, function_of, is_quantity
from outlay.sums import split_moves
from units import quantity, result_units

FACES = ("outlay.cli", "outlay.show", "outlay.validate", "outlay.verify", "outlay.__main__")
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(outlay.__path__, "outlay.")
    if not module.name.startswith(FACES)
]
FORMULAS = {
    f"{module.__name__}.{function_of(each).__qualname__}": each for module in MODULES for each in formulas(module)
}

AT = loaded(
    replace(DEEPSEEK_V3, tied=True),
    "2048xh100-sxm",
    tp=2,
    pp=8,
    ep=16,
    cp=2,
    dp_shard=32,
    batch=15360,
    zero=3,
    recompute="full",
    dp_replicate=2,
)
BLOCK = DEEPSEEK_V3.blocks[-1]
KERNELS = kernel_set("transformer_engine")
WORK, MOVES = split_moves(rows(DEEPSEEK_V3, BLOCK, KERNELS))
HERE = dict(sizes(DEEPSEEK_V3, BLOCK, AT.case.job, AT.case.layout, AT.case.engine, KERNELS)) | {
    **dict.fromkeys(("value", "gathered_value"), quantity(2, "B")),
    "byte": quantity(1, "B"), "multiply_add": quantity(2, "FLOP"),
    **dict.fromkeys(("router_wait", "host_floor", "host_floor_back"), quantity(1e-3, "s")),
}  # fmt: skip


def first(kind: type) -> Any:
    """The first row of a kind."""
    return next(row for row in (*WORK, *MOVES["tp"]) if type(row) is kind)


def dressed(value: Any) -> Any:
    """A record with units on all annotated fields, and on those of the records inside it."""
    if isinstance(value, tuple):
        return tuple(dressed(each) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    units, copied = field_units(type(value)), copy.copy(value)
    for field in fields(value):
        held = getattr(value, field.name)
        united = quantity(held, units[field.name]) if field.name in units else dressed(held)
        object.__setattr__(copied, field.name, united)
    return copied


@pytest.fixture(autouse=True)
def constants_with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants of the modules take their units while a formula runs."""
    for module in MODULES:
        for name, hint in vars(module).get("__annotations__", {}).items():
            if is_quantity(hint):
                monkeypatch.setattr(module, name, quantity(getattr(module, name), unit_of(hint)))


case = dressed(AT.case)
vars(case)["workspaces"] = dressed(AT.case.workspaces)  # looked up in a table, where figures have no units
vars(case)["time_bands"] = dressed(AT.case.time_bands)
SPEED = dressed(rates(AT.case.cluster.accelerator, precision("bf16"), KERNELS, AT.case.recipe))
ROWS = dressed(WORK)
STAGES = dressed(AT.stages)
AGAIN = tuple(map(dressed, checkpoints(rows(DEEPSEEK_V3, BLOCK, KERNELS), ("core_attn", "layernorm", "moe"), KERNELS)))
PACKED = Quantised("proj", "T", "o", "hidden", trained=False, stored=0.5, largest="hidden")
EXAMPLES: dict[str, Any] = {
    "case": case, "engine": case.engine, "cluster": case.cluster, "layout": case.layout, "stages": STAGES,
    "job": case.job,
    "stage": STAGES[1], "busy": STAGES[1], "heavy": STAGES[0], "whole": dressed(AT.whole),
    "held": STAGES[1].layers[-1], "shapes": STAGES[1].matrices[0], "axis": "tp", "here": HERE, "rows": ROWS,
    "moves": MOVES["tp"],
    "core": tuple(row for row in ROWS if type(row) is Attention),
    "rates": SPEED, "speed": SPEED, "accelerator": case.cluster.accelerator, "link": case.cluster.outside,
    "group": case.dense_replicas.shard, "kind": "dense", "moments": case.recipe.moments,
    "one": AGAIN[0], "found": AGAIN,
    "row": Row("row"), "linear": first(Linear), "pointwise": dressed(first(Pointwise)),
    "linears": tuple(row for row in ROWS if isinstance(row, Linear)),
    "tables": tuple(row for row in ROWS if isinstance(row, Pointwise)),
    "others": tuple(row for row in ROWS if not isinstance(row, Linear | Pointwise)),
    "packed": (dressed(PACKED),), "replicas": case.dense_replicas, "written": dressed(written_of(AT.case)),
}  # fmt: skip
OWNERS: dict[str, Any] = {
    "Job": case.job, "Layout": case.layout, "Case": case, "Row": Row("row"), "Linear": first(Linear),
    "Pointwise": dressed(first(Pointwise)), "Attention": dressed(first(Attention)),
    "Beside": dressed(Beside("critic", "critic", 8e9, 8)), "Packing": Packing(512.0, 1.0),
    "Scores": Scores("scores", "T", "q"), "Scan": Scan("scan", "T", "q", "hidden", "q"),
    "Move": first(Move), "Recipe": case.recipe, "Group": case.dense_replicas.shard,
    "DeepGroup": DeepGroup(8, 8, case.cluster), "Replicas": case.dense_replicas,
    "Quantised": dressed(PACKED), "Head": dressed(Head("head", "T", "hidden", "vocab")),
    "Saved": Saved("q", "T", "q"), "Held": STAGES[1].layers[-1], "StageCosts": STAGES[1], "StageExchange": STAGES[1],
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "outlay.cluster.efficiency": {"here": SPEED}, "outlay.schedule.bubble": {"whole": 8},
    "outlay.layer_passes": {"again": ROWS, "work": ROWS}, "outlay.step.traffic": {"model": case.model},
}  # fmt: skip


def examples(formula: Callable[..., Any]) -> dict[str, Any]:
    """An example for each input: a record from the table, else a number that takes the unit of its parameter."""
    function = function_of(formula)
    own = OWN.get(function.__module__, {})
    found = {}
    for name in inspect.signature(function).parameters:
        if name == "self":
            found[name] = OWNERS[function.__qualname__.split(".")[0]]
        else:
            found[name] = own.get(name, EXAMPLES.get(name, 8))
    return found


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_straight_line_and_can_be_read(name: str) -> None:
    assert check(FORMULAS[name]) is None


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_gives_the_dimension_that_it_says(name: str) -> None:
    assert result_units(FORMULAS[name], **examples(FORMULAS[name])) is None


def test_the_formulas_of_all_rooms_were_found() -> None:
    rooms = {name.split(".")[1] for name in FORMULAS}
    assert rooms >= {"cluster", "job", "schedule", "layout", "model", "layer", "memory", "step", "ladder"}
    assert len(FORMULAS) > 120

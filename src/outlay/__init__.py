"""outlay counts what a layout of a distributed training run costs, before anyone pays for it.

>>> import outlay
>>> model = outlay.load_model("llama-3.1-70b")
>>> job = outlay.Job(sequence_length=8192, global_batch=512)
>>> bill = outlay.count(model, job, outlay.load_cluster("64xh100-sxm"), outlay.Layout(tp=8, pp=4))
>>> bill.memory.verdict, bill.bubble.slots
('fits', 259.0)
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .shown import shown_by

if TYPE_CHECKING:
    from .bill import Bill, count
    from .cluster.accelerator import Cluster
    from .cluster.catalogue import cluster as load_cluster
    from .derivation import explain
    from .engines.engine import Engine
    from .engines.tables import engine as load_engine
    from .errors import Fault, InputError, OutlayError
    from .job import Beside, Job, Measured, Packing
    from .ladder import explain_count
    from .layout.axes import Layout
    from .measured import reached_of
    from .model.catalogue import find as load_model
    from .model.model import Model
    from .search.plan import Plan, plan
    from .search.split.best import best_split
    from .undivided import Parameters, parameters
    from .whole_run import goodput_of, run_of

# Each is loaded when it is asked for: a bill does not wait for a search, nor a line of help for either.
_PLACES = {
    "Beside": "job.Beside",
    "Bill": "bill.Bill",
    "Cluster": "cluster.accelerator.Cluster",
    "Engine": "engines.engine.Engine",
    "Fault": "errors.Fault",
    "InputError": "errors.InputError",
    "Job": "job.Job",
    "Layout": "layout.axes.Layout",
    "Measured": "job.Measured",
    "Model": "model.model.Model",
    "OutlayError": "errors.OutlayError",
    "Packing": "job.Packing",
    "Parameters": "undivided.Parameters",
    "Plan": "search.plan.Plan",
    "best_split": "search.split.best.best_split",
    "count": "bill.count",
    "explain": "derivation.explain",
    "explain_count": "ladder.explain_count",
    "goodput_of": "whole_run.goodput_of",
    "load_cluster": "cluster.catalogue.cluster",
    "load_engine": "engines.tables.engine",
    "load_model": "model.catalogue.find",
    "parameters": "undivided.parameters",
    "plan": "search.plan.plan",
    "reached_of": "measured.reached_of",
    "run_of": "whole_run.run_of",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own = _PLACES[name].rpartition(".")
    found = globals()[name] = getattr(import_module(f".{module}", __name__), own)
    return found


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("_"))]


def _notebook() -> Any:
    return import_module(".show.notebook", __name__).html_of


shown_by(_notebook)  # a bill, a plan and a timeline show as HTML in a notebook; the face is loaded by the first

__all__ = [
    "Beside",
    "Bill",
    "Cluster",
    "Engine",
    "Fault",
    "InputError",
    "Job",
    "Layout",
    "Measured",
    "Model",
    "OutlayError",
    "Packing",
    "Parameters",
    "Plan",
    "best_split",
    "count",
    "explain",
    "explain_count",
    "goodput_of",
    "load_cluster",
    "load_engine",
    "load_model",
    "parameters",
    "plan",
    "reached_of",
    "run_of",
]

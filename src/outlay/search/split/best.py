"""The best split: layers to the stages of a pipeline, so that the step is short and every stage fits."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...bill import Bill, case_of, count
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...engines.tables import engine as find_engine
from ...errors import Fault, InputError
from ...job import AUTO, Job
from ...layer import costs_of
from ...layout.axes import Layout
from ...layout.case import Case
from ...layout.stages import chunk_layers, chunk_sizes
from ...model.model import Model
from ..fitting import limits
from .exchange import exchanged
from .pipeline import Pipeline
from .ranks import Chained

How = Literal["given", "proved", "searched"]
SAID = {"given": "as given", "proved": "proved", "searched": "of those that were tried, not proved"}
MOST_LAYERS = 512
MENDED = ("LAY009", "LAY010", "LAY011")  # broken by an engine's own cut, and by no split that is found here


@dataclass(frozen=True)
class Split:
    """A split, and the same layout as the engine cuts its layers without one."""

    sizes: tuple[int, ...]  # layers of each chunk, along the model
    how: How  # given; proved, the best of all in the refined count; searched, the best that was found
    bill: Bill
    own: Bill | None  # none where the layers cannot be cut so

    @property
    def said(self) -> str:
        """How good the split is, as an assumption of its bill."""
        which = "the fastest" if self.bill.memory.verdict == "fits" else "the one that needs least, as none fits"
        return f"split {','.join(map(str, self.sizes))}: {which}, {SAID[self.how]} (--split)"


def best_split(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str = "megatron"
) -> Split | None:
    """The split with the shortest step among those of which every stage fits, and of these the one that needs least
    memory; where none fits, the one that needs least. None where there is nothing to split, or other rules are broken.

    Proved in the refined count where a rank has one chunk, or all layers are of one kind; else searched by exchange.
    Raises InputError: LAY035 for an engine that takes no split, LAY049 for more than 512 layers.
    """
    driver = engine if isinstance(engine, Engine) else find_engine(engine)
    free = replace(layout, split=AUTO)
    case, _ = case_of(model, job, cluster, free, driver)
    if case.layout.pp == 1:
        return None
    takes_split(driver)
    if not in_reach(model):
        raise InputError(_too_many(model))
    plain = _own(case, free)
    own = count(model, job, cluster, plain, driver)
    broken = {each.code for each in own.violations}
    if broken.difference(MENDED):
        return None
    answer = fastest(pipeline_of(case, layout.recompute_layers is AUTO))
    if answer is None:
        return None
    sizes, how = answer
    found = count(model, job, cluster, replace(free, split=sizes), driver)
    if found.violations:
        return None
    if broken:
        return Split(sizes, how, found, None)
    return Split(sizes_of(own), how, own, own) if _better(own, found) else Split(sizes, how, found, own)


def best_count(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str) -> Bill:
    """The bill with the best split, which it says among its assumptions. Raises InputError as `best_split` does."""
    found = best_split(model, job, cluster, layout, engine)
    if found is None:
        bill = count(model, job, cluster, layout, engine)
        said = ("one stage: there is nothing to split (--split)",) if bill.layout.pp == 1 else ()
    else:
        bill, said = found.bill, (found.said,)
    return replace(bill, assumptions=(*said, *bill.assumptions))


def _better(own: Bill, found: Bill) -> bool:
    """Whether an engine's own cut, which needs no setting, is as good as another split."""
    if own.memory.verdict != "fits" or found.memory.verdict != "fits":
        return own.memory.verdict == "fits" or own.memory.peak_bytes <= found.memory.peak_bytes
    ours, theirs = ((each.step.seconds, each.memory.peak_bytes) for each in (own, found))
    return ours <= theirs


def given_split(bill: Bill) -> Split | None:
    """The split of a bill, beside the engine's own cut. None where it has none, or breaks a rule."""
    if not bill.layout.split or bill.layout.pp == 1 or bill.violations:
        return None
    free = replace(unfilled(bill), split=AUTO)
    case, _ = case_of(bill.model, bill.job, bill.cluster, free, bill.engine)
    own = count(bill.model, bill.job, bill.cluster, _own(case, free), bill.engine)
    return Split(sizes_of(bill), "given", bill, None if own.violations else own)


def unfilled(bill: Bill) -> Layout:
    """The layout of a bill, where every layer is recomputed without their number, which follows from the split."""
    longest = max(stage.layers for stage in bill.memory.ranks)
    every = bill.layout.recompute == "full" and bill.layout.recompute_layers == longest
    return replace(bill.layout, recompute_layers=AUTO) if every else bill.layout


def takes_split(engine: Engine | str) -> Engine:
    """The engine, which takes a split. Raises InputError (LAY035) for one that does not."""
    driver = engine if isinstance(engine, Engine) else find_engine(engine)
    if not driver.splits_layers:
        rule = "--split is for engines that take the layers of each stage from the user"
        got = f"best, {driver.name}"
        raise InputError(Fault("LAY035", "the engine cuts the layers itself", rule, got, "leave --split out"))
    return driver


def in_reach(model: Model) -> bool:
    """Whether a model has few enough layers to seek a split of them."""
    return model.layers <= MOST_LAYERS


def _too_many(model: Model) -> Fault:
    rule = f"--split best cuts up to {MOST_LAYERS:,} layers"
    return Fault(
        "LAY049", "too many layers to seek a split of", rule, f"{model.layers:,} layers", "--split with numbers"
    )


def _own(case: Case, layout: Layout) -> Layout:
    """The layout as the engine cuts it by itself; where it asks for a split, equal stages, the last ones shorter."""
    pp, vpp = int(case.layout.pp), int(case.layout.vpp)
    if case.engine.counts_ends or case.model.layers % (pp * vpp) == 0:
        return layout
    return replace(layout, split=tuple(chunk_sizes(case.model.layers, pp, vpp)))


def sizes_of(bill: Bill) -> tuple[int, ...]:
    """Layers of each chunk of a bill's layout, along the model."""
    at = bill.layout
    ends = bill.engine.counts_ends
    chunks = chunk_layers(bill.model.layers, at.pp, at.vpp, tuple(at.split or ()), ends, bool(at.folded))
    return tuple(map(len, chunks))


def pipeline_of(case: Case, every: bool = False) -> Pipeline:
    """The pipeline of a case; `every` layer is recomputed where full recompute is asked for."""
    costs = costs_of(case)
    if every and case.layout.recompute == "full":
        case = replace(case, layout=replace(case.layout, recompute_layers=case.model.layers))
    return Pipeline(case, costs)


def fastest(pipeline: Pipeline) -> tuple[tuple[int, ...], How] | None:
    """The best split of a pipeline, and how it was found; None where there are too few layers for its chunks."""
    case, limit = pipeline.case, limits(pipeline.case).fits
    if case.model.layers < pipeline.least.sum():
        return None
    if pipeline.shape[1] == 1 or len(set(case.model.pattern)) == 1:
        return tuple(Chained(pipeline).best(limit).tolist()), "proved" if pipeline.grows else "searched"
    own = np.asarray(chunk_sizes(case.model.layers, *pipeline.shape, counts_ends=case.engine.counts_ends))
    start = own if (own >= pipeline.least).all() else pipeline.even
    return tuple(exchanged(pipeline, start, limit).tolist()), "searched"

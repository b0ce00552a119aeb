"""A row as a question that count() answers: model, job, cluster, layout and engine, with what had to be assumed."""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Any

from ..bill import MOST_CHUNKS
from ..cluster.accelerator import Cluster
from ..cluster.catalogue import cluster
from ..errors import quoted
from ..job import AUTO, Job
from ..layout.axes import Layout
from ..model.model import Model
from ..schedule.laws import FOLDED
from . import words
from .read import LAYERS_A_CHUNK, Run, Skip
from .shapes import model_of
from .table import Source, accelerator_of, refused


@dataclass(frozen=True)
class Question:
    """All that count() takes, and what the row left open."""

    model: Model
    job: Job
    cluster: Cluster
    layout: Layout
    engine: str
    assumed: tuple[str, ...]


def question_of(run: Run, source: Source) -> Question:
    """The question of a row. Raises Skip with the reason where the row cannot be asked."""
    _refuse(run, source)
    where, about_cluster = _cluster(run, source)
    sequence, about_sequence = _sequence(run, source)
    model, about_model = model_of(run, source, sequence)
    sharding = words.sharding_of(run.text("zero_or_fsdp"), run.text("other"))
    engine, about_engine = _engine(run, source, sharding)
    layout, about_layout = _layout(run, source, model, sharding)
    job, about_job = _job(run, source, layout, sequence)
    assumed = (*about_engine, *about_cluster, *about_model, *about_sequence, *about_job, *about_layout)
    return Question(model, job, where, layout, engine, assumed)


def _refuse(run: Run, source: Source) -> None:
    """Skip what can never be compared, before anything is read from it."""
    if run.fault:
        raise Skip(run.fault)
    if source.skip:
        raise Skip(source.skip)
    if not run.text("model"):
        raise Skip("model not published")
    for column in ("model", "notes", "other"):
        reason = refused(column, run.text(column))
        if reason:
            raise Skip(reason)


def _cluster(run: Run, source: Source) -> tuple[Cluster, tuple[str, ...]]:
    text = run.text("accelerator")
    if not text:
        raise Skip("accelerator not published")
    alias = accelerator_of(text)
    if not alias.name:
        raise Skip(f"{quoted(text)}: {alias.why}")
    ranks = run.needed("n_accel", "number of accelerators")
    if ranks > 10_000_000:
        raise Skip(f"{ranks:,} accelerators are beyond any cluster")
    gbit = words.network_of(run.text("other")) / (source.node or 8) or source.nic_gbit.get(alias.name, 0.0)
    said = [alias.note] if alias.note else []
    said += [f"{gbit:g} Gb/s an accelerator between nodes"] if gbit else []
    slices = words.slices_of(run.text("other"))
    if slices and ranks % slices:
        raise Skip(f"{slices:,} slices do not divide {ranks:,} accelerators")
    return _network(alias.name, ranks, gbit, ranks // slices if slices else source.node), tuple(said)


def _sequence(run: Run, source: Source) -> tuple[int, tuple[str, ...]]:
    """Tokens in a sequence; of padded batches, the longest, which the peak of memory is of."""
    given, longest = run.count("seq_len"), words.longest_of(run.text("other"))
    if given:
        return given, ()
    if longest:
        return longest, (f"sequence {longest:,}: the longest sample, which the peak is of",)
    if source.sequence:
        return source.sequence, (f"sequence {source.sequence:,}, not published in the table",)
    return run.needed("seq_len", "sequence length"), ()


@cache
def _network(name: str, ranks: int, gbit: float, node: int) -> Cluster:
    """A cluster of the catalogue with the network that the source states."""
    found = cluster(f"{ranks}x{name}")
    if gbit:
        network = replace(found.top, bandwidth=gbit * 1e9 / 8)
        found = replace(found, spine=network) if found.spine else replace(found, outside=network)
    return replace(found, inside=replace(found.inside, size=node)) if node else found


def _engine(run: Run, source: Source, sharding: words.Sharding) -> tuple[str, tuple[str, ...]]:
    if source.engine:
        return source.engine, (
            f"{source.engine} is the nearest engine, not the one that ran",
        ) if source.nearest else ()
    engine = "fsdp2" if sharding.fsdp else "megatron-2022" if words.has("^no", run.text("flash_attn")) else "megatron"
    return engine, (f"engine {engine}: the source is not known",)


def _degrees(run: Run, source: Source) -> tuple[int, int, int, int, tuple[str, ...]]:
    """tp, pp, cp and data-parallel ranks: what is left of the accelerators."""
    ranks = run.needed("n_accel", "number of accelerators")
    alone = ranks == 1
    missing = [axis for axis in ("tp", "pp") if run.count(axis) is None]
    unknown = [axis for axis in missing if axis not in source.axes]
    if unknown and not alone and not run.count("ep"):
        raise Skip(f"layout not published ({', '.join(unknown)})")
    tp, pp, cp = (run.count(axis) or source.axes.get(axis, 1) for axis in ("tp", "pp", "cp"))
    if ranks % (tp * pp * cp):
        raise Skip(f"tp {tp} x pp {pp} x cp {cp} does not divide {ranks:,} accelerators")
    dp, given = ranks // (tp * pp * cp), run.count("dp")
    if given and given not in (dp, dp * cp, dp / (run.count("ep") or 1)):  # some count each expert rank apart
        raise Skip(f"dp {given} does not follow from {ranks:,} accelerators, tp {tp}, pp {pp}, cp {cp}")
    return tp, pp, cp, dp, tuple(f"{axis} {source.axes.get(axis, 1)}, not published" for axis in missing)


def _chunks(run: Run, source: Source, pp: int) -> tuple[int, tuple[str, ...]]:
    """Chunks a rank, and what was assumed."""
    printed = LAYERS_A_CHUNK.search(run.text("vpp"))
    if printed:
        layers = run.needed("layers") + (2 if source.lighter_ends else 0)
        return max(1, ceil(layers / (pp * int(printed[1])))), ()
    given = run.count("vpp")
    if given is None and str(pp) in source.vpp:
        return source.vpp[str(pp)], (f"{source.vpp[str(pp)]} chunks a rank, not published",)
    return given or 1, ("one chunk a rank (vpp), not published",) if given is None and pp > 1 else ()


def _shards(run: Run, sharding: words.Sharding, dp: int, source: Source) -> tuple[int, int, tuple[str, ...]]:
    """Copies and shards of the data-parallel ranks."""
    if sharding.slices:
        slices = words.slices_of(run.text("other"))
        if not slices or dp % slices:
            raise Skip("number of slices not published")
        return slices, dp // slices, ()
    group = sharding.group or ((source.node or 8) if sharding.hybrid else 0)
    if not group or group >= dp or dp % group:
        return 1, dp, ()
    return dp // group, group, ("shards inside a node of 8",) if sharding.hybrid else ()


def _layout(run: Run, source: Source, model: Model, sharding: words.Sharding) -> tuple[Layout, tuple[str, ...]]:
    tp, pp, cp, dp, about_degrees = _degrees(run, source)
    vpp, about_chunks = _chunks(run, source, pp)
    vpp = 2 if pp > 1 and words.schedule_of(run.text("schedule")).name in FOLDED else vpp
    if pp * vpp > MOST_CHUNKS:
        raise Skip(f"pp {pp:,} x vpp {vpp:,} is beyond any pipeline")
    if pp > model.layers + 2:  # embedding and head may have a stage each
        raise Skip(f"{model.layers} layers do not fill {pp} stages: the row cannot be as printed")
    replicas, shards, about_shards = _shards(run, sharding, dp, source)
    order, about_order = _order(run, pp, vpp)
    again, about_recompute = _recompute(run, source)
    kind: Any = again.kind  # a name that Layout knows
    spread: Any = words.context_kind_of(run.text("other"))
    zero = sharding.zero if sharding.zero >= 0 else source.zero
    other = run.text("other")
    dispatch: Any = words.dispatch_of(other) or (source.dispatch if model.experts else "")
    graphs: Any = words.graphs_of(other) or source.graphs
    parallel = words.sequence_parallel_of(other + " " + run.text("recompute")) or source.sp
    overlap = tp > 1 and parallel != "off" and (source.overlap_tp or words.has(r"\basync TP\b", run.text("other")))
    stage = ceil(model.layers / pp)
    layout = Layout(
        tp=tp, pp=pp, cp=cp, cp_kind=spread or AUTO, vpp=vpp,
        ep=run.count("ep") or 1, etp=_expert_cut(run, source, model, tp),
        dp_replicate=replicas, dp_shard=shards,
        zero=zero if zero >= 0 else AUTO, micro_batch=_micro_batch(run, source, tp * pp * cp), schedule=order,
        moe_dispatch=dispatch or AUTO, graphs=graphs or AUTO,
        overlap_ep=source.overlap_ep or words.has(r"moe_a2a_overlap=True", other),
        sp={"on": tp > 1, "off": False, "": AUTO}[parallel], overlap_tp=overlap,
        recompute=kind, recompute_modules=again.modules or AUTO,
        recompute_layers=max(1, round(stage * again.share)) if again.kind == "full" else AUTO,
        split=_split(source, model, pp, vpp),
        offload_optimizer=sharding.offload_optimizer or float(words.has(r"offload", run.text("optimizer"))),
        offload_parameters=sharding.offload_parameters,
    )  # fmt: skip
    said = ("sequence parallelism with tp, not published",) if tp > 1 and not parallel else ()
    return layout, (*about_degrees, *about_chunks, *about_order, *about_shards, *about_recompute, *said)


def _micro_batch(run: Run, source: Source, ranks: int) -> int:
    """Sequences in a micro-batch of a data-parallel rank, which has so many accelerators."""
    return run.needed("micro_batch", "micro-batch") * (ranks if source.batch_of == "accelerator" else 1)


def _expert_cut(run: Run, source: Source, model: Model, tp: int) -> Any:
    """Expert-tensor ranks, where the row or the engine of the source says."""
    usual = tp if source.etp == "tp" and model.experts else AUTO
    return words.expert_cut_of(run.text("other")) or usual


def _order(run: Run, pp: int, vpp: int) -> tuple[Any, tuple[str, ...]]:  # a name that Layout knows
    """The schedule, where there is a pipeline: interleaved with several chunks, else what the row says, else 1F1B."""
    found = words.schedule_of(run.text("schedule")) if pp > 1 else words.Order()
    if found.name == "interleaved" and vpp == 1:
        raise Skip("chunks a rank (vpp) not published for an interleaved schedule")
    if vpp > 1 and pp > 1 and found.name not in FOLDED:
        return "interleaved", ()
    return found.name or "1f1b", (found.note,) if found.note else ()


def _recompute(run: Run, source: Source) -> tuple[words.Recompute, tuple[str, ...]]:
    found = words.recompute_of(run.text("recompute"))
    if found.kind:
        return found, (found.note,) if found.note else ()
    if source.recompute == "unknown":
        raise Skip("recompute not published")
    usual = source.recompute or "none"
    return words.recompute_of(usual), (f"recompute {usual}, not published",)


def _split(source: Source, model: Model, pp: int, vpp: int) -> tuple[int, ...]:
    """Layers of each chunk, where the first and the last hold one fewer; else the engine's own."""
    if source.fuller_middle:
        return fuller_middle(model.layers, pp)
    chunks = pp * vpp
    if not source.lighter_ends or pp < 2 or (model.layers + 2) % chunks:
        return ()
    share = (model.layers + 2) // chunks
    return (share - 1, *([share] * (chunks - 2)), share - 1)


def fuller_middle(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each stage as LiBai deals them: as if there were some more, which the last stages would hold.

    Source: Oneflow-Inc/libai, libai/utils/distributed.py, _init_placement_group.
    """
    more = min(pp - 1, layers // pp) if pp >= 4 and layers >= 8 and layers % pp == 0 else 0
    share, left = divmod(layers + more, pp)
    held = [share + (stage >= pp - left) for stage in range(pp)]
    ends = [min(sum(held[: stage + 1]), layers) for stage in range(pp)]
    return tuple(end - begin for begin, end in zip([0, *ends], ends, strict=False)) if more else ()


def _job(run: Run, source: Source, layout: Layout, sequence: int) -> tuple[Job, tuple[str, ...]]:
    said = []
    stated = words.precision_of(run.text("precision"), run.text("other"))
    precision: Any = stated or source.precision or "bf16"  # a name that Job knows
    if not stated:
        said.append(f"precision {precision}, not published")
    batch = run.count("global_batch")
    if batch is None:
        said.append("one micro-batch a rank in a step: global batch not published")
    optimizer: Any = words.optimizer_of(run.text("optimizer"))
    recipe: Any = source.recipe or AUTO
    job = Job(
        sequence_length=sequence,
        global_batch=batch or int(layout.dp * layout.micro_batch),
        precision=precision,
        optimizer=optimizer,
        bytes_per_parameter=recipe,
        gradient_dtype=source.gradients or AUTO,
        attention_flops=source.attention,
    )
    return _adapted(job, run, source, said)


def _adapted(job: Job, run: Run, source: Source, said: list[str]) -> tuple[Job, tuple[str, ...]]:
    """The job with its adapters, as far as row and source state them."""
    found = words.adapter_of(f"{run.text('model')} {run.text('other')}")
    if not found.kind:
        return job, tuple(said)
    rank = found.rank or source.adapter_rank
    if not rank:
        raise Skip("rank of the adapters not published")
    if not source.adapter_targets:
        raise Skip("matrices with an adapter not published")
    said.append(f"adapters of rank {rank} beside {', '.join(source.adapter_targets)}")
    kind: Any = found.kind
    kept: Any = found.frozen_format or AUTO
    adapted = replace(job, adapter=kind, adapter_rank=rank, adapter_targets=source.adapter_targets, frozen_format=kept)
    return adapted, tuple(said)

"""What the writers of fine-tuning share: a run as arguments of a trainer, and what those cannot say."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

from ...job import AUTO, recipe_of, wire_of
from ..deepspeed import sections_of
from ..leaving_out import STATE, cards_of, left_out, lost
from ..setting import Lost, Run, Written
from .models import layer_class, name_on_hub
from .printing import comment, yaml_lines
from .reading import narrow

Entries: TypeAlias = Iterator[tuple[str, Any] | Lost]

# Fields that every one of these formats holds, or loses by name.
_NAMES = """
    tp cp cp_kind pp dp_replicate dp_shard zero micro_batch recompute recompute_layers offload_optimizer
    offload_parameters offload_activations sequence_length global_batch precision optimizer adapter adapter_rank
    adapter_targets frozen_format packing ep etp overlap_dp gather_unit accumulate_whole
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "frozen": "what is frozen is set in code",
    "tokens": "how long the run is, in epochs or steps, is yours",
    "expert_capacity": "transformers sends every token to its experts",
    "pad_to_capacity": "the same",
    "loss_chunks": "the loss runs over all tokens at once",
    "graphs": "it captures no graphs",
    "galore_rank": "it stands in optim_args, in words of galore_torch",
}
PARTLY = "without shards all are copies"
IN_FILE = ("recompute", "optimizer", "precision")  # of DeepSpeed's losses: a trainer says these itself


class Trainer(NamedTuple):
    """One of these formats: what it is, how it starts, what it leaves to its reader, and the axes that it cuts."""

    name: str  # as DeepSpeed's losses say it
    release: str
    launch: str  # a line that starts one process a card, of `nodes` and `each`
    yours: str
    fsdp: tuple[str, ...]
    deepspeed: tuple[str, ...]
    own: tuple[str, ...] = ()  # fields that it holds beside HELD


def gathered(entries: Iterable[tuple[str, Any] | Lost]) -> tuple[dict[str, Any], list[Lost]]:
    """Settings in order, and what is lost."""
    made: dict[str, Any] = {}
    gone: list[Lost] = []
    for one in entries:
        if isinstance(one, Lost):
            gone.append(one)
        else:
            made[one[0]] = one[1]
    return made, gone


def model_entries(run: Run, key: str) -> Entries:
    """The model by its id of the hub."""
    name = name_on_hub(run.model)
    yield key, name or run.model.name
    if not name:
        yield Lost("model", run.model.name, f"the catalogue has no id of the hub for it: {key} is yours")


def deepspeed_section(run: Run) -> tuple[dict[str, Any], list[Lost]]:
    """The section that DeepSpeed reads: batch and precision are the trainer's, as is the optimizer."""
    made, gone = sections_of(run)
    for name in ("optimizer", "sequence_parallel_size", "pipeline"):
        made.pop(name, None)
    narrow = run.job.precision if run.job.precision in ("bf16", "fp16") else ""
    if narrow:
        made[narrow] = made.get(narrow, {}) | {"enabled": "auto"}
    numbers = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    kept = [one for one in gone if not one.path.rpartition(".")[2].startswith(IN_FILE)]
    return dict.fromkeys(numbers, "auto") | made, kept


def deepspeed_entries(run: Run, trainer: Trainer) -> Entries:
    """The section, and the axes that a trainer does not have under it."""
    section, gone = deepspeed_section(run)
    yield from gone
    yield "deepspeed", section
    yield from axis_losses(run, trainer.deepspeed, f"DeepSpeed under {trainer.name} has no such axis")


def copies_lost(run: Run) -> Entries:
    """Copies beside shards, where nothing is sharded."""
    yield from (lost(run, name, PARTLY) for name in ("dp_replicate", "dp_shard"))


def packing_entries(run: Run, key: str) -> Entries:
    """Whether documents are packed."""
    if run.job.packing is not None:
        yield key, not run.job.packing.padded
        yield lost(run, "packing", "how long the documents are is in the data")


def fsdp_config(run: Run) -> dict[str, Any]:
    """FSDP2 as the transformers Trainer's `fsdp_config` says it."""
    at, wrapped = run.layout, layer_class(run.model)
    made: dict[str, Any] = {"version": 2, "reshard_after_forward": at.zero == 3}
    if at.gather_unit == "model":
        made["auto_wrap_policy"] = "NO_WRAP"
    elif wrapped:
        made["transformer_layer_cls_to_wrap"] = [wrapped]
    return made | ({"cpu_offload": True} if at.offload_optimizer == at.offload_parameters == 1 else {})


def accumulation(run: Run, trainer: Trainer) -> int:
    """Micro-batches that each rank adds up: the whole batch over the ranks that get data of their own, among them
    those of the axes that the trainer does not have."""
    at, held = run.layout, trainer.fsdp if run.engine.name == "hf_trainer" else trainer.deepspeed
    replicas = at.dp * prod(getattr(at, name) for name in ("tp", "cp", "pp") if name not in held)
    return max(1, int(run.job.global_batch // (replicas * at.micro_batch)))


def axis_losses(run: Run, held: Collection[str], why: str) -> Entries:
    """Axes that a trainer does not have."""
    at = run.layout
    for name in ("tp", "cp", "pp", "ep", "etp"):
        if getattr(at, name) > 1 and name not in held:
            yield lost(run, name, why)
    if at.cp > 1 and "cp" not in held:
        yield lost(run, "cp_kind", "the same")
    changed = any(getattr(at, name) > 1 and name not in held for name in ("tp", "cp", "pp"))
    if changed or (at.dp_replicate > 1 and "dp_replicate" not in held):
        yield from (
            lost(run, name, "data parallelism is what the launch leaves") for name in ("dp_replicate", "dp_shard")
        )


def memory_losses(run: Run) -> Entries:
    """What is kept and moved in part, where a trainer moves all or nothing."""
    at, sharded = run.layout, run.layout.zero > 0 and run.engine.name == "hf_trainer"
    if run.engine.name == "hf_trainer":
        both = at.offload_optimizer == at.offload_parameters == 1
        for name in ("offload_optimizer", "offload_parameters"):
            if getattr(at, name) and not (both and sharded):
                yield lost(run, name, "FSDP moves weights and their state together, all of them; DDP none")
        if at.gather_unit != "layer" and not sharded:
            yield lost(run, "gather_unit", "only FSDP wraps units")
        if not at.overlap_dp:
            yield lost(run, "overlap_dp", "its exchange overlaps")
    if at.accumulate_whole != run.engine.accumulates_whole:
        yield lost(run, "accumulate_whole", "sync_each_batch of accelerator_config is not written")


def type_losses(run: Run, bare: bool) -> Entries:
    """Types of the state that are not those which the trainer has. `bare`: weights are loaded in bf16 and trained so,
    gradients and moments too; else they are those of the engine by itself."""
    if run.engine.name != "hf_trainer":
        return
    types = narrow(run.job.optimizer) if bare else {}
    written = replace(run.job, **dict.fromkeys(STATE, AUTO) | {"gather_dtype": AUTO} | types)
    one, two = (recipe_of(job, run.engine, run.cluster.accelerator) for job in (run.job, written))
    wires: dict[str, Any] = {
        "name": "",
        "adam_touched": 0,
        "reduced": 0,
        "reduced_sharded": 0,
        "gathered": 0,
        "ends_gathered": 0,
    }
    if replace(one, **wires) != replace(two, **wires):
        said = ", ".join(f"{name} {value}" for name, value in types.items()) or "as Accelerate keeps it"
        yield lost(run, "bytes_per_parameter", f"its state is {said}")
    sent = (one.reduced, one.reduced_sharded) != (two.reduced, two.reduced_sharded)
    if sent or run.job.reduce_dtype not in (AUTO, types.get("reduce_dtype", "usual")):
        yield lost(run, "reduce_dtype", "gradients are sent in the type that the trainer gives them")
    got = (one.gathered, one.ends_gathered) != (two.gathered, two.ends_gathered)
    if got or run.job.gather_dtype not in (AUTO, wire_of(written, run.engine)[1]):
        yield lost(run, "gather_dtype", "weights are gathered in the type of the multiplies")


def launch_of(run: Run, command: str) -> str:
    """A line that starts one process a card."""
    each, nodes = cards_of(run.cluster)
    return command.format(each=each, nodes=nodes)


def all_lost(run: Run, trainer: Trainer, gone: Iterable[Lost]) -> list[Lost]:
    """What is lost by name, and every other field that a trainer does not hold."""
    return [*gone, *left_out(run, run.engine.name, HELD.union(trainer.own), REASONS)]


def yaml_of(run: Run, trainer: Trainer, entries: Iterable[tuple[str, Any] | Lost]) -> Written:
    """The settings as YAML, with what they cannot say in its first comments."""
    made, gone = gathered(entries)
    gone = all_lost(run, trainer, gone)
    text = yaml_text(run, trainer.release, launch_of(run, trainer.launch), trainer.yours, made, gone)
    return Written(text, "config.yaml", tuple(gone))


def yaml_text(run: Run, release: str, launch: str, yours: str, made: dict[str, Any], gone: list[Lost]) -> str:
    """A file of YAML, its first comments what it does not hold."""
    lines = [comment(f"{release}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [comment(f"NOT IN THIS FILE: {one}") for one in gone]
    lines += [comment(f"launch: {launch}"), comment(yours), ""]
    return "\n".join([*lines, *yaml_lines(made), ""])

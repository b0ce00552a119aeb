"""Megatron-Bridge: read from overrides behind a recipe, from YAML, from lines of Python; written as overrides.

Its fields are those of megatron-core, in sections: layout, task and model are read as Megatron-LM's arguments are.
What a recipe sets by itself stands in its code: a model that the recipe is named after is taken from the catalogue.
"""

from dataclasses import replace
from typing import Any

from ...engines.engine import MEGATRON
from ...errors import InputError
from ...job import AUTO, Job
from ...model.catalogue import find
from ...model.model import Model
from ..catalogue_names import named_like
from ..megatron.lacking import in_our_fields
from ..megatron.layout import job_of, layout_of
from ..megatron.model import NEEDED, model_of
from ..setting import Found, Missing, Setting, Settings, fault
from ..source import text_of
from .checks import findings, offloads
from .fields import Translated, translated
from .names import is_field
from .text import Held, hold, is_python, is_yaml
from .write import HELD, RELEASE, write

ENGINE, ENGINES = "megatron", MEGATRON
COMMENTS = True
NAME = "megatron-bridge"
SIZES = (*NEEDED, "ffn_hidden_size", "num_query_groups", "kv_channels", "num_experts", "moe_ffn_hidden_size")
_LOOKED_AT = """
    moe_grouped_gemm moe_router_score_function cpu_offloading cpu_offloading_activations train_iters train_samples
    moe_flex_dispatcher_backend
"""
LOOKED_AT = _LOOKED_AT.split()  # also where no count asks for them
TARGETS = {"linear_qkv": "attention", "linear_proj": "attention", "linear_fc1": "feed_forward"}


def is_of(text: str) -> bool:
    """Whether a text sets fields of a configuration of Megatron-Bridge, in any of the forms that are read."""
    if text.lstrip().startswith("{"):
        return False
    if is_yaml(text):
        return sum(f"\n{section}:" in f"\n{text}" for section in ("model", "train", "ddp", "mixed_precision")) > 1 and (
            any(is_field(f"{section}.{name}") for section, name in _keys(text))
        )
    if is_python(text):
        return True
    return any(is_field(word.partition("=")[0].lstrip("+'\"")) for word in text.split() if "=" in word and "." in word)


def _keys(text: str) -> list[tuple[str, str]]:
    """Keys of a YAML with the section that they stand in, by their indents alone."""
    section, found = "", list[tuple[str, str]]()
    for line in text.split("\n"):
        name, colon, _ = line.partition(":")
        if colon and line[:1].strip():
            section = name.strip()
        elif colon:
            found.append((section, name.strip()))
    return found


def read(content: bytes) -> Found:
    """What settings of Megatron-Bridge say. Raises InputError (FMT002 .. FMT005) with line and column."""
    held = hold(text_of(content))
    if not any(is_field(name) for name in held.settings):
        rule = "some field of Megatron-Bridge, such as model.tensor_model_parallel_size"
        what, fix = "nothing here is a setting of Megatron-Bridge", "the line that starts the run, or its YAML"
        raise InputError(fault("FMT004", what, rule, f"read as {held.form}", fix))
    made = translated(held.settings)
    at, notes = Settings(made.flags), held.notes
    at.asked.update(LOOKED_AT)
    model = _model(at, held, notes)
    layers = model.layers if model else at.number("num_layers")
    experts = (
        bool(model.experts) if model else at.number("num_experts", at.number("expert_model_parallel_size") - 1) > 0
    )
    layout = layout_of(at, layers, experts, held.ranks, notes)
    micro = layout.micro_batch if "micro_batch_size" in made.flags else AUTO  # a recipe has its own
    layout = replace(layout, offload_activations=_offloaded(at, layers), micro_batch=micro)
    job = _adapted(job_of(at, notes), made)
    found = [*findings(held.settings, made, at)]
    shown = [one for one in at.findings if one.code != "MEG001"]  # refused here: BRG009
    if at.faults:
        raise InputError(*at.faults)
    if "mixed_precision" not in made.apart and "bf16" not in held.settings:
        notes.append("mixed_precision bf16_mixed: what recipes take by themselves")
    missing = _missing(at, made, model, job, notes)
    model = None if any(one.field == "model" for one in missing) else model
    return Found(
        NAME,
        held.form,
        model,
        job,
        layout,
        ENGINE,
        held.ranks,
        tuple(missing),
        (*at.kept(), *made.unread.values()),
        tuple(notes),
        (*shown, *found),
    )


def _model(at: Settings, held: Held, notes: list[str]) -> Model | None:
    """The model of the sizes in the file, else the one that the recipe is named after."""
    said = [name for name in SIZES if at.held.get(name)]
    if said or not held.recipe:
        own: list[str] = []
        made = model_of(at, own)
        notes += own if made else []
        return made
    name = named_like(held.recipe)
    if name is None:
        notes.append(f"recipe {held.recipe}: its model is not in the catalogue")
        return None
    notes.append(f"recipe {held.recipe}: the model {name}; what else the recipe sets is in its code")
    return find(name)


def _missing(at: Settings, made: Translated, model: Model | None, job: Job, notes: list[str]) -> list[Missing]:
    precision = made.apart.get("mixed_precision")
    unsaid = [Missing("precision", precision.unknown)] if precision and precision.unknown else []
    found = in_our_fields([*at.missing, *unsaid], notes)
    names = {one.field for one in found}
    if (model is None or not model.vocab) and "model" not in names:
        absent = [words for name, words in NEEDED.items() if name not in at.held]
        what = "the recipe sets it" if absent else "the file does not say the vocabulary"
        found.append(Missing("model", what))
    if job.sequence_length is AUTO and "sequence_length" not in names:
        found.append(Missing("sequence_length", "the file does not say model.seq_length"))
    return found


def _offloaded(at: Settings, layers: int) -> Any:
    """The share of the activations that leaves the device: that of the layers which are offloaded."""
    count = at.number("cpu_offloading_num_layers")
    if not count or not offloads(at):
        return AUTO
    at.within("cpu_offloading_num_layers", count, not layers or count < layers, f"fewer than the {layers} layers")
    return min(1.0, count / layers) if layers else AUTO


def _adapted(job: Job, made: Translated) -> Job:
    """The job with the adapters of a `peft` section, which are LoRA of rank 32 where it does not say otherwise."""
    kind, rank = _word(made.apart.get("peft")), _word(made.apart.get("peft.dim"))
    if not (rank or "lora" in kind or "dora" in kind):
        return job
    targets = _word(made.apart.get("peft.target_modules"))
    named = tuple(dict.fromkeys(part for name, part in TARGETS.items() if name in targets or not targets))
    return replace(
        job,
        adapter="dora" if "dora" in kind else "lora",
        adapter_rank=int(rank) if rank.isdigit() and 0 < int(rank[:9]) < 10**6 else 32,
        adapter_targets=named or job.adapter_targets,
    )


def _word(one: Setting | None) -> str:
    return one.values[0].strip().lower() if one and one.values and not one.unknown else ""


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]

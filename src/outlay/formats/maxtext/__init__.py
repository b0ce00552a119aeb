"""MaxText's configuration: YAML, or `key=value` behind its script, read and written.

Checked against the pydantic classes of maxtext 0.2.5.
"""

import re
from dataclasses import replace

from ...errors import InputError
from ...job import AUTO
from ...model.catalogue import find
from ...model.model import Model
from ..key_values import read_pairs
from ..setting import Found, Missing, Setting, Settings, fault
from ..source import text_of
from ..yaml_settings import read_settings
from .checks import check_context, check_words
from .keys import KNOWN, SIZES, field_of, is_key
from .layout import batch_of, job_of, layout_of, micro_batch_of
from .mesh import mesh_of
from .models import NAMES, PADDED
from .write import HELD, RELEASE, write

ENGINE, ENGINES = "maxtext", ("maxtext", "maxtext-gpu")
COMMENTS = True
OWN = re.compile(r"\b(?:(?:ici|dcn)_\w+_parallelism|per_device_batch_size|max_target_length|remat_policy)\b[ \t]*[=:]")
YAML_LINE = re.compile(r"[ \t]*[A-Za-z_]\w*[ \t]*:(?:[ \t]|$)")


def is_of(text: str) -> bool:
    """Whether a text sets keys that MaxText alone has."""
    return not text.lstrip().startswith("{") and OWN.search(text) is not None


def read(content: bytes) -> Found:
    """What a MaxText configuration says. Raises InputError (FMT002 .. FMT005) with line and column."""
    form, held, notes = _held(text_of(content))
    told = {name: one for name, one in held.items() if not (one.unknown and is_key(name))}
    at = Settings(told)
    if not any(is_key(name) for name in held):
        rule = "some key of MaxText, such as per_device_batch_size or ici_fsdp_parallelism"
        what, fix = "nothing here is a setting of MaxText", "its YAML, or the line that starts the run"
        raise InputError(fault("FMT004", what, rule, f"read as {form}", fix))
    model = _model(at, notes)
    under = told["base_config"].values[0] if "base_config" in told and told["base_config"].values else "base.yml"
    notes += [f"{under} stands under this file: what it says is not read"] if under != "base.yml" else []
    mesh = mesh_of(at, notes)
    layout, lacks = layout_of(at, mesh, model, notes)
    layout = replace(layout, micro_batch=micro_batch_of(at, mesh, layout))
    passes, batch = batch_of(at, mesh, layout)
    check_words(at)
    check_context(at, mesh, model)
    job = job_of(at, batch or AUTO, notes)
    if at.faults:
        raise InputError(*at.faults)
    if not batch and passes > 1:  # else outlay's own word for it is the same: one micro-batch a rank
        why = f"per_device_batch_size x devices x {passes} micro-batches: the devices are not in the file"
        lacks.append(Missing("global_batch", why))
    if model is None:
        lacks.append(Missing("model", f"model_name {at.word('model_name', (), 'default')}: not one of the catalogue"))
    for one, meant in at.misspelled(KNOWN):
        if one.name in KNOWN:  # known, and no count needs it
            continue
        rule, fix = "MaxText stops at a key that it does not have", f"did you mean {meant}?"
        at.find("MTX005", one.name, f"{one.name} is not read", rule, one.text[:60], fix, serious=False)
    engine = "maxtext-gpu" if "gpu" in at.word("hardware") else ENGINE
    return Found(
        "maxtext",
        form,
        model,
        job,
        layout,
        engine,
        mesh.devices,
        (*_unknown(held, notes), *lacks),
        at.kept(),
        tuple(notes),
        tuple(at.findings),
    )


def _held(text: str) -> tuple[str, dict[str, Setting], list[str]]:
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    if YAML_LINE.match(first):
        return "YAML", read_settings(text), []
    pairs = read_pairs(text, is_key)
    held = pairs.settings
    files = [word.text.rpartition("/")[2] for word in pairs.others if word.text.endswith((".yml", ".yaml"))]
    for name in files[:1]:
        held.setdefault("base_config", Setting("base_config", (name,)))
    for name, words in pairs.script.variables.items():  # as M_PER_DEVICE_BATCH_SIZE, which stands for the key
        key = name.removeprefix("M_").lower()
        if name.startswith("M_") and is_key(key) and words:
            held.setdefault(key, Setting(key, (words[0].text,), words[0].line, words[0].column, words[0].unknown))
    return pairs.form, held, pairs.script.notes


def _unknown(held: dict[str, Setting], notes: list[str]) -> list[Missing]:
    """What rests on values that the file does not hold, each field once."""
    found: dict[str, Missing] = {}
    for name, one in held.items():
        if not (one.unknown and is_key(name)):
            continue
        if field_of(name):
            found.setdefault(field_of(name), Missing(field_of(name), f"{one.text} ({one.place}): {one.unknown}"))
        else:
            notes.append(f"{one.text[:60]} is not read: {one.unknown}")
    return [*found.values()]


def _model(at: Settings, notes: list[str]) -> Model | None:
    name = at.word("model_name", (), "default")
    if name not in NAMES:
        return None
    if name in PADDED:
        notes.append(f"{name}: MaxText's vocabulary is {PADDED[name]:,}, the published one is counted")
    other = [key for key in SIZES if key in at.held]
    if at.on("override_model_config") and other:
        notes.append(f"override_model_config: {', '.join(other)} make another model than {name}")
        return None
    return find(NAMES[name])


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]

"""A Hugging Face config.json read as a Model. Nothing in it is trusted, and nothing in it is ever run."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import Fault, InputError, nearest, quoted
from .checks import shown
from .families import CORE, FAMILIES, FIELDS, OTHERS, RENAMED, WRAPPERS, Facts, blocks
from .fields import Reading
from .model import Model

Source: TypeAlias = str | bytes | os.PathLike[str] | Mapping[str, Any]

PARTS = ("text_config", "llm_config", "thinker_config.text_config")
"""Where a file with several parts keeps its language model, in the order in which they are tried."""

LARGEST_FILE = 16 * 2**20  # bytes; a config.json is a few kilobytes

UNCOUNTED: Mapping[str, str] = {
    "add_cross_attention": "cross-attention is not counted",
    "attention_bias": "this family does not read it",
    "mlp_bias": "this family does not read it",
}
"""Switches that a file may set although the family has no such part."""

IGNORED: Mapping[str, str] = {"head_dim": "head_dim", "num_key_value_heads": "kv_heads", "expansion_ratio": "expansion"}
"""Sizes that a file may give although the family takes another: the key, and the field that it seems to be."""


def read_config(source: Source, *, family: str | None = None, part: str | None = None, name: str = "") -> Model:
    """The model in a config.json: its path or folder, its text (bytes, or a text that starts with a brace), or a dict.

    `family` reads the file as that family whatever it says (`--as`); `part` is the dotted path of the language model
    in it (`--part`). Every fault that can be found is in the one InputError.
    """
    _texts(family=family, part=part)
    top = load(source)
    inner, path = language_model(top, family, part)
    kind, notes = family_of(top, inner, family)
    reading = Reading(kind, _with_tie(top, inner, path, notes))
    facts = reading.facts(hint=_hint(top, inner))
    made = _model(name or _name(source) or kind, kind, facts)
    notes += [note for field, note in reading.notes.items() if field in facts.asked]  # what no layer uses says nothing
    return replace(made, notes=(*notes, *_remarks(top, inner, path, facts, kind)))


def _texts(**given: object) -> None:
    """Refuse a family or a part that is not a text."""
    wrong = {name: value for name, value in given.items() if value is not None and not isinstance(value, str)}
    rule = "family and part are texts"
    if wrong:
        raise InputError(
            *(
                Fault("MOD008", f"{name} is not a text", rule, quoted(value), f'{name}="llama"')
                for name, value in wrong.items()
            )
        )


def _model(name: str, kind: str, facts: Facts) -> Model:
    family = FAMILIES[kind]
    made, pattern = blocks(family, facts)
    return Model(
        name, kind, facts.hidden, facts.vocab, made, pattern, tied=facts.tied,
        dropout=max(facts.residual_dropout, facts.attention_dropout) > 0,
        trained_length=facts.trained_length, mtp_layers=facts.mtp_layers, **family.ends(facts),
    )  # fmt: skip


def load(source: Source) -> Mapping[str, Any]:
    """The object that a source holds."""
    if isinstance(source, Mapping):
        return source
    if isinstance(source, bytes):
        return _parsed(source, "config.json")
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return _parsed(source.encode("utf-8", "surrogatepass"), "config.json")
    if isinstance(source, str | os.PathLike):
        return _from_file(os.fsdecode(source))
    rule = "a model is a name from the catalogue, a path, the text of a config.json, or its object as a mapping"
    got, fix = f"a {type(source).__name__}: {quoted(source)}", 'load_model("llama-3.1-8b")'
    raise InputError(Fault("MOD002", "this is no model", rule, got, fix))


def _from_file(path: str) -> Mapping[str, Any]:
    if os.path.isdir(path):
        path = os.path.join(path, "config.json")
    if not os.path.isfile(path):
        raise InputError(_no_file(path, "nothing there" if not os.path.exists(path) else "not a file"))
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(_no_file(path, error.strerror or "it cannot be read")) from None
    if len(text) > LARGEST_FILE:
        raise InputError(_not_json(quoted(path), f"more than {LARGEST_FILE:,} bytes"))
    return _parsed(text, quoted(path))


def _parsed(text: bytes, title: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(_not_json(title, f"byte {error.start} is not UTF-8")) from None
    except json.JSONDecodeError as error:
        raise InputError(_not_json(title, f"line {error.lineno} column {error.colno}: {error.msg}")) from None
    except (ValueError, RecursionError):
        raise InputError(_not_json(title, "a number with too many digits, or too deep a nesting")) from None
    if not isinstance(value, dict):
        raise InputError(_not_json(title, f"the top level is {shown(value)}"))
    return value


def _no_file(path: str, why: str) -> Fault:
    return Fault(
        "MOD001", f"{quoted(path)} cannot be read",
        "a model is a config.json, its folder, a name from the catalogue, or - for standard input",
        why, "give the path of a config.json, or a name listed by: outlay models",
    )  # fmt: skip


def _not_json(title: str, got: str) -> Fault:
    rule = "a config.json is one JSON object, in UTF-8, as transformers writes it"
    return Fault("MOD002", f"{title} is not a config", rule, got, "download the file again, or correct it there")


def _name(source: Source) -> str:
    """A model's name from its path: the file's stem, or the folder's name where the file is called config.json."""
    if isinstance(source, bytes | Mapping) or (isinstance(source, str) and source.lstrip()[:1] in ("{", "[")):
        return ""
    path = Path(os.path.abspath(os.fsdecode(source)))
    found = path.parent.name if path.name == "config.json" else path.name.removesuffix(".json")
    return "".join(letter if letter.isprintable() else "?" for letter in found)[:60]


def _at(top: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """The object at a dotted path, or nothing."""
    here: Any = top
    for step in filter(None, path.split(".")):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else None


def language_model(
    top: Mapping[str, Any], family: str | None, part: str | None
) -> tuple[Mapping[str, Any], str]:  # fmt: skip
    """The object that describes the language model, and its path. A top level that describes one itself is taken."""
    if part is not None:
        chosen = _at(top, part)
        if chosen is None:
            raise InputError(_no_part(top, part))
        return chosen, part
    own = family is not None or _type(top) in RENAMED or _type(top) in FAMILIES
    if own and any(key in top for key in FIELDS["hidden"].keys):
        return top, ""
    for path in PARTS:
        chosen = _at(top, path)
        if chosen:
            return chosen, path
    return top, ""


def _no_part(top: Mapping[str, Any], part: str) -> Fault:
    objects = [str(key) for key, value in top.items() if isinstance(value, Mapping)]
    close = [*nearest(part, objects), *objects]
    fix = f"--part {shown(close[0])}" if close else "leave --part out"
    rule = "--part is the dotted path of an object in the file, such as text_config"
    got = f"objects: {', '.join(map(shown, objects[:8])) or 'none'}"
    return Fault("MOD008", f"the file has no part {quoted(part)}", rule, got, fix)


def _type(part: Mapping[str, Any]) -> str:
    value = part.get("model_type")
    return value.lower() if isinstance(value, str) else ""


def family_of(top: Mapping[str, Any], inner: Mapping[str, Any], forced: str | None) -> tuple[str, list[str]]:
    """The family to read the file as, and what there is to say about the choice."""
    whole = _type(top)
    said = _type(inner) or (WRAPPERS[whole].text if whole in WRAPPERS else whole)
    asked = forced.strip().lower() if forced is not None else said
    wanted = WRAPPERS[asked].text if asked in WRAPPERS else asked
    kind = RENAMED.get(wanted, wanted)
    if kind not in FAMILIES:
        raise InputError(_unknown(forced, said, inner))
    if forced is not None and said != asked:
        return kind, [f"read as {kind}, as asked: the file says model_type {shown(inner.get('model_type'))}"]
    return kind, [f"model_type {asked}: its layers are counted as those of {kind}"] if kind != asked else []


def _unknown(forced: str | None, said: str, inner: Mapping[str, Any]) -> Fault:
    known = (*FAMILIES, *RENAMED, *WRAPPERS)
    near = nearest(said if forced is None else forced, FAMILIES) or ["llama", "qwen3", "mixtral"]
    rule = f"one of {len(FAMILIES)} families, such as {', '.join(near)}; outlay models: the family of every known model"
    got = f"model_type {shown(inner.get('model_type'))}"
    way_out = "--as llama counts it as if its layers were those of Llama"
    if forced is not None:
        close = nearest(forced, FAMILIES) or ["llama"]
        return Fault("MOD003", f"no model family is called {quoted(forced)}", rule, got, f"--as {close[0]}")
    if not said:
        close = nearest(_architecture(inner), [kind.replace("_", "") for kind in FAMILIES], most=1)
        kinds = [kind for kind in FAMILIES if kind.replace("_", "") in close]
        fix = f"--as {kinds[0]}" if kinds else way_out
        return Fault("MOD003", "the config does not say which family its model is of", rule, got, fix)
    if said in OTHERS:
        rule = f"outlay counts decoder-only language models; a model of this type {OTHERS[said]}"
        fix = "give the config.json of a decoder-only model; --as NAME reads this one as a family all the same"
        return Fault("MOD003", f"models of type {quoted(said)} are not counted", rule, got, fix)
    close = nearest(said, known)
    fix = f"did you mean {' or '.join(map(shown, close))}? Else: {way_out}" if close else way_out
    return Fault("MOD003", f"models of type {quoted(said)} are not known", rule, got, fix)


def _architecture(inner: Mapping[str, Any]) -> str:
    names = inner.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return first.lower().removesuffix("forcausallm") if isinstance(first, str) else ""


def _holders(top: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    """The objects around the part at a path, the nearest first."""
    steps = path.split(".") if path else []
    found = (_at(top, ".".join(steps[:depth])) for depth in reversed(range(len(steps))))
    return [holder for holder in found if holder is not None]


def _with_tie(top: Mapping[str, Any], inner: Mapping[str, Any], path: str, notes: list[str]) -> Mapping[str, Any]:
    """The language model's part, with the tie flag of what holds it; else that of the wrapper's class."""
    key = "tie_word_embeddings"
    for holder in _holders(top, path):
        if holder.get(key) is not None:
            return {**inner, key: holder[key]}
    if not path or _type(top) not in WRAPPERS:
        return inner
    tied = WRAPPERS[_type(top)].tied
    notes.append(f"{key} {shown(tied)}: default of {_type(top)}, not at the top level of the file")
    return {**inner, key: tied}


def _hint(top: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """The path of another object in the file that looks like a language model; empty where there is none."""
    best, most = "", 1
    waiting: list[tuple[str, Mapping[str, Any], int]] = [("", top, 0)]
    for path, part, depth in waiting:
        fields = sum(any(key in part for key in FIELDS[name].keys) for name in CORE)
        if path and part is not inner and fields > most and "vision" not in path:
            best, most = path, fields
        for key, value in part.items():
            if isinstance(value, Mapping) and depth < 3 and len(waiting) < 1000:
                waiting.append((f"{path}.{key}".lstrip("."), value, depth + 1))
    return best


def _remarks(
    top: Mapping[str, Any], inner: Mapping[str, Any], path: str, facts: Facts, kind: str
) -> list[str]:  # fmt: skip
    """What the file holds that is not counted, or is counted beside the model."""
    found = [f"{path}: the language model alone is counted"] if path else []
    objects = {"quantization_config", *(key.split(".")[0] for key in _keys(kind) if "." in key)}
    for holder in reversed(_holders(top, path) or [top]):
        for key, value in holder.items():
            beside = isinstance(value, Mapping) and str(key).endswith("_config") and key not in path.split(".")
            if beside and key not in objects:
                found.append(f"{shown(key)}: not counted".replace('"', ""))
    if "quantization_config" in top or "quantization_config" in inner:
        found.append("quantization_config: ignored; it says how weights are stored, not how many there are")
    if facts.mtp_layers:
        found.append(f"multi-token prediction layers {facts.mtp_layers}: counted beside the model, not inside it")
    scaled = _at(inner, "rope_scaling") or _at(inner, "rope_parameters") or {}
    length = scaled.get("original_max_position_embeddings")
    if isinstance(length, int) and 0 < length < facts.trained_length:
        found.append(f"trained length {facts.trained_length}: by scaled positions, {length} before")
    if inner.get("moe_layer_freq") not in (None, 1):
        found.append(f"moe_layer_freq {shown(inner['moe_layer_freq'])}: not read, as in transformers")
    return [*found, *FAMILIES[kind].notes, *_unread(inner, facts, _keys(kind))]


def _keys(kind: str) -> set[str]:
    """The keys that a family reads."""
    return {key for name in FAMILIES[kind].reads() for key in FAMILIES[kind].keys_of(name)}


def _unread(inner: Mapping[str, Any], facts: Facts, known: set[str]) -> list[str]:
    """Keys of the file that the family does not read, where what they say is not what is counted."""
    switches = [key for key in UNCOUNTED if inner.get(key) is True and key not in known]
    sizes = [key for key in IGNORED if isinstance(inner.get(key), int) and key not in known]
    return [f"{key} true: {UNCOUNTED[key]}" for key in switches] + [
        f"{key} {inner[key]}: this family does not read it"
        for key in sizes
        if inner[key] != facts.values.get(IGNORED[key])
    ]

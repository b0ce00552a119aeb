"""The forms in which people hold settings of Megatron-Bridge: overrides behind a script, YAML, lines of Python."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..json_comments import Placed
from ..key_values import read_pairs
from ..megatron.text import flags_of, launcher_of
from ..sections import flattened
from ..setting import Setting
from ..source import short
from ..yaml_placed import read_yaml
from .names import FLAGS, SECTIONS, is_field, plain

NAMES = "|".join(SECTIONS)
SECTION_LINE = re.compile(rf"^({NAMES})[ \t]*:", re.MULTILINE)
PYTHON_LINE = re.compile(
    rf"^[ \t]*(?P<before>[A-Za-z_]\w*\.)?(?P<name>(?:{NAMES})(?:\.[A-Za-z_]\w*)*)(?P<sign>[ \t]*=(?!=)[ \t]*)",
    re.MULTILINE,
)
RECIPE = re.compile(r"([a-z]\w{2,60}?)_(?:pretrain|sft|peft|finetune|lora)(?:_\w{1,80})?_config\b")
CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\((.*)\)\s*", re.DOTALL)
LITERAL = re.compile(r"[+-]?[\d][\d_.eE+-]*|True|False|None|\"[^\"\\\n]*\"|'[^'\\\n]*'|torch\.\w+")
LONGEST = 20_000  # characters of one value
SHORT = {  # of scripts/performance/setup_experiment.py
    "tp": "model.tensor_model_parallel_size", "pp": "model.pipeline_model_parallel_size",
    "cp": "model.context_parallel_size", "vp": "model.virtual_pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "ep": "model.expert_model_parallel_size", "et": "model.expert_tensor_parallel_size",
    "mb": "train.micro_batch_size", "gb": "train.global_batch_size", "sl": "model.seq_length",
    "c": "mixed_precision", "compute_dtype": "mixed_precision",
}  # fmt: skip
PRECISIONS = {
    "bf16": "bf16_mixed", "fp8_cs": "bf16_with_fp8_current_scaling_mixed", "fp8_mx": "bf16_with_mxfp8_mixed",
    "fp8_sc": "bf16_with_fp8_subchannel_scaling_mixed", "nvfp4": "bf16_with_nvfp4_mixed",
}  # fmt: skip


@dataclass
class Held:
    """The settings of a text by their dotted paths, what starts the run, and the recipe that they change."""

    form: str
    settings: dict[str, Setting]
    launcher: dict[str, int] = field(default_factory=dict)
    recipe: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        """Ranks of the launch, 0 where it does not say them."""
        each, nodes = self.launcher.get("gpus_per_node", 0), self.launcher.get("nnodes", 0)
        return self.launcher.get("world_size") or self.launcher.get("num_gpus") or each * (nodes or 1)


def is_python(text: str) -> bool:
    """Whether lines of a text set fields of a configuration in Python."""
    return any(
        is_field(match["name"]) for match in PYTHON_LINE.finditer(text) if match["before"] or match["sign"] != "="
    )


def is_yaml(text: str) -> bool:
    """Whether a text is YAML with sections of Megatron-Bridge."""
    return bool(SECTION_LINE.search(text))


def hold(text: str) -> Held:
    """The settings of a text in whichever form it is."""
    found = RECIPE.search(text)
    recipe = found[1] if found else ""
    if is_yaml(text):
        return Held("YAML", dict(_of_yaml(read_yaml(text))), recipe=recipe)
    if is_python(text):
        return Held("Python", dict(_of_python(short(text))), recipe=recipe)
    pairs = read_pairs(text, is_field)
    flags = flags_of(list(pairs.others))
    settings = {one.name: one for one in _of_flags(flags)}
    settings |= {plain(name): replace(one, name=plain(name)) for name, one in pairs.settings.items()}
    launcher = launcher_of(pairs.script, flags, text) | _cards(flags)
    return Held(pairs.form, settings, launcher, recipe or _named(flags), pairs.script.notes)


def _of_flags(flags: list[Setting]) -> Iterator[Setting]:
    """Flags of the scripts of Megatron-Bridge that set a field, such as `--tensor_model_parallel_size 4` or `-tp 4`."""
    for one in flags:
        name = one.name.lstrip("-").replace("-", "_")
        path = SHORT.get(name) or next((f"{at}.{name}" for at in ("model", "train") if f"{at}.{name}" in FLAGS), "")
        if path == "mixed_precision":
            yield replace(one, name=path, values=tuple(PRECISIONS.get(value, value) for value in one.values))
        elif path:
            yield replace(one, name=path)


def _cards(flags: list[Setting]) -> dict[str, int]:
    said = {one.name: one.values[0] for one in flags if one.values and not one.unknown}
    count = said.get("-ng") or said.get("--num_gpus") or said.get("--num-gpus") or ""
    return {"num_gpus": int(count)} if re.fullmatch(r"[1-9]\d{0,6}", count) else {}


def _named(flags: list[Setting]) -> str:
    """The model that the flags of a script name."""
    names = ("-mr", "--model_recipe_name", "--model-recipe-name")
    return next((one.values[0] for one in flags if one.name in names and one.values and not one.unknown), "")


def _of_yaml(one: Placed) -> Iterator[tuple[str, Setting]]:
    for path, value in flattened(one).items():
        name = plain(path)
        name = name.removesuffix("._target_") if name.startswith("peft") else name
        if isinstance(value.value, dict) or name.endswith("._target_"):  # the class of a section
            continue
        yield name, Setting(name, (_text(value),), value.line, value.column)


def _text(one: Placed) -> str:
    """A value as it would stand behind an equals sign."""
    if isinstance(one.value, list):
        return "[" + ", ".join(map(_text, one.value)) + "]"
    if isinstance(one.value, dict):
        return "{..}"
    return "null" if one.value is None else f"{one.value}"


def _of_python(text: str) -> Iterator[tuple[str, Setting]]:
    """Each `cfg.section.field = value`, and the keyword arguments of a section that a class is called for."""
    line, seen, at = 1, 0, 0
    while match := PYTHON_LINE.search(text, at):
        begin, at = match.start("name"), match.end()
        line, seen = line + text.count("\n", seen, begin), begin
        column = begin - text.rfind("\n", 0, begin)
        name, (value, at) = plain(match["name"]), _value(text, at)
        call = CALL.fullmatch(value)
        if call and call[1].endswith(("Config", "LoRA", "DoRA")):
            yield name, Setting(name, (call[1],), line, column)
            for key, inner in _keywords(call[2]):
                yield f"{name}.{key}", _said(f"{name}.{key}", inner, line, column)
        else:
            yield name, _said(name, call[1] if call and not call[2].strip() else value, line, column)


def _said(name: str, value: str, line: int, column: int) -> Setting:
    """A setting with a value that can be read, or with one that stands in code."""
    plain_list = value.startswith(("[", "(")) and not re.search(r"[A-Za-z_]\w*\s*\(|\bfor\b|[\])]\s*[*+]", value)
    dotted = re.fullmatch(r"[A-Za-z_][\w.]*mixed", value) is not None
    why = "" if LITERAL.fullmatch(value) or plain_list or dotted else "it stands in code, which is not run"
    return Setting(name, (value.strip("'\"").removeprefix("torch."),), line, column, why)


def _value(text: str, start: int) -> tuple[str, int]:
    """A value without comments, and where it ends: at the end of its line, or where its brackets close."""
    depth, at, quote, made = 0, start, "", list[str]()
    while at < min(len(text), start + LONGEST):
        letter = text[at]
        if quote:
            quote = "" if letter in (quote, "\n") else quote
        elif letter == "#":
            at = text.find("\n", at) if "\n" in text[at : at + LONGEST] else len(text)
            continue
        elif letter == "\n" and depth <= 0:
            break
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        made.append(letter)
        at += 1
    return "".join(made).strip(), at


def _keywords(text: str) -> Iterator[tuple[str, str]]:
    """Keyword arguments of a call, at its first level."""
    depth, start = 0, 0
    for at, letter in enumerate((text + ",")[:LONGEST]):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            key, equals, value = text[start:at].partition("=")
            if equals and key.strip().isidentifier():
                yield key.strip(), value.strip()
            start = at + 1

"""What any file of a run says of the same quantities, under the names that the frameworks have for them.

The names are those of the frameworks' own settings. Nothing is defaulted here: what is not written is not said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .dump import is_dump, read_dump
from .json_comments import Placed, read_json
from .script import Word
from .sections import AUTO_TEXT, flattened
from .setting import TRUE, UNSET, as_number
from .shell import read_script
from .yaml_placed import read_yaml

BATCH, KIND, SHARDS, CUT, LENGTH, OPTIMIZER = "batch", "precision", "sharding", "cut", "sequence", "optimizer"
# Of each quantity: what it belongs to, and its names: Megatron-LM and DeepSpeed, Accelerate, the transformers Trainer,
# Axolotl and LLaMA-Factory, torchtitan, nanotron, MaxText.
QUANTITIES: dict[str, tuple[str, str]] = {
    "micro-batch": (BATCH, "micro_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size"),
    "accumulation": (BATCH, "gradient_accumulation_steps batch_accumulation_per_replica"),
    "global batch": (BATCH, "global_batch_size train_batch_size global_train_batch_size"),
    "sequence length": (LENGTH, "seq_length seq_len sequence_len sequence_length max_seq_length cutoff_len"
                                " max_target_length"),
    "ZeRO stage": (SHARDS, "zero_stage zero_optimization.stage"),
    "tensor parallel": (CUT, "tensor_model_parallel_size tensor_parallel_size tensor_parallel_degree autotp_size"
                             " megatron_lm_tp_degree parallelism_config_tp_size parallelism.tp"),
    "pipeline parallel": (CUT, "pipeline_model_parallel_size pipeline_parallel_degree megatron_lm_pp_degree"
                               " pipeline.stages parallelism.pp"),
    "context parallel": (CUT, "context_parallel_size context_parallel_degree parallelism_config_cp_size"),
    "expert parallel": (CUT, "expert_model_parallel_size expert_parallel_degree autoep_size"),
    "gradient clipping": (OPTIMIZER, "gradient_clipping max_grad_norm clip_grad"),
    "learning rate": (OPTIMIZER, "optimizer.params.lr learning_rate"),
}  # fmt: skip
NAMES = {name: quantity for quantity, (_, names) in QUANTITIES.items() for name in names.split()}
KINDS = {quantity: kind for quantity, (kind, _) in QUANTITIES.items()} | {"precision": KIND}
TOML_SECTION = re.compile(r"^\[[\w.]+\][ \t]*(?:#.*)?$", re.MULTILINE)
TOML_LINE = re.compile(r"""^[ \t]*(?P<name>[\w.-]+)[ \t]*=[ \t]*(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s#]+)""", re.MULTILINE)
YAML_LINE = re.compile(r"^[ \t]*[A-Za-z_][\w.-]*[ \t]*:([ \t]|$)")


@dataclass(frozen=True)
class Said:
    """One quantity as a file says it: its setting, its value and its place."""

    quantity: str
    name: str
    value: str
    line: int
    column: int


def said_in(text: str, flags: bool = True) -> tuple[Said, ...]:
    """The quantities that a text says, in its order; none where it cannot be read. Flags of a script only if asked."""
    try:
        pairs = _pairs(text, flags)
    except InputError:
        return ()
    return tuple(one for pair in pairs if (one := _said(*pair)) is not None)


def same(one: str, other: str) -> bool:
    """Whether two values are one: as numbers, else as words."""
    numbers = as_number(one), as_number(other)
    return numbers[0] == numbers[1] if None not in numbers else one.strip().lower() == other.strip().lower()


def _said(path: str, value: str, line: int, column: int) -> Said | None:
    name = path.lower().lstrip("-").replace("-", "_")
    plain = value.strip().strip("\"'").lower()
    last, section = name.rpartition(".")[2], name.rpartition(".")[0].rpartition(".")[2]
    if plain in (AUTO_TEXT, *UNSET[:3]) or "$" in plain:
        return None
    switch = section if last == "enabled" and section in ("bf16", "fp16") else last
    if switch in ("bf16", "fp16"):
        on = plain in ("", *TRUE)
        return Said("precision", path, switch, line, column) if on else None
    if last == "mixed_precision":
        return Said("precision", path, "fp32" if plain in ("no", "false") else plain, line, column)
    quantity = NAMES.get(f"{section}.{last}") or NAMES.get(last) or NAMES.get(name)
    quantity = quantity or next((NAMES[key] for key in NAMES if "." in key and name.endswith(key)), None)
    return Said(quantity, path, plain, line, column) if quantity and plain else None


Pair = tuple[str, str, int, int]  # a dotted name, its value, line and column


def _pairs(text: str, flags: bool) -> list[Pair]:
    """Every setting of a text in whichever form it is."""
    if is_dump(text):
        return [(one.name, " ".join(one.values), one.line, one.column) for one in read_dump(text).values()]
    begin = re.search(r"^\s*\{", text, re.MULTILINE)
    if begin and "}" in text and not text.lstrip().startswith("#!"):
        lines = text.count("\n", 0, begin.start())
        return list(_flat(read_json("\n" * lines + text[begin.start() : text.rfind("}") + 1])))
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    if TOML_SECTION.search(text) and (TOML_SECTION.match(first) or TOML_LINE.match(first)):
        return list(_toml(text))
    if YAML_LINE.match(first) or first.startswith("---"):
        return list(_flat(read_yaml(text)))
    return _flags(text) if flags else []


def _flat(found: Placed) -> Iterator[Pair]:
    for path, one in flattened(found).items():
        if not isinstance(one.value, dict | list):
            yield path, _text(one.value), one.line, one.column


def _text(value: Any) -> str:
    return "none" if value is None else str(value)


def _toml(text: str) -> Iterator[Pair]:
    section, line = "", 0
    for line, row in enumerate(text.split("\n"), 1):
        if match := re.match(r"\[([\w.]+)\]", row):
            section = f"{match[1]}."
        elif match := TOML_LINE.match(row):
            yield section + match["name"], match["value"].strip("\"'"), line, match.start("name") + 1


def _flags(text: str) -> list[Pair]:
    """The flags of the command that says the most."""
    commands = [list(_of_command(words)) for words in read_script(text).commands]
    return max(commands, key=lambda pairs: sum(_said(*pair) is not None for pair in pairs), default=[])


def _of_command(words: Sequence[Word]) -> Iterator[Pair]:
    for index, word in enumerate(words):
        if not re.match(r"--?[A-Za-z]", word.text):
            continue
        name, equals, value = word.text.partition("=")
        after = words[index + 1] if index + 1 < len(words) else None
        valued = not equals and after is not None and not re.match(r"--?[A-Za-z]", after.text)
        unknown = word.unknown or (after.unknown if valued and after else "")
        if not unknown:
            yield name, value if equals else (after.text if valued and after else ""), word.line, word.column

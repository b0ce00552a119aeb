"""The forms in which people hold a DeepSpeed configuration: JSON with a launcher's line beside it, as sections."""

import re
from dataclasses import dataclass, field

from ...errors import InputError, quoted
from ..json_comments import read_json
from ..sections import Sections, flattened
from ..setting import fault

LAUNCH = re.compile(r"--(num_nodes|num_gpus|nnodes|nproc[_-]per[_-]node|world_size)[= ]+(\d{1,7})")
FIRST_KEY = re.compile(r"\{\s*(?:(?://|#)[^\n]*\s*|/\*.*?\*/\s*)*[\"'}A-Za-z_]", re.DOTALL)
KEYS = (
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization", "fp16",
    "bf16", "bfloat16", "optimizer", "scheduler", "activation_checkpointing", "pipeline", "tensor_parallel",
    "sequence_parallel_size", "gradient_clipping", "zero_allow_untested_optimizer",
)  # fmt: skip


@dataclass
class Held:
    """A configuration, how it was written, what its launcher says, and what there is to say about it."""

    form: str
    sections: Sections
    ranks: int
    notes: list[str] = field(default_factory=list)


def hold(text: str) -> Held:
    """The configuration in a text. What stands around the object is read as a launcher's line, and never run."""
    begin = FIRST_KEY.search(text)
    if begin is None:
        rule = "one JSON object, with comments and a launcher's line if you like"
        raise InputError(
            fault("FMT004", "nothing here is a DeepSpeed configuration", rule, quoted(text[:40]), "the file")
        )
    before, after = text[: begin.start()], ""
    lines = before.count("\n")
    found = read_json("\n" * lines + text[begin.start() :] if not _trails(text) else _cut(text, begin.start(), lines))
    after = _behind(text)
    flat = flattened(found)
    if not any(key in flat for key in KEYS):
        rule = f"some key of DeepSpeed, such as {', '.join(KEYS[:4])}"
        raise InputError(
            fault(
                "FMT004", "nothing here is a DeepSpeed configuration", rule, f"keys {', '.join(flat)[:60]}", "the file"
            )
        )
    said: dict[str, str] = dict(LAUNCH.findall(before + after))
    counts = {name.replace("-", "_"): int(count) for name, count in said.items()}
    each = counts.get("num_gpus", counts.get("nproc_per_node", 0))
    ranks = counts.get("world_size", 0) or each * counts.get("num_nodes", counts.get("nnodes", 1))
    return Held("JSON" + (" and a launcher's line" if said else ""), Sections(flat), ranks)


def _trails(text: str) -> bool:
    return bool(_behind(text))


def _behind(text: str) -> str:
    """What stands behind the last brace."""
    tail = text[text.rfind("}") + 1 :] if "}" in text else ""
    return tail if LAUNCH.search(tail) else ""


def _cut(text: str, begin: int, lines: int) -> str:
    return "\n" * lines + text[begin : text.rfind("}") + 1]

"""Job files in TOML, of releases before 0.3, whose names are brought to those of today, with their places.

Source: pytorch/torchtitan, torchtitan/config_manager.py and torchtitan/config/job_config.py of 2024 and 2025.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from ..json_comments import Placed
from ..setting import unreadable
from ..source import short
from .held import Held, placed
from .registry import of_flavor

SECTION = re.compile(r"^\s*\[\s*([\w.\-\" ]+?)\s*\]")
KEY = re.compile(r"^\s*([\w.\-\"]+)\s*=")
ERROR = re.compile(r"(?P<what>.*?) \(at line (?P<line>\d+), column (?P<column>\d+)\)")
FIRST = r"^\[(parallelism|training|experimental|activation_checkpoint|model|job|float8|quantize[\w.]*)\]"
HEADER = re.compile(FIRST, re.MULTILINE)
KNOWN = re.compile(r"^[ \t]*(flavor|seq_len|(local_)?batch_size|mode|\w{1,40}_degree)[ \t]*=", re.MULTILINE)
_MOVED = """
    training.batch_size=training.local_batch_size training.compile=compile.enable
    training.data_parallel_degree=parallelism.data_parallel_shard_degree
    training.data_parallel_shard_degree=parallelism.data_parallel_shard_degree
    training.data_parallel_replicate_degree=parallelism.data_parallel_replicate_degree
    training.tensor_parallel_degree=parallelism.tensor_parallel_degree
    training.enable_async_tensor_parallel=compile.enable_async_tensor_parallel
    parallelism.enable_async_tensor_parallel=compile.enable_async_tensor_parallel
    experimental.enable_async_tensor_parallel=compile.enable_async_tensor_parallel
    experimental.context_parallel_degree=parallelism.context_parallel_degree
    experimental.context_parallel_rotate_method=parallelism.context_parallel_rotate_method
    experimental.pipeline_parallel_degree=parallelism.pipeline_parallel_degree
    experimental.pipeline_parallel_schedule=parallelism.pipeline_parallel_schedule
    experimental.pipeline_parallel_microbatches=parallelism.pipeline_parallel_microbatches
    experimental.pipeline_parallel_split_points=parallelism.pipeline_parallel_split_points
    activation_checkpoint.mode=activation_checkpoint
"""
MOVED = dict(one.split("=") for one in _MOVED.split())
MODULES = {"llama3": "llama3", "qwen3": "qwen3", "deepseek_v3": "deepseek_v3", "gpt_oss": "gpt_oss"}
FLOAT8 = ("float8", "quantize.linear.float8")
MX = ("mx", "quantize.linear.mx")


def is_old(text: str) -> bool:
    """Whether a text has two of the sections that job files had, and some key of theirs."""
    return len({match[1] for match in HEADER.finditer(text)}) > 1 and bool(KNOWN.search(text))


def read_old(text: str) -> Held:
    """The options of a job file. Raises InputError (FMT003) with line and column."""
    try:
        table = tomllib.loads(short(text))
    except RecursionError:
        raise unreadable("the file is nested too deep", "more levels than can be read") from None
    except ValueError as error:  # tomllib's own error is one; a number of thousands of digits is another
        match = ERROR.fullmatch(str(error))
        place = (int(match["line"]), int(match["column"])) if match else (0, 0)
        raise unreadable("this is not TOML", match["what"] if match else str(error)[:80], *place) from None
    places = dict(_places(text))
    held = Held("a job file in TOML", old=True, notes=[])
    for path, value in _flat(table, ""):
        name = MOVED.get(path, path)
        if name != path and path != "activation_checkpoint.mode":
            held.renamed[name] = path
        if name in held.options and path != name:
            continue  # beside the name of later releases the old one stands back
        held.options[name] = placed(value, *places.get(path, (0, 0)))
    _model(held)
    _converter(held, table)
    return held


def _flat(table: dict[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        inner = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and depth < 8:
            yield from _flat(value, inner, depth + 1)
        else:
            yield inner, [_plain(one) for one in value] if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> Any:
    """Numbers and texts as they are, lists of texts; what else TOML has, such as a date, as text."""
    if isinstance(value, list):
        return [str(one)[:200] for one in value]
    return value if isinstance(value, str | int | float | bool) else str(value)[:200]


def _places(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Where each key stands, the first of its path."""
    section = ""
    for row, line in enumerate(text.split("\n"), 1):
        if header := SECTION.match(line):
            section = header[1].replace('"', "").replace(" ", "")
        elif key := KEY.match(line):
            yield f"{section}.{key[1]}".replace('"', "").lstrip("."), (row, key.start(1) + 1)


def _model(held: Held) -> None:
    """The model that `[model] name` and `flavor` name."""
    name, flavor = (held.options.pop(f"model.{key}", Placed("", 0, 0)).value for key in ("name", "flavor"))
    name = name if isinstance(name, str) else ""
    held.base = of_flavor(flavor, MODULES.get(name, name)) if isinstance(flavor, str) and name else None
    held.asked = f"model {name} {flavor}"[:60] if name or flavor else ""


def _converter(held: Held, table: dict[str, Any]) -> None:
    """What the linear layers are converted to: the converters of `[model]`, or the switch of 2024."""
    one = held.options.pop("model.converters", Placed([], 0, 0))
    said = one.plain()
    names = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    switch = held.options.pop("float8.enable_float8_linear", Placed(False, 0, 0))
    if any(name in names for name in FLOAT8) or switch.value is True:
        recipes = [held.options.get(f"{section}.recipe_name", Placed(None, 0, 0)).value for section in FLOAT8]
        rows = any(isinstance(recipe, str) and recipe.startswith("rowwise") for recipe in recipes)
        held.options["converter"] = Placed("fp8_rowwise" if rows else "fp8_tensorwise", one.line, one.column)
    elif any(name in names for name in MX):
        held.options["converter"] = Placed("mxfp8", one.line, one.column)

"""The configurations that torchtitan brings, by module and name, with what each sets."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...errors import InputError
from ...model.catalogue import find
from ...model.model import Model
from ...undivided import parameters


@dataclass(frozen=True)
class Configuration:
    """One function of a registry: the model, and the values that hold where nothing stands over them."""

    module: str
    name: str
    model: str
    flavor: str
    sequence: int
    steps: int
    local_batch: int = 8
    recompute: str = "selective"
    tp: int = 1
    ep: int = 1
    schedule: str = "1F1B"
    precision: str = "bf16"
    graphs: bool = True
    compile: bool = False
    components: tuple[str, ...] = ("model", "loss")
    asynchronous: bool = False

    @property
    def chats(self) -> bool:
        """Whether it fine-tunes on chats, which is the data loader's business and no count's."""
        return self.name.startswith("sft_")

    @property
    def values(self) -> dict[str, object]:
        """Its settings by their paths, where they are not the framework's own."""
        return {
            "training.local_batch_size": self.local_batch,
            "training.seq_len": self.sequence,
            "training.steps": self.steps,
            "training.disable_cuda_graphs": not self.graphs,
            "parallelism.tensor_parallel_degree": self.tp,
            "parallelism.expert_parallel_degree": self.ep,
            "parallelism.pipeline_parallel_schedule": self.schedule,
            "activation_checkpoint": self.recompute,
            "compile.enable": self.compile,
            "compile.components": list(self.components),
            "compile.enable_async_tensor_parallel": self.asynchronous,
            "loss.num_chunks": 8,
            "converter": self.precision,
        }


@cache
def configurations() -> tuple[Configuration, ...]:
    """Every one that is known, in the order of the table."""
    table: dict[str, Any] = tomllib.loads(files(__package__).joinpath("registry.toml").read_text("utf-8"))
    found = list[Configuration]()
    for module, rows in table.items():
        for name, row in rows.items():
            values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
            found.append(Configuration(module, name, **values))
    return tuple(found)


def configuration(module: str, name: str) -> Configuration | None:
    """The one of a module and a name."""
    return next((one for one in configurations() if (one.module, one.name) == (module, name)), None)


def of_flavor(flavor: str, module: str = "") -> Configuration | None:
    """The one of a model's flavor; where no module is named, the flavor is that of one module alone."""
    found = [one for one in configurations() if one.flavor == flavor and module in ("", one.module)]
    return found[0] if len(found) == 1 else None


def of_model(model: Model) -> Configuration | None:
    """The one whose model has the same sizes."""
    return next((one for one, other in _known() if _sizes(other) == _sizes(model)), None)


def _known() -> Iterator[tuple[Configuration, Model]]:
    for one in configurations():
        try:
            yield one, find(one.model)
        except InputError:  # a catalogue of one's own without it
            continue


def _sizes(model: Model) -> tuple[object, ...]:
    first = model.blocks[0].attention
    heads = (first.heads, first.kv_heads) if first else ()
    return parameters(model).total, model.layers, model.hidden, model.vocab, heads

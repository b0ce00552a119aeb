"""What is gathered while a file of fine-tuning is read, and the words that its formats share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from ...errors import InputError, nearest
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.model import Model
from ..sections import Sections
from ..setting import Found, Missing, Setting
from .models import layer_class, model_named
from .text import Held

# Names of optimizers in transformers, and ours. Source: transformers 5.24 training_args.py, OptimizerNames, and what
# trainer_optimizer.py makes of each; the paged ones keep the same state, which may be moved to the host.
OPTIMIZERS: Mapping[str, str] = {
    "adamw_torch": "adam", "adamw_torch_fused": "adam", "adamw_torch_xla": "adam", "adamw_torch_npu_fused": "adam",
    "adamw_hf": "adam", "paged_adamw_32bit": "adam", "adamw_bnb_8bit": "adam8bit", "adamw_8bit": "adam8bit",
    "adamw_torch_8bit": "adam8bit", "paged_adamw_8bit": "adam8bit", "adafactor": "adafactor", "sgd": "sgd",
    "lion_32bit": "lion", "paged_lion_32bit": "lion", "galore_adamw": "galore",
}  # fmt: skip
NAMED = (
    *OPTIMIZERS, "adamw_anyprecision", "adamw_torch_4bit", "ademamix", "adagrad", "ademamix_8bit", "lion_8bit",
    "paged_ademamix_32bit", "paged_ademamix_8bit", "paged_lion_8bit", "rmsprop", "rmsprop_bnb", "rmsprop_bnb_8bit",
    "rmsprop_bnb_32bit", "galore_adamw_8bit", "galore_adafactor", "galore_adamw_layerwise",
    "galore_adamw_8bit_layerwise", "galore_adafactor_layerwise", "lomo", "adalomo", "grokadamw",
    "schedule_free_radam", "schedule_free_adamw", "schedule_free_sgd", "apollo_adamw", "apollo_adamw_layerwise",
    "stable_adamw",
)  # fmt: skip
OURS: Mapping[str, str] = {  # the name that is written
    "adam": "adamw_torch_fused", "adam8bit": "adamw_torch_8bit", "adafactor": "adafactor", "sgd": "sgd",
    "lion": "lion_32bit", "galore": "galore_adamw",
}  # fmt: skip
MOST = 20  # unknown arguments that are looked at one by one


@dataclass
class Reading:
    """A file as it is read: its arguments, and what there is to say."""

    held: Held
    notes: list[str] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    kept: list[Setting] = field(default_factory=list)

    @property
    def at(self) -> Sections:
        """The arguments by dotted paths."""
        return self.held.sections

    def find(self, code: str, path: str, what: str, rule: str, got: str, fix: str, serious: bool = True) -> None:
        """Keep a finding at the place of a path."""
        self.at.find(code, path, what, rule, got, fix, serious)

    def note(self, text: str) -> None:
        """Say something once."""
        self.notes += [text] if text not in self.notes else []

    def lacks(self, field: str, why: str) -> None:
        """Ask for a field that the file does not say, once."""
        if not any(one.field == field for one in self.missing):
            self.missing.append(Missing(field, why))

    def text(self, path: str, default: str = "") -> str:
        """A text as it is written."""
        one = self.at.ask(path)
        return default if one is None or one.value is None else str(one.value).strip()

    def words(self, path: str) -> tuple[str, ...]:
        """Several words: a list, or one text with commas."""
        one = self.at.ask(path)
        if one is None or one.value is None:
            return ()
        inner = [str(each.value) for each in one.value] if isinstance(one.value, list) else [str(one.value)]
        return tuple(word.strip() for text in inner for word in text.split(",") if word.strip())

    def words_of_switch(self, path: str) -> tuple[str, ...]:
        """The words of an argument that is true, or words with blanks between them."""
        return tuple(word.lower() for text in self.words(path) for word in text.split() if word.lower() != "true")

    def has(self, path: str) -> bool:
        """Whether a path has a value that is neither empty nor false."""
        one = self.at.ask(path)
        return one is not None and one.value not in (None, False, "", "false", "none", "no")

    def ignore(self, names: str) -> None:
        """Arguments that say nothing of a count."""
        self.at.asked.update(names.split())

    def unknown(self, fields: Mapping[str, str]) -> None:
        """Ask for what the file gives through something that it does not hold, and say the rest."""
        for name, why in self.held.unknown.items():
            if name in fields:
                self.lacks(fields[name], why)
            else:
                self.note(f"not in the file: {why}")


def model_of(read: Reading, path: str) -> Model | None:
    """The model that a path names, where the catalogue has it; else it is asked for."""
    name = read.text(path)
    if not name:
        read.lacks("model", f"the file does not say {path}")
        return None
    found = model_named(name)
    if found is None:
        read.lacks("model", f"{path} {name[:80]} is not one of the catalogue: give its config.json")
    elif found.name != name.lower().rpartition("/")[2]:
        read.note(f"{path} {name[:80]}: counted with the sizes of {found.name}")
    return found


def optimizer_of(read: Reading, path: str, code: str, also: Mapping[str, str] | None = None) -> Any:
    """The optimizer by its name in transformers, and by the other names that a framework has.

    `code`: of a name that stops the run; empty where the framework lets every name pass at first.
    """
    known = {**OPTIMIZERS, **(also or {})}
    name = read.text(path, "adamw_torch_fused").lower()
    if code and name not in (*NAMED, *known):
        close = nearest(name, (*NAMED, *known))
        rule = "transformers has no optimizer of that name, and stops"
        read.find(code, path, f"{path} {name[:40]} is none", rule, name[:60], close[0] if close else "adamw_torch")
    if name == "sgd" and "momentum" in read.text("optim_args"):
        return "momentum"
    if name not in known:
        read.note(f"optimizer {name[:40]} is not counted: read as adam")
    return known.get(name, "adam")


def check_layer_class(read: Reading, path: str, code: str, model: Model | None) -> None:
    """A class to wrap that the model does not have: FSDP then stops when it starts."""
    expected = layer_class(model) if model else ""
    said = read.words(path)
    if expected and said and expected not in said:
        rule = f"{model.name if model else ''} has layers of the class {expected}"
        what = f"{path.rpartition('.')[2]} names a class that the model does not have"
        read.find(code, path, what, rule, ", ".join(said)[:60], expected)


def found_of(
    read: Reading, framework: str, model: Model | None, job: Job, layout: Layout, engine: str, accumulated: int
) -> Found:
    """All that was read; raises InputError where a value cannot be read (FMT005)."""
    if read.at.faults:
        raise InputError(*read.at.faults)
    return Found(
        framework,
        read.held.form,
        model,
        job,
        layout,
        engine,
        read.held.ranks,
        tuple(read.missing),
        tuple(one for one in (*read.kept, *read.at.kept()) if one.values != ("None",)),
        (*read.held.notes, *read.notes),
        tuple(read.at.findings),
        accumulated,
    )


def unknown_keys(read: Reading, known: Collection[str], code: str, rule: str) -> None:
    """An error for each argument that the framework does not have."""
    for path in _unknown(read, known):
        close = nearest(path, known)
        fix = f"did you mean {close[0]}?" if close else "remove it"
        read.find(code, path, f"{path[:40]} is not an argument", rule, path[:60], fix)


def misspelled_keys(read: Reading, known: Collection[str], code: str, rule: str) -> None:
    """A warning for each argument that looks like a misspelled one, where others may be known elsewhere."""
    for path in _unknown(read, known):
        if close := get_close_matches(path, known, n=1, cutoff=0.9):
            fix = f"did you mean {close[0]}?"
            read.find(code, path, f"{path[:40]} looks misspelled", rule, path[:60], fix, serious=False)


def _unknown(read: Reading, known: Collection[str]) -> list[str]:
    return [path for path in read.at.held if "." not in path and path not in known][:MOST]


def batched(read: Reading, micro: Any, steps: Any, layout: Layout) -> tuple[Any, int]:
    """The global batch where the ranks are known, and what one data-parallel rank sees in a step."""
    if micro is AUTO or steps is AUTO:
        return AUTO, 0
    each = int(micro) * int(steps)
    cut = (layout.tp or 1) * (layout.cp or 1) * (layout.pp or 1)
    ranks = read.held.ranks
    return (each * (ranks // cut) if ranks and ranks % cut == 0 else AUTO), each


def sized(layout: Layout, ranks: int) -> Layout:
    """The layout with the shards that are left, where the ranks are known."""
    cut = (layout.tp or 1) * (layout.cp or 1) * (layout.pp or 1) * (layout.dp_replicate or 1)
    if not ranks or ranks % cut or layout.dp_shard is not AUTO:
        return layout
    return replace(layout, dp_shard=ranks // cut)


def narrow(optimizer: str) -> dict[str, Any]:
    """Types of a run whose weights are loaded in bf16 and trained so: gradients, moments and the wire too."""
    moments = {} if optimizer == "adam8bit" else {"moment_dtype": "bf16"}
    return {"master_dtype": "none", "gradient_dtype": "bf16", "reduce_dtype": "bf16"} | moments

"""The forms in which people hold Megatron-LM arguments, as settings by name: a script, a log, YAML."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..dump import is_dump, read_dump
from ..script import Script, Word, parted
from ..setting import Setting
from ..shell import read_script
from ..yaml_settings import read_settings

# Other names of a setting: of older releases, of megatron-core's configuration classes, of a log.
ALIASES = {
    "model_parallel_size": "tensor_model_parallel_size",
    "num_moe_experts": "num_experts",
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "microbatch_group_size_per_vp_stage": "microbatch_group_size_per_virtual_pipeline_stage",
    "gated_linear_unit": "swiglu",
    "fp8": "fp8_format",
    "fp4": "fp4_format",
    "encoder_seq_length": "seq_length",
    "encoder_num_layers": "num_layers",
    "cuda_graph_scope": "cuda_graph_modules",
    "use_distributed_fused_adam": "use_distributed_optimizer",
    "nproc_per_node": "gpus_per_node",
    "num_gpus": "gpus_per_node",
    "num_nodes": "nnodes",
    "gpus_per_node": "gpus_per_node",
}
NEGATED = {"disable_bias_linear": "add_bias_linear", "no_position_embedding": "add_position_embedding"}
ENVIRONMENT = {
    "world_size": ("WORLD_SIZE",),
    "nnodes": ("NNODES", "NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "gpus_per_node": ("GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE"),
}
LAUNCHER = (*ENVIRONMENT, "num_nodes", "num_gpus")
BATCH_LINE = re.compile(
    r"^#SBATCH\s+(--nodes|-N|--gpus-per-node|--ntasks-per-node)[= ]*(?:gpu:)?(\d{1,7})", re.MULTILINE
)
YAML_LINE = re.compile(r"^[ \t]*[A-Za-z_][\w.-]*[ \t]*:([ \t]|$)", re.MULTILINE)


@dataclass
class Held:
    """The settings of a text, how they were written, and what there is to say about it."""

    form: str
    settings: dict[str, Setting]
    launcher: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        """Ranks of the launch, 0 where it does not say them."""
        each, nodes = self.launcher.get("gpus_per_node", 0), self.launcher.get("nnodes", 0)
        return self.launcher.get("world_size", 0) or each * (nodes or 1)


def hold(text: str, known: frozenset[str]) -> Held:
    """The settings of a text in whichever form it is; `known` are the names that Megatron-LM has."""
    if is_dump(text):
        found = Held("the arguments of a log", named(read_dump(text).values()))
        world = found.settings.get("world_size")
        if world and world.values[0].isdigit():
            found.launcher["world_size"] = int(world.values[0][:9])
        return found
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    if text.lstrip().startswith("{") or (YAML_LINE.match(first) and not first.lstrip().startswith("-")):
        return Held("YAML", named(read_settings(text).values()))
    return _held_by(read_script(text), text, known)


def named(found: Iterable[Setting]) -> dict[str, Setting]:
    """Settings under the names of the flags; of two that mean the same, the first that has a value."""
    made: dict[str, Setting] = {}
    for one in found:
        plain = one.name.lstrip("-").replace("-", "_")
        if plain in NEGATED and not one.values:
            made[NEGATED[plain]] = replace(one, values=("false",))
            continue
        name = ALIASES.get(plain, plain)
        if name not in made or one.values not in ((), ("None",), ("null",)):
            made[name] = one
    return made


def flags_of(words: list[Word]) -> list[Setting]:
    """The flags of a command, each with the words up to the next one."""
    found, name, values, first, unknown = list[Setting](), "", list[str](), words[0] if words else None, ""
    for word in [*words, Word("--", 0, 0)]:
        if not re.match(r"--($|[A-Za-z])|-[A-Za-z]", word.text):
            values, unknown = [*values, word.text], unknown or word.unknown
            continue
        if name and first:
            found.append(Setting(name, tuple(values), first.line, first.column, unknown))
        name, equals, value = word.text.partition("=")
        values, first, unknown = ([value] if equals else []), word, word.unknown
    return found


def _held_by(script: Script, text: str, known: frozenset[str]) -> Held:
    """The command with the most flags that Megatron-LM knows; where there is none, what the variables hold."""
    commands = [(words, _score(words, known)) for words in script.commands]
    best = max((score for _, score in commands), default=0)
    bare = [words for words, score in commands if score and words[0].text.startswith("--")]
    chosen = next((words for words, score in commands if score == best and best), [])
    form, launched = "a shell script", list[Setting]()
    if bare and chosen in bare:
        words, form = [word for one in bare for word in one], "flags"
    elif chosen:
        end = next((place for place, word in enumerate(chosen) if word.text.endswith(".py")), -1)
        words, launched = chosen[end + 1 :], flags_of(chosen[: end + 1])
    else:
        words = [word for value in script.variables.values() for word in _parts(value) if _score(_parts(value), known)]
    flags = flags_of(words)
    return Held(form, named(_last_wins(flags, script)), launcher_of(script, launched, text), script.notes)


def _parts(value: tuple[Word, ...]) -> list[Word]:
    return [part for word in value for part in parted(word)]


def _last_wins(flags: list[Setting], script: Script) -> list[Setting]:
    """One setting a name: the last one counts, as for the parser of Python, and an earlier other value is said."""
    held: dict[str, Setting] = {}
    for one in flags:
        before = held.pop(one.name, None)
        if before is not None and before.values != one.values:
            script.note(f"{one.name} stands twice ({before.place}, {one.place}): the last one counts")
        held[one.name] = one
    return list(held.values())


def _score(words: list[Word], known: frozenset[str]) -> int:
    names = (word.text.partition("=")[0].lstrip("-").replace("-", "_") for word in words if word.text.startswith("--"))
    return sum(ALIASES.get(name, name) in known or name in NEGATED for name in names)


def launcher_of(script: Script, launched: list[Setting], text: str) -> dict[str, int]:
    """What torchrun, its variables or the batch system say of nodes and cards."""
    said = {
        name: script.first(one) for name, names in ENVIRONMENT.items() for one in reversed(names) if script.first(one)
    }
    of_batch = {"--nodes": "nnodes", "-N": "nnodes"}
    for flag, count in BATCH_LINE.findall(text):
        said.setdefault(of_batch.get(flag, "gpus_per_node"), count)
    for one in launched:
        plain = one.name.lstrip("-").replace("-", "_")
        if ALIASES.get(plain, plain) in LAUNCHER and one.values and not one.unknown:
            said[ALIASES.get(plain, plain)] = one.values[0]
    return {name: int(value) for name, value in said.items() if value and re.fullmatch(r"[1-9]\d{0,6}", value.strip())}

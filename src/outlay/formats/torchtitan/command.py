"""A command line of torchtitan, alone or in a shell script that is read and never run."""

import re
from collections.abc import Iterator
from typing import Any

from ..json_comments import Placed
from ..script import Script, Word
from ..setting import UNSET, Setting
from ..shell import read_script
from .function import read_function
from .held import HERE, Held, path_of, placed
from .options import CLOSED, SWITCHES, is_option
from .registry import configuration

POLICY = re.compile(r"activation[-_]checkpoint:([\w-]+)")
POLICIES = ("selective", "full", "memory_budget", "none")
SCRIPT = re.compile(r"(torchtitan\.train|.*\.(py|sh))")
ENVIRONMENT = {"nodes": ("NNODES", "NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "cards": ("NGPU", "NPROC")}
LAUNCHER = {"nnodes": "nodes", "nproc_per_node": "cards"}
BATCH_LINE = re.compile(r"^#SBATCH\s+(--nodes|-N|--gpus-per-node)[= ]*(?:gpu:)?(\d{1,7})", re.MULTILINE)
LISTS = ("compile.components",)
PARTS = "parallelism.module_fqns_per_model_part"
OF_POLICY = "activation_checkpoint."


def read_command(text: str) -> Held:
    """The options of the command with most of them, over the function that a here document holds, if one does."""
    script = read_script(text)
    scored = [(sum(_scores(word) for word in words), words) for words in script.commands]
    best, words = max(scored, key=lambda one: one[0], default=(0, list[Word]()))
    held = Held("a command line" if best else "a shell script", notes=script.notes)
    end = next((place for place, word in enumerate(words) if SCRIPT.fullmatch(word.text)), -1)
    here = HERE.search(text)
    if here:
        inner = read_function(here["text"], before=text.count("\n", 0, here.start("text")))
        inner.notes = [note for note in held.notes if not note.endswith("the text behind << is not read")]
        inner.form, held = "a command line and a function", inner
    _options(held, words[end + 1 :])
    _configuration(held, script, bool(here))
    held.ranks = _ranks(script, words[: end + 1], text)
    return held


def _scores(word: Word) -> bool:
    return word.text.startswith("--") and (is_option(path_of(word.text.partition("=")[0])[0]) or _names_run(word.text))


def _names_run(text: str) -> bool:
    return text.partition("=")[0] in ("--module", "--config")


def _flags(words: list[Word]) -> Iterator[tuple[Word, list[Word]]]:
    """Each option with the words up to the next one; a choice of a policy stands by itself."""
    name, values = None, list[Word]()
    for word in words:
        if word.text.startswith("--") or POLICY.fullmatch(word.text):
            if name is not None:
                yield name, values
            name, values = word, []
        else:
            values.append(word)
    if name is not None:
        yield name, values


def _options(held: Held, words: list[Word]) -> None:
    chosen, seen = "", dict[str, Placed]()
    for word, values in _flags(words):
        text, equals, value = word.text.partition("=")
        policy = POLICY.fullmatch(word.text)
        if policy:
            chosen = word.text
            name = policy[1].replace("-", "_")
            held.options["activation_checkpoint"] = Placed(name, word.line, word.column)
            if name not in POLICIES:
                held.misplaced.append((Setting("activation_checkpoint", (word.text,)), f"one of {', '.join(POLICIES)}"))
            continue
        path, negated = path_of(text)
        given = [Word(value, word.line, word.column, word.unknown), *values] if equals else values
        one = Setting(text, tuple(each.text for each in given), word.line, word.column)
        if chosen and not path.startswith(OF_POLICY):
            held.misplaced.append((one, f"what stands behind {chosen} belongs to it: put the choice last"))
        if path in SWITCHES and given:
            held.misplaced.append((one, "a switch takes no value: --a.b, or --a.no-b"))
        elif len(given) > 1 and path != PARTS and is_option(path) and path.partition(".")[0] in CLOSED:
            held.misplaced.append((one, "one value: put commas between several"))
        here = placed(_value(path, one, negated), word.line, word.column)
        if path in seen and seen[path].plain() != here.plain():
            held.notes.append(f"{text} stands twice ({one.place} is the last): the last one counts")
        unknown = next((each.unknown for each in given if each.unknown), "")
        if unknown:
            held.unknown[path] = f"{one.text} ({one.place}): {unknown}"
        held.options[path] = seen[path] = here


def _value(path: str, one: Setting, negated: bool) -> Any:
    """What an option says: a switch without a word is on."""
    if path == PARTS:
        return [part.split(",") for part in one.values]
    if path in LISTS:
        return [name for text in one.values for name in text.split(",")]
    if not one.values:
        return not negated
    text = " ".join(one.values)
    return None if text.strip().lower() in UNSET else text


def _configuration(held: Held, script: Script, here: bool) -> None:
    """The configuration under the options: named in the command, in the variables of run_train.sh, or in the text."""
    names = []
    for key in ("module", "config"):
        one = held.options.pop(key, None)
        unknown = held.unknown.pop(key, "")
        text = script.first(key.upper()) if one is None else str(one.value)
        names.append("" if unknown else text or "")
    module, config = names
    held.options.pop("job.config_file", None)
    if not here:
        held.base = configuration(module.rpartition(".")[2] if module.startswith("torchtitan.") else module, config)
        held.asked = f"--module {module} --config {config}" if module or config else ""


def _ranks(script: Script, launched: list[Word], text: str) -> int:
    said = {
        name: script.first(one) for name, names in ENVIRONMENT.items() for one in reversed(names) if script.first(one)
    }
    for flag, count in BATCH_LINE.findall(text):
        said.setdefault("cards" if flag == "--gpus-per-node" else "nodes", count)
    for place, word in enumerate(launched):
        flag, equals, value = word.text.partition("=")
        behind = launched[place + 1] if place + 1 < len(launched) else word
        kind = LAUNCHER.get(flag.lstrip("-").replace("-", "_"))
        if kind and flag.startswith("-") and not (word.unknown or (not equals and behind.unknown)):
            said[kind] = value if equals else behind.text
    counts = {name: int(text) for name, text in said.items() if text and re.fullmatch(r"[1-9]\d{0,6}", text.strip())}
    return counts.get("cards", 0) * counts.get("nodes", 1)

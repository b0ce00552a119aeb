"""The list of commands: a row each. What a command does is loaded when it is called."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .calibrate_flags import calibrate_flags
from .command_flags import (
    bubble_flags,
    count_flags,
    draw_flags,
    explain_flags,
    hardware_flags,
    memory_flags,
    no_flags,
    recompute_flags,
    validate_flags,
    verify_flags,
)
from .drilling_flags import TOPIC, drill_flags
from .file_flags import CHECKED, FILE, FRAMEWORK, check_flags, written_flags
from .flags import FACE, Flag, Given, Positional, callable_of, question_flags
from .plan_flags import plan_flags
from .serve_flags import report_flags, serve_flags
from .sweep.flags import sweep_flags
from .watch_flags import LOG, watch_flags

MODEL = Positional("model", "a config.json, its folder, a name from the catalogue, a bill, or - for standard input")


@dataclass(frozen=True)
class Command:
    """One command: its name, its sentence, where its function is, and what it takes."""

    name: str
    help: str
    module: str
    positionals: tuple[Positional, ...]
    own: Callable[[], tuple[Flag, ...]]

    def flags(self) -> tuple[Flag, ...]:
        """All flags of the command."""
        return (*self.own(), *FACE)

    def takes(self) -> str:
        """Its arguments, in words."""
        return " ".join(one.name.upper() for one in self.positionals) or "no argument"

    def function(self, given: Container[str]) -> Callable[..., Given]:
        """What the parser calls. It takes the flags that are given: to know the others too is most of its work."""
        flags = (flag for flag in self.flags() if any(name in given for name in flag.forms))
        return callable_of(self.help, self.positionals, flags)

    def answer(self, given: Given) -> Any:
        """What the command's function, loaded now, answers: an exit code, or what is still to be printed."""
        loaded: Any = import_module(f"{__package__}.{self.module}")
        return getattr(loaded, self.name)(given)

    def run(self, given: Given) -> int:
        """Answer, and print it; the exit code."""
        answer = self.answer(given)
        code: int = answer if isinstance(answer, int) else answer.print(given)
        return code


COMMANDS = (
    Command(
        "count",
        "The whole bill of one layout; several clusters in --on make a scaling table.",
        "counting",
        (MODEL,),
        count_flags,
    ),
    Command(
        "memory",
        "Memory by itself: the worst rank, every stage, every component; simulated, over a step.",
        "counting",
        (MODEL,),
        memory_flags,
    ),
    Command(
        "traffic",
        "Traffic by itself: what each axis moves, and what it grows with.",
        "counting",
        (MODEL,),
        question_flags,
    ),
    Command(
        "recompute",
        "The best recompute of a layout: which operations of which layers run again, and what it costs.",
        "recompute",
        (MODEL,),
        recompute_flags,
    ),
    Command(
        "plan",
        "The best layouts of a whole space, proved, and what binds; or the fewest accelerators that do it.",
        "planning",
        (MODEL,),
        plan_flags,
    ),
    Command("bubble", "Idle time of a pipeline: the share, the duration, the staircase.", "bubble", (), bubble_flags),
    Command(
        "draw",
        "The timing diagram of a pipeline: of a schedule by itself, of a layout of a MODEL, or of an order in a file.",
        "drawing",
        (MODEL,),
        draw_flags,
    ),
    Command(
        "explain",
        "A figure down to the arithmetic and its ladder of fidelity; or an error code.",
        "explaining",
        (Positional("quantity", "memory.activations, bubble, traffic.dp, .., or a code such as LAY003"), MODEL),
        explain_flags,
    ),
    Command(
        "compare",
        "Two layouts or bills, item by item, the largest difference first.",
        "comparing",
        (Positional("a", 'a printed bill, or a layout such as "tp=8,pp=4"'), Positional("b", "the other"), MODEL),
        question_flags,
    ),
    Command(
        "export",
        "A layout as a file of a framework, such as Megatron-LM's arguments or axolotl's YAML, and what it cannot say.",
        "exporting",
        (FRAMEWORK, MODEL),
        written_flags,
    ),
    Command(
        "check",
        "The files of a run: what they say, what is wrong with them and between them, its cost, and the bill.",
        "checking",
        (CHECKED,),
        check_flags,
    ),
    Command(
        "convert",
        "The file of one framework as that of another, with what is lost; what it does not say is asked for.",
        "exporting",
        (
            FILE,
            FRAMEWORK,
            MODEL,
        ),
        written_flags,
    ),
    Command("watch", "The log of a job: its pace, its memory, and its bill beside them.", "watching", LOG, watch_flags),
    Command(
        "models",
        "The models known by name, or one of them.",
        "listing",
        (Positional("text", "a name, or part of one"),),
        no_flags,
    ),
    Command(
        "hardware",
        "The accelerators and node types known by name, the figures of one, or a file of it to edit.",
        "listing",
        (Positional("text", "a name or part of one, 64xNAME, or a TOML file"),),
        hardware_flags,
    ),
    Command(
        "schema",
        "The JSON Schema of inputs (job, layout) and outputs (bill, plan, bubble, draw, recompute, validate, ..).",
        "schemas",
        (Positional("name", "job, layout, or an output: `outlay schema` alone lists them"),),
        no_flags,
    ),
    Command(
        "validate",
        "Predicted against measured runs; with --fit, a profile of your own; with --hold-out, the tables judged.",
        "validating",
        (Positional("files", "CSV files with the header of measured runs", many=True),),
        validate_flags,
    ),
    Command(
        "verify",
        "The counts of one layout beside the same in PyTorch and transformers, on tensors without data (no GPU).",
        "verifying",
        (MODEL,),
        verify_flags,
    ),
    Command(
        "calibrate", "This machine measured into a profile, for --profile.", "calibrating", (MODEL,), calibrate_flags
    ),
    Command(
        "sweep",
        "Many models x clusters x jobs x prices into Parquet, resumable; the best in a table and a chart.",
        "sweeping",
        (Positional("study", "a TOML file; with --show, also the folder of a sweep"),),
        sweep_flags,
    ),
    Command(
        "drill",
        "Exercises on the four counts, with fresh numbers, graded at once with the derivation.",
        "drilling",
        (Positional("topic", TOPIC),),
        drill_flags,
    ),
    Command(
        "report",
        "A bill as one file: a page, Markdown for a pull request, or CSV; of a printed plan, that of its best layout.",
        "reporting",
        (MODEL,),
        report_flags,
    ),
    Command("serve", "The page in a browser, and the same questions over HTTP.", "serving", (), serve_flags),
)

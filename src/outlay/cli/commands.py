"""The list of commands: a row each. What a command does is loaded when it is called."""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from .file_flags import CHECKED, FILE, FORCE, FRAMEWORK, check_flags, written_flags
from .flags import FACE, PROFILE, Flag, Given, Positional, callable_of, question_flags
from .mixing import MIXED
from .plan_flags import plan_flags
from .serve_flags import report_flags, serve_flags
from .sweep.flags import sweep_flags
from .watch_flags import LOG, watch_flags

MODEL = Positional("model", "a config.json, its folder, a name from the catalogue, a bill, or - for standard input")
AMOUNTS = (
    Flag("pp", ("--pp",), "pipeline stages"),
    Flag("micro_batches", ("--micro-batches",), "micro-batches a step"),
    Flag("vpp", ("--vpp",), "chunks of layers a rank"),
    Flag(
        "schedule",
        ("--schedule",),
        "order of the passes: gpipe, 1f1b, interleaved, zb_h1, ..; `outlay draw` knows them all",
    ),
    Flag("forward", ("--forward",), "forward pass of one micro-batch on one stage: 10ms"),
    Flag("backward", ("--backward",), "its backward pass: 20ms"),
    Flag("weight", ("--weight",), "the weight gradients, where they are timed apart"),
    Flag("slot", ("--slot",), "all of it together: 30ms"),
    Flag("at_most", ("--at-most",), "the largest idle share to allow: 5%, 1/20 or 0.05"),
)

SIMULATE = Flag("simulate", ("--simulate",), "run every pass of the schedule with the stages as they are", switch=True)


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


DRAWN = (
    *AMOUNTS[4:6],
    Flag("input_gradient", ("--input-gradient",), "gradient of its inputs, where the two are timed apart: 10ms"),
    Flag("weight_gradient", ("--weight-gradient",), "gradient of its weights: 10ms"),
    Flag("pair", ("--pair",), "a forward and a backward pass run together, in DualPipe: 25ms; default: their sum"),
    Flag("latency", ("--latency",), "from the end of a pass to its message at the next rank: 1ms"),
    Flag(
        "times",
        ("--times",),
        "a CSV file of durations, a row a stage: forward, backward, .. in its first line",
        dash=True,
    ),
    Flag("order", ("--order",), "a CSV file with what each rank does, as PyTorch lists it: 0F0,0F1,0B0 ..", dash=True),
    Flag("svg", ("--svg",), "write the picture to a file; - is standard output", dash=True),
    Flag("html", ("--html",), "write a page: the picture, a table of the ranks, keys to zoom", dash=True),
    Flag("perfetto", ("--perfetto",), "write a trace for ui.perfetto.dev", dash=True),
    Flag("csv", ("--csv",), "write what each rank does, as PyTorch reads it", dash=True),
    Flag("whole", ("--whole",), "show every micro-batch: do not fold a long steady state", switch=True),
    Flag("force", ("--force",), "write over files that exist", switch=True),
)

SVG = Flag("svg", ("--svg",), "write the curve to a file; - is standard output", dash=True)
RECOMPUTED = (
    Flag("budget", ("--budget",), "memory for the tapes of one accelerator: 40GiB; default: what the layout leaves"),
    Flag(
        "modules",
        ("--modules",),
        "Megatron's modules beside the best: core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts",
    ),
    SVG,
    FORCE,
)


def _count() -> tuple[Flag, ...]:
    about = "the changes that would make the step shortest, each with its effect"
    return (Flag("advise", ("--advise",), about, switch=True), MIXED, *question_flags())


def _none() -> tuple[Flag, ...]:
    return ()


def _bubble() -> tuple[Flag, ...]:
    return (*AMOUNTS, SIMULATE)


def _plan() -> tuple[Flag, ...]:
    return plan_flags()


def _draw() -> tuple[Flag, ...]:
    return (AMOUNTS[1], *DRAWN, *question_flags())


def _memory() -> tuple[Flag, ...]:
    return (*question_flags(), SIMULATE, SVG, FORCE)


def _recompute() -> tuple[Flag, ...]:
    return (*RECOMPUTED, *question_flags())


def _validating() -> tuple[Flag, ...]:
    return (
        Flag("markdown", ("--markdown",), "print tables for a page: by source and by accelerator", switch=True),
        Flag("svg", ("--svg",), "write predicted against measured step times as a picture to a file", dash=True),
        PROFILE,
        Flag("engine", ("--engine",), "the engine of rows whose source is not known"),
        Flag(
            "choices",
            ("--choices",),
            "published layouts beside the best of what their engine had then: all, or those named by words",
            switch=True,
        ),
        Flag("fit", ("--fit",), "fit a profile on the rows: of one accelerator and one engine", switch=True),
        Flag("hold_out", ("--hold-out",), "fit the tables' constants again without a third of the rows", switch=True),
        Flag("output", ("--output", "-o"), "the file of the profile; default: standard output"),
        Flag("date", ("--date",), "when the rows ran, which the profile then says"),
        FORCE,
    )


def _verifying() -> tuple[Flag, ...]:
    only = "what to compare: parameters, flops, states, tape, peak, traffic, schedule; default: all"
    layers = "how many layers are run, widths as they are; default: as many as take seconds"
    engine = "what drives the run; default: fsdp2-uncompiled, which is what runs"
    question = (replace(flag, help=engine) if flag.name == "engine" else flag for flag in question_flags())
    return (Flag("only", ("--only",), only), Flag("layers", ("--layers",), layers), *question)


def _hardware() -> tuple[Flag, ...]:
    return (
        Flag("toml", ("--toml",), "print a TOML file of it, to be edited and given to --on", switch=True),
        Flag("profile", ("--profile",), "print its profile, to be edited and given to --profile", switch=True),
        Flag("engine", ("--engine",), "the engine of that profile; default: megatron"),
    )


def _explain() -> tuple[Flag, ...]:
    return (*question_flags(), AMOUNTS[1], SIMULATE)


COMMANDS = (
    Command(
        "count",
        "The whole bill of one layout; several clusters in --on make a scaling table.",
        "counting",
        (MODEL,),
        _count,
    ),
    Command(
        "memory",
        "Memory by itself: the worst rank, every stage, every component; simulated, over a step.",
        "counting",
        (MODEL,),
        _memory,
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
        _recompute,
    ),
    Command(
        "plan",
        "The best layouts of a whole space, proved, and what binds; or the fewest accelerators that do it.",
        "planning",
        (MODEL,),
        _plan,
    ),
    Command("bubble", "Idle time of a pipeline: the share, the duration, the staircase.", "bubble", (), _bubble),
    Command(
        "draw",
        "The timing diagram of a pipeline: of a schedule by itself, of a layout of a MODEL, or of an order in a file.",
        "drawing",
        (MODEL,),
        _draw,
    ),
    Command(
        "explain",
        "A figure down to the arithmetic and its ladder of fidelity; or an error code.",
        "explaining",
        (Positional("quantity", "memory.activations, bubble, traffic.dp, .., or a code such as LAY003"), MODEL),
        _explain,
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
        _none,
    ),
    Command(
        "hardware",
        "The accelerators and node types known by name, the figures of one, or a file of it to edit.",
        "listing",
        (Positional("text", "a name or part of one, 64xNAME, or a TOML file"),),
        _hardware,
    ),
    Command(
        "schema",
        "The JSON Schema of inputs (job, layout) and outputs (bill, plan, bubble, draw, recompute, validate, ..).",
        "schemas",
        (Positional("name", "job, layout, or an output: `outlay schema` alone lists them"),),
        _none,
    ),
    Command(
        "validate",
        "Predicted against measured runs; with --fit, a profile of your own; with --hold-out, the tables judged.",
        "validating",
        (Positional("files", "CSV files with the header of measured runs", many=True),),
        _validating,
    ),
    Command(
        "verify",
        "The counts of one layout beside the same in PyTorch and transformers, on tensors without data (no GPU).",
        "verifying",
        (MODEL,),
        _verifying,
    ),
    Command(
        "sweep",
        "Many models x clusters x jobs x prices into Parquet, resumable; the best in a table and a chart.",
        "sweeping",
        (Positional("study", "a TOML file; with --show, also the folder of a sweep"),),
        sweep_flags,
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

"""What each command takes beside the flags of a question, where its own module does not say it."""

from dataclasses import replace

from .file_flags import FORCE
from .flags import PROFILE, Flag, question_flags
from .mixing import MIXED
from .pipeline_flags import PIPELINE
from .step_flags import DEVICE

AMOUNTS = (
    Flag("pp", ("--pp",), "pipeline stages"),
    Flag("micro_batches", ("--micro-batches",), "micro-batches a step"),
    Flag("vpp", ("--vpp",), "chunks of layers a rank"),
    Flag(
        "schedule",
        ("--schedule",),
        "order of the passes: gpipe, 1f1b, interleaved, zb_h1, v_half, chimera, ..; `outlay draw` knows them all",
    ),
    Flag("forward", ("--forward",), "forward pass of one micro-batch on one stage: 10ms"),
    Flag("backward", ("--backward",), "its backward pass: 20ms"),
    Flag("weight", ("--weight",), "the weight gradients, where they are timed apart"),
    Flag("slot", ("--slot",), "all of it together: 30ms"),
    Flag("at_most", ("--at-most",), "the largest idle share to allow: 5%, 1/20 or 0.05"),
)

SLICES = Flag("slices", ("--slices",), "slices of a micro-batch's sequences, of seq1f1b: 4; default 2")
SIMULATE = Flag("simulate", ("--simulate",), "run every pass of the schedule with the stages as they are", switch=True)


DRAWN = (
    *AMOUNTS[4:6],
    Flag("input_gradient", ("--input-gradient",), "gradient of its inputs, where the two are timed apart: 10ms"),
    Flag("weight_gradient", ("--weight-gradient",), "gradient of its weights: 10ms"),
    Flag("pair", ("--pair",), "a forward and a backward pass run together, in DualPipe: 25ms; default: their sum"),
    SLICES,
    Flag("memory_cap", ("--memory-cap",), "micro-batches whose activations a rank may hold, of --schedule best: 4"),
    Flag("time_limit", ("--time-limit",), "how long --schedule best seeks: 60s; default 20s"),
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


def count_flags() -> tuple[Flag, ...]:
    """What `outlay count` takes."""
    about = "the changes that would make the step shortest, each with its effect"
    return (Flag("advise", ("--advise",), about, switch=True), MIXED, *question_flags())


def no_flags() -> tuple[Flag, ...]:
    """Of a command without flags of its own."""
    return ()


def bubble_flags() -> tuple[Flag, ...]:
    """What `outlay bubble` takes."""
    return (*AMOUNTS, SLICES, SIMULATE)


def draw_flags() -> tuple[Flag, ...]:
    """What `outlay draw` takes."""
    from ..schedule.orders import names

    about = f"order of the passes: {', '.join(names())}; best seeks one"
    question = (replace(flag, help=about) if flag.name == "schedule" else flag for flag in question_flags())
    return (AMOUNTS[1], *DRAWN, *question)


def memory_flags() -> tuple[Flag, ...]:
    """What `outlay memory` takes."""
    return (*question_flags(), SIMULATE, SVG, FORCE)


def recompute_flags() -> tuple[Flag, ...]:
    """What `outlay recompute` takes."""
    return (*RECOMPUTED, *question_flags())


def validate_flags() -> tuple[Flag, ...]:
    """What `outlay validate` takes."""
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


def verify_flags() -> tuple[Flag, ...]:
    """What `outlay verify` takes."""
    only = "what to compare: parameters, flops, states, tape, peak, traffic, schedule; default: all of these. "
    only += "pipeline and step, which take real time, are run where they are asked for"
    layers = "how many layers are run, widths as they are; default: as many as take seconds"
    engine = "what drives the run; default: fsdp2-uncompiled, which is what runs"
    question = (replace(flag, help=engine) if flag.name == "engine" else flag for flag in question_flags())
    return (Flag("only", ("--only",), only), Flag("layers", ("--layers",), layers), *PIPELINE, DEVICE, *question)


def hardware_flags() -> tuple[Flag, ...]:
    """What `outlay hardware` takes."""
    return (
        Flag("toml", ("--toml",), "print a TOML file of it, to be edited and given to --on", switch=True),
        Flag("profile", ("--profile",), "print its profile, to be edited and given to --profile", switch=True),
        Flag("engine", ("--engine",), "the engine of that profile; default: megatron"),
    )


def explain_flags() -> tuple[Flag, ...]:
    """What `outlay explain` takes."""
    return (*question_flags(), AMOUNTS[1], SIMULATE)

"""The help: what each command takes, from the same table that the parser reads."""

import sys
from collections.abc import Mapping, Sequence

from ..show.text import Style, block, wrapped
from .commands import COMMANDS, Command
from .flags import FACE, Flag, sentence
from .output import style_of

EXAMPLE = "outlay count llama-3.1-70b --on 64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512"
ASKS = ("--help", "-h")

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "job": (),
    "optimizer and number types": (
        "precision", "optimizer", "galore_rank", "bytes_per_parameter", "master_dtype", "moment_dtype",
        "gradient_dtype", "reduce_dtype", "gather_dtype",
    ),
    "what is trained, and what stands beside it": (
        "adapter", "adapter_rank", "adapter_targets", "frozen", "frozen_format", "beside", "reserved_bytes",
    ),
    "narrow": (),
    "layout": (),
    "schedule, recompute, overlap, offload": (
        "micro_batch", "schedule", "recompute", "recompute_modules", "recompute_layers",
        "recompute_group", "loss_chunks", "split", "overlap_tp", "overlap_ep", "overlap_dp", "graphs",
        "offload_optimizer", "offload_parameters", "offload_activations",
    ),
    "output": (),
}  # fmt: skip
"""In the order of the help. Fields of a job or a layout that none names stand under `job` and under `layout`."""


def asked_for_help(words: Sequence[str]) -> str:
    """The help or the version, where that is what was asked for; else an empty text."""
    if not words or words[0] in (*ASKS, "help"):
        named = [command for command in COMMANDS if command.name in words[1:2]]
        return "\n".join(command_help(named[0], _style()) if named else overview(_style()))
    if words[0] in ("--version", "-V"):
        from outlay import __version__

        return f"outlay {__version__}"
    command = next((command for command in COMMANDS if command.name == words[0]), None)
    return "\n".join(command_help(command, _style())) if command and set(ASKS) & set(words) else ""


def _style() -> Style:
    return style_of(sys.stdout, plain=False)


def overview(style: Style) -> list[str]:
    """All commands, a line each."""
    text = "count what a layout of a distributed training run costs, before anyone pays for it"
    lines = [*block("outlay", text, style), "", *wrapped(EXAMPLE, style, 2, 4), ""]
    for command in COMMANDS:
        lines += block(f"  {command.name:<9}", command.help, style)
    exits = "0 yes; 1 the answer is no (does not fit, breaks a rule); 2 the question cannot be read"
    return [
        *lines,
        "",
        *block("EXIT", exits, style),
        *block("MORE", "outlay COMMAND --help   |   outlay --version", style),
    ]


def command_help(command: Command, style: Style) -> list[str]:
    """One command: its arguments and its flags, in groups."""
    arguments = [one.name.upper() + (" .." if one.many else "") for one in command.positionals]
    lines = [
        *block("USAGE", " ".join(["outlay", command.name, *arguments, "[flags]"]), style),
        *wrapped(command.help, style, 10, 10),
        "",
    ]
    for one in command.positionals:
        lines += block(f"  {one.name.upper()}", one.help, style)
    for heading in sorted(set(map(heading_of, command.flags())), key=["", *HEADINGS].index):
        lines += ["", *([style.paint(heading.upper(), "1")] if heading else [])]
        lines += [line for flag in command.flags() if heading_of(flag) == heading for line in flag_help(flag, style)]
    return lines


def heading_of(flag: Flag) -> str:
    """What a flag stands under; nothing for those that come first."""
    if flag in FACE:
        return "output"
    group = flag.group.lower()
    parts = HEADINGS if group in ("job", "layout") else {}
    return next((heading for heading, names in parts.items() if flag.name in names), group)


def flag_help(flag: Flag, style: Style) -> list[str]:
    """One flag: its names, and its sentence beside or under them."""
    names = ", ".join(flag.names) + ("" if flag.switch else " ..")
    names += f", --no-{flag.names[-1][2:]}" if flag.negative else ""
    lines = wrapped(sentence(flag), style, 30, 30)
    start = f"  {names}"
    return [start, *lines] if len(start) > 28 else [start.ljust(30) + lines[0].lstrip(), *lines[1:]]

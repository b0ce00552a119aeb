"""Make the pages of the commands and of the error codes, and the figures of the page on performance: `make docs` runs
it before it builds the site.

The first two are printed from what the program itself reads, so they are not kept. The figures are those that
`make bench ARGS=--record` wrote; they stand in a page that is kept, between two marks.
"""

import json
import re
import runpy
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from outlay.cli.commands import COMMANDS, Command
from outlay.cli.flags import FACE, QUESTION, Flag, field_flags, sentence
from outlay.cli.help import HEADINGS, heading_of
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.show.codes import pages

HERE = Path(__file__).parent
PERFORMANCE = HERE.parent / "performance.md"
BENCHMARKS = HERE.parent.parent / "benchmarks"

# What many commands share is listed once, under its title. Its anchor stands in each of those commands.
SHARED: tuple[tuple[str, tuple[Flag, ...]], ...] = (
    ("Flags of a case", QUESTION),
    ("Flags of the job", field_flags(Job)),
    ("Flags of the layout", field_flags(Layout)),
    ("Flags of the output", FACE),
)

# What a prefix is about. A prefix that is not named here stands under itself.
ABOUT = {
    "ACC": "Accelerate",
    "AXO": "axolotl",
    "BAT": "the batch",
    "BRG": "Megatron-Bridge",
    "CFG": "a file of --config",
    "CHK": "several files of one run",
    "CLI": "the command line",
    "DRL": "exercises",
    "DRW": "timing diagrams",
    "DSP": "DeepSpeed",
    "ENG": "the engine",
    "EXP": "explanations",
    "FIT": "fitting a profile",
    "FMT": "files of frameworks",
    "HW": "hardware",
    "JOB": "the job",
    "LAY": "the layout",
    "LLF": "LLaMA-Factory",
    "LOG": "logs",
    "MEG": "Megatron-LM",
    "MIX": "a strategy for each layer",
    "MOD": "the model",
    "MTX": "MaxText",
    "NAN": "nanotron",
    "ORD": "orders of a schedule",
    "OUT": "what is written",
    "PLN": "the search",
    "PRF": "profiles",
    "RCP": "recompute",
    "SCH": "schedules",
    "SWP": "sweeps",
    "TRN": "the transformers Trainer and TRL",
    "TTN": "torchtitan",
    "UNI": "units",
    "VAL": "measured runs",
    "VER": "verification",
}


def text(words: str) -> str:
    """A sentence as Markdown shows it unchanged, also in a cell of a table."""
    plain = escape(words, quote=False)
    for sign in "\\*_`|[]{}~":
        plain = plain.replace(sign, f"&#{ord(sign)};")
    return plain


def anchor(title: str) -> str:
    """The anchor that a heading gets."""
    return title.lower().replace(" ", "-")


def shared_by(command: Command) -> list[tuple[str, tuple[Flag, ...]]]:
    """The shared groups that a command takes whole."""
    own = set(command.flags())
    return [(title, flags) for title, flags in SHARED if own.issuperset(flags)]


def flag_rows(flags: Sequence[Flag]) -> Iterator[str]:
    """A table of flags."""
    yield from ("| flag | what it is |", "| --- | --- |")
    for flag in flags:
        names = list(flag.names if flag.switch else (*flag.names[:-1], f"{flag.names[-1]} .."))
        names += [f"--no-{flag.names[-1][2:]}"] if flag.negative else []
        yield f"| {'<br>'.join(f'`{name}`' for name in names)} | {text(sentence(flag))} |"
    yield ""


def grouped(flags: Sequence[Flag], level: str) -> Iterator[str]:
    """Tables of flags, one for each heading of the help."""
    order = ["", *HEADINGS].index
    for heading, group in groupby(sorted(flags, key=lambda flag: order(heading_of(flag))), heading_of):
        yield from ((f"{level} {heading.capitalize()}", "") if heading else ())
        yield from flag_rows(list(group))


def command_section(command: Command) -> Iterator[str]:
    """One command: how it is called, its arguments, its own flags, and the shared groups that it takes."""
    arguments = [one.name.upper() + (" .." if one.many else "") for one in command.positionals]
    yield from (f"## outlay {command.name}", "", text(command.help), "")
    yield from ("```sh", " ".join(["outlay", command.name, *arguments, "[flags]"]), "```", "")
    if command.positionals:
        yield from ("| argument | what it is |", "| --- | --- |")
        yield from (f"| {one.name.upper()} | {text(one.help)} |" for one in command.positionals)
        yield ""
    groups = shared_by(command)
    elsewhere = {flag for _, flags in groups for flag in flags}
    own = [flag for flag in command.flags() if flag not in elsewhere]
    yield from flag_rows(own) if own else ()
    yield from ("And: " + ", ".join(f"[{title.lower()}](#{anchor(title)})" for title, _ in groups) + ".", "")


def commands_page() -> str:
    """Every command and every flag."""
    lines = ["# Commands", ""]
    lines += ["Each is one question. `outlay COMMAND --help` prints the same in the terminal.", ""]
    lines += ["| command | answers |", "| --- | --- |"]
    lines += [f"| [`outlay {one.name}`](#outlay-{one.name}) | {text(one.help)} |" for one in COMMANDS]
    lines += ["", "Exit 0: yes. Exit 1: the question is clear and the answer is no; the full answer is still printed."]
    lines += ["Exit 2: the question cannot be read, or its answer not be written. Answers go to standard output,"]
    lines += ["warnings and progress to standard error. Equal input gives equal output.", ""]
    for command in COMMANDS:
        lines += command_section(command)
    for title, flags in SHARED:
        lines += [f"## {title}", "", *(flag_rows(flags) if flags == FACE else grouped(flags, "###"))]
    return "\n".join(lines).rstrip() + "\n"


def codes_page() -> str:
    """Every code that a fault can have."""
    lines = ["# Error codes", ""]
    lines += ["A fault says what is wrong, the rule, what was given, and what mends it. Its code stands at the right;"]
    lines += ["`outlay explain LAY003` prints its page. All faults of a question are said at once.", ""]
    for prefix, codes in groupby(pages().items(), lambda item: item[0].rstrip("0123456789")):
        lines += [f"## {prefix}: {ABOUT.get(prefix, prefix)}", ""]
        for code, page in codes:
            lines += [f"### {code} {{ #{code} }}", "", f"**{text(page.what)}**", "", f"- Rule: {text(page.rule)}"]
            lines += [f"- Mend: {text(page.fix)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def figure(value: float, unit: str, size: float = 1.0) -> str:
    """Three digits: `0.05 s`, `23.6 M/s`, `1,550 MB`."""
    number = value / size
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:,.{digits}f} {unit}"


def seconds(value: float) -> str:
    """`35.2 s`, `3.06 ms`."""
    return figure(value, "s") if value >= 0.1 else figure(value, "ms", 1e-3)


def limit(limits: dict[str, float]) -> str:
    """What a figure is held to: the most time and memory, the least rate."""
    words = {"seconds": ("at most {:g} s", 1), "megabytes": ("{:g} MB", 1), "rate": ("at least {:g} M/s", 1e6)}
    return ", ".join(text.format(limits[kind] / size) for kind, (text, size) in words.items() if kind in limits)


def kept(found: dict[str, Any]) -> str:
    """Whether a figure keeps to its limits; nothing where there are none."""
    over = [kind for kind, most in found["limits"].items() if (found[kind] > most) != (kind == "rate")]
    return ("MISSED" if over else "held") if found["limits"] else ""


def figure_row(means: str, found: dict[str, Any], quick: float) -> str:
    """One figure: what it is, how much, how fast the machine was then, what was asked, the day."""
    layouts = f"{found['layouts']:,}" if "layouts" in found else ""
    rate = figure(found["rate"], "M/s", 1e6) if "layouts" in found else ""
    cells = [means, layouts, rate, seconds(found["seconds"]), figure(found["megabytes"], "MB")]
    busy = figure(found["reference_seconds"] / quick, "x")
    return f"| {' | '.join([*cells, busy, limit(found['limits']), kept(found), found['date']])} |"


def figures(recorded: dict[str, Any], means: dict[str, str]) -> str:
    """The recorded figures as a table, with the machine."""
    machine, found = recorded["machine"], recorded["figures"]
    quick = min(each["reference_seconds"] for each in found.values())
    lines = [f"{machine['processor']}, {machine['cores']} cores; Python {machine['python']}, NumPy {machine['numpy']}."]
    lines += ["", "| what | layouts | rate | time | peak memory | loop | limit | kept | measured |"]
    lines += ["| --- |" + " ---: |" * 5 + " --- | --- | --- |"]
    lines += [figure_row(means[name], found[name], quick) for name in means if name in found]
    missing = [means[name] for name in means if name not in found]
    lines += ["", "Not recorded:", "", *(f"- {each}" for each in missing)] if missing else []
    return "\n".join(lines)


def performance_page() -> str:
    """The page on performance with the figures that were recorded last."""
    recorded = json.loads((BENCHMARKS / "recorded.json").read_text("utf-8"))
    means = runpy.run_path(str(BENCHMARKS / "workloads.py"))["MEANS"]
    block = f"\\1\n\n{figures(recorded, means)}\n\n\\2"
    found, times = re.subn(
        r"(<!-- figures:.*?-->).*?(<!-- end of figures -->)", block, PERFORMANCE.read_text("utf-8"), flags=re.DOTALL
    )
    assert times == 1, "docs/performance.md has one pair of marks"
    return found


def made() -> Iterator[tuple[Path, str]]:
    """Each page that is made, and what stands in it."""
    yield HERE / "commands.md", commands_page()
    yield HERE / "codes.md", codes_page()
    yield PERFORMANCE, performance_page()


if __name__ == "__main__":
    for path, page in made():
        path.write_text(page, encoding="utf-8")

"""Executable documents: `make check` runs the examples of the pages and of the docstrings.

In a page a `python` block is run, with `>>>` lines as a doctest. A `console` block is run too: each line after `$ `
is a command, the lines under it are what it prints, and a line `...` stands for any lines. `sh` blocks are not run.
"""

import doctest
import os
import re
import subprocess
from pathlib import Path

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

ROOT = Path(__file__).parent
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def console(example: Example) -> str | None:
    """Run a block's commands in the root of the repository; the text of the first difference, or None."""
    blocks = re.split(r"^\$ ", "\n" + str(example.parsed).replace("\\\n", ""), flags=re.MULTILINE)
    if blocks[0].strip() or len(blocks) < 2:
        return "a console block begins with `$ ` and a command"
    for block in blocks[1:]:
        command, _, expected = block.partition("\n")
        printed = run(command)
        if not doctest.OutputChecker().check_output(expected.strip() + "\n", printed, OPTIONS):
            return f"$ {command}\nexpected:\n{expected}\ngot:\n{printed}"
    return None


def run(command: str) -> str:
    """What a command prints on both streams, in order, without blanks at the end of a line."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"},  # answers fold at the width of the terminal
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines()) + "\n"


pages = Sybil([PythonCodeBlockParser((), OPTIONS), CodeBlockParser("console", console), SkipParser()], pattern="*.md")
docstrings = Sybil([DocTestParser(OPTIONS)], pattern="*.py", path="src")

pytest_collect_file = (pages + docstrings).pytest()

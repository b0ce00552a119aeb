"""The arguments that a run of Megatron-LM prints into its log: `  tensor_model_parallel_size ..... 8`."""

import re
from itertools import islice

from .setting import Setting

LINE = re.compile(
    r"^(?P<before>[^\n]{0,80}?)(?P<name>\b[a-z][a-z0-9_]{1,60}) {1,60}\.{2,}[ \t](?P<value>[^\n]{0,2000})$",
    re.MULTILINE,
)
FEW = 3  # lines that make a text such a log


def is_dump(text: str) -> bool:
    """Whether some lines of a text are arguments of a log."""
    return len(list(islice(LINE.finditer(text), FEW))) == FEW


def read_dump(text: str) -> dict[str, Setting]:
    """Every argument of the first such block, which every rank may have printed again."""
    found: dict[str, Setting] = {}
    line, seen = 1, 0
    for match in LINE.finditer(text):
        line, seen = line + text.count("\n", seen, match.start()), match.start()
        name, value = match["name"], match["value"].strip()
        if name not in found:
            column = match.start("name") - match.start() + 1
            found[name] = Setting(name, (value.removeprefix("torch."),), line, column)
    return found

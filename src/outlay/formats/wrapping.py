"""The class that a policy of FSDP wraps, beside those that the model has.

Sources: transformers 5.24.0 (layer_classes.toml); Accelerate 1.15, utils/fsdp_utils.py and utils/dataclasses.py, which
raise on a class that they do not find in the model.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from .setting import Edit, Finding
from .source import place_of

NAMED = re.compile(
    r"""(?P<name>(?:--)?(?:fsdp_)?transformer_layer_cls_to_wrap)(?P<quote>["']?)[ \t]*[:= ][ \t]*(?P<open>[\["']*)"""
    r"""(?P<classes>\w+(?:[ \t]*,[ \t]*["']?\w+["']?)*)"""
)


@cache
def classes() -> dict[str, tuple[str, ...]]:
    """The classes of layers by family."""
    table = tomllib.loads(files(__package__).joinpath("layer_classes.toml").read_text("utf-8"))
    return {family: tuple(names) for family, names in table.items()}


def wrong_classes(text: str, family: str, model: str) -> Iterator[Finding]:
    """Findings of classes that another family has, or that are spelled otherwise; others may be a part of the model."""
    right = classes().get(family, ())
    known = {name for names in classes().values() for name in names}
    alike = {name.lower(): name for name in right}
    for match in NAMED.finditer(text) if right else ():
        if "#" in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]:
            continue
        named = re.findall(r"\w+", match["classes"])
        wrong = [name for name in named if name not in right and (name in known or name.lower() in alike)]
        if wrong:
            line, column = place_of(text, match.start("name"))
            plain = len(named) == 1 == len(right) and not match["open"] and not match["quote"]
            edits = (Edit(match["name"], right[0], line, column),) if plain else ()
            rule = "Accelerate wraps a class that it finds in the model, and stops where there is none of that name"
            what = f"{model} has no {', '.join(wrong)} to wrap"
            got, fix = ", ".join(named), ", ".join(right)
            yield Finding("CHK011", True, what, rule, got, fix, line, column, edits)

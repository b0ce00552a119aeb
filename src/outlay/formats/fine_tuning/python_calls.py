"""Arguments of calls in Python text, such as `SFTConfig(per_device_train_batch_size=2)`: parsed, never run.

Only the calls themselves are parsed, so that a piece of a notebook will do. A name stands for the constant that the
text gives it once; any other value is not in the text.
"""

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from ..json_comments import Placed
from ..setting import unreadable
from ..source import place_of, short

# Calls whose arguments lie beside those of the trainer, by the section that they are kept under.
SECTIONS = {
    "LoraConfig": "peft_config",
    "BitsAndBytesConfig": "quantization_config",
    "ParallelismConfig": "parallelism_config",
}
INSIDE = (*SECTIONS, "dict", "TorchContextParallelConfig")
_OF_TRL = "(?:SFT|DPO|KTO|ORPO|CPO|BCO|Reward|GRPO|RLOO|PPO)Config"
CALL = re.compile(rf"\b((?:[A-Z]\w*)?TrainingArguments|{_OF_TRL}|{'|'.join(SECTIONS)})\s*\(")
MODEL = re.compile(
    r"\b(?:from_pretrained|[A-Z]\w{0,40}Trainer)\s*\(\s*(?:(?:model|pretrained_model_name_or_path)\s*=\s*)?"
)
# A model that the text loads itself, and the type that it asks for: from_pretrained takes the checkpoint's by itself.
LOADED = re.compile(r"\bAutoModel\w*\.from_pretrained\s*\(")
TYPE = re.compile(r"\b(?:torch_)?dtype\s*=\s*[\"']?(?:torch\.)?(\w+)")
STRING = re.compile(r"[rbuRBU]?(?:\"\"\"|'''|\"|')")
CONSTANT = re.compile(r"^([A-Za-z_]\w*)[ \t]*(?::[^=\n]{1,40})?=[ \t]*([^=\n][^\n]{0,400})$", re.MULTILINE)
LONGEST, MOST_CALLS, DEEPEST = 20_000, 50, 20
NOT_THERE = "the text does not give it a constant value"


@dataclass
class Calls:
    """What calls of a text say: arguments as one object with places, what is not in the text, and the calls."""

    value: Placed
    names: tuple[str, ...]
    unknown: dict[str, str] = field(default_factory=dict)


def is_python(text: str) -> bool:
    """Whether a text calls one of the classes of arguments."""
    return any(name not in SECTIONS for name in CALL.findall(text))


def calls_in(text: str) -> Calls:
    """The arguments of every such call; of two alike the last one counts. Raises InputError (FMT003)."""
    reader = _Reader(short(text))
    made: dict[str, Placed] = {}
    for match in list(CALL.finditer(text))[:MOST_CALLS]:
        if "#" in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]:
            continue  # in a comment
        found, section = reader.call(match), SECTIONS.get(match[1], "")
        if section:
            before = made.get(section)
            values = (before.value if before else {}) | found
            made[section] = Placed(values, *place_of(text, match.start()))
        else:
            made |= found
    if "model_name_or_path" not in made and (model := reader.model()) is not None:
        made["model_name_or_path"] = model
    if "dtype" not in made and (loaded := LOADED.search(text)):
        kind = TYPE.search(text, loaded.end(), loaded.end() + 500)
        made["dtype"] = Placed(kind[1] if kind else "auto", *place_of(text, loaded.start()))
    names = tuple(dict.fromkeys(name for name in CALL.findall(text) if name not in SECTIONS))
    return Calls(Placed(made, 1, 1), names, reader.unknown)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.unknown = text, dict[str, str]()
        self.constants: dict[str, str] = {}
        for name, value in CONSTANT.findall(text):
            self.constants[name] = "" if name in self.constants else value  # set twice: not a constant

    def call(self, match: re.Match[str]) -> dict[str, Placed]:
        """The named arguments of one call."""
        start = match.start(1)
        line, column = place_of(self.text, start)
        source = self.text[start : self.end(match.end() - 1)]
        try:
            node = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = (line - 1 + (getattr(error, "lineno", None) or 1), getattr(error, "offset", None) or 1)
            raise unreadable("this is not a call in Python", str(error)[:80] or match[1], *at) from None
        if not isinstance(node, ast.Call):
            raise unreadable("this is not a call in Python", match[1], line, column)
        prefix = SECTIONS.get(match[1], "")
        found = {}
        for keyword in node.keywords:
            name = keyword.arg or "**"
            path = f"{prefix}.{name}".lstrip(".")
            value = self.value(keyword.value, line, path)
            if value is not None and keyword.arg:
                found[name] = value
        return found

    def end(self, start: int) -> int:
        """The place behind the bracket that closes the one at `start`; quotes and comments are stepped over."""
        depth, at = 0, start
        while at < len(self.text) and at - start < LONGEST:
            letter = self.text[at]
            if string := STRING.match(self.text, at):
                at = self.behind(string)
                continue
            if letter == "#":
                at = self.text.find("\n", at) % (len(self.text) + 1)
                continue
            depth += (letter in "([{") - (letter in ")]}")
            at += 1
            if depth == 0:
                return at
        raise unreadable("a bracket is not closed", "( without )", *place_of(self.text, start))

    def behind(self, opened: re.Match[str]) -> int:
        """The place behind a string."""
        quote = opened[0].lstrip("rbuRBU")
        end = "" if len(quote) == 3 else r"\n"
        closed = re.compile(rf"(?:\\.|(?!{quote})[^\\{end}])*{quote}", re.DOTALL)
        match = closed.match(self.text, opened.end(), opened.end() + LONGEST)
        if match is None:
            raise unreadable("a quote is not closed", quote, *place_of(self.text, opened.start()))
        return match.end()

    def model(self) -> Placed | None:
        """The name of the model that the text loads, or that it gives to the trainer."""
        for match in MODEL.finditer(self.text):
            rest = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|([A-Za-z_]\w*)").match(self.text, match.end())
            if rest is None:
                continue
            said = rest[1] or rest[2] or _text_of(self.constants.get(rest[3] or "", ""))
            if said and not said.startswith("tokenizer"):
                return Placed(said, *place_of(self.text, rest.start()))
        return None

    def value(self, node: ast.expr, first: int, path: str, depth: int = 0) -> Placed | None:
        """One value with its place; None where the text does not hold it."""
        place = (first + node.lineno - 1, node.col_offset + 1)
        if depth > DEEPEST:
            return self.lacks(node, first, path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
            return Placed(node.value, *place)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            return Placed(node.attr, *place)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            inner = [self.value(one, first, path, depth + 1) for one in node.elts]
            return Placed([one for one in inner if one is not None], *place)
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return Placed(self.items(node, first, path, depth), *place)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in INSIDE:
            return Placed(self.keywords(node, first, path, depth), *place)
        if isinstance(node, ast.Name) and (constant := self.constants.get(node.id)):
            return self.constant(constant, path, place) or self.lacks(node, first, path)
        return self.number(node, place, depth) or self.lacks(node, first, path)

    def items(self, node: ast.Dict, first: int, path: str, depth: int) -> dict[str, Placed]:
        found = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = str(getattr(key, "value", ""))
            one = self.value(value, first, f"{path}.{name}", depth + 1)
            if one is not None:
                found[name] = one
        return found

    def keywords(self, node: ast.Call, first: int, path: str, depth: int) -> dict[str, Placed]:
        made = {word.arg: self.value(word.value, first, f"{path}.{word.arg}", depth + 1) for word in node.keywords}
        return {name: one for name, one in made.items() if name and one is not None}

    def number(self, node: ast.expr, place: tuple[int, int], depth: int) -> Placed | None:
        """A product, a quotient or a negative number of whole numbers."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = node.operand
            if isinstance(inner, ast.Constant) and isinstance(inner.value, int | float):
                return Placed(-inner.value, *place)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.FloorDiv):
            sides = [self.value(one, 1, "", depth + 1) for one in (node.left, node.right)]
            numbers = [one.value for one in sides if one and type(one.value) is int and 0 < one.value < 10**9]
            if len(numbers) == 2:
                left, right = numbers
                return Placed(left * right if isinstance(node.op, ast.Mult) else left // right, *place)
        return None

    def constant(self, text: str, path: str, place: tuple[int, int]) -> Placed | None:
        try:
            value: Any = ast.literal_eval(text.split("  #")[0].strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
            return None
        return Placed(value, *place) if isinstance(value, str | int | float | bool | None) else None

    def lacks(self, node: ast.expr, first: int, path: str) -> Placed | None:
        """Nothing: the value is not in the text, which is kept."""
        if path:
            try:
                shown = ast.unparse(node)[:60]
            except RecursionError:
                shown = ".."
            self.unknown[path] = f"{path}={shown} (line {first + node.lineno - 1}): {NOT_THERE}"
        return None


def _text_of(source: str) -> str:
    match = re.fullmatch(r"[rR]?([\"'])([^\"'\\]{1,200})\1\s*(?:#.*)?", source.strip())
    return match[2] if match else ""

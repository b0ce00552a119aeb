"""A function of torchtitan's registry, read as the text of Python that it is; nothing of it is run."""

import ast
import warnings
from typing import Any

from ..json_comments import Placed
from ..setting import unreadable
from ..source import short
from .held import CONVERTERS, POLICIES, Held, placed
from .registry import Configuration, configurations, of_flavor

SECTIONS = ("training", "parallelism", "compile", "comm", "debug", "optimizer", "loss", "checkpoint", "metrics")
DEEPEST = 40
TOO_DEEP = unreadable("the function is nested too deep", f"more than {DEEPEST} levels")


def read_function(text: str, before: int = 0) -> Held:
    """What the last function of a text returns; `before` lines stand above it in its file. Raises InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(short(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = getattr(error, "lineno", 0) or 0, getattr(error, "offset", 0) or 0
        got = str(getattr(error, "msg", "") or "it cannot be parsed")[:80]
        raise unreadable("this is not Python", got, line + before, max(1, column)) from None
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    if not functions:
        raise unreadable("no function of a registry is here", "def name() -> Trainer.Config", before + 1, 1)
    chosen = functions[-1]
    reader = _Reader(Held("a function of the registry"), before, _module_of(tree, chosen))
    if len(functions) > 1:
        reader.held.notes.append(f"{len(functions)} functions: the last one, {chosen.name}, is read")
    for statement in chosen.body:
        reader.statement(statement)
    reader.held.asked = reader.held.asked or chosen.name
    return reader.held


def _module_of(tree: ast.Module, function: ast.FunctionDef) -> str:
    """The module whose models a text registers: by its imports, else by the function's name."""
    modules = {one.module for one in configurations()}
    for one in tree.body:
        parts = set((one.module or "").split(".")) if isinstance(one, ast.ImportFrom) else set()
        if parts & modules:
            return (parts & modules).pop()
    return next((module for module in modules if function.name.startswith(f"{module}_")), "")


def _dotted(node: ast.AST) -> str:
    """`a.b.c` of names; nothing for anything else."""
    names = list[str]()
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _constant(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ...


class _Reader:
    def __init__(self, held: Held, before: int, module: str) -> None:
        self.held, self.before, self.module = held, before, module
        self.names = dict[str, ast.expr]()

    def keep(self, path: str, value: Any, node: ast.AST) -> None:
        line, column = getattr(node, "lineno", 0) + self.before, getattr(node, "col_offset", 0) + 1
        self.held.options[path] = placed(value, line, column)

    def statement(self, one: ast.stmt) -> None:
        """An assignment to a name or to an option, or what is returned; what decides or loops is said."""
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            target = _dotted(one.targets[0])
            if "." in target:
                self.option(target.partition(".")[2], one.value, 0)
            elif target:
                self.names[target] = one.value
                self.base(one.value)
        elif isinstance(one, ast.Return) and one.value is not None:
            self.base(one.value)
        elif isinstance(one, ast.If | ast.For | ast.While | ast.With | ast.Try):
            self.held.notes.append(f"line {one.lineno + self.before}: what is decided there is not read")

    def base(self, node: ast.expr) -> None:
        """A call of another configuration's function, or of Trainer.Config with its sections."""
        if not isinstance(node, ast.Call):
            return
        called = _dotted(node.func)
        known = next((one for one in configurations() if one.name == called.rpartition(".")[2]), None)
        if known:
            self.held.base, self.held.asked = known, known.name
        elif called.endswith("Trainer.Config"):
            self.held.whole |= {*SECTIONS, "activation_checkpoint"}
            for keyword in node.keywords:
                if keyword.arg:
                    self.option(keyword.arg, keyword.value, 0)

    def option(self, path: str, node: ast.expr, depth: int) -> None:
        """One option, or a whole section, at a path."""
        if depth > DEEPEST:
            raise TOO_DEEP
        if isinstance(node, ast.Name) and node.id in self.names and depth < DEEPEST:
            self.option(path, self.names[node.id], depth + 1)
        elif path == "model_spec":
            self.model(node)
        elif path == "activation_checkpoint":
            self.policy(node)
        elif isinstance(node, ast.Call):
            self.section(path, node, depth)
        elif (value := _constant(node)) is not ...:
            self.keep(path, str(value) if isinstance(value, dict | set | bytes) else value, node)
        else:
            self.held.unknown[path] = f"{path} (line {node.lineno + self.before}): computed, not run"

    def section(self, path: str, node: ast.Call, depth: int) -> None:
        """The keywords of a call, each an option; what it leaves out is the framework's own."""
        called = _dotted(node.func)
        self.held.whole.add(path)
        for gone in [one for one in self.held.options if one.startswith(f"{path}.")]:
            del self.held.options[gone]
        texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
        if path == "optimizer" and "DistMuon" in texts:
            self.keep("optimizer.name", "DistMuon", node)
        if path == "loss":
            self.keep("loss.num_chunks", 8 if called.startswith("ChunkedLossWrapper") else 1, node)
        for keyword in node.keywords:
            inner = f"{path}.{keyword.arg}"
            if keyword.arg and inner not in ("loss.loss_fn",):
                self.option(inner, keyword.value, depth + 1)

    def policy(self, node: ast.expr) -> None:
        """SelectiveAC, FullAC, MemoryBudgetAC, or none."""
        called = _dotted(node.func) if isinstance(node, ast.Call) else ""
        name = next((ours for theirs, ours in POLICIES.items() if called.startswith(theirs)), "none")
        if isinstance(node, ast.Call):
            self.section("activation_checkpoint", node, 0)
        self.keep("activation_checkpoint", name, node)

    def model(self, node: ast.expr) -> None:
        """The flavor of a model, how its experts exchange tokens, and what its layers are converted to."""
        if not isinstance(node, ast.Call):
            return
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        flavor = _constant(node.args[0] if node.args else given.get("flavor", ast.Constant(None)))
        found = of_flavor(flavor, self.module) if isinstance(flavor, str) else None
        self.flavor(found, flavor, node)
        backend = _constant(given.get("moe_comm_backend", ast.Constant("standard")))
        if backend not in ("standard", None):
            self.keep("moe_comm_backend", str(backend), node)
        converters = given.get("converters")
        if isinstance(converters, ast.Name):
            converters = self.names.get(converters.id)
        for one in converters.elts if isinstance(converters, ast.List) else ():
            self.converter(one)

    def flavor(self, found: Configuration | None, flavor: Any, node: ast.expr) -> None:
        self.keep("converter", "bf16", node)
        self.keep("model", found.model if found else "", node)
        if not found:
            self.held.notes.append(f"the sizes of {str(flavor)[:40]} are in torchtitan's code")

    def converter(self, node: ast.expr) -> None:
        called = _dotted(node.func) if isinstance(node, ast.Call) else ""
        name = called.partition(".")[0]
        if name in CONVERTERS:
            self.keep("converter", CONVERTERS[name], node)
        elif name == "LoRAConverter" and isinstance(node, ast.Call):
            for keyword in node.keywords:
                self.keep(f"adapter.{keyword.arg}", _constant(keyword.value), keyword.value)
            self.held.options.setdefault("adapter.rank", Placed(8, node.lineno + self.before, node.col_offset + 1))
        elif name:
            self.held.notes.append(f"{name} is not counted")

"""The flags: one for every field of Job and Layout, named as the field is, and those of the faces themselves."""

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from ..job import Job
from ..layout.axes import Layout

# Short names beside the field's own; the first one is what messages print.
ALIASES = {
    "sequence_length": ("--seq",),
    "global_batch": ("--batch",),
    "micro_batch": ("--mbs",),
    "bytes_per_parameter": ("--bytes",),
    "reserved_bytes": ("--reserved",),
    "batch_rampup": ("--rampup",),
    "frozen": ("--freeze",),
    "adapter_targets": ("--targets",),
    "adapter_rank": ("--rank",),
}


@dataclass(frozen=True)
class Flag:
    """One flag: its names, whether it is a switch, and its sentence."""

    name: str
    names: tuple[str, ...]
    help: str
    switch: bool = False
    negative: bool = False  # a switch that has a --no- form
    group: str = ""
    dash: bool = False  # takes `-`, standard input or output

    @property
    def forms(self) -> tuple[str, ...]:
        """All spellings: its names, and what takes it back."""
        return (*self.names, *(f"--no-{name[2:]}" for name in self.names if self.negative))


@cache
def sentences(cls: type) -> dict[str, str]:
    """The sentence under each field of a record, read from its source."""
    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        said = text.value.value if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(said, str):
            found[field.target.id] = said
    return found


def base_of(hint: Any) -> Any:
    """The type in a field's hint, without its range."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


@cache
def hints(cls: type) -> dict[str, Any]:
    """The plain type of each field of a record."""
    found = get_type_hints(cls, include_extras=True)
    return {field.name: base_of(found[field.name]) for field in fields(cls)}


def field_names(name: str) -> tuple[str, ...]:
    """The flags of a field, the short one first."""
    return (*ALIASES.get(name, ()), "--" + name.replace("_", "-"))


@cache
def field_flags(cls: type) -> tuple[Flag, ...]:
    """A flag for every field of a record. Their sentences are read when help is asked for."""
    return tuple(
        Flag(name, field_names(name), "", kind is bool, kind is bool, cls.__name__) for name, kind in hints(cls).items()
    )


def sentence(flag: Flag) -> str:
    """What a flag is for: the sentence of its field, with its choices, unless it has one of its own."""
    cls = {"Job": Job, "Layout": Layout}.get(flag.group)
    if cls is None or flag.help:
        return flag.help
    kind = hints(cls)[flag.name]
    choices = f" ({', '.join(map(str, get_args(kind)))})" if get_origin(kind) is Literal else ""
    return sentences(cls).get(flag.name, "") + choices


ON = Flag(
    "on", ("--on",), "64xh100-sxm, a node type such as 8xp5.48xlarge, a TOML file, or 8,16,32xh100-sxm for a table"
)
PROFILE = Flag("profile", ("--profile",), "a TOML file: constants of your own for the accelerator and the engine")
QUESTION = (
    ON,
    Flag("engine", ("--engine",), "what drives the run: megatron, fsdp2, ..; default: megatron"),
    PROFILE,
    Flag("config", ("--config",), "a TOML file: keys model, on, engine; tables [job] and [layout]; flags override it"),
    Flag("family", ("--as",), "read the config as this family, whatever it says"),
    Flag("part", ("--part",), "dotted path of the language model in the config, such as text_config"),
    Flag("storage", ("--storage",), "bandwidth of the storage that checkpoints go to, of all cards together: 200GB/s"),
    Flag(
        "mtbf",
        ("--mtbf",),
        "mean time between failures of ONE accelerator: 50000h (of a node of 8: eight times that of the node); or"
        " published, what a large run saw; with --storage it gives the goodput",
    ),
    Flag("restart", ("--restart",), "from a failure until the job runs again, without reading the checkpoint: 10min"),
    Flag("pue", ("--pue",), "power usage effectiveness: all power of the site over that of the accelerators: 1.2"),
    Flag(
        "extra_parameters",
        ("--extra-parameters",),
        "parameters beside the language model, such as 0.57e9 of a vision tower",
    ),
)
FACE = (
    Flag("as_json", ("--json",), "print one JSON object and nothing else", switch=True),
    Flag("plain", ("--plain",), "no colour and no bars", switch=True),
    Flag("debug", ("--debug",), "after an unexpected fault, write the traceback to a file", switch=True),
)


def question_flags() -> tuple[Flag, ...]:
    """Everything that describes a case: where, by what, the task and the layout."""
    return (*QUESTION, *field_flags(Job), *field_flags(Layout))


@dataclass(frozen=True)
class Positional:
    """One argument without a flag."""

    name: str
    help: str
    many: bool = False
    dash: bool = False  # several, and `-` may be one of them


@dataclass(frozen=True)
class Given:
    """What a command line gave: texts and switches, unread. Absent where it was not said."""

    values: dict[str, Any]
    content: bytes | None = None  # what the model `-` stands for, where it is not standard input

    def text(self, name: str) -> str | None:
        """One text, or None."""
        value = self.values.get(name)
        return None if value is None else str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Several texts."""
        return tuple(self.values.get(name) or ())

    def on(self, name: str) -> bool:
        """Whether a switch is set."""
        return bool(self.values.get(name))


def callable_of(about: str, positionals: Iterable[Positional], flags: Iterable[Flag]) -> Callable[..., Given]:
    """The function that the parser calls: its signature holds every argument as a text, so that parsing never fails
    on a value and all faults are found together afterwards."""
    from cyclopts import Parameter

    def called(*several: str, **values: Any) -> Given:
        named: dict[str, Any] = {name: text for name, text in zip(names, several, strict=False) if text is not None}
        if many:
            named[many[0]] = several[len(names) :]
        return Given(named | values)

    where, kinds = list(positionals), inspect.Parameter
    names = [one.name for one in where if not one.many]
    many = [one.name for one in where if one.many]
    parameters = [
        kinds(
            one.name,
            kinds.VAR_POSITIONAL if one.many else kinds.POSITIONAL_ONLY,
            annotation=Annotated[
                str if one.many else str | None, Parameter(allow_leading_hyphen=not one.many or one.dash, help=one.help)
            ],
            **({} if one.many else {"default": None}),
        )
        for one in where
    ]
    for flag in flags:
        how = Parameter(
            name=flag.names,
            negative=None if flag.negative else (),
            show_default=False,
            allow_leading_hyphen=flag.dash,
        )
        kind = bool if flag.switch else str
        parameters.append(kinds(flag.name, kinds.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, how]))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__doc__ = about
    return called

"""What the project knows about measured runs: facts a source, names of accelerators, and its own table of runs.

sources.toml        one block a source: unit and level of its memory, FLOPs convention, engine, what it leaves out
accelerators.toml   how tables call an accelerator, and its name in the catalogue
tiers.toml          what puts a row's step time in tier 2, and the rows that contradict others of their table
fitted.toml         the constants that are fits over published steps, and the rows that each rests on
peers.toml          errors of other planners, published or measured, on rows of these sources
runs.csv            measured runs, a public locator each, under the common header
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ...quantities import GB, GIB

Tier = Literal[0, 1, 2]
UNITS: Mapping[str, float] = {"GB": GB, "GiB": GIB}


@dataclass(frozen=True)
class Source:
    """The facts of one source of measured runs. The defaults are those of a source that is not known."""

    name: str = "a source that is not known"
    match: str = ""  # pattern of the `source` cell
    where: Mapping[str, str] = field(default_factory=dict, hash=False)  # patterns of other cells, which must match too
    skip: str = ""  # why no row of it is compared; empty: rows are compared
    engine: str = ""  # empty: fsdp2 where the row says FSDP, else megatron
    nearest: bool = False  # the engine is the nearest that outlay counts, not the one that ran
    unit: str = "GiB"  # of peak_mem_gb
    level: Literal["allocated", "reserved", "nvidia-smi"] = "reserved"  # what peak_mem_gb reads
    attention: Literal["causal", "full"] = "full"  # keys that its TFLOP/s count
    flops: Literal["counted", "6N"] = "counted"  # matrix multiplies of the model, or 6 a parameter
    counts_recompute: bool = False  # its TFLOP/s hold recompute too
    style: str = ""  # shape of models outside the catalogue; empty: by the name of the model
    vocab: int = 0  # where the table does not state it
    sequence: int = 0  # the same
    precision: str = ""  # the same
    recipe: str = ""  # bytes a parameter of its number types; empty: the engine's
    gradients: Literal["", "bf16"] = ""  # the type that they accumulate and are reduced in; empty: the engine's
    recompute: str = ""  # the table's where it has none; "unknown": its rows differ, and one that is silent is skipped
    axes: Mapping[str, int] = field(default_factory=dict, hash=False)  # degrees of its runs that the table leaves out
    etp: Literal["", "tp"] = ""  # tp: experts are cut by tp where a row does not say; empty: they are whole
    batch_of: Literal["rank", "accelerator"] = "rank"  # what its micro-batch is of: a data-parallel rank, or each card
    dispatch: Literal["", "deduplicated"] = ""  # how tokens reach experts, where a row does not say
    graphs: Literal["", "partial", "full"] = ""  # CUDA graphs, the same
    overlap_ep: bool = False
    adapter_rank: int = 0  # where a row does not say
    adapter_targets: tuple[str, ...] = ()  # matrices with an adapter, the same
    sp: Literal["", "on", "off"] = ""  # sequence parallelism; empty: the row's own words, else on with tp
    zero: int = -1  # the same; -1: the engine's
    overlap_tp: bool = False
    vpp: Mapping[str, int] = field(default_factory=dict, hash=False)  # chunks a rank by pp, where the table has none
    lighter_ends: bool = False  # first and last stage hold one layer fewer
    fuller_middle: bool = False  # of four stages and more those in the middle hold one layer more
    nic_gbit: Mapping[str, float] = field(
        default_factory=dict, hash=False
    )  # Gb/s an accelerator between nodes, by its name
    node: int = 0  # accelerators a node; 0: the catalogue's
    loading: bool = False  # its reading is of the whole run, so that loading the weights may be its peak
    unscored: str = ""  # why its peaks are reported and not scored, where there is more to say than `not_scored` has
    tier: Tier = 0  # that its step times are scored in: 1 complete and dense, 2 the others, 0 none
    untimed: str = ""  # why they are scored in none
    composed: bool = False  # its times add up from profiled parts: scored, and the tier is summed without them too
    says: str = ""  # where these facts are from
    notes: str = ""  # traps

    @property
    def known(self) -> bool:
        """Whether the table holds this source."""
        return bool(self.match)

    @property
    def not_scored(self) -> str:
        """Why its peaks are reported and not scored; empty where they are."""
        if not self.known:
            return "the source is not known: unit and level of its memory are assumed"
        near = f"counted as {self.engine}, the nearest engine, not the one that ran" if self.nearest else ""
        return self.unscored or near


@dataclass(frozen=True)
class Style:
    """The shape of a decoder that is known by its dimensions alone."""

    norm: Literal["rms", "layer"]
    gated: bool
    bias: bool
    tied: bool
    positions: bool
    dropout: bool
    says: str


@dataclass(frozen=True)
class Alias:
    """How tables call an accelerator: its name in the catalogue, or why it has none."""

    match: str
    name: str = ""
    why: str = ""
    note: str = ""
    untimed: str = ""  # why times on it are not the card's, though its memory is


OWN = Path(str(files(__name__).joinpath("runs.csv")))
"""The project's own table of measured runs."""


@cache
def _table(file: str) -> dict[str, Any]:
    return tomllib.loads(files(__name__).joinpath(file).read_text("utf-8"))


@cache
def sources() -> tuple[Source, ...]:
    """Every source whose facts are known; the first that matches is taken."""
    return tuple(Source(**_frozen(entry)) for entry in _table("sources.toml")["source"])


def entries(file: str, name: str) -> tuple[Mapping[str, Any], ...]:
    """The entries of one name in a file beside this one, their lists as tuples."""
    return tuple(map(_frozen, _table(file)[name]))


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def source_of(cells: Mapping[str, str]) -> Source:
    """The facts of the source of a row."""
    return next((one for one in sources() if _is_of(one, cells)), Source())


def _is_of(source: Source, cells: Mapping[str, str]) -> bool:
    return _matches({"source": source.match, **source.where}, cells)


def _matches(patterns: Mapping[str, str], cells: Mapping[str, str]) -> bool:
    """Whether every pattern is found in its cell; a cell that is not there is empty."""
    found = ((pattern, cells.get(column, "").strip()) for column, pattern in patterns.items())
    return all(re.search(pattern, text, re.IGNORECASE) for pattern, text in found)


def read_instead(cells: Mapping[str, str]) -> Mapping[str, str]:
    """What is read instead of some cells of a row, since its other cells explain them."""
    rules = _table("sources.toml")["instead"]
    return next((rule["cells"] for rule in rules if _matches(rule["where"], cells)), {})


def lower_tiers(counted: Mapping[str, str]) -> str:
    """Why a row is not of tier 1, by what it was counted as; empty where it may be."""
    rules = _table("tiers.toml")["lower"]
    return next((str(rule["reason"]) for rule in rules if re.search(rule["match"], counted[rule["of"]])), "")


def contradictions(cells: Mapping[str, str]) -> str:
    """What shows that a row cannot be right as printed; empty where nothing does."""
    rules = _table("tiers.toml")["contradiction"]
    return next((str(rule["reason"]) for rule in rules if _matches(rule["where"], cells)), "")


@cache
def styles() -> dict[str, Style]:
    """The known shapes, by name."""
    return {name: Style(**entry) for name, entry in _table("sources.toml")["style"].items()}


@cache
def style_of(model: str, source: Source) -> str:
    """The shape of a model: the source's, else what its name says; empty where neither tells."""
    by_name = (
        name for pattern, name in _table("sources.toml")["names"].items() if re.search(pattern, model, re.IGNORECASE)
    )
    return source.style or next(by_name, "")


def refused(field_name: str, text: str) -> str:
    """Why rows whose cell says this are never compared; empty where they are."""
    rules = (rule for rule in _table("sources.toml")["refuse"] if rule["field"] == field_name)
    return next((str(rule["reason"]) for rule in rules if re.search(rule["match"], text, re.IGNORECASE)), "")


def dimensions(model: str, source: str) -> tuple[dict[str, int], str]:
    """Dimensions that a model's own report gives and that tables leave out, and the report."""
    for entry in _table("sources.toml")["dimensions"]:
        if re.search(entry["match"], model, re.IGNORECASE) and re.search(entry.get("source", ""), source):
            return {key: value for key, value in entry.items() if isinstance(value, int)}, entry["says"]
    return {}, ""


def catalogue_name(model: str) -> str:
    """The catalogue's name of a model that tables call otherwise; empty where the table of names has none."""
    names = _table("sources.toml")["models"].items()
    return next((name for pattern, name in names if re.search(pattern, model, re.IGNORECASE)), "")


@cache
def accelerator_of(text: str) -> Alias:
    """The accelerator that a cell means. A count before it (`8xB200`) is not read."""
    plain = re.sub(r"^\s*\d+\s*x\s*", "", text, flags=re.IGNORECASE)
    aliases = (Alias(**entry) for entry in _table("accelerators.toml")["alias"])
    unknown = Alias("", why="not in the catalogue")
    return next((one for one in aliases if re.search(one.match, plain, re.IGNORECASE)), unknown)

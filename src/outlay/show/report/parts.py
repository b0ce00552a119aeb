"""A report before it is written: the answer, tables, derivations and notes of a bill, in words and figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...bill import Bill, case_of, countable, load
from ...ladder import derive
from ...quantities import GIB
from ...search.advice import Advice
from ...search.plan import Ranked
from ..answer import verdict_of
from ..diagram.drawing import Chart
from ..layouts import layout_flags
from ..parts import TIME_HEADS, holds, levels_text, memory_rows, time_rows, time_text, wall_text, worst_text
from ..text import duration, figure, percent
from .said import Pairs, answer_pairs, subject_pairs

DERIVED = ("memory", "memory.activations", "step", "bubble", "traffic")


@dataclass(frozen=True)
class Table:
    """One table: what it is of, a line under that, its heads, its rows, and a line behind them."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """A bill, and what stands beside it: the diagram of its pipeline, and the ranking that it is the best of."""

    bill: Bill
    advice: tuple[Advice, ...] = ()
    chart: Chart | None = None
    unseen: str = ""  # why there is no diagram
    ranking: tuple[Ranked, ...] = ()

    @property
    def title(self) -> str:
        """What was counted, and the answer in a word."""
        return f"{self.bill.model.name} on {self.bill.cluster.name}: {verdict_of(self.bill)}"

    @property
    def answer(self) -> Pairs:
        """The lines of the answer."""
        return answer_pairs(self.bill, self.advice)

    @property
    def subject(self) -> Pairs:
        """What was counted."""
        return subject_pairs(self.bill)

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables."""
        ranking = (ranking_table(self.ranking, self.bill),) if len(self.ranking) > 1 else ()
        return (*ranking, memory_table(self.bill), stages_table(self.bill), time_table(self.bill))


def memory_table(bill: Bill) -> Table:
    """The peak of the worst rank, part by part."""
    heads, rows = ("", "GiB", "GB", "sure", "how"), tuple(memory_rows(bill))
    about = f"{wall_text(bill)}; {worst_text(bill)}"
    return Table("Memory", about, heads, rows, levels_text(bill))


def stages_table(bill: Bill) -> Table:
    """The peak of every stage against the wall."""
    wall = bill.memory.usable_bytes
    rows = tuple(
        (
            str(stage.stage), f"{stage.ranks:,}", figure(stage.peak_bytes / GIB),
            percent(stage.peak_bytes / wall) if wall > 0 else "-", holds(stage),
        )
        for stage in bill.memory.ranks
    )  # fmt: skip
    heads = ("stage", "ranks", "peak GiB", "of the wall", "holds")
    return Table("Every stage", f"the wall is {figure(wall / GIB)} GiB usable", heads, rows)


def time_table(bill: Bill) -> Table:
    """The step, part by part."""
    return Table("The step", time_text(bill), TIME_HEADS, tuple(time_rows(bill)))


def ranking_table(ranking: Sequence[Ranked], bill: Bill) -> Table:
    """The layouts of a plan, the fastest first."""
    best = ranking[0].seconds
    rows = tuple(
        (
            str(place), duration(each.seconds), f"{each.seconds / best:.3f}", figure(each.peak_bytes / GIB),
            layout_flags(each.layout, bill.model, bill.engine),
        )
        for place, each in enumerate(ranking, 1)
    )  # fmt: skip
    return Table("Ranking", "the best layouts of the plan", ("", "step", "x", "peak GiB", "layout"), rows)


def derivations(bill: Bill) -> list[tuple[str, list[str]]]:
    """Each quantity with the lines of its derivation."""
    loaded = load(countable(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]))
    return [(name, [*derive(name, loaded).lines()]) for name in DERIVED]


def notes(bill: Bill) -> tuple[tuple[str, list[str]], ...]:
    """What was assumed, and by which conventions it was counted."""
    counts = [f"{name.replace('_', ' ')}: {text}" for name, text in bill.conventions.items()]
    return ("Assumed", list(bill.assumptions)), ("Conventions", counts)

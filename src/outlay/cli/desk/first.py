"""What the server shows before any script runs, and without one: parts of pages as HTML, and what a form suggests."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from ...layout.axes import Layout
from .words import given_of

Record = dict[str, Any]
Question = Mapping[str, Any]
DEGREES = ("tp", "pp", "cp", "vpp", "ep")
CHOSEN = (*DEGREES, "mbs", "schedule", "recompute", "zero", "overlap-tp")  # what a search chooses


def bill(question: Question) -> Record:
    """A bill: its record, its parts, and what was left out filled in."""
    from ...search.advice import advise
    from ...show.record import plain, record
    from ...show.report import html
    from ...show.report.faults import faults_html
    from ..question import read_question

    made = read_question(given_of("count", question.get("words") or {}, question.get("config"))).bill()
    found, layout = advise(made), made.layout
    filled = {"mbs": layout.micro_batch, "seq": made.job.sequence_length, "batch": made.job.global_batch}
    return {
        "record": record(made, found),
        "html": {
            "errors": faults_html([plain(each) for each in made.violations]),
            "answer": html.answer_html(made, found),
            "memory": html.memory_html(made),
            "step": html.step_html(made),
            "notes": html.notes_html(made),
        },
        "defaults": filled | {name: getattr(layout, name) for name in DEGREES},
    }


def known(_: Question) -> Record:
    """What a form suggests: models, hardware, and the choices of some fields."""
    from ...cluster.catalogue import accelerator_names, node_names
    from ...engines.tables import engine_names
    from ...job import Job
    from ...model.catalogue import names
    from ..flags import hints

    kinds = {"schedule": Layout, "recompute": Layout, "precision": Job, "optimizer": Job}
    choices = {name: list(get_args(hints(cls)[name])) for name, cls in kinds.items()}
    cards = [[f"64x{name}", name] for name in accelerator_names()]
    return {
        "models": [[name, name] for name in names()],
        "hardware": [*cards, *([f"8x{name}", f"8 nodes {name}"] for name in node_names())],
        "choices": choices | {"zero": ["0", "1", "2", "3"], "engine": list(engine_names())},
    }


def ranking(question: Question) -> Record:
    """The best layouts of the whole space, as a table."""
    from ...show.notebook import html_of
    from ..planning import answer_of
    from ..searching import read_search

    words = {word: text for word, text in (question.get("words") or {}).items() if word not in CHOSEN}
    return {"html": html_of(answer_of(read_search(given_of("plan", words)), None, simulate=False).plan)}


def beside(question: Question) -> Record:
    """Two layouts item by item, as a table: that of the words, and what `b` changes in it, such as tp=4,pp=8."""
    from ...show.compare import differences
    from ...show.report.html import table_html
    from ...show.report.parts import Table
    from ..comparing import bill_of
    from ..values import Faults, assignments

    words = dict(question.get("words") or {})
    faults, text = Faults(), str(words.pop("b", ""))
    extra = assignments(text, faults)
    given = given_of("count", words)
    faults.attempt(given_of, "count", {name.replace("_", "-"): value for name, value in extra.items()})
    faults.stop()
    one, other = bill_of(given, {}), bill_of(replace(given), extra)
    rows = tuple(
        (each.name.replace("_", " "), f"{each.a:,.6g}", f"{each.b:,.6g}", f"{each.difference:+,.6g}", each.unit)
        for group in differences(one, other).values()
        for each in group
    )
    return {"html": table_html(Table("Item by item", f"B is A with {text}", ("", "A", "B", "B - A", "unit"), rows))}

"""Files of an answer, for who asks over HTTP: the texts that `outlay report` writes, and the trace of `outlay draw`."""

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import Fault, InputError
from .words import given_of

if TYPE_CHECKING:
    from ..passes import Asked

Record = dict[str, Any]
Question = Mapping[str, Any]
MOST_PASSES = 200_000  # of a trace: 25 MB of JSON


def report(question: Question) -> Record:
    """The report of a bill in each of its forms."""
    from ...show.report.written import FORMS, written
    from ..question import read_question
    from ..reporting import report_of

    given = given_of("report", question.get("words") or {}, question.get("config"))
    made = report_of(given, read_question(given).bill())
    return {"files": [{"name": f"report.{form}", "text": written(form, made)} for form in FORMS]}


def trace(question: Question) -> Record:
    """The trace of a pipeline for Perfetto; none of a layout that breaks a rule."""
    from ...bill import Bill
    from ...show.record import plain
    from ..drawing import content_of, drawn, pipeline

    asked = pipeline(given_of("draw", question.get("words") or {}, question.get("config")))
    if isinstance(asked, Bill):
        return {"files": [], "violations": plain(list(asked.violations))}
    _bounded(asked)
    content = b64encode(content_of("perfetto", drawn(asked))).decode()
    return {"files": [{"name": "timing.pftrace", "base64": content}], "violations": []}


def _bounded(asked: "Asked") -> None:
    if asked.plan.passes > MOST_PASSES:
        rule = f"over HTTP a trace holds every operation, up to {MOST_PASSES:,} passes"
        got = f"{asked.plan}: {asked.plan.passes:,} passes"
        raise InputError(Fault("DRW003", "the step is too long for a trace", rule, got, "outlay draw --perfetto F"))

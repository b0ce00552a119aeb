"""The answer of `outlay watch` as one object, and its schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Fault
from ..formats.logs.checks import cards_of
from ..validate.watched import Watched
from .measured import REACHED
from .record import Record, head, plain, record, whole
from .schema import DRAFT, MAYBE, NUMBER, TEXT, WHOLE, YES_NO, Schema, list_of, record_of

MAYBE_WHOLE = {"type": ["integer", "null"]}
MAYBE_OBJECT = {"type": ["object", "null"]}
JOB = ("devices", "sequence_length", "global_batch", "tokens")
RATES = (
    *("seconds", "p10_seconds", "p90_seconds", "tokens_per_second", "tokens_per_second_per_device"),
    *("flops_per_second_per_device", "mfu", "data_seconds", "seconds_left"),
)


def watch_record(found: Watched, needs: Sequence[Fault]) -> Record:
    """The same as the lines say."""
    log, pace, told = found.log, found.pace, found.pace.told
    rates = (
        *(pace.seconds, pace.low, pace.high, pace.tokens_per_second, pace.tokens_per_second_per_device),
        *(pace.flops_per_second, pace.mfu, pace.data_seconds, pace.seconds_left),
    )
    said = {
        "framework": log.framework,
        "lines": log.lines,
        "steps": log.seen,
        "runs": log.runs,
        "last_step": pace.last,
        "total_steps": pace.total,
        "cut": log.cut,
        "pace": {**dict(zip(RATES, rates, strict=True)), "lines": pace.lines, "from": pace.how},
        "job": {
            name: None if value is None else whole(value)
            for name, value in zip(JOB, (told.devices, told.sequence_length, told.samples, told.tokens), strict=True)
        },
        "left_out": [
            {"step": one.number, "run": one.run, "seconds": one.seconds, "why": one.why} for one in pace.left_out
        ],
        "memory": [
            {"kind": one.kind, "bytes": one.bytes, "rank": one.rank, "after_step": one.after,
             "first_bytes": one.first_bytes, "before_states": one.before_states}
            for one in log.memory
        ],
        "timers": [
            {"name": one.name, "seconds": one.seconds, "least_seconds": one.least} for one in log.timers.values()
        ],
        "skipped": log.skipped,
        "nans": log.nans,
        "cards": list(cards_of(log)),
        "checks": [{"name": one.name, "text": one.text} for one in found.remarks],
    }  # fmt: skip
    missing = [{"code": one.code, "what": one.what, "got": one.got, "fix": one.fix} for one in needs]
    made = head("watch") | said | {"needs": missing, "beside": _beside(found), "peaks": _peaks(found)}
    return plain(made | {"bill": record(found.bill) if found.bill else None})  # type: ignore[no-any-return]


def _beside(found: Watched) -> Record | None:
    """The measured step beside the bill's."""
    each = found.beside
    if each is None:
        return None
    return {
        "measured_seconds": each.seconds,
        "predicted_seconds": each.predicted,
        "band_seconds": list(each.band),
        "inside": each.inside,
        "flops_per_token": each.printed_flops,
        "counted_by": list(each.counted_by),
        "sequence_lengths": [{"tokens": length, "counted_by": name} for length, name in each.lengths],
        "other_job": list(each.other_job),
        "causes": [{"item": one.item, "seconds": one.seconds, "text": one.text} for one in each.causes],
        "unexplained_seconds": each.unexplained,
        "covered_by": each.covers,
        "measured": each.reached,
    }


def _peaks(found: Watched) -> list[Record]:
    return [
        {
            "kind": one.held.kind,
            "measured_bytes": one.held.bytes,
            "predicted_bytes": one.predicted,
            "band_bytes": list(one.band),
            "inside": one.inside,
        }
        for one in found.memory
    ]


def schema() -> Schema:
    """What `outlay watch --json` prints."""
    pace = record_of({**dict.fromkeys(RATES, MAYBE), "lines": WHOLE, "from": TEXT})
    left_out = record_of({"step": WHOLE, "run": WHOLE, "seconds": MAYBE, "why": TEXT})
    held = {"kind": TEXT, "bytes": NUMBER, "rank": MAYBE_WHOLE, "after_step": MAYBE_WHOLE, "first_bytes": NUMBER}
    peak = {"kind": TEXT, "measured_bytes": NUMBER, "predicted_bytes": NUMBER, "band_bytes": list_of(NUMBER)}
    beside: Mapping[str, Any] = {
        "measured_seconds": NUMBER,
        "predicted_seconds": NUMBER,
        "band_seconds": list_of(NUMBER),
        "inside": YES_NO,
        "flops_per_token": MAYBE,
        "counted_by": list_of(TEXT),
        "sequence_lengths": list_of(record_of({"tokens": WHOLE, "counted_by": TEXT})),
        "other_job": list_of(TEXT),
        "causes": list_of(record_of({"item": TEXT, "seconds": MAYBE, "text": TEXT})),
        "unexplained_seconds": NUMBER,
        "covered_by": TEXT,
        **REACHED,
    }
    keys = {
        "schema": {"const": "outlay.watch.1"},
        "version": TEXT,
        "framework": TEXT,
        **dict.fromkeys(("lines", "steps", "runs", "last_step"), WHOLE),
        "total_steps": MAYBE_WHOLE,
        "cut": YES_NO,
        "pace": pace,
        "job": record_of(dict.fromkeys(JOB, MAYBE)),
        "left_out": list_of(left_out),
        "memory": list_of(record_of(held | {"before_states": YES_NO})),
        "timers": list_of(record_of({"name": TEXT, "seconds": NUMBER, "least_seconds": MAYBE})),
        **dict.fromkeys(("skipped", "nans"), WHOLE),
        "cards": list_of(TEXT),
        "checks": list_of(record_of({"name": TEXT, "text": TEXT})),
        "needs": list_of(record_of(dict.fromkeys(("code", "what", "got", "fix"), TEXT))),
        "beside": record_of(beside) | {"type": ["object", "null"]},
        "peaks": list_of(record_of(peak | {"inside": YES_NO})),
        "bill": MAYBE_OBJECT,
    }
    return {"$schema": DRAFT, **record_of(keys)}

"""The best recompute of a layout as one JSON object."""

from ...engines.engine import MEGATRON
from ...search.recompute.offered import Choice
from ...search.recompute.stages import Group, Outcome, Recompute
from ..record import Record, head, model, plain
from .answer import Answer, curve, flag_words, thinned
from .policy import policy_words, saved, uncompiled
from .textbook import textbook_record


def recompute_record(answer: Answer) -> Record:
    """The plan, the floor, the engine's choices, the curve, and how to say it to the engine."""
    found, bill = answer.found, answer.bill
    room = found.plan.room
    return head("recompute") | {
        "model": model(bill),
        "job": plain(bill.job),
        "cluster": plain(bill.cluster),
        "layout": plain(bill.layout),
        "engine": bill.engine.name,
        "stage": {
            "stage": int(room.stage.rank),
            "layers": len(room.layers),
            "passes_in_flight": room.passes,
            "room_bytes": room.room,
            "state_bytes": room.state,
        },
        "budget_bytes": found.budget,
        "verdict": "fits" if found.outcome else "below_floor",
        "step_seconds": found.plain_seconds,
        "best": _outcome(found, found.outcome) if found.outcome else None,
        "floor": _outcome(found, found.least),
        "groups": [_group(found, group) for group in found.groups],
        "choices": [_choice(found, each) for each in found.choices],
        "asked": _choice(found, found.asked) if found.asked else None,
        "flags": flag_words(found) if bill.engine.name in MEGATRON else None,
        "curve": [{"bytes": memory, "seconds": more} for memory, more in thinned(curve(found))],
        "textbook": textbook_record(found),
        "files": list(answer.files),
        "violations": plain(bill.violations),
        "assumptions": list(bill.assumptions),
    }


def _outcome(found: Recompute, outcome: Outcome) -> Record:
    return {
        "bytes": outcome.needed,
        "peak_bytes": outcome.peak,
        "seconds": outcome.seconds,
        "share": outcome.seconds / found.plain_seconds,
        "choice": outcome.choice.name if outcome.choice else None,
    }


def _group(found: Recompute, group: Group) -> Record:
    layer = next(layer for layer in found.plan.room.layers if layer.name == group.kind)
    return {
        "kind": group.kind,
        "layers": group.layers,
        "again": list(group.again),
        "saved": saved(group, layer),
        "uncompiled": uncompiled(group, layer),
        "layers_from_one_input": group.length,
        "kept_bytes": group.kept,
        "seconds": group.seconds,
        "policy": policy_words(group, layer),
    }


def _choice(found: Recompute, choice: Choice) -> Record:
    return {
        "name": choice.name,
        "flags": choice.flags,
        "bytes": choice.needed,
        "peak_bytes": choice.peak,
        "seconds": found.choice_seconds(choice),
        "fits": choice.fits,
    }

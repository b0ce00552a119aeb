"""The JSON Schema of what `outlay recompute --json` prints."""

from ...search.recompute.textbook import SAID
from ..schema import DRAFT, MAYBE, NUMBER, TEXT, VIOLATION, WHOLE, YES_NO, Schema, list_of, record_of


def schema() -> Schema:
    """What `outlay recompute --json` prints; of a layout that breaks rules `violations` alone."""
    texts, whole = list_of(TEXT), {"type": "object", "description": "as in `outlay schema bill`"}
    plan = {"bytes": NUMBER, "peak_bytes": NUMBER, "seconds": NUMBER}
    named = {"choice": {"type": ["string", "null"]}}
    point, choice = (
        record_of(plan | {"share": NUMBER} | named),
        record_of(plan | {"name": TEXT, "flags": TEXT, "fits": YES_NO}),
    )
    group = {"kind": TEXT, "layers": WHOLE, "again": texts, "saved": texts, "uncompiled": texts}
    group |= {"layers_from_one_input": WHOLE}
    stage = {"stage": WHOLE, "layers": WHOLE, "passes_in_flight": NUMBER, "room_bytes": NUMBER, "state_bytes": NUMBER}
    form = {
        "name": {"enum": list(SAID)},
        "held": MAYBE,
        "inputs": NUMBER,
        "bytes": NUMBER,
        "runs": NUMBER,
        "said": TEXT,
    }
    needed = {"schema": {"const": "outlay.recompute.1"}, "version": TEXT, "violations": list_of(record_of(VIOLATION))}
    more = {
        **dict.fromkeys(("model", "job", "cluster", "layout"), whole),
        "engine": TEXT,
        "stage": record_of(stage),
        "budget_bytes": MAYBE,
        "verdict": {"enum": ["fits", "below_floor"]},
        "step_seconds": NUMBER,
        "best": point | {"type": ["object", "null"]},
        "floor": point,
        "groups": list_of(record_of({**group, "kept_bytes": NUMBER, "seconds": NUMBER, "policy": TEXT})),
        "choices": list_of(choice),
        "asked": choice | {"type": ["object", "null"]},
        "flags": {"type": ["string", "null"]},
        "curve": list_of(record_of({"bytes": NUMBER, "seconds": NUMBER})),
        "textbook": record_of({"layers": WHOLE, "tape_inputs": NUMBER, "forms": list_of(record_of(form))}),
        "files": texts,
        "assumptions": texts,
    }
    whole_answer = record_of(needed)
    return {"$schema": DRAFT, **whole_answer, "properties": whole_answer["properties"] | more}

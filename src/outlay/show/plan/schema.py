"""The JSON Schema of what `outlay plan --json` prints."""

from ..mixed_schema import MIXED
from ..schema import DRAFT, MAYBE, NUMBER, TEXT, VIOLATION, WHOLE, YES_NO, Schema, list_of, record_of, with_more


def schema() -> Schema:
    """What `outlay plan --json` prints: bills inside it are those of `outlay schema bill`."""
    whole = {"type": "object", "description": "as given, every field filled"}
    bill = {"type": ["object", "null"], "description": "as in `outlay schema bill`"}
    layout = {"type": ["object", "null"], "description": "every field filled"}
    ranked = record_of({"layout": layout, "bill": bill})
    counts = ("space", "illegal", "duplicates", "legal", "pruned", "counted", "did_not_fit")
    measured = {"seconds": NUMBER, "layouts_per_second": NUMBER, "proved": YES_NO, "gap": MAYBE}
    point = {"peak_bytes": NUMBER, "seconds": NUMBER, "fits": YES_NO, "layout": layout}
    tried: Schema = dict.fromkeys(("name", "model", "verdict"), TEXT)
    tried |= dict.fromkeys(("ranks", "layers", "parameters", "sequence_length", "legal"), WHOLE)
    tried |= {"tokens_per_second": MAYBE, "dollars_per_million_tokens": MAYBE}
    gains = dict.fromkeys(("times", "seconds", "tokens_per_second", "gain"), NUMBER)
    worth = {"resource": TEXT, **gains, "layout": layout}
    model = record_of(
        {
            "name": TEXT,
            "parameters": record_of(dict.fromkeys(("total", "active", "embedding", "mtp"), WHOLE)),
            "shape": {"type": "object"},
        }
    )
    keys = {
        "schema": {"const": "outlay.plan.1"},
        "version": TEXT,
        "model": model,
        "job": whole,
        "cluster": whole,
        "engine": TEXT,
        "space": {"type": "object", "description": "its width, and the values of every field"},
        "objective": {"enum": ["time", "accelerators", "money", "tokens", "sequence", "model"]},
        "best": list_of(ranked),
        "frontier": list_of(record_of(point)),
        "baselines": list_of(record_of({"name": TEXT, "layout": layout, "bill": bill})),
        "rejected": list_of(record_of({"rule": TEXT, "count": WHOLE})),
        "search": record_of(dict.fromkeys(counts, WHOLE) | measured),
        "smallest": {"type": ["object", "null"], "description": "where nothing fits: the layout that needs least"},
        "tried": list_of(record_of(tried)),
        "simulated": {"type": ["object", "null"], "description": "the places of `best` by simulated time"},
        "worth": list_of(record_of(worth)),
        "why": {"type": ["object", "null"], "description": "of the values of --why: what becomes of them"},
        "violations": list_of(record_of(VIOLATION)),
        "assumptions": list_of(TEXT),
    }
    return {"$schema": DRAFT, **with_more(record_of(keys), {"mixed": MIXED, "orders": _orders()})}


def _orders() -> Schema:
    """Of --orders: the best pipelines in other orders of passes."""
    row: Schema = {"place": WHOLE, "order": TEXT, "seconds": NUMBER, "peak_bytes": NUMBER}
    row |= dict.fromkeys(("fits", "own", "proved", "v"), YES_NO)
    row |= {"held": MAYBE, "chunks": WHOLE, "engines": list_of(TEXT)}
    row |= {"layout": {"type": "object", "description": "with the chunks of the order"}}
    reasons = {"type": "object", "description": "orders that were not run, and why"}
    return record_of({"ranking": list_of(record_of(row)), "left_out": reasons, "unsought": WHOLE, "stopped": YES_NO})

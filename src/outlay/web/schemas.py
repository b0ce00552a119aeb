"""What the questions answer, for the description of the interface: the schemas that `outlay schema` prints."""

from collections.abc import Callable, Mapping
from typing import Any

from ..show.schema import OUTPUT_SCHEMAS

Schema = dict[str, Any]
ABOUT = {
    "count": "The whole bill of one layout; several clusters in `on` make a scaling table.",
    "plan": "The best layouts of a whole space. With `Accept: text/event-stream`, progress and then the answer.",
    "compare": "Two layouts, item by item, the largest difference first.",
    "check": "The file of a run: what it says, what is wrong with it, and its bill.",
    "explain": "A figure down to the arithmetic and its ladder of fidelity: the word `quantity` names it.",
    "draw": "The timing diagram of a pipeline: the picture, its record, and the passes of each rank.",
    "export": "A layout as the file of a framework: the word `framework` names it.",
    "bubble": "Idle time of a pipeline without a model.",
    "advice": "The changes that would make a layout fit, or shorter.",
    "legal": "The values of each degree that break no rule, with the others as they are.",
    "ranks": "The parts of the peak of every stage, as a bill has those of the worst rank.",
}
TEXT: Schema = {"type": "string"}
FAULT: Schema = {
    "type": "object",
    "properties": dict.fromkeys(("code", "what", "rule", "got", "fix", "flag"), TEXT),
    "required": ["code", "what", "rule", "got", "fix"],
}
ERRORS: Schema = {
    "type": "object", "properties": {"errors": {"type": "array", "items": FAULT}}, "required": ["errors"]
}  # fmt: skip
WRONG = {
    403: "the request is not from this server's own page", 413: "the body is too large",
    415: "the body is not JSON", 422: "the question cannot be read", 429: "too many questions at a time",
}  # fmt: skip


def record(properties: Mapping[str, Schema]) -> Schema:
    """An object with at least these keys."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def output(name: str) -> Schema:
    """The schema of an output, without what names its dialect."""
    return {key: value for key, value in OUTPUT_SCHEMAS[name]().items() if key != "$schema"}


def _comparison() -> Schema:
    number: Schema = {"type": ["number", "null"]}
    item = record({"name": TEXT, "unit": TEXT, "a": number, "b": number, "difference": number, "ratio": number})
    bill = output("bill")
    return record({"schema": TEXT, "version": TEXT, "a": bill, "b": bill, "items": {"type": "array", "items": item}})


def _drawn() -> Schema:
    maybe = {"type": ["object", "null"]}
    return record({"svg": {"type": ["string", "null"]}, "record": output("draw"), "operations": maybe})


def schema_of(name: str) -> Schema:
    """What a question answers."""
    if name in ("plan", "bubble", "export", "check"):
        return output(name)
    if name == "count":
        rows = record({"schema": TEXT, "version": TEXT, "rows": {"type": "array", "items": output("bill")}})
        return {"oneOf": [output("bill"), rows]}
    whole: Schema = {"type": "array", "items": {"type": "integer"}}
    made: dict[str, Callable[[], Schema]] = {
        "compare": _comparison,
        "draw": _drawn,
        "advice": lambda: record({"advice": {"type": "array", "items": {"type": "object"}}}),
        "ranks": lambda: record({"ranks": {"type": "array", "items": {"type": "object"}}}),
        "legal": lambda: {"type": "object", "additionalProperties": whole},
    }
    return made[name]() if name in made else {"type": "object"}


def answers(name: str) -> dict[int | str, dict[str, Any]]:
    """The answers of one question by their status."""
    kinds = {"application/json": {"schema": schema_of(name)}}
    if name == "plan":
        kinds["text/event-stream"] = {"schema": TEXT}
    errors = {"application/json": {"schema": ERRORS}}
    said: dict[int | str, dict[str, Any]] = {
        200: {"description": "the answer, also where it is no", "content": kinds},
        **{status: {"description": why, "content": errors} for status, why in WRONG.items()},
    }
    return said

"""What the questions answer, for the description of the interface: the schemas that `outlay schema` prints."""

from collections.abc import Callable, Mapping
from typing import Any

from ..show.schema import OUTPUT_SCHEMAS, VIOLATION
from .questions import ABOUT, FAULTS

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
FAULT: Schema = {
    "type": "object",
    "properties": dict.fromkeys(("code", "what", "rule", "got", "fix", "flag"), TEXT),
    "required": ["code", "what", "rule", "got", "fix"],
}
ERRORS: Schema = {
    "type": "object", "properties": {"errors": {"type": "array", "items": FAULT}}, "required": ["errors"]
}  # fmt: skip


def record(properties: Mapping[str, Schema]) -> Schema:
    """An object with at least these keys."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def output(name: str) -> Schema:
    """The schema of an output, without what names its dialect; a broken rule has the word that it is about."""
    made: Schema = _blamed({key: value for key, value in OUTPUT_SCHEMAS[name]().items() if key != "$schema"})
    return made


def _blamed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_blamed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    of_rules = schema.get("properties", {}).keys() == VIOLATION.keys()
    more = {"properties": {**schema["properties"], "flag": TEXT}} if of_rules else {}
    return {key: _blamed(value) for key, value in schema.items()} | more


def _comparison() -> Schema:
    number: Schema = {"type": ["number", "null"]}
    item = record({"name": TEXT, "unit": TEXT, "a": number, "b": number, "difference": number, "ratio": number})
    bill = output("bill")
    return record({"schema": TEXT, "version": TEXT, "a": bill, "b": bill, "items": {"type": "array", "items": item}})


def _drawn() -> Schema:
    maybe = {"type": ["object", "null"]}
    return record({"svg": {"type": ["string", "null"]}, "record": output("draw"), "operations": maybe})


def _trace() -> Schema:
    file = record({"name": TEXT, "base64": {"type": "string", "contentEncoding": "base64"}})
    return record({"files": {"type": "array", "items": file}, "violations": {"type": "array"}})


def schema_of(name: str) -> Schema:
    """What a question answers."""
    if name in ("plan", "bubble", "export", "check", "drill"):
        return output(name)
    if name == "count":
        rows = record({"schema": TEXT, "version": TEXT, "rows": {"type": "array", "items": output("bill")}})
        return {"oneOf": [output("bill"), rows]}
    whole: Schema = {"type": "array", "items": {"type": "integer"}}
    made: dict[str, Callable[[], Schema]] = {
        "compare": _comparison,
        "draw": _drawn,
        "fix": lambda: record({"files": {"type": "array", "items": record({"name": TEXT, "text": TEXT})}}),
        "advice": lambda: record({"advice": {"type": "array", "items": {"type": "object"}}}),
        "ranks": lambda: record({"ranks": {"type": "array", "items": {"type": "object"}}}),
        "report": lambda: record({"files": {"type": "array", "items": record({"name": TEXT, "text": TEXT})}}),
        "trace": _trace,
        "legal": lambda: {"type": "object", "additionalProperties": whole},
    }
    return made[name]() if name in made else {"type": "object"}


def described(api: Schema, words: Mapping[str, Schema]) -> Schema:
    """The description of the interface with the schema of each answer, which the routes only name, and the words of
    each question."""
    made = {name: schema_of(name) for name in (*ABOUT, "models", "hardware")}
    held = api["components"]["schemas"]
    for name, known in words.items():
        about = {**held["Question"]["properties"]["words"], "properties": known}
        properties = {**held["Question"]["properties"], "words": about}
        made[f"{name}_question"] = {**held["Question"], "properties": properties}
        body = api["paths"][f"/api/{name}"]["post"]["requestBody"]["content"]["application/json"]
        body["schema"] = {"$ref": f"#/components/schemas/{name}_question"}
    return {**api, "components": {"schemas": {**held, **made, FAULTS: ERRORS}}}

"""outlay schema: the JSON Schema of what outlay reads and of what it prints."""

from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from .flags import Given
from .streams import say

INPUTS = ("job", "layout")
OUTPUTS = (
    "bill", "plan", "bubble", "draw", "recompute", "validate", "choices", "fit", "hold_out", "sweep", "export", "check",
    "verify", "calibrate",
    "watch", "drill", "report",
)  # fmt: skip


def schema(given: Given) -> int:
    """One schema, or the list of them."""
    from ..show.record import dumps
    from ..show.schema import OUTPUT_SCHEMAS, input_schema

    name = given.text("name")
    if name is None:
        say(dumps({"inputs": list(INPUTS), "outputs": list(OUTPUTS)}))
        return 0
    if name not in (*INPUTS, *OUTPUTS):
        close = nearest(name, (*INPUTS, *OUTPUTS))
        rule = f"one of {', '.join((*INPUTS, *OUTPUTS))}"
        raise InputError(
            Fault(
                "CLI004",
                f"there is no schema {quoted(name)}",
                rule,
                quoted(name),
                f"outlay schema {(close or ['bill'])[0]}",
            )
        )
    made: dict[str, Any] = input_schema(name, sentences_of(name)) if name in INPUTS else OUTPUT_SCHEMAS[name]()
    say(dumps(made))
    return 0


def sentences_of(name: str) -> dict[str, str]:
    """The sentence under each field, for its description."""
    from ..job import Job
    from ..layout.axes import Layout
    from .flags import sentences

    return sentences({"job": Job, "layout": Layout}[name])

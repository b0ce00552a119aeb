"""A figure down to the arithmetic, and the ladder of fidelity: the same figure coarse, refined, simulated, measured."""

from ..derivation import Step
from ..ladder import Rung
from ..quantities import show
from .record import Record, head, plain
from .text import Style, block, both, duration, percent, table


def value_text(value: float, unit: str) -> str:
    """A figure in the unit that suits it; bytes in both."""
    if unit == "B":
        return both(value, 4)
    if unit == "s":
        return duration(value, 4)
    return percent(value, 4) if unit == "share" else show(value, unit)


def step_record(step: Step) -> Record:
    """A derivation as nested records."""
    return {
        "name": step.name,
        "formula": step.formula,
        "numbers": step.numbers,
        "value": plain(step.value),
        "unit": step.unit,
        "sentence": step.sentence,
        "steps": [step_record(each) for each in step.steps],
    }


def explain_record(quantity: str, step: Step, rungs: tuple[Rung, ...]) -> Record:
    """The derivation and the ladder."""
    return head("explain") | {
        "quantity": quantity,
        "value": plain(step.value),
        "unit": step.unit,
        "derivation": step_record(step),
        "ladder": plain(rungs),
    }


def explain_lines(quantity: str, step: Step, rungs: tuple[Rung, ...], style: Style) -> list[str]:
    """The value, its derivation line by line, and the rungs side by side with their ratio."""
    said = f"{value_text(step.value, step.unit)}   {step.sentence}"
    lines = [*block(quantity, said.strip(), style), ""]
    for line in step.lines():
        lines += folded("  " + line, style)
    lines += ["", f"  {quantity} = {step.shown()}"]
    return [*lines, "", *ladder_lines(rungs, style)] if rungs else lines


def folded(line: str, style: Style) -> list[str]:
    """A line of a derivation: its sentence gets a line of its own where both do not fit; no number is cut."""
    if len(line) <= style.width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    formula, _, sentence = line.partition("  # ")
    lines = _broken(formula, indent, style.width)
    return [*lines, *_broken(f"{indent}# {sentence}", f"{indent}# ", style.width, (" ",))] if sentence else lines


def _broken(text: str, indent: str, width: int, marks: tuple[str, ...] = (" = ", " + ", " ")) -> list[str]:
    """Broken at the last of the first mark that fits: at ` = `, then at ` + ` and blanks."""
    lines = []
    room = max(width, len(indent) + 30)
    while len(text) > room:
        cut = next((at for mark in marks if (at := text.rfind(mark, len(indent) + 8, room)) > 0), -1)
        if cut < 0:
            break
        lines.append(text[:cut])
        text = indent + text[cut + 1 :]
    return [*lines, text]


def ladder_lines(rungs: tuple[Rung, ...], style: Style) -> list[str]:
    """The rungs, each as a ratio to the refined one."""
    base = next((rung.value for rung in rungs if rung.name == "refined"), None)
    rows = []
    for rung in rungs:
        ratio = f"x {rung.value / base:.2f}" if rung.value is not None and base else ""
        rows.append((rung.name, "-" if rung.value is None else value_text(rung.value, rung.unit), ratio, rung.note))
    return [
        *block("LADDER", "the same figure, coarser and finer", style),
        *table(("", "", "", ""), rows, style, "lrrl", 4)[1:],
    ]

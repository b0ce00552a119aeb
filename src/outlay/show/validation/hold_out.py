"""A hold-out of the constants that rest on published steps: as lines, as tables of a page, and as a record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...validate.hold_out import Constant, Figures, Group, HoldOut
from ...validate.refit import NO_ROW
from ..record import Record, head, plain
from ..text import Style, block, counted, table, wrapped

NONE, RESTS_ON_NONE = "-", "*"
HOW = (
    "Siblings are runs of one model and one layout: layers, hidden size, experts, tp, pp, vpp, cp, ep and etp. They "
    "are in one third, whatever their batch, sequence, precision, recompute, schedule or table; the hash of the "
    "configuration picks it. Each constant that rests on published steps is fitted again on those of them that its "
    "source names, one value for all tables, and stays as it is where they leave it loose by more than 30 %. Figures "
    "are the mean error and the bias, in percent. A gap is how much more, in points, steps are off that the fit has "
    "not seen: the same steps in the first table, other steps in the second, where the tables have a gap too. "
    f"{RESTS_ON_NONE}: no constant rests on these steps."
)
PAGE = Style(width=120)


@dataclass(frozen=True)
class Sheet:
    """A table, its first columns at the left."""

    heads: tuple[str, ...]
    left: str  # an l for each column at the left
    rows: tuple[tuple[str, ...], ...]


def hold_out_record(found: HoldOut) -> Record:
    """The whole hold-out; each group with its gap."""
    made: Record = head("hold_out") | plain(found)
    for group, of in zip(made["groups"], found.groups, strict=True):
        group["gap"] = of.gap
    return made


def hold_out_lines(found: HoldOut, style: Style) -> list[str]:
    """The gaps of the tiers, then the tables."""
    lines = [*block("HELD OUT", _answer(found), style), "", *wrapped(HOW, style, 2, 2)]
    for sheet in _sheets(found):
        lines += ["", *table(sheet.heads, sheet.rows, style, sheet.left)]
    return [*lines, *(["", *(line for each in _left(found) for line in wrapped(each, style))])]


def hold_out_page(found: HoldOut) -> list[str]:
    """The same as text and tables of a page."""
    lines = ["## Held out", "", *wrapped(_answer(found), PAGE, 0, 0), "", *wrapped(HOW, PAGE, 0, 0), ""]
    for sheet in _sheets(found):
        rule = ("---" if at < len(sheet.left) else "---:" for at in range(len(sheet.heads)))
        lines += [_row(sheet.heads), _row(rule), *map(_row, sheet.rows), ""]
    return [*lines, *(line for each in _left(found) for line in wrapped(f"- {each}", PAGE, 0, 2)), ""]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _answer(found: HoldOut) -> str:
    rows, first = sum(found.thirds), found.thirds[0]
    text = f"{rows:,} scored steps of {found.configurations:,} configurations. "
    text += "Mean error in percent under the tables, under fits that saw a step, and under the fit that did not: "
    errors = (
        f"{group.name} {', '.join(f'{100 * of.mean:.1f}' for of in (group.tables, group.seen, group.unseen))}"
        for group in found.groups if not group.source
    )  # fmt: skip
    return f"{text}{'; '.join(errors)}. The first third holds {first / rows:.0%} of the steps."


def _sheets(found: HoldOut) -> Iterable[Sheet]:
    turned = ("each third held out in turn", "rows", "tables", "fits that saw it", "fit that did not", "gap")
    yield Sheet(turned, "l", tuple(map(_turned, found.groups)))
    split = ("the first third held out", "fitted on", "tables", "refitted", "held out", "tables", "refitted", "gap")
    yield Sheet(split, "l", tuple(map(_split, found.groups)))
    rows = tuple(_constant(each) for each in found.constants if any(value is not None for value in each.values))
    yield Sheet(("constant", "of", "tables", "without 1st third", "without 2nd", "without 3rd"), "ll", rows)


def _left(found: HoldOut) -> Iterable[str]:
    """What no fit moves: the constants that steps leave loose, and those that steps cannot give."""
    loose = [f"{each.name} of {each.of}" for each in found.constants if set(each.held) - {NO_ROW, ""} == set(each.held)]
    if loose:
        yield f"Left loose by all steps, and so as they are: {', '.join(loose)}."
    absent = sum(all(why == NO_ROW for why in each.held) for each in found.constants)
    if absent:
        yield f"{counted(absent, 'more constant')}: none of their published steps is in these files."
    for each in found.left:
        names = each["of"]
        of = ", ".join(names) if isinstance(names, Sequence) else names
        yield f"Not fitted again, {each['name']} of {of}: {each['why']}."


def _turned(group: Group) -> tuple[str, ...]:
    figures = map(_figures, (group.tables, group.seen, group.unseen))
    return (_name(group), f"{group.tables.rows:,}", *figures, _gap(group.gap))


def _split(group: Group) -> tuple[str, ...]:
    fitted, held = group.fitted, group.held
    gap = _gap(held.mean - fitted.mean) if fitted and held else NONE
    return (_name(group), *_side(fitted, group.tables_fitted), *_side(held, group.tables_held), gap)


def _side(fit: Figures | None, tables: Figures | None) -> tuple[str, str, str]:
    return f"{fit.rows:,}" if fit else "0", _figures(tables), _figures(fit)


def _name(group: Group) -> str:
    return f"{group.name} {RESTS_ON_NONE}" if group.source and not group.rested else group.name


def _constant(each: Constant) -> tuple[str, ...]:
    sides = zip(each.values, each.loose, each.held, strict=True)
    return (each.name, each.of, f"{each.shipped:.4g}", *(_value(*side) for side in sides))


def _value(value: float | None, loose: float, held: str) -> str:
    """A value and its standard error; why there is none."""
    if value is None:
        return "no row" if held == NO_ROW else "loose"
    return f"{value:.3g} ({100 * loose:.0f} %)"


def _gap(value: float) -> str:
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def _figures(of: Figures | None) -> str:
    return f"{100 * of.mean:.1f} {100 * of.bias:+.1f}" if of else NONE

"""A fit of one's own constants: what it says, as lines, as a record, and as the file of its profile."""

from ..engines.profile_file import profile_text
from ..validate.fit import Errors, Fit, Fitted
from .record import Record, head, plain
from .text import Style, block, table, wrapped


def fit_record(fit: Fit) -> Record:
    """The whole fit, with the text of its file."""
    found: Record = plain(fit)
    return head("fit") | found | {"toml": fit_text(fit)}


def fit_text(fit: Fit) -> str:
    """The profile as a TOML file; its head says how good it is."""
    return profile_text(fit.profile, _plain(fit))


def fit_lines(fit: Fit, style: Style, path: str) -> list[str]:
    """What was fitted, what was not and why, how far off rows are, and where the profile is."""
    lines = block("FIT", _answer(fit), style)
    rows = [(each.name, f"{each.before:.4g}", f"{each.value:.4g}", _loose(each), each.table) for each in fit.fitted]
    lines += ["", *table(("constant", "before", "now", "give or take", "of the"), rows, style, "l   l")]
    lines += ["", *(line for each in fit.said for line in wrapped(each, style, 2, 4))] if fit.said else []
    errors = [(words, *_numbers(each)) for words, each in _sides(fit)]
    lines += ["", *table(("step time", "rows", "mean", "median", "worst", "bias"), errors, style, "l")]
    more = f"outlay count MODEL --on ... --profile {path}   |   outlay validate FILE.csv --profile {path}"
    return [*lines, "", *block("PROFILE", f"{path} is written", style), *block("MORE", more, style)]


def _answer(fit: Fit) -> str:
    count, profile = fit.inside.rows, fit.profile
    text = f"{len(fit.fitted)} constants of {profile.accelerator} and {profile.engine} on {count} rows"
    text = f"{text}: mean error {_share(fit.before.mean)} before on all rows, {_share(fit.inside.mean)} now"
    if fit.held_out:
        text += f", {_share(fit.held_out.mean)} on {fit.held_out.rows} rows held out"
    return f"STOPPED: {text}; the best so far" if fit.stopped else text


def _sides(fit: Fit) -> list[tuple[str, Errors]]:
    found = [("before, all rows", fit.before), ("fitted rows", fit.inside)]
    found += [("the same, each left out", fit.left_out)] if fit.left_out else []
    return found + ([("rows held out", fit.held_out)] if fit.held_out else [])


def _plain(fit: Fit) -> tuple[str, ...]:
    """The same in remarks of a file."""
    errors = (
        f"{words}: {each.rows} rows, mean error {_share(each.mean)}, worst {_signed(each.worst)}, "
        f"bias {_signed(each.bias)}"
        for words, each in _sides(fit)
    )
    loose = (f"{each.name} is fixed to {_loose(each)}" for each in fit.fitted)
    stopped = ("The fit was stopped: this is its best so far.",) if fit.stopped else ()
    return "", *stopped, *errors, *loose, *fit.said


def _numbers(of: Errors) -> tuple[str, ...]:
    return f"{of.rows:,}", _share(of.mean), _share(of.median), _signed(of.worst), _signed(of.bias)


def _loose(each: Fitted) -> str:
    return f"{100 * each.loose:.0f} %" + (", tied" if each.tied else "")


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} %"

"""A user's texts as the values of fields: from flags, from a TOML table, from `tp=8,pp=4`. All faults are kept."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import isfinite
from typing import Any, Literal, get_args, get_origin

from ..errors import Fault, InputError, nearest, quoted
from ..ranges import Written, hints_of, limits_of, out_of_range, parts_of
from .flags import field_names

LONGEST = 40  # characters of a number: beyond any that means something
COUNTS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
BYTES = {
    "": 1.0,
    "B": 1.0,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KIB": 2.0**10,
    "MIB": 2.0**20,
    "GIB": 2.0**30,
    "TIB": 2.0**40,
}
LONGEST_SECONDS = 365 * 86_400  # a year: no pass of a training run takes so long
SECONDS = {"": 1.0, "S": 1.0, "MS": 1e-3, "US": 1e-6}
PERCENT = {"": 1.0, "%": 0.01}
SUFFIXES = {"token": COUNTS, "B": BYTES, "share": PERCENT, "": {"": 1.0}}  # by unit
PLAIN = Written("1")  # of a field that does not say how it is written
NUMBER = re.compile(r"([+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%]*)", re.ASCII)
CODES = {"Layout": "LAY000", "Job": "JOB000"}
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass
class Faults:
    """All that is wrong with a question, gathered before any of it is said."""

    found: list[Fault] = field(default_factory=list)

    def add(self, *faults: Fault) -> None:
        """Keep some faults; one that is already there is not kept twice."""
        self.found += [fault for fault in faults if fault not in self.found]

    def attempt(self, call: Any, *inputs: Any, **named: Any) -> Any:
        """The result of a call, or None where it found faults."""
        try:
            return call(*inputs, **named)
        except InputError as error:
            self.add(*error.faults)
            return None

    def stop(self) -> None:
        """Raise what was found, if anything."""
        if self.found:
            raise InputError(*self.found)


def number(text: str, suffixes: Mapping[str, float] | None = None) -> float | None:
    """A number in a text, with a suffix of its kind; None where there is none. Whole numbers stay exact."""
    match = NUMBER.fullmatch(text.strip())
    if match is None or len(text) > LONGEST:
        return None
    digits, suffix = match[1].replace(",", ""), match[2].upper()
    known = suffixes or {"": 1.0}
    if suffix not in known:
        return None
    if re.fullmatch(r"[+-]?\d+", digits) and not suffix:
        return int(digits)
    value = float(digits) * known[suffix]
    return int(value) if isfinite(value) and value == int(value) and abs(value) < 2**53 else value


def seconds(text: str, flag: str, faults: Faults) -> float | None:
    """A duration such as 10ms, 1.5s or 0.03 (seconds); above 0 and at most a year."""
    value = number(text, SECONDS)
    if value is not None and 0 < value <= LONGEST_SECONDS:
        return float(value)
    rule = f"a number above 0 with s, ms or us; at most a year, {LONGEST_SECONDS:,} s"
    faults.add(Fault("UNI002", f"{flag} is not a duration", rule, quoted(text), f"{flag} 10ms"))
    return None


def count(text: str, flag: str, faults: Faults, most: int = 10_000_000) -> int | None:
    """A whole number from 1 on."""
    value = number(text)
    if isinstance(value, int) and 1 <= value <= most:
        return value
    faults.add(
        Fault("UNI003", f"{flag} is not a count", f"a whole number from 1 to {most:,}", quoted(text), f"{flag} 8")
    )
    return None


def chosen(text: str, known: tuple[str, ...], code: str, done: str) -> tuple[str, ...]:
    """The kinds that --only names, in their own order. Raises InputError for one that is not `done`: compared, say."""
    asked = [word.strip() for word in text.split(",")]
    if wrong := [word for word in asked if word not in known]:
        close = nearest(wrong[0], known) or [known[0]]
        what, rule = f"nothing called {quoted(wrong[0])} is {done}", f"--only names some of {', '.join(known)}"
        raise InputError(Fault(code, what, rule, quoted(text), f"--only {close[0]}"))
    return tuple(kind for kind in known if kind in asked)


def read_fields(cls: type, given: Mapping[str, Any], origin: str, faults: Faults) -> dict[str, Any]:
    """The values of a record's fields. `origin` is the file and table they are from, or empty for flags."""
    kinds = {one.name: hints_of(cls)[one.name] for one in fields(cls)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in kinds:
            meant = next((one for one in kinds if f"--{name}" in field_names(one)), "")
            fault = unknown_key(name, [*kinds], origin)
            faults.add(replace(fault, fix=f"did you mean {meant}?") if meant else fault)
            continue
        converted, rule = _converted(kinds[name], value)
        if rule:
            rule = only_drawn(value) or rule if name == "schedule" else rule
            fix = f"{_shown(name, origin)} {_example(kinds[name], value)}"
            faults.add(
                Fault(CODES[cls.__name__], f"{_shown(name, origin)} cannot be used", rule, _got(value, origin), fix)
            )
        else:
            small = parts_of(kinds[name])[0] is float and abs(converted) <= 1e300
            values[name] = float(converted) if small else converted
    for fault in out_of_range(cls(**values), CODES[cls.__name__]):
        name = fault.what.split()[0]
        what = fault.what.replace(name, _shown(name, origin), 1)
        faults.add(
            replace(
                fault,
                what=what,
                got=_got(given[name], origin),
                fix=f"{_shown(name, origin)} {fault.fix.replace(' or more', '   (or more)')}",
            )
        )
    return values


def only_drawn(value: object) -> str:
    """The rule that a schedule breaks which has an order and no bill; an empty text for any other word."""
    from ..schedule.laws import SCHEDULES
    from ..schedule.orders import names

    if value not in names() or value in SCHEDULES:
        return ""
    return (
        f"no engine here runs {value}, so no bill counts it; `outlay draw` and `outlay bubble --simulate` run its order"
    )


def unknown_key(name: object, known: Iterable[str], origin: str) -> Fault:
    """A name that means nothing where it stands, with the one that was probably meant."""
    known = list(known)
    close = nearest(str(name), known)
    rule = f"known here: {', '.join(known)}"
    fix = f"did you mean {' or '.join(close)}?" if close else "remove it"
    return Fault("CFG003", f"nothing is called {quoted(name)}", rule, origin or quoted(name), fix)


def _shown(name: str, origin: str) -> str:
    return name if origin else field_names(name)[0]


def _got(value: object, origin: str) -> str:
    return f"{quoted(value)}   ({origin})" if origin else quoted(value)


def _example(hint: Any, value: object) -> str:
    kind, about = parts_of(hint)
    if get_origin(kind) is Literal:
        return next(iter(nearest(value, map(str, get_args(kind)))), str(get_args(kind)[0]))
    return "true" if kind is bool else _written(about).example


def _written(about: Iterable[Any]) -> Written:
    return next((each for each in about if isinstance(each, Written)), PLAIN)


def _converted(hint: Any, value: Any) -> tuple[Any, str]:
    """The value as a field of this type holds it, and an empty text; or the rule that it breaks."""
    kind, about = parts_of(hint)
    if kind is bool:
        return _switch(value)
    if get_origin(kind) is Literal:
        return _choice(get_args(kind), value)
    record: Any = next((each for each in get_args(kind) if is_dataclass(each)), None)
    if record:
        from .company import READERS

        return READERS[record](value)
    if kind == tuple[str, ...]:
        return _words(value)
    if get_origin(kind) is tuple:
        return _numbers(kind, _written(about), value)
    return _number(kind, SUFFIXES[_written(about).unit], value)


def _switch(value: Any) -> tuple[Any, str]:
    found = value if isinstance(value, bool) else BOOLEANS.get(str(value).strip().lower())
    return found, "" if found is not None else "true or false"


def _choice(choices: tuple[Any, ...], value: Any) -> tuple[Any, str]:
    text = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value).strip()
    return text, "" if text in choices else f"one of {', '.join(choices)}"


def _words(value: Any) -> tuple[Any, str]:
    given = value if isinstance(value, list | tuple) else re.split(r"[,\s]+", str(value).strip())
    return tuple(map(str, given)), "" if all(given) else "words with a comma between them"


def _number(kind: Any, suffixes: Mapping[str, float], value: Any) -> tuple[Any, str]:
    if isinstance(value, int | float):
        return value, "a number, not true or false" if isinstance(value, bool) else ""
    read = number(value, suffixes) if isinstance(value, str) else None
    words = f", with {', '.join(filter(None, suffixes))} if you like" if len(suffixes) > 1 else ""
    return read, "" if read is not None else f"a {'whole ' if kind is int else ''}number{words}"


def _numbers(kind: Any, written: Written, value: Any) -> tuple[Any, str]:
    least, most = limits_of(kind)
    parts = value if isinstance(value, list | tuple) else re.split(r"[,:\s]+", str(value).strip())
    found = tuple(part if isinstance(part, int) else number(part) if isinstance(part, str) else None for part in parts)
    good = all(isinstance(part, int) and not isinstance(part, bool) and least <= part <= most for part in found)
    rule = f"whole numbers from {least:,.0f} to {most:,.0f}, {written.means}: {written.example}"
    return found, "" if good and found else rule


def assignments(text: str, faults: Faults) -> dict[str, str]:
    """`tp=8,pp=4 mbs=2` or `--tp 8 --pp 4` as names of fields and texts; flags' short names are known too."""
    from ..job import Job
    from ..layout.axes import Layout

    names = {flag[2:]: f.name for cls in (Job, Layout) for f in fields(cls) for flag in field_names(f.name)}
    names |= {f.name: f.name for cls in (Job, Layout) for f in fields(cls)} | {"engine": "engine", "on": "on"}
    plain = re.sub(r"--no-([\w-]+)", r"--\1=false", text.strip())
    plain = re.sub(r"--([\w-]+)[ =]+(?!--)", r"\1=", plain)
    found = {}
    for part in re.split(r"[,;\s]+(?=[A-Za-z][\w-]*\s*=)", plain):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            rule = "a layout is written as tp=8,pp=4, or is a bill printed with --json"
            faults.add(Fault("CFG006", f"{quoted(part)} is not a layout", rule, quoted(text), '"tp=8,pp=4"'))
        elif name not in names:
            faults.add(unknown_key(name, sorted(names), f"in {quoted(text)}"))
        else:
            found[names[name]] = value
    return found

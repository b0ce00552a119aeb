"""What narrows a search: lists, ranges and switches as values of fields. All faults are kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from ..bill import MOST_CHUNKS
from ..errors import Fault, quoted
from ..layout.axes import Layout
from ..layout.complete import flag
from ..model.modules import MODULES
from ..model.policies import POLICIES
from ..search.narrow import NAMES, Span
from ..search.space import DEGREES, Space
from .flags import hints
from .values import BOOLEANS, PERCENT, Faults, number, only_drawn

COUNTS = ("tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch", "loss_chunks")
SWITCHES = ("sp", "hybrid", "overlap_tp", "overlap_ep", "overlap_dp")
WORDS = ("cp_kind", "moe_dispatch", "graphs", "schedule", "recompute")
SHARES = ("offload_optimizer", "offload_parameters", "offload_activations")
MOST, MOST_VALUES, MOST_STAGE = 10_000_000, 64, 3
SHORT = {"mbs": "micro_batch", "offload": "offload_optimizer"}
Narrowed = dict[str, tuple[Any, ...]]


def read_narrowing(texts: Mapping[str, Any], table: Mapping[str, Any], faults: Faults) -> Narrowed:
    """The values that flags and the [layout] table of a file keep, ranges still unresolved; flags override the file."""
    given = {name: value for name, value in table.items() if name not in texts}
    for name in given:
        if name not in NAMES:
            rule = f"a search goes through {', '.join(NAMES)}"
            fix = "leave it out, or count one layout with it"
            faults.add(Fault("PLN001", f"{quoted(name)} is not searched", rule, quoted(given[name]), fix))
    given |= {name: value for name, value in texts.items() if name in NAMES}
    found = {name: _values(name, _text(value), faults) for name, value in given.items() if name in NAMES}
    _contradictions(found, texts, faults)
    if texts.get("no_offload"):
        found |= dict.fromkeys(SHARES, (0.0,))
    if texts.get("no_recompute"):
        found["recompute"] = ("none",)
    return {name: values for name, values in found.items() if values}


def read_why(text: str | None, faults: Faults) -> dict[str, Any]:
    """The values that are asked about: `tp=4,pp=8`, a value of each field."""
    found: dict[str, Any] = {}
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if text is not None and not parts:
        faults.add(Fault("PLN009", "--why asks about nothing", "fields and values", quoted(text), "--why tp=4,pp=8"))
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        name = SHORT.get(key.lower().replace("-", "_"), key.lower().replace("-", "_"))
        if not equals or name not in NAMES or name in found:
            rule = f"values of fields of a search, each once: {', '.join(NAMES)}"
            faults.add(Fault("PLN009", f"--why cannot ask about {quoted(part)}", rule, quoted(text), "--why tp=4,pp=8"))
            continue
        found[name], rule = READERS[name](value)
        if found[name] is None:
            fix = f"--why {key}={example(name).split(',')[0]}"
            rule = rule.replace("some of ", "one of ")
            faults.add(Fault("PLN009", f"--why cannot ask about {quoted(part)}", rule, quoted(text), fix))
    return found


def _text(value: Any) -> str:
    """Flags are texts already; a file may hold a list, a number or a switch."""
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _contradictions(found: Narrowed, texts: Mapping[str, Any], faults: Faults) -> None:
    """Two flags of which one takes away all that the other keeps."""
    pairs = (*(("no_offload", name, 0.0) for name in SHARES), ("no_recompute", "recompute", "none"))
    for switch, name, only in pairs:
        others = [value for value in found.get(name, ()) if value != only]
        if texts.get(switch) and others:
            got = f"{flag(switch)} and {flag(name)} {','.join(map(_shown, found[name]))}"
            rule = f"{flag(switch)} keeps {flag(name)} {_shown(only)} alone"
            faults.add(Fault("PLN005", "two flags contradict each other", rule, got, f"leave {flag(switch)} out"))


def _shown(value: Any) -> str:
    if isinstance(value, Span):
        return f"{value.low}..{value.high}"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _values(name: str, text: str, faults: Faults) -> tuple[Any, ...]:
    """The values of one field, each once, in order."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        fix = f"{flag(name)} {example(name)}"
        faults.add(Fault("PLN002", f"{flag(name)} has no value", "a list of values, or a range", quoted(text), fix))
        return ()
    if len(parts) > MOST_VALUES:
        rule = f"a list has {MOST_VALUES} values or less; a range 1..64 keeps the declared ones inside"
        fix = f"{flag(name)} {example(name)}"
        faults.add(Fault("PLN003", f"{flag(name)} has too many values", rule, f"{len(parts):,} values", fix))
        return ()
    read = [_span(name, part, text, faults) if ".." in part else _value(name, part, text, faults) for part in parts]
    return tuple(dict.fromkeys(value for value in read if value is not None))


def _value(name: str, part: str, text: str, faults: Faults) -> Any:
    """One value, or None and a fault for one that no list could hold."""
    found, rule = READERS[name](part)
    if found is None:
        fix = f"{flag(name)} {example(name)}"
        faults.add(Fault("PLN003", f"{flag(name)} cannot be {quoted(part)}", rule, quoted(text), fix))
    return found


def _span(name: str, part: str, text: str, faults: Faults) -> Span | None:
    """A range such as 1..16; an open end takes all there is."""
    least = 0 if name == "zero" else 1
    low, high = (piece.strip() for piece in part.split("..", 1))
    ends = [number(low) if low else least, number(high) if high else MOST]
    if name not in (*COUNTS, "zero") or not all(isinstance(end, int) and least <= end <= MOST for end in ends):
        rule = f"a range a..b is of whole numbers from {least} on, and of {', '.join(map(flag, (*COUNTS, 'zero')))}"
        fix = f"{flag(name)} {example(name)}"
        faults.add(Fault("PLN003", f"{flag(name)} cannot be {quoted(part)}", rule, quoted(text), fix))
        return None
    first, last = int(ends[0] or 0), int(ends[1] or 0)
    if first > last:
        fix = f"{flag(name)} {last}..{first}"
        faults.add(Fault("PLN004", f"the range of {flag(name)} goes down", "a..b, a at most b", quoted(part), fix))
        return None
    return Span(first, last)


def _count(part: str) -> tuple[int | None, str]:
    value = number(part)
    return (value if isinstance(value, int) and 1 <= value <= MOST else None), f"whole numbers from 1 to {MOST:,}"


def _chunks(part: str) -> tuple[int | None, str]:
    value = number(part)
    known = value if isinstance(value, int) and 1 <= value <= MOST_CHUNKS else None
    return known, f"whole numbers from 1 to {MOST_CHUNKS:,}"


def _stage(part: str) -> tuple[int | None, str]:
    value = number(part)
    return (value if isinstance(value, int) and 0 <= value <= MOST_STAGE else None), "ZeRO stages: 0, 1, 2, 3"


def _share(part: str) -> tuple[float | None, str]:
    value = number(part, PERCENT)
    return (float(value) if value is not None and 0 <= value <= 1 else None), "shares from 0 to 1: 0, 0.5, 50%"


def _switch(part: str) -> tuple[bool | None, str]:
    return BOOLEANS.get(part.lower()), "true or false"


def _word(choices: Sequence[str]) -> Callable[[str], tuple[str | None, str]]:
    def read(part: str) -> tuple[str | None, str]:
        if part.lower() in choices:
            return part.lower(), ""
        return None, only_drawn(part.lower()) or f"some of {', '.join(choices)}"

    return read


READERS: Mapping[str, Callable[[str], tuple[Any, str]]] = {
    **dict.fromkeys(COUNTS, _count),
    **dict.fromkeys(("pp", "vpp"), _chunks),
    **dict.fromkeys(SWITCHES, _switch),
    **{name: _word(get_args(hints(Layout)[name])) for name in WORDS},
    "recompute_modules": _word((*MODULES, *POLICIES)),
    "zero": _stage,
    **dict.fromkeys(SHARES, _share),
}


def example(name: str) -> str:
    """Values that can be pasted."""
    if name in WORDS:
        return ",".join(get_args(hints(Layout)[name])[:2])
    lists = {"zero": "1,3", "recompute_modules": "core_attn,mlp"} | dict.fromkeys(SHARES, "0,0.5")
    known = lists | dict.fromkeys(SWITCHES, "true")
    return known.get(name, "1,2,4")


def resolved(found: Narrowed, spaces: Sequence[Space], domain: int | None, faults: Faults) -> Narrowed:
    """The same with ranges as the declared values inside them; `domain` is the largest tp where it is bounded."""
    kept: Narrowed = {}
    for name, values in found.items():
        declared = _declared(name, spaces)
        kept[name] = tuple(dict.fromkeys(each for value in values for each in _inside(value, declared)))
        if not kept[name]:
            got, rule = ",".join(map(_shown, values)), f"a range keeps declared values: {', '.join(map(str, declared))}"
            fix = f"{flag(name)} {_near(values[0], declared)}"
            faults.add(Fault("PLN006", f"no declared value of {flag(name)} is in the range", rule, got, fix))
    if domain is not None:
        before = kept.get("tp") or _declared("tp", spaces)
        kept["tp"] = tuple(value for value in before if value <= domain)
        if not kept["tp"] and "tp" in found and before:
            rule = f"--tp-within-node keeps tp up to the scale-up domain, {domain} accelerators"
            got = f"--tp-within-node and --tp {','.join(map(_shown, found['tp']))}"
            faults.add(Fault("PLN005", "two flags contradict each other", rule, got, f"--tp {domain}"))
    return {name: values for name, values in kept.items() if values}


def _declared(name: str, spaces: Iterable[Space]) -> tuple[Any, ...]:
    """The values of a field that may be given as a range."""
    each = [space.degrees[name] if name in DEGREES else [stage for stage, _ in space.zero] for space in spaces]
    return tuple(sorted({value for values in each for value in values})) if name in (*COUNTS, "zero") else ()


def _inside(value: Any, declared: tuple[Any, ...]) -> tuple[Any, ...]:
    return value.inside(declared) if isinstance(value, Span) else (value,)


def _near(span: Span, declared: tuple[Any, ...]) -> str:
    """The declared values on both sides of a range that holds none."""
    below, above = [each for each in declared if each < span.low], [each for each in declared if each > span.high]
    return ",".join(map(str, [*below[-1:], *above[:1]])) or "1"

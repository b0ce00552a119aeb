"""The fields of one config, read one by one: each value is checked, each default said, every fault kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Fault, InputError
from .families import COMMON, FAMILIES, FIELDS, Facts, Family

LARGEST = 10**9  # of any one width or count: far above any model, low enough that sums stay exact
MOST_LAYERS = 100_000

SPANS = ("full_attention", "sliding_attention")

_MISSING = object()


def shown(value: object) -> str:
    """A value of a config, safe to print: JSON without control characters, objects and lists by their length."""
    if isinstance(value, Mapping):
        return f"{{{len(value)} keys}}"
    if isinstance(value, list | tuple):
        return f"[{len(value)} items]"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def whole(value: object, least: int, most: int) -> int | None:
    """A whole number inside its range, or nothing: true is not a number, and 4096.0 is 4096."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= most else None


def _size(value: object, most: int) -> int | None:
    return whole(value, 1, most)


def _count(value: object, most: int) -> int | None:
    return whole(value, 0, most)


def _switch(value: object, most: int) -> bool | None:
    return value if isinstance(value, bool) else None


def _share(value: object, most: int) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and 0 <= value <= 1 else None  # type: ignore[operator,return-value]


def _kinds(value: object, most: int) -> tuple[str, ...] | None:
    right = isinstance(value, list | tuple) and all(isinstance(kind, str) and kind in SPANS for kind in value)
    return tuple(value) if right else None  # type: ignore[arg-type]


def _numbers(value: object, most: int) -> frozenset[int] | None:
    numbers = [whole(number, 0, most) for number in value] if isinstance(value, list | tuple) else [None]
    return None if None in numbers else frozenset(number for number in numbers if number is not None)


CHECKS = {"size": _size, "count": _count, "switch": _switch, "share": _share, "kinds": _kinds, "numbers": _numbers}

RULES = {
    "size": "a whole number from 1 to {most:,}",
    "count": "a whole number from 0 to {most:,}",
    "switch": "true or false",
    "share": "a number from 0 to 1",
    "kinds": 'a list of "full_attention" and "sliding_attention", one a layer',
    "numbers": "a list of layer numbers, the first layer is 0",
}

FIXES = {"size": "4096", "count": "1", "switch": "false", "share": "0.0", "kinds": "null", "numbers": "[]"}


@dataclass
class Reading:
    """One config on its way to Facts."""

    kind: str
    part: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def family(self) -> Family:
        """The family that the config is read as."""
        return FAMILIES[self.kind]

    def facts(self, hint: str = "") -> Facts:
        """Every field settled; raises all faults at once. `hint` is where the language model may be instead."""
        values = {name: value for name in self.wanted() if (value := self.value(name)) is not _MISSING}
        values = {**self.family.fixed, **values}
        if self.missing:
            self.faults.insert(0, self._missing_fields(hint))
        self._settle(values)
        if self.faults:
            raise InputError(*dict.fromkeys(self.faults))
        return Facts(**values)

    def wanted(self) -> tuple[str, ...]:
        """The fields to read; a window that is switched off is not looked at."""
        reads = self.family.reads()
        off = "window_switch" in reads and self.part.get("use_sliding_window") is not True
        return tuple(name for name in reads if not (off and name in ("window", "first_sliding")))

    def value(self, name: str) -> Any:
        """What the file says of a field, else what the class takes."""
        keys = self.family.keys_of(name)
        null = self.family.may_be_null(name)
        given = [key for key in keys if key in self.part and (null or self.part[key] is not None)]
        if not given:
            return self._default(name, keys[0])
        for other in given[1:]:
            if shown(self.part[other]) != shown(self.part[given[0]]):
                self._disagree(given[0], other)
        return self._checked(name, given[0])

    def _checked(self, name: str, key: str) -> Any:
        got = self.part[key]
        if got is None:
            return None
        kind = FIELDS[name].kind
        most = MOST_LAYERS if name == "layers" else LARGEST
        value = CHECKS[kind](got, most)
        if value is not None:
            return value
        rule = f"{key} is {RULES[kind].format(most=most)}"
        fix = f'"{key}": {FIXES[kind] if name != "layers" else "32"}, or what the model has'
        self.faults.append(Fault("MOD005", f"{key} cannot be used", rule, f'"{key}": {shown(got)}', fix))
        return _MISSING

    def _default(self, name: str, key: str) -> Any:
        if name in self.family.defaults:
            value = self.family.defaults[name]
            if value is not None:
                self.notes.append(f"{key} {shown(value)}: default of {self.kind}, not in the file")
            return value
        if name not in COMMON:
            self.missing.append(key)
        return _MISSING

    def _missing_fields(self, hint: str) -> Fault:
        count = len(self.missing)
        names = " and ".join(self.missing) if count < 3 else f"{', '.join(self.missing[:-1])} and {self.missing[-1]}"
        known = {key for name in self.family.reads() for key in self.family.keys_of(name)}
        keys = [str(key) for key in self.part if key in known]
        objects = [f"{shown(key)[1:-1]} {shown(value)}" for key, value in self.part.items() if _is_object(key, value)]
        fix = f"the language model seems to be under {hint}: --part {hint}" if hint else f"add {names} to the file"
        return Fault(
            "MOD004", f"{count} field{'s are' if count > 1 else ' is'} missing from config.json",
            f"a {self.kind}-type model needs {names}",
            f"keys: {', '.join(keys[:8] + objects[:4]) or 'none of those that are read'}", fix,
        )  # fmt: skip

    def _disagree(self, first: str, second: str) -> None:
        self._clash(
            f"{first} and {second} disagree", "two keys for the same field hold the same value",
            f'"{first}": {shown(self.part[first])}, "{second}": {shown(self.part[second])}',
            f"remove the one that is wrong: {first} or {second}",
        )  # fmt: skip

    def _clash(self, what: str, rule: str, got: str, fix: str) -> None:
        self.faults.append(Fault("MOD006", what, rule, got, fix))

    def _settle(self, values: dict[str, Any]) -> None:
        """Fill what follows from other fields, and check what fields say of each other."""
        self._fill_heads(values)
        if values.get("width", 0) is None and "hidden" in values:
            values["width"] = 4 * values["hidden"]
            self._derived("width", values["width"], "4 x hidden size")
        for name in ("query_rank", "shared_experts", "window"):
            values[name] = values.get(name) or 0
        values["trained_length"] = values.get("trained_length") or values.get("positions", 0)
        values["dense_layers"] = values.get("dense_layers") or frozenset()
        self._check_experts(values)
        self._check_layer_types(values)

    def _fill_heads(self, values: dict[str, Any]) -> None:
        heads, hidden = values.get("heads"), values.get("hidden")
        latent = "latent_rank" in self.family.defaults
        if heads and values.get("kv_heads") is None:
            values["kv_heads"] = heads
            self._derived("kv_heads", heads, "as many as attention heads")
        if heads and hidden and values.get("head_dim") is None:
            values["head_dim"] = 0 if latent else hidden // heads
            self._derived("head_dim", hidden // heads, "hidden size / attention heads")
            if hidden % heads and not latent:
                self._clash(
                    f"{heads:,} attention heads do not divide the hidden size",
                    "without head_dim in the file, a head is hidden size / attention heads wide",
                    f"{hidden:,} / {heads:,}", 'add "head_dim", or correct the number of heads',
                )  # fmt: skip
        if heads and heads % values["kv_heads"]:
            origin = "" if self.part.get("num_key_value_heads") is not None else f", the default of {self.kind}"
            self._clash(
                "the key/value heads do not divide the attention heads",
                "each key/value head serves the same number of attention heads",
                f"{heads:,} / {values['kv_heads']:,}{origin}", f'"num_key_value_heads": {heads}, or a divisor of it',
            )  # fmt: skip

    def _derived(self, name: str, value: int, why: str) -> None:
        if name in self.family.defaults:
            self.notes.append(f"{self.family.keys_of(name)[0]} {value}: {why}")

    def _check_experts(self, values: dict[str, Any]) -> None:
        experts, active = values.get("experts"), values.get("active")
        if experts and active and active > experts:
            self._clash(
                "a token is sent to more experts than there are", "experts a token <= experts",
                f"{active:,} of {experts:,}", f'"num_experts_per_tok": {experts} or less',
            )  # fmt: skip

    def _check_layer_types(self, values: dict[str, Any]) -> None:
        types, layers = values.get("layer_types"), values.get("layers")
        if types is not None and layers and len(types) < layers:
            self._clash(
                "layer_types is shorter than the model", "layer_types names every layer; a longer list is cut",
                f"{len(types):,} entries, {layers:,} layers", f'"num_hidden_layers": {len(types)}, or a longer list',
            )  # fmt: skip


def _is_object(key: object, value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(key, str)

"""The fields of one config, read one by one: each value is checked, each default said, every fault kept."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Fault, InputError
from .checks import CHECKS, FIXES, LARGEST, MOST_LAYERS, rule_of, shown
from .families import COMMON, FAMILIES, Facts, Family

_MISSING = object()


def entry_at(part: Mapping[str, Any], key: str) -> Any:
    """What stands under a key, inside an object where the key has a dot; a mark where nothing does."""
    here: Any = part
    for step in key.split("."):
        if not isinstance(here, Mapping) or step not in here:
            return _MISSING
        here = here[step]
    return here


@dataclass
class Reading:
    """One config on its way to Facts."""

    kind: str
    part: Mapping[str, Any]
    notes: dict[str, str] = field(default_factory=dict)  # of a field
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
        return Facts(values)

    def wanted(self) -> tuple[str, ...]:
        """The fields to read; a window that is switched off is not looked at."""
        reads = self.family.reads()
        off = "window_switch" in reads and self.part.get("use_sliding_window") is not True
        return tuple(name for name in reads if not (off and name in ("window", "first_sliding")))

    def value(self, name: str) -> Any:
        """What the file says of a field, else what the class takes."""
        keys = self.family.keys_of(name)
        null = self.family.may_be_null(name)
        held = {key: entry_at(self.part, key) for key in keys}
        given = [key for key, got in held.items() if got is not _MISSING and (null or got is not None)]
        if not given:
            return self._default(name, keys[0])
        for other in given[1:]:
            if shown(held[other]) != shown(held[given[0]]):
                self._disagree(given[0], other)
        return self._checked(name, given[0], held[given[0]])

    def _checked(self, name: str, key: str, got: Any) -> Any:
        field = self.family.field(name)
        if got is None or (field.kind == "size" and got in field.words):
            return None
        most = MOST_LAYERS if name == "layers" else LARGEST
        value = CHECKS[field.kind](got, field, most)
        if value is not None:
            return value
        fix = FIXES.get(field.kind) or json.dumps(field.words[0])
        self.faults.append(Fault(
            "MOD005", f"{key} cannot be used", f"{key} is {rule_of(field, most)}", f'"{key}": {shown(got)}',
            f'"{key}": {fix if name != "layers" else "32"}, or what the model has',
        ))  # fmt: skip
        return _MISSING

    def _default(self, name: str, key: str) -> Any:
        if name in self.family.defaults:
            value = self.family.defaults[name]
            if value is not None:
                self.notes[name] = f"{key} {shown(value)}: default of {self.kind}, not in the file"
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
            f'"{first}": {shown(entry_at(self.part, first))}, "{second}": {shown(entry_at(self.part, second))}',
            f"remove the one that is wrong: {first} or {second}",
        )  # fmt: skip

    def _clash(self, what: str, rule: str, got: str, fix: str) -> None:
        self.faults.append(Fault("MOD006", what, rule, got, fix))

    def _settle(self, values: dict[str, Any]) -> None:
        """Fill what follows from other fields, and check what fields say of each other."""
        self._fill_heads(values)
        for name, rule in ({"width": _usual_width} | dict(self.family.derived)).items():
            if values.get(name, 0) is None and not self.faults:
                values[name] = rule(values)
                self._derived(name, values[name], rule.__doc__ or "")
        for name in ("query_rank", "shared_experts", "window"):
            values[name] = values.get(name) or 0
        values["trained_length"] = values.get("trained_length") or values.get("positions", 0)
        self._check_experts(values)
        self._check_lists(values)

    def _fill_heads(self, values: dict[str, Any]) -> None:
        heads, hidden = values.get("heads"), values.get("hidden")
        reads = self.family.reads()
        if heads and values.get("kv_heads") is None:
            rule: Callable[[Mapping[str, Any]], Any] = self.family.derived.get("kv_heads", _as_heads)
            values["kv_heads"] = rule(values)
            self._derived("kv_heads", values["kv_heads"], rule.__doc__ or "")
        if heads and hidden and values.get("head_dim") is None:
            values["head_dim"] = hidden // heads
            self._derived("head_dim", hidden // heads, "hidden size / attention heads")
            if hidden % heads and "latent_rank" not in reads:
                self._clash(
                    f"{heads:,} attention heads do not divide the hidden size",
                    "without head_dim in the file, a head is hidden size / attention heads wide",
                    f"{hidden:,} / {heads:,}",
                    ('add "head_dim", or ' if "head_dim" in reads else "") + "correct the number of heads",
                )  # fmt: skip
        if heads and heads % values["kv_heads"]:
            key = self.family.keys_of("kv_heads")[0]
            origin = "" if self.part.get(key) is not None else f", the default of {self.kind}"
            self._clash(
                "the key/value heads do not divide the attention heads",
                "each key/value head serves the same number of attention heads",
                f"{heads:,} / {values['kv_heads']:,}{origin}", f'"{key}": {heads}, or a divisor of it',
            )  # fmt: skip

    def _derived(self, name: str, value: object, why: str) -> None:
        if name in self.family.defaults:
            self.notes[name] = f"{self.family.keys_of(name)[0]} {shown(value)}: {why}"

    def _check_experts(self, values: dict[str, Any]) -> None:
        experts, active = values.get("experts"), values.get("active")
        if isinstance(active, tuple):
            active = max(active)
        if experts and active and active > experts:
            self._clash(
                "a token is sent to more experts than there are", "experts a token <= experts",
                f"{active:,} of {experts:,}", f'"num_experts_per_tok": {experts} or less',
            )  # fmt: skip

    def _check_lists(self, values: dict[str, Any]) -> None:
        """A list of what each layer is has an entry for each; a longer one is cut."""
        layers = values.get("layers")
        for name, value in values.items():
            if name not in self.family.reads() or not isinstance(value, tuple) or not layers or len(value) >= layers:
                continue
            kind = self.family.field(name).kind
            if kind == "cycle" or (kind == "flags" and not value):
                continue
            key = self.family.keys_of(name)[0]
            self._clash(
                f"{key} is shorter than the model", f"{key} names every layer; a longer list is cut",
                f"{len(value):,} entries, {layers:,} layers", f'"num_hidden_layers": {len(value)}, or a longer list',
            )  # fmt: skip


def _as_heads(values: Mapping[str, Any]) -> int:
    """as many as attention heads"""
    return int(values["heads"])


def _usual_width(values: Mapping[str, Any]) -> int:
    """4 x hidden size"""
    return int(4 * values["hidden"])


def _is_object(key: object, value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(key, str)

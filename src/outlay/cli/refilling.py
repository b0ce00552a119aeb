"""A job or layout: flags over a file's table over a printed bill, whose own defaults follow what changes."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import Fault, InputError, quoted
from ..job import AUTO, Job
from ..show.restore import Asked
from .flags import Given
from .values import Faults, read_fields

# Filled from other fields when they were not given: a bill that is read back must let go of them when those change.
TYPES = ("master_dtype", "moment_dtype", "gradient_dtype", "reduce_dtype", "gather_dtype")  # of state and wire
FOLLOWS = {
    "tp": ("dp_shard", "sp"),
    "cp": ("dp_shard",),
    "pp": ("dp_shard", "recompute_layers", "split"),
    "dp_replicate": ("dp_shard",),
    "vpp": ("schedule", "recompute_layers"),
    "recompute": ("recompute_modules", "recompute_layers", "recompute_group"),
    "split": ("recompute_layers",),
    "on": ("dp_shard", "precision", "bytes_per_parameter", *TYPES),
    "engine": ("zero", "keep_gathered", "accumulate_whole", "bytes_per_parameter", *TYPES),
    "precision": ("bytes_per_parameter", *TYPES),
    "optimizer": ("bytes_per_parameter",),
    "bytes_per_parameter": TYPES,
    "master_dtype": ("bytes_per_parameter",),
    "moment_dtype": ("bytes_per_parameter",),
    "gradient_dtype": ("bytes_per_parameter", "reduce_dtype"),
}
# Let go of only where the bill holds the default of its time; but always where one of TOLD changes, which says it anew.
OWN = ("precision", "zero", "bytes_per_parameter", *TYPES)
TOLD = {
    "bytes_per_parameter": ("optimizer", "precision", "master_dtype", "moment_dtype", "gradient_dtype"),
    **dict.fromkeys(TYPES, ("bytes_per_parameter",)),
}


def read_record(
    cls: Any, asked: Asked | None, table: Any, texts: Mapping[str, Any], given: Given, faults: Faults
) -> Any:
    """A record of the file's table and the flags over it, over what a bill held."""
    if not isinstance(table, Mapping):
        rule = f"[{cls.__name__.lower()}] is a table of fields"
        faults.add(
            Fault("CFG003", f"{cls.__name__.lower()} is not a table", rule, quoted(table), f"[{cls.__name__.lower()}]")
        )
        table = {}
    names = [field.name for field in fields(cls)]
    origin = f"{quoted(given.text('config'))}, [{cls.__name__.lower()}]"
    flags = {name: texts[name] for name in names if name in texts}
    values = read_fields(cls, {key: value for key, value in table.items() if key not in flags}, origin, faults)
    values |= read_fields(cls, flags, "", faults)
    if asked is None:
        return cls(**values)
    base: Any = asked.job if cls is Job else asked.layout
    changed = {*values, *(name for name in ("on", "engine") if name in texts)}
    free = {name for one in changed for name in FOLLOWS.get(one, ()) if name in names and name not in values}
    own = {name for name in free if name in OWN and not changed.intersection(TOLD.get(name, ()))}
    kept = [name for name in own if getattr(base, name) != _default(name, asked)]
    return replace(base, **values, **dict.fromkeys(free.difference(kept), AUTO))


def _default(name: str, asked: Asked) -> Any:
    """What a bill's own engine and cluster fill a field with."""
    from ..engines.tables import engine
    from ..layout.complete import complete_job

    try:
        driver = engine(asked.engine)
    except InputError:  # it is said where the engine itself is read
        return AUTO
    task = Job(1, 1, precision=AUTO if name == "precision" else asked.job.precision, optimizer=asked.job.optimizer)
    full, _ = complete_job(asked.model, task, asked.cluster, asked.layout, driver)
    return driver.zero if name == "zero" else getattr(full, name)

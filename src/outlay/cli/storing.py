"""What a command line or a file says of the site: the storage of checkpoints, how often cards fail, its overhead."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..cluster.accelerator import Cluster
from ..errors import Fault, quoted
from ..step.goodput import FAILING, FAILURES, OBSERVED, observed_mtbf
from .values import Faults, number

BANDWIDTHS = {"GB/s": 1e9, "TB/s": 1e12, "Gb/s": 1e9 / 8, "MB/s": 1e6}  # a byte and a bit differ by their letter
LARGEST = 1e18  # B/s
SPANS = {"S": 1.0, "MIN": 60.0, "H": 3600.0, "D": 86_400.0}
LONGEST = 1e12  # seconds
MOST_PUE = 10
PUBLISHED = "published"  # a word for the time between failures that one large run saw
OBSERVATION = (
    f"time between failures of one accelerator: {FAILURES} unexpected interruptions in 54 days on {FAILING:,} H100"
    " (Llama Team 2024, table 5)"
)


def with_site(clusters: tuple[Cluster, ...], said: Mapping[str, Any], faults: Faults) -> tuple[Cluster, ...]:
    """The clusters with what --storage, --mtbf, --restart and --pue say; as they are where nothing is given."""
    found: dict[str, Any] = {
        field: READERS[name](said[name], f"--{name}", faults)
        for name, field in FIELDS.items()
        if said.get(name) is not None
    }
    named = str(said.get("mtbf")).strip().lower() == PUBLISHED
    made = []
    for cluster in clusters:
        notes = [note for note in cluster.notes if note != OBSERVATION or "mtbf_seconds" not in found]
        made.append(replace(cluster, **found, notes=(*notes, *((OBSERVATION,) if named else ()))))
    return tuple(made) if found else clusters


def _bandwidth(said: Any, flag: str, faults: Faults) -> float | None:
    text = str(said).strip()
    unit = next((name for name in BANDWIDTHS if text.endswith(name)), "")
    value = number(text[: len(text) - len(unit)]) if unit else None
    if value is not None and 1 <= value * BANDWIDTHS[unit] <= LARGEST:
        return float(value * BANDWIDTHS[unit])
    rule = f"a bandwidth above 0 with its unit, {', '.join(BANDWIDTHS)}: of all accelerators together"
    faults.add(Fault("UNI005", f"{flag} is not a bandwidth", rule, quoted(said), "--storage 200GB/s"))
    return None


def _between(said: Any, flag: str, faults: Faults) -> float | None:
    if str(said).strip().lower() == PUBLISHED:
        return float(observed_mtbf(OBSERVED, FAILING, FAILURES))
    return _span(said, flag, faults, f", of ONE accelerator; or {PUBLISHED}, what one large run saw", "50000h")


def _restart(said: Any, flag: str, faults: Faults) -> float | None:
    return _span(said, flag, faults, "", "10min")


def _span(said: Any, flag: str, faults: Faults, more: str, example: str) -> float | None:
    value = number(str(said), SPANS)
    if value is not None and 1 <= value <= LONGEST:
        return float(value)
    rule = f"a duration of 1 s or more with s, min, h or d{more}"
    faults.add(Fault("UNI006", f"{flag} is not a duration", rule, quoted(said), f"{flag} {example}"))
    return None


def _pue(said: Any, flag: str, faults: Faults) -> float | None:
    value = number(str(said))
    if value is not None and 1 <= value <= MOST_PUE:
        return float(value)
    rule = f"all power of a site over that of its accelerators: a number from 1 to {MOST_PUE}"
    faults.add(Fault("UNI007", f"{flag} is not a power usage effectiveness", rule, quoted(said), f"{flag} 1.2"))
    return None


FIELDS = {"storage": "storage_bandwidth", "mtbf": "mtbf_seconds", "restart": "restart_seconds", "pue": "pue"}
READERS: Mapping[str, Callable[[Any, str, Faults], float | None]] = {
    "storage": _bandwidth,
    "mtbf": _between,
    "restart": _restart,
    "pue": _pue,
}

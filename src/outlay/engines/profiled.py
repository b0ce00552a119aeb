"""A cluster and an engine with the constants of a profile in place of their own."""

from dataclasses import fields, replace
from typing import Any

from ..cluster.accelerator import Accelerator, Cluster, Link
from ..errors import Fault, InputError
from .engine import Engine
from .profile import DRIVER, HARDWARE, Profile

HOST = "PCIe"  # begins the name of a level inside a host, which is no network
CARD = {field.name for field in fields(Accelerator)}
SAID = "profile "  # begins what a cluster says of its profile


def profiled(profile: Profile, cluster: Cluster, engine: Engine) -> tuple[Cluster, Engine]:
    """Both with the profile's values; the cluster's notes, which every answer prints, name the profile.

    An engine that the profile is not of keeps its constants. Raises InputError (PRF002) for another accelerator.
    """
    if cluster.accelerator.name != profile.accelerator:
        raise InputError(_another(profile, cluster))
    values = profile.values(HARDWARE)
    driver: dict[str, Any] = profile.values(DRIVER) if profile.engine == engine.name else {}
    own: dict[str, Any] = {key: value for key, value in values.items() if key in CARD}
    marks = {name.replace("_", " ") for name in values}
    notes = tuple(note for note in cluster.notes if not note.startswith(SAID))
    made = replace(
        cluster,
        accelerator=replace(cluster.accelerator, **own),
        inside=_link(cluster.inside, "link", values),
        unverified=tuple(name for name in cluster.unverified if name not in marks),
        notes=(_said(profile, engine), *notes),
    )
    network = _link(cluster.top, "nic", {} if cluster.top.name.startswith(HOST) else values)
    made = replace(made, spine=network) if made.spine else replace(made, outside=network)
    return made, replace(engine, **driver, profile=profile)


def said_of(cluster: Cluster) -> str:
    """Which profile stands in a cluster; an empty text where none does."""
    return next((note for note in cluster.notes if note.startswith(SAID)), "")


def _link(link: Link, level: str, values: dict[str, float]) -> Link:
    share = values.get(f"{level}_share", link.share)
    return replace(link, share=share, latency_seconds=values.get(f"{level}_latency_seconds", link.latency_seconds))


def _said(profile: Profile, engine: Engine) -> str:
    """Which profile an answer used, and how much of it."""
    text = f"{SAID}{profile.name}: {_count(len(profile.hardware))} of {profile.accelerator}"
    if not profile.kernels:
        return text
    held = f"{_count(len(profile.kernels))} of {profile.engine}"
    return (
        f"{text}, {held}" if profile.engine == engine.name else f"{text}; {held} not used: the engine is {engine.name}"
    )


def _count(number: int) -> str:
    return f"{number} constant{'' if number == 1 else 's'}"


def _another(profile: Profile, cluster: Cluster) -> Fault:
    asked = cluster.accelerator.name
    rule = f"it replaces constants of {profile.accelerator}, and of no other accelerator"
    fix = f"--on {cluster.ranks}x{profile.accelerator}, or a profile of {asked}: outlay hardware {asked} --profile"
    return Fault("PRF002", f"profile {profile.name} is of another accelerator", rule, f"{asked}", fix)

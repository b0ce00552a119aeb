"""The profile of an accelerator and an engine as the tables have it: every constant with its kind, date and source."""

from collections.abc import Iterator
from typing import Any

from ..cluster.catalogue.tables import accelerator_names, known, node, node_names, used_figures
from ..engines.engine import Engine
from ..engines.profile import DRIVER, HARDWARE, KERNELS, Constant, Profile
from ..engines.profile_file import profile_text
from ..engines.tables import engine as find_engine
from ..engines.tables import facts_of, kernels_of
from .record import Record, head, plain

FITTED = "fit"  # the word in the source of a kernel set whose figures rest on runs


def profile_of(name: str, engine: str) -> Profile:
    """The constants of an accelerator or a node type, and of an engine. Raises InputError (HW001, ENG001)."""
    name = known(name, (*accelerator_names(), *node_names()))
    card = node(name).accelerator if name in node_names() else name
    driver = find_engine(engine)
    kernels = (*_kernels(driver, card), *_driver(driver))
    return Profile(f"{name}-{engine}"[:60], card, tuple(_hardware(name)), engine, kernels)


def _hardware(name: str) -> Iterator[Constant]:
    figures = used_figures(name)
    for constant in HARDWARE:
        of = figures[constant.replace("_", " ")]
        source = f"{of.source}; recalled, not read again" if of.unverified else of.source
        yield Constant(constant, of.si, _kind(of.kind), source, of.date)


def _kind(text: str) -> Any:
    return text


def _kernels(driver: Engine, card: str) -> Iterator[Constant]:
    """Those of the kernel set, which has one source for all of them; its own attention where it has one here."""
    held = kernels_of(driver)
    forward, back = held.attention_on(card)
    values = {"elementwise": held.elementwise, "loss_moves": held.loss.moves, "loss_moves_back": held.loss.moves_back}
    values |= {"attention_share": forward, "attention_back_share": back} if forward else {}
    kind = "measured" if FITTED in held.source.split() else "assumed"
    for name in KERNELS:
        if name in values:
            yield Constant(name, float(values[name]), _kind(kind), f"kernel set {held.name}: {held.source}")


def _driver(driver: Engine) -> Iterator[Constant]:
    facts = facts_of(driver.name)
    for name in DRIVER:
        fact = facts[name]
        yield Constant(name, float(fact["value"]), _kind(fact["kind"]), fact["source"])


def profile_record(of: Profile) -> Record:
    """The profile, and its file as a text."""
    return head("profile") | {"profile": plain(of), "toml": profile_text(of)}


def profile_lines(of: Profile) -> list[str]:
    """The file of the profile, a line each."""
    return profile_text(of).splitlines()

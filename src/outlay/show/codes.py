"""A page for every code: what went wrong, the rule behind it, and what mends it."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import Fault, InputError, nearest, quoted
from ..layout.complete import flag
from ..layout.rules import RULES
from ..validate.read import HEADER


@dataclass(frozen=True)
class Page:
    """What one code means."""

    code: str
    what: str
    rule: str
    fix: str


@cache
def _others() -> dict[str, Page]:
    table = tomllib.loads(files(__package__).joinpath("codes.toml").read_text("utf-8"))
    header = ", ".join(HEADER)
    return {
        code: Page(code, *(text[name].replace("{header}", header) for name in ("what", "rule", "fix")))
        for code, text in table.items()
    }


def pages() -> dict[str, Page]:
    """Every code that outlay can print. One rule may have several rows: each engine's stands with it."""
    found = dict(_others())
    for rule in RULES:
        whose = f" (engines {', '.join(rule.engines)})" if rule.engines else ""
        found[rule.code] = Page(
            rule.code, rule.what, rule.rule + whose, f"another {flag(rule.axis)}: the message lists the legal values"
        )
    return dict(sorted(found.items()))


def page(code: str) -> Page:
    """One code's page. Raises InputError (EXP002) for a code that does not exist."""
    known = pages()
    if code.upper() not in known:
        close = nearest(code, [each.lower() for each in known])
        fix = f"outlay explain {close[0].upper()}" if close else "outlay explain"
        raise InputError(
            Fault(
                "EXP002",
                f"there is no code {quoted(code)}",
                "codes stand at the right of every fault",
                quoted(code),
                fix,
            )
        )
    return known[code.upper()]

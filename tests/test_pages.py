"""The pages hang together: each is in the table of the site, each link leads somewhere; what is made names all."""

import re
import runpy
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import outlay
from outlay.cli.commands import COMMANDS, Command
from outlay.show.codes import pages

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE: dict[str, Any] = runpy.run_path(str(DOCS / "reference/remake.py"))
TEXTS: dict[Path, str] = dict(MADE["made"]())
TEXTS |= {path: path.read_text("utf-8") for path in DOCS.rglob("*.md") if path not in TEXTS}
TEXTS |= {path: path.read_text("utf-8") for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md")}
COMMANDS_PAGE, CODES_PAGE = TEXTS[DOCS / "reference/commands.md"], TEXTS[DOCS / "reference/codes.md"]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def section(text: str, title: str) -> str:
    """What stands under a heading, to the next of its level."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def anchors(text: str) -> set[str]:
    """The anchors of a page: of its headings, and those that are given."""
    found = set[str]()
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE):
        given = re.search(r"\{ #(\S+) \}$", heading)
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        found.add(given[1] if given else re.sub(r"[^\w\s-]", "", plain).strip().lower().replace(" ", "-"))
    return found


def dead_links(path: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        where, _, anchor = target.partition("#")
        place = (path.parent / where).resolve() if where else path
        if re.match(r"[a-z]+:", target):
            continue
        known = place in TEXTS or place.exists()
        dead += [] if known and (not anchor or anchor in anchors(TEXTS.get(place, ""))) else [target]
    return dead


def unnamed(page: str, command: Command) -> list[str]:
    """The flags of a command that neither its section names nor one that it leads to."""
    own = section(page, f"outlay {command.name}")
    shared = [title for title, _ in MADE["SHARED"] if f"(#{MADE['anchor'](title)})" in own]
    text = own + "".join(section(page, title) for title in shared)
    return [form for flag in command.flags() for form in flag.forms[:1] if not re.search(rf"`{form}( \.\.)?`", text)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_page_of_commands_names_every_flag_of_a_command(command: Command) -> None:
    assert section(COMMANDS_PAGE, f"outlay {command.name}")
    assert unnamed(COMMANDS_PAGE, command) == []


def test_a_flag_that_is_left_out_is_found() -> None:
    plan = next(command for command in COMMANDS if command.name == "plan")
    assert unnamed(COMMANDS_PAGE.replace("`--space ..`", "``"), plan) == ["--space"]
    assert unnamed(COMMANDS_PAGE.replace("(#flags-of-the-output)", ""), plan)[-1:] == ["--debug"]


def test_every_flag_of_the_page_has_a_sentence() -> None:
    rows = re.findall(r"^\| (`-.*?`) \|(.*)\|$", COMMANDS_PAGE, re.MULTILINE)
    assert len(rows) > 150
    assert [flag for flag, text in rows if not text.strip()] == []


def test_the_page_of_codes_has_every_code_with_its_rule_and_its_fix() -> None:
    assert re.findall(r"^### ([A-Z]+\d+) ", CODES_PAGE, re.MULTILINE) == list(pages())
    for word in ("Rule", "Mend"):
        assert len(re.findall(rf"^- {word}: \S", CODES_PAGE, re.MULTILINE)) == len(pages())


def test_the_page_of_python_has_every_public_name_once() -> None:
    listed = re.findall(r"^::: outlay\.(\w+)$", TEXTS[DOCS / "reference/python.md"], re.MULTILINE)
    assert sorted(listed) == sorted(outlay.__all__), "docs/reference/python.md: a line `::: outlay.NAME` for each"


def test_every_page_stands_once_in_the_table_of_the_site() -> None:
    table = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    listed = Counter(page for part in table for pages in part.values() for one in pages for page in one.values())
    assert [page for page, times in listed.items() if times > 1] == []
    found = {path.relative_to(DOCS).as_posix() for path in TEXTS if path.is_relative_to(DOCS)}
    assert set(listed) == found, "zensical.toml: each page of docs/ under one heading of `nav`"


@pytest.mark.parametrize("path", sorted(TEXTS), ids=named)
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    assert dead_links(path, TEXTS[path]) == []


def test_a_planted_dead_link_is_found() -> None:
    text = "[a](plan.md) [b](plam.md) [c](plan.md#the-largest-model) [d](plan.md#no-such) [e](https://example.org)"
    assert dead_links(DOCS / "planted.md", text) == ["plam.md", "plan.md#no-such"]

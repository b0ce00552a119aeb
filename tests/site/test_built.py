"""The built site asks nobody else for anything, and its search knows every page. `make docs` builds and runs this."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build/site"
PAGES = sorted(SITE.rglob("*.html"))
STYLES = sorted(SITE.rglob("*.css"))

# A browser fetches what these name by itself; what `href` of an `a` names only when the reader asks.
FETCHED = {"src", "srcset", "poster", "data", "action", "background"}
FETCHING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
ELSEWHERE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
OF_A_STYLE = re.compile(r"""(?:url\(|@import)\s*['"]?([^'")\s;]+)""")
LAZY = ("mermaid", "arithmatex", "iframe-worker")  # what the theme's program would fetch for, where a page has it


class Fetched(HTMLParser):
    """Every address that a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.classes: set[str] = set()
        self.styles = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.styles = tag == "style"
        self.classes.update(given.get("class", "").split())
        self.found += [value for name, value in given.items() if name in FETCHED]
        self.found += OF_A_STYLE.findall(given.get("style", ""))
        if tag == "link" and FETCHING_LINKS & set(given.get("rel", "").split()):
            self.found.append(given.get("href", ""))

    def handle_data(self, data: str) -> None:
        if self.styles:
            self.found += OF_A_STYLE.findall(data)


def fetched(page: str) -> Fetched:
    parser = Fetched()
    parser.feed(page)
    return parser


def elsewhere(addresses: list[str]) -> list[str]:
    return [one for one in addresses if ELSEWHERE.match(one)]


def searched() -> Iterator[str]:
    """The pages that the search knows."""
    for item in json.loads((SITE / "search.json").read_text(encoding="utf-8"))["items"]:
        yield item["location"].partition("#")[0]


def test_the_site_is_built() -> None:
    assert (SITE / "index.html") in PAGES
    assert len(PAGES) > 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_a_page_fetches_nothing_from_elsewhere(page: Path) -> None:
    found = fetched(page.read_text(encoding="utf-8"))
    assert elsewhere(found.found) == []
    assert not any(name in LAZY for name in found.classes)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_style_fetches_nothing_from_elsewhere(style: Path) -> None:
    assert elsewhere(OF_A_STYLE.findall(style.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="preconnect stylesheet" href="//fonts.example/css">',
        "<style>@import 'https://fonts.example/css';</style>",
        '<p style="background: url(https://example.org/x.png)">',
        '<img src="HTTPS://example.org/x.png">',
    ],
)
def test_a_planted_address_elsewhere_is_found(page: str) -> None:
    assert elsewhere(fetched(page).found)


def test_a_link_that_a_reader_may_follow_is_no_request() -> None:
    assert not elsewhere(fetched('<a href="https://example.org">there</a><img src="a.svg">').found)


def test_the_search_knows_every_page_and_stands_beside_them() -> None:
    assert {page.relative_to(SITE).as_posix() for page in PAGES} - set(searched()) <= {"404.html"}

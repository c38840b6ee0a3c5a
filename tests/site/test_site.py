"""The site is built without a warning, fetches nothing from elsewhere, and fits its windows."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import holdfast
from tests.docs.pages import PROJECT
from tools import screenshots
from tools.chromium import chromium

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself; links that a person may follow are not among them."""
NOT_FETCHED = {"canonical", "next", "prev"}


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make docs`` builds it: once, also for several test processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            assert built(folder) == (0, "")
    return folder


def built(folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


class Loads(HTMLParser):
    """The addresses that a page has fetched when it is opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(LOADED.get(tag, ""))
        if address and given.get("rel") not in NOT_FETCHED:
            self.found.append(address)


def pages(site: Path) -> Iterator[tuple[Path, str]]:
    for page in sorted(site.rglob("*.html")):
        yield page, page.read_text(encoding="utf-8")


@pytest.mark.req("F1")
def test_every_page_is_built(site: Path) -> None:
    written = {path.relative_to(PROJECT / "docs") for path in (PROJECT / "docs").rglob("*.md")}
    built = {page.relative_to(site).with_suffix(".md") for page, _ in pages(site)}
    assert built - {Path("404.md")} == written


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page, text in pages(site):
        loads = Loads(text).found
        assert loads
        assert not [one for one in loads if re.match(r"([a-z]+:)?//", one)], page
        if page.name != "404.html":
            assert not [
                one for one in loads if not (page.parent / one.partition("#")[0]).exists()
            ], page
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", text), sheet


def test_no_page_asks_for_a_script_that_would_be_fetched(site: Path) -> None:
    """The theme fetches what diagrams and a repository's numbers need, on pages that have them."""
    for page, text in pages(site):
        assert 'class="mermaid"' not in text, page
        assert 'data-md-component="source"' not in text, page


def test_it_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    words = "\n".join(f"{entry['title']} {entry['text']}" for entry in index["docs"])
    for wanted in ("outcome_unknown", "call_tool", "lifespan", "Celery"):
        assert wanted in words
    assert (site / "search" / "search_index.js").exists(), "for pages that are opened as files"


def test_what_has_no_docstring_is_there_too(site: Path) -> None:
    text = (site / "reference" / "api" / "holdfast.html").read_text(encoding="utf-8")
    for name in ("Client.state", "Client.list_resources", "Timeouts.request", "connect"):
        assert f'id="holdfast.{name}"' in text


@pytest.mark.req("N4")
@pytest.mark.hang(1200)
async def test_every_page_fits_a_desktop_and_a_phone(site: Path) -> None:
    if (program := chromium()) is None:
        pytest.skip("there is no Chromium")
    names = [str(page.relative_to(site)) for page, _ in pages(site) if page.name != "404.html"]
    seen = await screenshots.look(program, site, names, draw=False)
    assert len(seen) == len(names) * len(screenshots.WIDTHS)
    assert not [(one.page, one.screen, one.faults) for one in seen if one.faults]
    drawn = await screenshots.look(program, site, ["index.html"], draw=True)
    assert all(len(one.picture) > 20_000 for one in drawn), "an empty page"


@pytest.mark.req("N4")
def test_it_names_its_version_and_lists_its_pages_for_models(site: Path) -> None:
    assert f"Holdfast {holdfast.__version__}" in (site / "index.html").read_text(encoding="utf-8")
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.+?\]\((.+?)\)", text, re.M)
    assert len(listed) == len(set(listed))
    assert set(listed) == {
        str(path.relative_to(PROJECT / "docs")) for path in (PROJECT / "docs").rglob("*.md")
    }
    assert all((site / page).is_file() for page in listed)


def test_a_page_that_is_not_there_leads_on(site: Path) -> None:
    text = (site / "404.html").read_text(encoding="utf-8").partition("There is no such page.")[2]
    links = re.findall(r'href="/([\w/-]+\.html)"', text.partition("</article>")[0])
    assert len(links) >= 3
    assert all((site / link).is_file() for link in links)


def test_the_examples_are_shown_with_their_code(site: Path) -> None:
    text = (site / "examples.html").read_text(encoding="utf-8")
    for path in (PROJECT / "examples").glob("*.py"):
        assert f'id="{path.stem}"' in text


def test_what_a_page_loads_is_found() -> None:
    text = (
        '<link rel="canonical" href="//a"><link rel="stylesheet" href="b.css">'
        '<a href="https://c">c</a><script src="https://d/e.js"></script><img src="f.svg">'
    )
    assert Loads(text).found == ["b.css", "https://d/e.js", "f.svg"]

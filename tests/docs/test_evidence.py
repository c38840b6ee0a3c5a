"""The page *Evidence* shows results, and each of them is read from the page that has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT
from tools import evidence, site

DOCS = PROJECT / "docs"
MARK = re.compile(r"<!-- ([\w-]+) -->")

PAGES = {
    "reference/conformance.md": "nothing passes none. All 7 runs pass: 5 of them.\n",
    "reference/real-servers.md": "| server |\n|---|\n| time |\n| git |\n",
    "reference/frameworks.md": (
        "| framework | client | the run |\n|---|---|---|\n"
        "| A 1 | Holdfast | finished |\n| A 1 | its own | aborted: no |\n"
    ),
    "reference/speed.md": (
        "| `sequential` | calls | raw-fd | 1.5 | 1.2 / 1.4 | met |\n"
        "| `http-json` | calls | aiohttp | 1.1 | 1.11 / 1.11 | missed |\n"
        "| `help` | holdfast --help | python | 1.5 | 1.09 | met |\n"
    ),
    "requirements.md": "| L1 | ✓ | a |\n| L2 | not yet | b |\n",
    "rough-edges.md": "- one\n  more\n- two\n",
    "design/index.md": "",
    "design/size.md": "",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.req("N4")
@pytest.mark.parametrize("page", ["index.md", "evidence.md"])
def test_every_figure_that_a_page_asks_for_is_known(page: str) -> None:
    asked = set(MARK.findall((DOCS / page).read_text(encoding="utf-8")))
    assert asked
    assert asked <= (site.measured() | evidence.figures()).keys()


def test_every_figure_is_shown() -> None:
    asked = MARK.findall((DOCS / "evidence.md").read_text(encoding="utf-8"))
    assert evidence.figures().keys() <= set(asked)


def test_figures_are_read_from_their_pages(docs: Path) -> None:
    assert evidence.figures(docs) == {
        "conformance-runs": "7",
        "real-servers": "2",
        "frameworks-finished": "1 of 1",
        "frameworks-others": "0 of 1",
        "cost-stdio": "1.2",
        "cost-http": "1.11",
        "cost-help": "1.09",
        "promises": "1",
        "rough-edges": "2",
        "decisions": "1",
    }


@pytest.mark.parametrize("page", ["reference/conformance.md", "reference/speed.md"])
def test_a_page_without_its_figure_stops_the_site(docs: Path, page: str) -> None:
    (docs / page).write_text("nothing\n", encoding="utf-8")
    with pytest.raises(ValueError, match="unpack"):
        evidence.figures(docs)


@pytest.mark.req("N4")
def test_the_lane_of_the_front_page_has_the_times_that_were_measured() -> None:
    death = site.measured()["lane"]
    times = re.findall(r"ends after (\d+ ms)|works after ([\d.]+ s)", death)
    assert len(times) == 4, "in the picture's words and below it"
    assert "{" not in death


# What leads where


@pytest.mark.req("N4")
def test_every_guide_is_on_the_overview() -> None:
    folder = DOCS / "how-to"
    overview = (folder / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)(?:#[\w-]+)?\)", overview))
    assert linked == {page.name for page in folder.glob("*.md")} - {"index.md"}

"""The reference says what the code says."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

import holdfast
from benchmarks.peers import plot, report, results
from holdfast import (
    Backoff,
    Cache,
    Client,
    Handlers,
    Limits,
    Observability,
    Stdio,
    Timeouts,
    ToolPolicy,
    errors,
)
from holdfast._core.engine import state
from holdfast._core.transports.environment import LAUNCHERS_ENVIRONMENT, PASSED_ENVIRONMENT
from holdfast.policies import SECRETS, Identity, Redaction
from tests.docs.pages import PROJECT
from tests.rows import rows
from tools import terminal_picture


def reference(name: str) -> str:
    return (PROJECT / "docs" / "reference" / name).read_text(encoding="utf-8")


@pytest.mark.req("L1")
def test_the_table_of_states_is_the_code_s() -> None:
    text = reference("states.md")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert state.table() + "\n" in tables


@rows("policy", [Timeouts, Limits, Backoff, Identity, ToolPolicy, Cache, Observability, Redaction])
def test_every_setting_is_listed_with_its_default(policy: type[Timeouts]) -> None:
    text = reference("policies.md").partition(f"## {policy.__name__}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", text, re.M))
    defaults = policy()
    actual = {name: shown(getattr(defaults, name)) for name in policy.__struct_fields__}
    assert rows == actual


def shown(value: object) -> str:
    """A default as the page has it; the long ones by their names."""
    if isinstance(value, Redaction):
        return "Redaction()"
    return "SECRETS" if value == SECRETS else repr(value)


def test_every_handler_is_listed() -> None:
    text = reference("policies.md").partition("## Handlers")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == set(Handlers.__struct_fields__)


@pytest.mark.req("E1")
def test_every_error_is_in_the_catalogue() -> None:
    text = reference("errors.md")
    tree = [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, errors.HoldfastError)
    ]
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.M))
    assert rows == {found.__name__: found.kind for found in tree}
    headings = set(re.findall(r"^### `(\w+)`", text, re.M))
    assert headings == rows.keys() - {"HoldfastError"}


@pytest.mark.req("F1")
def test_every_verb_is_in_the_reference() -> None:
    text = reference("client.md")
    public = [name for name, _ in inspect.getmembers(Client) if not name.startswith("_")]
    assert not [name for name in public if f"`{name}" not in text]


OWNERS = [holdfast.connect, Stdio.__init__, holdfast.Http.__init__]


@pytest.mark.parametrize("owner", OWNERS, ids=["connect", "Stdio", "Http"])
def test_every_option_of_connecting_is_in_the_reference(owner: object) -> None:
    assert callable(owner)
    names = [
        name for name in inspect.signature(owner).parameters if name not in ("self", "options")
    ]
    text = reference("targets.md")
    assert not [name for name in names if f"`{name}" not in text]


@pytest.mark.req("X1")
def test_the_environment_of_a_server_is_in_the_reference() -> None:
    lists = re.findall(r"^- .*?: (.+(?:\n  .+)*)", reference("environment.md"), re.M)
    listed = [name for names in lists for name in re.findall(r"`([\w*]+)`", names)]
    assert tuple(listed) == PASSED_ENVIRONMENT + LAUNCHERS_ENVIRONMENT


def test_the_page_about_peers_is_made_of_the_numbers_that_are_kept() -> None:
    kept = results.read()
    assert reference("peers.md") == report.page(kept)
    assert reference("peers.svg") == plot.svg(kept)


# Pages made from docstrings

MODULES = (
    "holdfast.sync",
    "holdfast.servers",
    "holdfast.config",
    "holdfast.handles",
    "holdfast.codegen",
    "holdfast.lock.guard",
    "holdfast.testing",
)
"""Modules that list their public names."""


def told_from_docstrings() -> set[str]:
    pages = (PROJECT / "docs" / "reference" / "api").glob("*.md")
    return {
        name
        for page in pages
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.M)
    }


@pytest.mark.req("F1")
@rows("module", MODULES)
def test_every_public_name_has_its_place(module: str) -> None:
    names = {f"{module}.{name}" for name in import_module(module).__all__}
    assert not names - told_from_docstrings()


@pytest.mark.req("F1")
def test_what_holdfast_passes_on_stands_where_it_comes_from() -> None:
    names = {name for name in holdfast.__all__ if not name.startswith("_")}
    assert not names - {told.rpartition(".")[2] for told in told_from_docstrings()}


# The front page


def test_the_front_page_shows_the_numbers_that_are_kept() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    kept = results.read()
    assert report.scores(kept) in readme
    assert report.fault_summary(kept) in report.PAGE.read_text(encoding="utf-8")


def test_the_picture_of_the_terminal_is_what_a_run_gives() -> None:
    kept = terminal_picture.PICTURE.read_text(encoding="utf-8")
    now = terminal_picture.svg(terminal_picture.session())
    assert terminal_picture.said(kept) == terminal_picture.said(now), (
        "python -m tools.terminal_picture draws it again"
    )


def test_every_design_page_is_listed() -> None:
    folder = PROJECT / "docs" / "design"
    index = (folder / "index.md").read_text(encoding="utf-8")
    for page in folder.glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page.name

"""``holdfast add``, ``remove``, ``import``: from nothing to a working server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import DEMO, Cli, Open, stdio


def servers(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))["mcpServers"]


@pytest.fixture
def own(home: Path) -> Path:
    return home / "config" / "holdfast" / "mcp.json"


@pytest.mark.req("F3", "N2")
def test_an_added_command_works_at_once(cli: Cli, own: Path) -> None:
    done = cli("add", "demo", "--", *DEMO)
    assert (done.code, done.out) == (0, "")
    assert f"demo: added to {own}" in done.err
    assert cli("call", "demo.echo", "text=hi").out == "hi\n"


def test_an_added_url_has_its_options(cli: Cli, own: Path) -> None:
    words = ["add", "docs", "https://example.org/mcp", "--header", "X: y", "--transport", "sse"]
    assert cli(*words).code == 0
    (entry,) = servers(own).values()
    assert (entry["url"], entry["headers"]) == ("https://example.org/mcp", {"X": "y"})


def test_a_variable_without_a_value_is_written_as_a_reference(cli: Cli, own: Path) -> None:
    assert cli("add", "a", "--env", "TOKEN", "--env", "B=1", "--", "x", "-y").code == 0
    assert servers(own)["a"]["env"] == {"TOKEN": "${TOKEN}", "B": "1"}
    assert servers(own)["a"]["args"] == ["-y"]


def test_a_server_added_to_a_project_is_trusted(cli: Cli, home: Path) -> None:
    Path(".git").mkdir()
    assert cli("add", "demo", "--project", "--", *DEMO).code == 0
    assert "demo" in servers(Path(".mcp.json"))
    assert cli("call", "demo.echo", "text=hi").out == "hi\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "demo"], "Give a URL, or a command after --, and"),
        (["add", "demo", "npx", "x"], "Write: holdfast add demo -- npx x"),
        (["add", "demo", "http://x", "--", "y"], "Give a URL, or a command after --, and nothing"),
        (["add", "demo", "ftp://x"], "a URL begins with http:// or https://."),
        (["remove", "demo"], "no server 'demo'"),
        (["import", "Emacs"], "no product or file 'Emacs'"),
        (["import", "kiro"], "Kiro has no file here: "),
        (["import", "--only", "nope", "--yes"], "no server 'nope'"),
    ],
)
def test_what_cannot_be_done_is_said(cli: Cli, words: list[str], said: str) -> None:
    done = cli(*words)
    assert done.code == 2
    assert said in done.err


def test_a_name_that_is_taken_is_not_overwritten_by_mistake(cli: Cli, own: Path) -> None:
    assert cli("add", "a", "--", "x").code == 0
    assert cli("add", "a", "--", "y").code == 2
    assert cli("add", "a", "--overwrite", "--", "y").code == 0
    assert servers(own)["a"]["command"] == "y"


def test_a_removed_server_is_gone(cli: Cli, own: Path) -> None:
    cli("add", "a", "--", "x")
    assert cli("remove", "a", "--output", "json").value["servers"] == ["a"]
    assert servers(own) == {}


def test_in_the_home_folder_only_the_users_own_file_is_searched(
    cli: Cli, home: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("add", "demo", "--", "x")
    monkeypatch.chdir(home)
    done = cli("remove", "dmo")
    assert done.code == 2
    assert f"no server 'dmo' in {own}; did you mean 'demo'?" in done.err
    assert cli("remove", "demo").code == 0


def test_at_a_terminal_it_shows_and_asks(terminal: Open, own: Path) -> None:
    one = terminal("add", "demo", "--", "npx", "-y", "thing")
    assert "demo: npx -y thing" in one.expect("Add it to your configuration?")
    one.send("n\n")
    assert one.end() == 130
    assert not own.exists()


# Import


@pytest.fixture
def cursor(home: Path) -> Path:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"demo": stdio(DEMO)}}), encoding="utf-8")
    return file


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize("words", [[], ["cursor"]], ids=["all", "one"])
def test_another_products_servers_are_imported(
    cli: Cli, own: Path, cursor: Path, words: list[str]
) -> None:
    done = cli("import", *words, "--yes")
    assert f"demo: imported to {own}" in done.err
    cursor.unlink()
    assert cli("call", "demo.echo", "text=hi").out == "hi\n"


def test_nothing_is_imported_where_nobody_can_be_asked(cli: Cli, own: Path, cursor: Path) -> None:
    done = cli("import", str(cursor), "--only", "demo")
    assert done.code == 5
    assert f"demo: {' '.join(DEMO)} (from {cursor})" in done.err
    assert f"holdfast import {cursor} --only=demo --yes" in done.err
    assert not own.exists()


def test_only_what_can_be_imported_is_asked_about(
    terminal: Open, cli: Cli, own: Path, cursor: Path
) -> None:
    entries = {"demo": stdio(DEMO), "new": {"url": "https://x/mcp"}, "broken": {"args": ["x"]}}
    cursor.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    cli("import", "--only", "demo", "--yes")
    one = terminal("import")
    assert one.expect("Import it?").strip().splitlines()[:-1] == [
        "new: https://x/mcp (from Cursor)"
    ]
    one.send("y\n")
    assert one.end() == 0
    assert "demo: left out: a server of this name exists already" in one.text
    assert "broken: left out:" in one.text
    assert list(servers(own)) == ["demo", "new"]


def test_nothing_to_import_is_said(cli: Cli) -> None:
    assert "Nothing to import was found." in cli("import").err


# Approval in place


@pytest.fixture
def project(home: Path) -> None:
    """A project with two servers of its own."""
    text = json.dumps({"mcpServers": {"demo": stdio(DEMO), "other": stdio(DEMO)}})
    Path(".mcp.json").write_text(text, encoding="utf-8")


@pytest.mark.req("F3", "N2")
def test_an_unapproved_server_can_be_approved_at_the_terminal(
    terminal: Open, project: None
) -> None:
    one = terminal("call", "demo.echo", "text=hi")
    assert "holdfast.demo.server" in one.expect("Approve it and go on?")
    one.send("y\n")
    one.expect("hi")
    assert one.end() == 0
    assert terminal("call", "demo.echo", "text=hi").end() == 0


def test_no_means_no(terminal: Open, project: None) -> None:
    one = terminal("call", "demo.echo", "text=hi")
    one.expect("Approve it and go on?")
    one.send("n\n")
    assert one.end() == 5


def test_several_servers_are_approved_at_once(cli: Cli, project: None) -> None:
    assert cli("config", "trust", "demo", "other", "--yes").code == 0
    assert cli("call", "other.echo", "text=hi").out == "hi\n"


def test_all_servers_are_approved_at_once(cli: Cli, project: None) -> None:
    done = cli("config", "trust", "--all", "--yes")
    assert "demo: approved" in done.err
    assert "other: approved" in done.err
    assert "Nothing needs an approval." in cli("config", "trust", "--all").err
    assert cli("config", "trust").code == 2

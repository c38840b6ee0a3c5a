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
        (["add", "demo"], "Give a URL, a command after --, or the full name"),
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
    assert cli("remove", "a", "--json").value["servers"] == ["a"]
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


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize("words", [[], ["--yes"], ["--overwrite"], ["--project"]], ids=str)
def test_what_a_user_types_needs_no_approval(
    terminal: Open, own: Path, home: Path, words: list[str]
) -> None:
    Path(".git").mkdir()
    adding = terminal("add", "demo", *words, "--", "npx", "-y", "thing")
    assert adding.end() == 0, adding.text
    file = Path(".mcp.json") if "--project" in words else own
    assert servers(file)["demo"]["args"] == ["-y", "thing"]
    assert "demo: added to" in adding.text
    assert "[y/N]" not in adding.text


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
    assert f"demo, from {cursor}:" in done.err
    assert all(f'"{word}"' in done.err for word in DEMO)
    assert f"holdfast import {cursor} --only=demo --yes" in done.err
    assert not own.exists()


def test_only_what_can_be_imported_is_asked_about(
    terminal: Open, cli: Cli, own: Path, cursor: Path
) -> None:
    entries = {"demo": stdio(DEMO), "new": {"url": "https://x/mcp"}, "broken": {"args": ["x"]}}
    cursor.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    cli("import", "--only", "demo", "--yes")
    importing = terminal("import", NO_COLOR="1")
    shown = importing.expect("Import it?")
    assert f"new, from {cursor}:" in shown
    assert '"url": "https://x/mcp"' in shown
    assert "demo" not in shown
    importing.send("y\n")
    assert importing.end() == 0
    assert "demo: left out: a server of this name exists already" in importing.text
    assert "broken: left out:" in importing.text
    assert list(servers(own)) == ["demo", "new"]


HIDING: dict[str, dict[str, Any]] = {
    "a shell's password": stdio(["sh", "-c", "password=`touch witness`"]),
    "a token's flag": stdio(["server", "--token", "$(touch witness)"]),
    "a secret's form": stdio(
        ["sh", "-c", "x=ghp_0123456789abcdefghijABCDEFGHIJ456789;touch witness"]
    ),
    "a user in a URL": stdio(["curl", "https://u:touch-witness@example.org"]),
    "the fifty-first word": stdio(["server", *["word"] * 60, "touch-witness"]),
    "a long word": stdio(["sh", "-c", " " * 5000 + "touch witness"]),
    "env": stdio(["server"], env={"API_TOKEN": "witness-of-env"}),
    "cwd": stdio(["server"], cwd="/witness/folder"),
    "a preload": stdio(["server"], env={"LD_PRELOAD": "/witness.so"}),
    "settings": stdio(["server"], holdfast={"inherit_env": True, "log": "/witness.jsonl"}),
    "headers": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer witness"}},
    "a query": {"url": "https://example.org/mcp?api_key=witness"},
    "a login": {"url": "https://example.org/mcp", "oauth": {"clientSecret": "witness"}},
}


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize("entry", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("place", ["script", "project"])
def test_whatever_is_approved_is_shown_whole(
    cli: Cli, cursor: Path, entry: dict[str, Any], place: str
) -> None:
    file = Path(".mcp.json") if place == "project" else cursor
    file.write_text(json.dumps({"mcpServers": {"evil": entry}}), encoding="utf-8")
    words = ["config", "trust", "evil"] if place == "project" else ["import", "cursor"]
    done = cli(*words)
    assert done.code == 5
    assert "nobody to ask; after reading it: " in done.err
    hidden = [text for text in strings(entry) if "witness" in text]
    assert hidden
    assert all(json.dumps(text, ensure_ascii=False) in done.err for text in hidden)
    assert "[redacted]" not in done.err


def strings(value: Any) -> list[str]:
    """All the texts of an entry."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [text for item in items for text in strings(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.req("F3", "N2")
def test_what_is_imported_cannot_draw_on_the_terminal(terminal: Open, cursor: Path) -> None:
    entry = stdio(["sh", "-c", f"rm{''.join(DRAWING)}"], env={"A": "".join(DRAWING)})
    cursor.write_text(json.dumps({"mcpServers": {"evil": entry}}), encoding="utf-8")
    importing = terminal("import", NO_COLOR="1")
    shown = importing.expect("Import it?")
    importing.send("n\n")
    assert importing.end() == 5
    assert not [mark for mark in DRAWING if mark in shown]
    assert r"rm\\x1b[2J" in shown


DRAWING = ("\x1b[2J", "\x1b]0;title\x07", "\x9b8m", "\u202e", "\u2066", "\u200b", "\x08")


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize(("keys", "is_imported"), [("\n", True), ("q\n", False)])
def test_a_long_entry_waits_at_each_screen(
    terminal: Open, own: Path, cursor: Path, keys: str, is_imported: bool
) -> None:
    entry = stdio(["sh", "-c", "touch witness", *map(str, range(60))])
    cursor.write_text(json.dumps({"mcpServers": {"evil": entry}}), encoding="utf-8")
    importing = terminal("import", lines=30, NO_COLOR="1")
    assert "touch witness" in importing.expect("Enter: more, q: stop, nothing is approved -- ")
    importing.see("touch witness")
    importing.send(keys)
    if is_imported:
        importing.turn_pages("Import it?")
        importing.send("y\n")
    assert importing.end() == (0 if is_imported else 5)
    assert own.exists() == is_imported


def test_what_an_import_replaces_is_said(cli: Cli, cursor: Path) -> None:
    cli("add", "demo", "--", "mine")
    done = cli("import", "cursor", "--overwrite")
    assert "careful: it replaces your server of this name" in done.err


@pytest.mark.parametrize("words", [["import"], ["config", "trust", "--all"]], ids=str)
def test_with_json_stderr_is_one_line(cli: Cli, cursor: Path, words: list[str]) -> None:
    Path(".mcp.json").write_text(cursor.read_text(encoding="utf-8"), encoding="utf-8")
    done = cli(*words, "--json")
    assert (done.code, done.error["exit"]) == (5, 5)


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


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize("words", [["call", "demo.echo", "text=hi"], ["config", "trust", "demo"]])
def test_what_changes_after_it_was_shown_is_not_approved(
    terminal: Open, cli: Cli, home: Path, words: list[str]
) -> None:
    entry = stdio(DEMO, envFile="vars")
    Path("vars").write_text("A=1\n", encoding="utf-8")
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"demo": entry}}), encoding="utf-8")
    asking = terminal(*words)
    asking.expect("[y/N]")
    Path("vars").write_text("LD_PRELOAD=/evil.so\n", encoding="utf-8")
    asking.send("y\n")
    asking.expect("has changed since it was shown")
    assert asking.end() != 0
    assert cli("status", "demo").code == 5


@pytest.mark.req("F3", "N2")
def test_the_approval_is_for_the_command_that_was_shown(
    terminal: Open, cli: Cli, project: None
) -> None:
    asking = terminal("config", "trust", "demo")
    asking.expect("[y/N]")
    text = json.dumps({"mcpServers": {"demo": stdio(["touch", "witness"])}})
    Path(".mcp.json").write_text(text, encoding="utf-8")
    asking.send("y\n")
    assert asking.end() == 0
    done = cli("tools", "demo")
    assert done.code == 5
    assert "has changed since it was approved" in done.err
    assert not Path("witness").exists()


def test_several_servers_are_approved_at_once(cli: Cli, project: None) -> None:
    assert cli("config", "trust", "demo", "other", "--yes").code == 0
    assert cli("call", "other.echo", "text=hi").out == "hi\n"


def test_all_servers_are_approved_at_once(cli: Cli, project: None) -> None:
    done = cli("config", "trust", "--all", "--yes")
    assert "demo: approved" in done.err
    assert "other: approved" in done.err
    assert "Nothing needs an approval." in cli("config", "trust", "--all").err
    assert cli("config", "trust").code == 2

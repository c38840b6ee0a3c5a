"""``holdfast config``: what is configured, and what may run. A project's file alone may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.lock import guard
from tests.cli.conftest import DEMO, Cli, Configure, Open, stdio

# A hostile project


@pytest.fixture
def witness(home: Path, tmp_path: Path) -> Path:
    """A project whose own file would have a command make a file, and a server of each kind."""
    path = tmp_path / "pwned"
    evil = stdio(["touch", str(path)])
    web = {"url": "http://127.0.0.1:1/mcp", "headers": {"X": "${HOME}"}}
    text = json.dumps({"mcpServers": {"evil": evil, "web": web}})
    Path(".mcp.json").write_text(text, encoding="utf-8")
    Path("calls.jsonl").touch()
    return path


VERBS = [
    ["tools", "evil"],
    ["describe", "evil.x"],
    ["resources", "evil"],
    ["prompts", "evil"],
    ["tools", "web"],
    ["doctor", "evil"],
    ["call", "evil.x", "a=1"],
    ["read", "evil", "a:b"],
    ["prompt", "evil.x"],
    ["prompt", "evil.x", "--suggest", "y="],
    ["watch", "evil"],
    ["shell", "evil"],
    ["codegen", "evil"],
    ["lock", "evil"],
    ["check", "evil", "--as", "evil"],
    ["log", "replay", "evil", "calls.jsonl"],
    ["log", "run", "evil", "calls.jsonl"],
    ["log", "run", "evil", "calls.jsonl", "--session", "s"],
]


@pytest.mark.req("F3")
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_hostile_project_runs_nothing(
    cli: Cli, witness: Path, words: list[str], form: list[str]
) -> None:
    guard.write("holdfast.lock", guard.LockFile({"evil": guard.LockedServer()}))
    done = cli(*words, *form)
    assert done.code == 5
    name = "web" if "web" in words else "evil"
    where = done.out if words[0] == "doctor" else done.err
    assert f"Approve: holdfast config trust {name}" in where
    assert words[0] == "doctor" or done.out == "" or words[0] == "check"
    if form:
        assert done.error["exit"] == 5
    assert not witness.exists()


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words",
    [
        ["servers"],
        ["servers", "--files"],
        ["config", "explain", "evil"],
    ],
    ids=" ".join,
)
def test_looking_at_it_starts_nothing(cli: Cli, witness: Path, words: list[str]) -> None:
    assert cli(*words).code == 0
    assert cli(*words, "--json").code == 0
    assert not witness.exists()


@pytest.mark.req("F3")
def test_approving_needs_a_person_or_a_word(cli: Cli, witness: Path) -> None:
    done = cli("config", "trust", "evil")
    assert done.code == 5
    assert '"touch"' in done.err
    assert "nobody to ask; after reading it: holdfast config trust --yes evil" in done.err
    assert cli("status", "evil").code == 5
    assert cli("config", "trust", "--yes", "evil").err.startswith("evil: approved")
    assert not witness.exists(), "approving runs nothing yet"
    assert cli("status", "evil").code == 3
    assert witness.exists()


@pytest.mark.req("F3")
def test_an_approval_ends_when_what_was_approved_changes(cli: Cli, witness: Path) -> None:
    cli("config", "trust", "evil", "-y")
    assert cli("config", "trust", "evil").err == "evil: is trusted already.\n"
    file = Path(".mcp.json")
    file.write_text(file.read_text().replace('"touch"', '"rm"'))
    done = cli("tools", "evil")
    assert (done.code, witness.exists()) == (5, False)
    assert "has changed since it was approved (command is different)" in done.err
    assert "changed: command is different" in cli("config", "trust", "evil").err


def test_an_approval_can_be_taken_back(cli: Cli, witness: Path) -> None:
    assert cli("config", "untrust", "evil").err == "evil: was not approved.\n"
    cli("config", "trust", "evil", "--yes")
    assert cli("config", "untrust", "evil", "--json").value == {
        "name": "evil",
        "changed": True,
    }
    assert cli("status", "evil").code == 5


def test_a_person_is_shown_all_of_it_and_asked(terminal: Open, cli: Cli, witness: Path) -> None:
    one = terminal("config", "trust", "evil", NO_COLOR="1")
    one.expect('"command": "touch"')
    one.expect("Approve it? [y/N]: ")
    one.send("n\n")
    one.expect("evil: not approved")
    assert one.end() == 5
    two = terminal("config", "trust", "evil")
    two.expect("Approve it? [y/N]: ")
    two.send("y\n")
    two.expect("evil: approved, as")
    assert two.end() == 0
    assert cli("servers").out.startswith("evil\ttrusted\t")


def test_a_hostile_name_can_be_approved_as_it_is_told(cli: Cli, home: Path) -> None:
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"-x; y": stdio(["true"])}}))
    done = cli("config", "explain", "--", "-x; y")
    assert "approve: holdfast config trust -- '-x; y'" in done.out
    assert cli("config", "trust", "--yes", "--", "-x; y").code == 0


# Showing


def test_every_file_and_server_is_shown(cli: Cli, configure: Configure, witness: Path) -> None:
    path = configure(git=stdio(["git-server"], env={"TOKEN": "s3cret"}), evil=stdio(["mine"]))
    done = cli("servers", "--files")
    first, second = (line.split("\t") for line in done.out.splitlines())
    assert first == [str(Path(".mcp.json").resolve()), "project", "mcpServers", "evil, web"]
    assert second == [str(path), "user", "mcpServers", "git"], "evil of the project wins"
    found = cli("servers", "--json").value
    assert [one["name"] for one in found["servers"]] == ["evil", "web", "git"]
    assert [one["scope"] for one in found["files"]] == ["project", "user"]
    assert "s3cret" not in str(found)
    assert "project" not in cli("servers", "--files", "--config", str(path)).out


def test_a_server_is_explained(cli: Cli, configure: Configure) -> None:
    entry = stdio(["x", "--token", "s3cret"], env={"A": "${UNSET_ONE}", "B": "${B:-1}"})
    path = configure(git=entry)
    text = cli("config", "explain", "git").out
    assert text.startswith(f"name: git\nkind: stdio\ntarget: x --token [redacted]\nfile: {path}\n")
    assert (
        "- name: UNSET_ONE\n    kind: environment\n    fields:\n      - env.A\n    is_set: false\n"
        in text
    )
    assert "    is_set: true\n    has_default: true\n" in text
    assert "trust: own" in text
    assert "s3cret" not in text
    assert cli("config", "explain", "git", "--json").value["name"] == "git"
    done = cli("config", "explain", "gti")
    assert (done.code, done.err) == (2, "holdfast: no server 'gti': did you mean 'git'?\n")


def test_a_broken_file_is_told_and_the_others_count(cli: Cli, configure: Configure) -> None:
    configure(git=stdio(["x"]))
    Path(".mcp.json").write_text("{")
    done = cli("servers", "--files")
    assert done.code == 0
    assert ".mcp.json\tproject" in done.out
    assert ".mcp.json" in done.err
    assert "\tgit\n" in done.out


def test_no_configuration_is_told(cli: Cli) -> None:
    done = cli("servers", "--files")
    assert (done.code, done.out, done.err) == (0, "", "No configuration was found.\n")


def test_a_named_file_is_the_users_word(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"demo": stdio(DEMO)}}))
    assert cli("call", "demo.echo", "text=x", "--config", str(path)).out == "x\n"

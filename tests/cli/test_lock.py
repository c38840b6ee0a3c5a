"""lock and check: a server's tools, written down and held to."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Configure, stdio
from tests.cli.rig import puppet


@pytest.mark.req("F3")
def test_what_is_locked_is_held_to(cli: Cli, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a", "b"])), two=stdio(puppet(tools=["c"])))
    assert cli("lock", "one").err == "Locked 2 tools of one in holdfast.lock.\n"
    before = Path("holdfast.lock").read_bytes()
    assert cli("lock", "one").err == "No changes: 2 tools of one in holdfast.lock.\n"
    assert Path("holdfast.lock").read_bytes() == before
    assert cli("lock", "two", "--json").value == {
        "file": "holdfast.lock",
        "server": "two",
        "tools": 1,
        "changed": True,
    }
    done = cli("check")
    assert (done.code, done.out) == (0, "one: as locked\ntwo: as locked\n")
    configure(one=stdio(puppet(tools=["a"])), two=stdio(["no-such-command"]))
    done = cli("check")
    assert done.code == 6
    assert "one: changed (breaking)\n" in done.out
    assert "command not found" in done.err
    done = cli("check", "--json")
    assert [one["exit"] for one in done.value["servers"]] == [6, 3]
    assert done.error["kind"] == "drift"
    assert done.error["message"].startswith("one is not as locked\ntwo: ")
    assert cli("check", "two").code == 3
    assert "b" in cli("lock", "one").out, "what is different is shown"
    assert cli("check", "one").code == 0


def test_only_what_breaks_callers_may_count(cli: Cli, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a"])))
    cli("lock", "one")
    configure(one=stdio(puppet(tools=["a", "b"])))
    assert cli("check", "one").code == 6
    done = cli("check", "one", "--breaking")
    assert done.code == 0
    assert "changed (" in done.out


def test_a_command_is_locked_under_a_name(cli: Cli, tmp_path: Path) -> None:
    lock = str(tmp_path / "a.lock")
    cli("lock", "--as", "x", "--lock", lock, "--", *puppet())
    cli("lock", "--as", "y", "--lock", lock, "--", *puppet())
    assert cli("check", "--as", "x", "--lock", lock, "--", *puppet()).out == "x: as locked\n"
    done = cli("check", "--lock", lock, "--", *puppet())
    assert (done.code, "--as x|y" in done.err) == (2, True)
    assert cli("check", "--as", "z", "--lock", lock, "--", *puppet()).code == 2
    done = cli("check", "--lock", lock)
    assert "none of the locked servers is configured (x, y): name one" in done.err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"servers": {}}', "not a lock"])
def test_a_file_that_is_no_lock_stays_as_it_is(cli: Cli, text: str) -> None:
    Path("holdfast.lock").write_text(text)
    for words in (["lock", "--as", "x"], ["check", "--as", "x"]):
        done = cli(*words, "--json", "--", *puppet())
        assert (done.code, done.out) == (2, "")
        assert "holdfast.lock" in done.error["message"]
    assert Path("holdfast.lock").read_text() == text


def test_no_lock_comes_with_how_to_make_one(cli: Cli) -> None:
    done = cli("check", "--as", "x", "--", *puppet())
    assert done.code == 2
    assert "make it with: holdfast lock" in done.err


def test_the_lock_file_is_json_to_review(cli: Cli) -> None:
    cli("lock", "--as", "x", "--", *puppet())
    found = json.loads(Path("holdfast.lock").read_text())
    assert found["servers"]["x"]["tools"]["echo"]["definition"]["description"] == "Does echo."


@pytest.mark.req("F3")
def test_the_advice_about_a_broken_file_makes_it_again(cli: Cli, configure: Configure) -> None:
    """Pasted into a shell, as it stands."""
    configure(one=stdio(puppet(tools=["a"])))
    for words in (["one"], ["--env", "X=it's", "--", *puppet(tools=["a"])]):
        Path("a b.lock").write_text("{")
        done = cli("check", "--lock", "a b.lock", *words)
        advised = shlex.split(done.err.partition("again: holdfast ")[2])
        assert advised[:3] == ["lock", "--lock", "a b.lock"]
        assert advised[3:] == words
        Path("a b.lock").unlink()
        assert cli(*advised).code == 0

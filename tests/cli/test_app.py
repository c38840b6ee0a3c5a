"""Whatever happens becomes an exit code and a message, never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli import guide
from holdfast.cli.app import SERVER_OPTIONS, split
from holdfast.cli.main import VERBS, WITHOUT_SERVER
from holdfast.cli.verbs import listing
from tests.cli.conftest import DEMO, Cli, Configure, stdio


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tols"], "There is no verb 'tols'. Did you mean 'tools'? See 'holdfast --help'."),
        (["rm", "x"], "There is no verb 'rm'. Did you mean 'remove'?"),
        (["info"], "Did you mean 'describe'?"),
        (["demo.add", "a=1"], "There is no verb 'demo.add'. Did you mean 'call demo.add'?"),
        (["help", "tols"], "There is no verb 'tols'. Did you mean 'tools'?"),
        (["help", "config", "nope"], "No such command 'nope'"),
        (["xyzzy"], "There is no verb 'xyzzy'. See 'holdfast --help'."),
        (["--url", "x", "tools"], "No such option '--url'. Options stand after the verb"),
        (["-v"], "No such option '-v'"),
        ([""], "There is no verb ''"),
        (["call"], "Missing argument 'TOOL'.\nUsage: holdfast call [OPTIONS] TOOL"),
        (["tools", "--nope"], "No such option '--nope'"),
        (["tools", "--output", "json"], "No such option '--output'. Use --json."),
        (["ping", "x"], "'ping' is gone. Use: holdfast status NAME"),
        (["config", "show"], "'config show' is gone. Use: holdfast servers --files"),
        (["tools", "--timeout", "x"], "'x' is not a valid float"),
        (["config", "nope"], "No such command 'nope'"),
        (["completion", "tcsh"], "No completion for the shell 'tcsh'"),
        (["log", "diff", "a"], "Missing argument 'SECOND'"),
        (["servers", "x"], "unexpected extra argument"),
    ],
)
def test_wrong_words_are_told_and_cost_nothing(cli: Cli, words: list[str], said: str) -> None:
    done = cli(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("holdfast: ")
    assert said in done.err


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words", [["tols"], ["tools", "--nope"], ["config"], ["config", "nope"], ["call"]]
)
def test_wrong_words_are_told_in_json_too(cli: Cli, words: list[str]) -> None:
    done = cli(*words, "--json")
    assert (done.code, done.out) == (2, "")
    assert done.error["kind"] == "usage"


def test_half_a_command_shows_its_help(cli: Cli) -> None:
    done = cli("config")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: holdfast config")
    assert "untrust" in done.err


@pytest.mark.req("F3")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(cli: Cli, verb: str) -> None:
    done = cli(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: holdfast {verb} ")
    below = getattr(guide.command(verb), "commands", {})
    takes_server = verb not in WITHOUT_SERVER
    if below and takes_server:  # a group, whose verbs take the server
        done = cli(verb, next(iter(below)), "--help")
    assert (SERVER_OPTIONS in done.out) is (takes_server and verb not in ("add", "cli"))
    assert ("[-- COMMAND...]" in done.out) is takes_server


# The unexpected


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb with a bug."""

    def bug(**given: Any) -> None:
        raise RuntimeError("never thought of")

    monkeypatch.setattr(listing.servers, "callback", bug)


@pytest.mark.req("E2")
@pytest.mark.usefixtures("broken")
def test_a_bug_is_told_without_a_traceback(cli: Cli) -> None:
    done = cli("servers")
    assert (done.code, done.out) == (70, "")
    assert done.err.splitlines() == [
        "holdfast: RuntimeError: never thought of",
        "This is an internal error of holdfast; HOLDFAST_DEBUG=1 shows where.",
    ]
    assert cli("servers", "--json").error["kind"] == "fault"


@pytest.mark.usefixtures("broken")
def test_a_traceback_is_for_who_wants_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    done = cli("servers")
    assert done.code == 70
    assert "Traceback" in done.err
    assert 'raise RuntimeError("never thought of")' in done.err


@pytest.mark.parametrize("kind", [KeyboardInterrupt, EOFError, click.Abort])
def test_an_interrupt_is_one_wherever_it_comes_from(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def interrupted(**given: Any) -> None:
        raise kind

    monkeypatch.setattr(listing.servers, "callback", interrupted)
    done = cli("servers")
    assert (done.code, done.err) == (130, "holdfast: interrupted\n")


WORDS = (
    *("git", "git.x", "web", "f.json", "l.jsonl", "binary", ".", "/", "", "-", "--", "x=1", "x:={"),
    *("x=@binary", "=", "@", "--json", "{}", "[", "--url", "http://[", "-h"),
    *("http://x:99999/", "--header", "A:b", "--env", "A=b", "--cwd", "--config", "--timeout", "1"),
    *("--protocol", "--log", "calls.jsonl", "--lock", "holdfast.lock", "--offline", "--save"),
    *("show", "explain", "trust", "import", "--to", "out.json", "--as", "n", "--rename", "a=b"),
    *("--write", "--session", "--fill", "k=v", "--check", "-o", "out.py", "--level", "\ud800"),
)
QUICK = sorted(VERBS.keys() - {"demo", "watch", "serve", "view"})  # which run until they are ended


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.sampled_from(QUICK), st.lists(st.sampled_from(WORDS), max_size=5), st.booleans())
def test_whatever_is_typed_ends_in_a_documented_way(
    cli: Cli, configure: Configure, verb: str, words: list[str], is_command: bool
) -> None:
    configure(git=stdio(["no-such-command"]), web={"url": "http://127.0.0.1:1"})
    Path("binary").write_bytes(b"\xff\x00")
    Path("f.json").write_text('{"a": 1}')
    Path("l.jsonl").write_text('{"name": "echo", "arguments": {}}')
    done = cli(verb, *words, *(["--", "no-such-command"] if is_command else []), stdin="x\n")
    assert done.code in range(7), ascii(done.err)
    assert done.code == 0 or done.err or done.out
    assert "Traceback" not in done.err


def test_dashes_alone_are_half_a_command(cli: Cli) -> None:
    assert cli("--", "x").code == 2


# What stands after --


def test_the_command_is_what_stands_after_the_dashes() -> None:
    assert split(["call", "x", "--", "a", "--", "b"]) == (["call", "x"], ["a", "--", "b"])
    assert split(["call", "x"]) == (["call", "x"], None)
    assert split(["tools", "--"]) == (["tools"], [])
    assert split([]) == ([], None)


def test_a_verb_without_a_server_keeps_its_dashes(cli: Cli) -> None:
    words = ["config", "trust", "--", "-odd"]
    assert split(words) == (words, None)
    two = ["log", "diff", "--", "-a", "-b"]
    assert split(two) == (two, None)
    assert "no server '-odd'" in cli(*words).err
    assert "extra argument" in cli("servers", "--", *DEMO).err


def test_the_servers_own_options_are_its_own(cli: Cli) -> None:
    done = cli("tools", "--", "no-such-command", "--json")
    assert done.code == 3
    assert done.err.startswith("holdfast: ")

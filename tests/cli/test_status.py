"""``holdfast status``, and other verbs over all servers at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli import tool_cache
from holdfast.cli.verbs.status import summarize
from tests.cli import golden
from tests.cli.conftest import DEMO, Cli, Configure, Open, Seen, stdio
from tests.cli.rig import puppet, told, wait_for
from tests.cli.terminal import PATIENCE, interruptible
from tests.cli.web import Web


@pytest.fixture
def servers(configure: Configure) -> None:
    """One server of each state, but for a login."""
    configure(
        demo=stdio(DEMO),
        gone=stdio(["no-such-command"]),
        off=stdio(DEMO, disabled=True),
    )
    text = json.dumps({"mcpServers": {"theirs": stdio(DEMO)}})
    Path(".mcp.json").write_text(text, encoding="utf-8")


@pytest.mark.req("F3", "N2")
def test_all_servers_have_a_line_each(cli: Cli, servers: None) -> None:
    done = cli("status")
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in done.out.splitlines()}
    assert lines["demo"][0] == "ready"
    assert re.fullmatch(r"12 tools, [\d.]+ m?s", lines["demo"][1])
    assert lines["gone"] == ["offline", "command not found: 'no-such-command'"]
    assert lines["theirs"] == ["not approved", "holdfast config trust theirs"]
    assert lines["off"][0] == "disabled"
    assert done.code in (3, 5)
    assert done.err == "1 ready, 1 not approved, 1 disabled, 1 failed\n"


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("reading .env\nTOKEN is not set", "TOKEN is not set"),
        (
            "Error: no module 'x'\n    at load (cjs:1)\n{ code: 'E' }\n\nNode.js v20",
            "Error: no module 'x'",
        ),
        ("Traceback:\n  raise ValueError(1)\nValueError: 1", "ValueError: 1"),
    ],
    ids=["plain", "node", "python"],
)
def test_a_server_that_exits_is_shown_with_its_last_words(
    cli: Cli, configure: Configure, stderr: str, words: str
) -> None:
    configure(x=stdio(puppet(exit=3, stderr=stderr)))
    assert cli("status").out == f"x\toffline\tthe server exited with code 3: {words}\n"


def test_a_state_is_there_as_json(cli: Cli, servers: None) -> None:
    found = cli("status", "demo", "--json").value["servers"]
    assert [(one["name"], one["state"], one["tools"]) for one in found] == [("demo", "ready", 12)]
    done = cli("status", "gone", "--json")
    assert done.error["kind"] == "status"
    assert done.value["servers"][0]["state"] == "offline"


def test_without_servers_it_says_how_to_add_one(cli: Cli) -> None:
    done = cli("status")
    assert done.code == 0
    assert "holdfast add NAME" in done.err


def test_a_terminal_shows_each_state(seen: Seen, servers: None) -> None:
    screen = seen("status", "gone", "off", "theirs")
    lines = [line.split() for line in screen.lines if line[:1] in "!·✗"]
    assert sorted(line[:3] for line in lines) == [
        ["!", "theirs", "not"],
        ["·", "off", "disabled"],
        ["✗", "gone", "offline"],
    ]
    assert "!  theirs  not approved  holdfast config trust theirs" in screen.lines


@pytest.mark.req("N2")
def test_a_server_that_wants_a_login_says_how_to_log_in(
    cli: Cli, configure: Configure, web: Web
) -> None:
    configure(web={"url": web.url})
    web.refuse = 401
    done = cli("status")
    assert (done.code, done.out) == (5, "web\tneeds login\tholdfast login web\n")


def test_what_was_seen_is_there_for_tab(cli: Cli, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a"])))
    for words in (["status"], ["doctor", "one"]):
        assert cli(*words).code == 0
        assert cli("tools", "one", "--offline").out == "a()\tDoes a.\n"
        Path(tool_cache.path_for("one")).unlink()


# Tools of many servers


@pytest.mark.req("F3", "N3")
def test_the_tools_of_several_servers_are_grouped(cli: Cli, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a"])), two=stdio(puppet(tools=["b"])))
    assert cli("tools").out == "one.a()\tDoes a.\ntwo.b()\tDoes b.\n"
    assert cli("tools", "two", "one").out == "two.b()\tDoes b.\none.a()\tDoes a.\n"
    found = cli("tools", "--json").value["servers"]
    assert [one["tools"][0]["name"] for one in found] == ["a", "b"]


def test_a_server_that_is_gone_does_not_hide_the_others(cli: Cli, servers: None) -> None:
    done = cli("tools", "demo", "gone")
    assert done.code == 3
    assert "demo.add(a: float, b: float)\tAdds two numbers." in done.out
    assert "gone: offline: command not found" in done.err


@pytest.mark.req("F3")
def test_tools_are_found_by_words(cli: Cli, configure: Configure) -> None:
    configure(demo=stdio(DEMO))
    assert cli("search", "count", "words").out.startswith("demo.word_count(text: str)\t")
    first = cli("search", "two numbers", "--json").value["tools"][0]
    assert first["tool"] == "demo.add"
    assert cli("search", "xyzzy").code == 1


@pytest.mark.req("F3")
def test_a_server_is_described_in_short(cli: Cli, configure: Configure, seen: Seen) -> None:
    configure(demo=stdio(DEMO))
    done = cli("describe", "demo")
    assert done.out.startswith("demo: holdfast-demo 1.0.0, protocol ")
    for line in (
        "Tools:",
        "  add(a: float, b: float)  Adds two numbers.",
        "Resources:",
        "Prompts:",
    ):
        assert line in done.out.splitlines()
    assert cli("describe", "demo", "--json").value["tools"][0]["name"] == "echo"
    assert cli("describe", "demo", "add").out == cli("describe", "demo.add").out


@pytest.mark.req("N3")
def test_a_terminal_shows_signatures(seen: Seen) -> None:
    golden.check("tools-demo-80", seen("tools", "--", *DEMO).lines)


# Held open


@pytest.mark.req("N3")
def test_a_watched_server_that_dies_comes_back_before_the_eyes(
    terminal: Open, servers: None, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    command = puppet(tools=["a", "b"], journal=str(journal), fatal=["ping"])
    words = ["status", "--watch", "--protocol", "2025-11-25", "--", *command]
    watched = terminal(*words, columns=120)
    watched.see("lost")
    watched.see("  1  ")
    wait_for(journal, "tools/list")
    watched.see("1 ready")
    watched.send("\x03")
    assert watched.end() == 130
    assert len(told(journal, "initialize")) >= 2


@pytest.mark.req("N3")
@pytest.mark.parametrize("columns", [80, 120])
def test_all_servers_are_watched_in_one_table(terminal: Open, servers: None, columns: int) -> None:
    watched = terminal("status", "--watch", columns=columns)
    watched.see("1 ready, 1 not approved, 1 disabled, 1 failed")
    watched.see(" ms")
    lines = [line for line in watched.screen.lines if line[:1] in "✓✗!·"]
    watched.send("\x03")
    assert watched.end() == 130
    timeless = (re.sub(r" {3}\d[\d.]* ms| +[\d.]+ m?s", "  N ms", line) for line in lines)
    rows = [re.sub(r"  in /.*", "  in FILE", line) for line in timeless]
    golden.check(f"screen-watch-{columns}", rows)


@pytest.mark.req("N3")
def test_a_narrow_terminal_has_the_names_whole(terminal: Open, servers: None) -> None:
    watched = terminal("status", "--watch", columns=40)
    watched.see("✓  demo    ready")
    watched.see("!  theirs  not approved  hol")
    watched.send("\x03")
    assert watched.end() == 130


@pytest.mark.req("N3")
def test_a_pipe_gets_a_line_for_each_change(home: Path, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a"])), gone=stdio(["no-such-command"]))
    command = [sys.executable, "-m", "holdfast", "status", "--watch", "--json"]
    with subprocess.Popen(
        interruptible(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        states: set[tuple[str, str]] = set()
        while not {("one", "ready"), ("gone", "offline")} <= states:
            row = json.loads(running.stdout.readline())
            states.add((row["name"], row["state"]))
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(PATIENCE) == 130
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert ("one", "starting") in states


def test_a_state_has_one_word_in_the_summary() -> None:
    states = ["ready", "offline", "needs login", "broken", "backoff", "ready"]
    assert summarize(states) == "2 ready, 1 needs login, 2 failed, 1 coming back"
    assert summarize([]) == ""

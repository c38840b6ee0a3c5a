"""``holdfast watch``: a line for each thing that happens, until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli, Open
from tests.cli.rig import puppet
from tests.cli.terminal import PATIENCE, interruptible

SAID = [
    ["notifications/message", {"level": "info", "logger": "x", "data": "two words"}],
    ["notifications/message", {"level": "error", "data": {"a": ["\x1b[2J\nmore"]}}],
    ["notifications/resources/updated", {"uri": "demo://x", "time": 1, "what": 2}],
]


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = interruptible([sys.executable, "-m", "holdfast", "watch", *words])
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def until(running: subprocess.Popen[str], *texts: str) -> list[str]:
    """The lines up to the last of some texts, which come in this order."""
    assert running.stdout is not None
    found: list[str] = []
    for text in texts:
        while not found or text not in found[-1]:
            line = running.stdout.readline()
            assert line, f"ended without {text!r}: {found}"
            found.append(line.rstrip("\n"))
    return found


@pytest.mark.req("F3")
def test_what_a_server_says_comes_as_lines(home: Path) -> None:
    with watching("--", *puppet(notify=SAID)) as running:
        lines = until(running, "ready", "updated")
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    said = [line.split(" ", 1)[1] for line in lines]
    assert said[0].startswith("connection state=starting")
    assert "message level=info logger=x two words" in said
    assert 'message level=error {"a": ["\\u001b[2J\\nmore"]}' in said
    assert "resources/updated uri=demo://x time=1 what=2" in said
    assert (running.returncode, out, err) == (130, "", "")


@pytest.mark.req("F3")
def test_as_json_nothing_is_lost(home: Path) -> None:
    with watching("--json", "--", *puppet(notify=SAID)) as running:
        lines = [json.loads(line) for line in until(running, "ready", "updated")]
    assert [one["params"] for one in lines if one["what"] != "connection"] == [
        params for _, params in SAID
    ]
    assert lines[0]["what"] == "connection"
    assert lines[0]["params"]["state"] == "starting"
    assert lines[0]["time"] > 1e9


@pytest.mark.req("F3")
def test_a_lost_connection_comes_back_and_says_so(home: Path) -> None:
    with watching("--", *puppet(notify=SAID[:1], brief=True)) as running:
        lines = until(running, "state=ready", "two words", "state=backoff", "state=ready")
    backoff = next(line for line in lines if "backoff" in line)
    assert "exited" in backoff


@pytest.mark.req("F3")
def test_a_server_that_dies_of_what_it_is_asked_for_comes_back_too(home: Path) -> None:
    with watching("--level", "info", "--", *puppet(fatal=["logging/setLevel"])) as running:
        lines = until(running, "state=ready", "state=backoff", "state=ready")
    assert not any("closed" in line for line in lines)


@pytest.mark.req("F3")
@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_log_messages_and_resources_are_asked_for(
    terminal: Open, tmp_path: Path, protocol: str
) -> None:
    words = ["--level", "debug", "--resource", "demo://about", "--protocol", protocol]
    one = terminal("watch", *words, "--", *DEMO)
    one.expect("state=ready")
    one.send("\x03")
    assert one.end() == 130
    assert one.text.endswith("^C\n")


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--level", "loud", "--", *DEMO], 2, "log level 'loud': must be one of debug,"),
        (["--resource", "x:y", "--protocol", "2025-11-25", "--", *puppet()], 1, "no resources"),
        (["--", "no-such-command"], 3, "command not found"),
        (["x", "y"], 2, "Not understood: y"),
    ],
)
def test_what_cannot_be_watched_is_told(cli: Cli, words: list[str], code: int, said: str) -> None:
    done = cli("watch", *words)
    assert done.code == code
    assert said in done.err


@pytest.mark.req("F3")
def test_a_reader_that_has_gone_ends_it_without_a_word(home: Path) -> None:
    with watching("--", *puppet(notify=SAID, brief=True)) as running:
        until(running, "starting")
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.wait(PATIENCE) == 141
        assert running.stderr.read() == ""

"""The demo, run the way people run it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from holdfast.demo.story import Screen

COMMAND = (sys.executable, "-m", "holdfast.demo")
STEP = re.compile(r"log  DEBUG holdfast demo: (\w+) → (\w+)")


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return subprocess.run(
        [*COMMAND, *options],
        env={**env, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )


@pytest.fixture(scope="module")
def story() -> str:
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def places(story: str, *parts: str) -> list[int]:
    """Where each part stands, looked for after the one before it."""
    found, start = [], 0
    for part in parts:
        start = story.find(part, start)
        assert start >= 0, f"{part!r} is missing, or not in its place:\n{story}"
        found.append(start)
    return found


@pytest.mark.req("F1")
def test_it_lists_calls_and_reads(story: str) -> None:
    places(
        story,
        "connect() starts nothing yet",
        "echo, add, word_count",
        "holdfast-demo 1.0.0",
        "text 'hold fast'",
        "structured {'sum': 42}",
        "progress 1/3",
        "progress 3/3",
        "image of",
        "is_error True: out of paper",
        "the weed holds on to the stone",
        "Greet Ada",
    )


@pytest.mark.req("E2", "R11")
def test_a_server_killed_in_the_middle_of_a_call_is_told_with_what_is_known(story: str) -> None:
    places(
        story,
        "progress 1/100",
        "kill -9",
        "TransportError: demo: tools/call 'countdown': the server was killed by SIGKILL",
        "it may have run",
        "outcome_unknown=True  state=backoff",
    )


@pytest.mark.req("L11")
def test_a_call_meanwhile_fails_at_once_and_tells_the_next_attempt(story: str) -> None:
    (place, *_) = places(story, "StateError: demo: tools/call 'add': the server is down")
    assert re.search(r"next attempt in [\d.]+ m?s", story[place:])
    assert re.search(r"retry_in=[\d.]+  after [\d.]+ms  state=backoff", story[place:])


@pytest.mark.req("L5")
def test_the_server_comes_back_by_itself_and_the_next_call_works(story: str) -> None:
    places(story, "StateError", "ready again, in a new process", "structured {'sum': 2}")
    assert re.search(r"^All \d+ checks passed in [\d.]+ s\.$", story, re.M)


@pytest.mark.req("L1")
def test_every_state_is_seen_in_the_log_with_v() -> None:
    done = run("-v")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = STEP.findall(done.stdout)
    come_up = [("starting", "initializing"), ("initializing", "ready")]
    assert steps == [
        ("new", "starting"),
        *come_up,
        ("ready", "backoff"),
        ("backoff", "starting"),
        *come_up,
        ("ready", "closing"),
        ("closing", "closed"),
    ]


def test_without_v_there_is_no_log(story: str) -> None:
    assert "holdfast.audit" not in story
    assert not STEP.search(story)


def test_an_unknown_option_is_refused() -> None:
    done = run("--loud")
    assert done.returncode == 1
    assert "usage: python -m holdfast.demo [-v]" in done.stderr


def test_without_a_terminal_there_is_no_colour(story: str) -> None:
    assert "\x1b" not in story


def test_it_fails_when_the_server_cannot_start() -> None:
    code = "import runpy, sys; sys.executable = '/no/such/python'; sys.argv = ['demo']; "
    code += "runpy.run_module('holdfast.demo', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 1
    assert "command not found: '/no/such/python' does not exist" in done.stdout
    assert "checks passed" not in done.stdout
    assert done.stderr == ""


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(50) == 1


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_on_a_terminal_lines_fit_and_colour_can_be_refused(
    columns: int, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_to_terminal(columns, environment, monkeypatch)
    assert ("\x1b[31m" in text) is (not environment)
    lines = re.sub(r"\x1b\[\d+m", "", text).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) < columns
    assert lines[1].startswith("        word")


def write_to_terminal(
    columns: int, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What a screen writes for one long error on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    monkeypatch.setenv("COLUMNS", str(columns))
    with open(theirs, "w", encoding="utf-8") as terminal, open(ours, "rb", buffering=0) as side:
        screen = Screen(terminal, environment)
        screen.line("!!", "word " * 60)
        screen.line("", "the end")
        text = ""
        while "the end" not in text:
            text += side.read(10_000).decode()
        return text.replace("\r\n", "\n")


@pytest.mark.req("W2")
def test_it_ends_with_a_page_of_what_crossed_the_wire(story: str) -> None:
    (place,) = places(story, "What crossed the wire, as a page to open in a browser:")
    page = Path("".join(story[place:].splitlines()[1:]).replace(" ", ""))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")

"""The status line on stderr, for a person, while something is waited for."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import holdfast
from holdfast import Progress
from holdfast.cli.progress import StatusLine
from holdfast.cli.progress import line as status_line
from holdfast.events import ServerStarting, Transition
from tests.cli.conftest import DEMO, Cli, Open, Seen
from tests.cli.rig import puppet
from tests.cli.terminal import PATIENCE, Screen, attached


@pytest.mark.req("F3")
def test_the_bar_is_on_stderr_and_gone_afterwards(terminal: Open, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = terminal("call", "countdown", "steps=20", "seconds=0.02", "--", *DEMO, stdout=out)
    assert one.end() == 0
    assert out.read_text() == "counted down from 20\n"
    assert "to go" in one.text
    assert "%" in one.text
    assert one.screen.lines == []


@pytest.mark.req("F3")
def test_the_bar_fits_a_narrow_window(terminal: Open) -> None:
    one = terminal("call", "countdown", "steps=20", "seconds=0.02", "--", *DEMO, columns=30)
    assert one.end() == 0
    assert "to go" in one.text
    assert one.screen.lines == ["counted down from 20"]


def test_a_narrow_window_shows_what_is_waited_for_and_for_how_long() -> None:
    detail = " (it may be downloading)"
    assert status_line("starting npx", detail, 12, None, 30) == "⠋ starting npx … 12 s"
    assert status_line("starting npx", detail, 12, None, 80) == f"⠋ starting npx … 12 s{detail}"


def test_there_is_no_bar_where_nobody_looks(cli: Cli) -> None:
    done = cli("call", "countdown", "steps=3", "--", *DEMO)
    assert (done.code, done.out, done.err) == (0, "counted down from 3\n", "")


def at(done: float, message: str | None = None, total: float | None = 10) -> Progress:
    return Progress(progress_token=1, progress=done, total=total, message=message)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatusLine]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("holdfast.cli.progress.PATIENCE", 0.0)
    line = StatusLine()
    yield line
    line.end()


def shown(screen: Screen, pattern: str) -> None:
    """Wait until a text is drawn."""
    deadline = time.monotonic() + PATIENCE
    while re.search(pattern, screen.text) is None:
        assert time.monotonic() < deadline, screen.text
        time.sleep(0.01)


def test_words_outside_a_call_draw_nothing(
    line: StatusLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with attached(monkeypatch) as screen:
        line.update(at(1))
        line.begin("work")
        with line.aside():
            line.update(at(2))
        line.end()
        line.update(at(3))
    assert screen.raw == b""


def test_the_line_comes_back_after_a_question(
    line: StatusLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with attached(monkeypatch) as screen:
        line.begin("work")
        line.update(at(1, "before"))
        with line.aside():
            line.update(at(2, "meanwhile"))
        line.update(at(3, "after \x1b[31m[red]"))
        line.end()
    assert "before" in screen.text
    assert "meanwhile" not in screen.text
    assert "after \\x1b[31m[red]" in screen.text
    assert screen.lines == []


def test_the_line_does_not_come_back_after_a_question_that_was_interrupted(
    line: StatusLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with attached(monkeypatch) as screen:
        line.begin("work")
        with pytest.raises(KeyboardInterrupt), line.aside():
            raise KeyboardInterrupt
        line.update(at(1, "after"))
    assert screen.raw == b""


@pytest.mark.req("N1")
def test_a_slow_start_is_shown_and_wiped_away(
    line: StatusLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = holdfast.connect(["npx", "thing"])
    with attached(monkeypatch) as screen:
        assert line.begin(f"connecting to {client.name}")
        line.follow(client)
        shown(screen, r"connecting to npx … \d+ s")
        client.events.emit(ServerStarting(client="npx", elapsed=7.2))
        shown(screen, r"starting npx … \d+ s \(it may be downloading\)")
        client.events.emit(Transition(client="npx", old="initializing", new="ready"))
        shown(screen, r"waiting for npx … \d+ s")
        line.end()
    assert screen.lines == []


@pytest.mark.req("N3")
def test_a_wait_of_more_than_half_a_second_is_shown(terminal: Open, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    one = terminal("tools", "--", *puppet(gate=str(gate)))
    one.expect("connecting to", "starting")
    gate.write_text("go")
    assert one.end() == 0
    assert one.screen.lines[0] == "echo()"


@pytest.mark.req("N3")
def test_nothing_is_drawn_for_a_quick_answer_nor_beside_json(
    seen: Seen, terminal: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as slow:
        slow.setattr("holdfast.cli.progress.PATIENCE", 600.0)  # however slow, it is quick
        assert " … " not in seen("tools", "--", *puppet(delay=0.3)).text
    one = terminal("tools", "--json", "--", *puppet(delay=0.7))
    assert one.end() == 0
    assert " … " not in one.text


@given(
    words=st.text(max_size=90),
    more=st.sampled_from(["", " (it may be downloading)"]),
    elapsed=st.floats(0, 1e5),
    progress=st.none() | st.builds(at, st.floats(0, 20), st.text(max_size=90)),
    columns=st.integers(20, 200),
)
def test_the_line_fits_its_window(
    words: str, more: str, elapsed: float, progress: Progress | None, columns: int
) -> None:
    text = status_line(words, more, elapsed, progress, columns)
    assert cell_len(text) < columns
    assert len(text.splitlines()) == 1

"""A bar on stderr, for a person, while a call runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast import Progress
from holdfast.cli.progress import Bar, StartNotice
from holdfast.events import ServerStarting, Transition
from tests.cli.conftest import DEMO, Cli, Open
from tests.cli.terminal import attached


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


def test_there_is_no_bar_where_nobody_looks(cli: Cli) -> None:
    done = cli("call", "countdown", "steps=3", "--", *DEMO)
    assert (done.code, done.out, done.err) == (0, "counted down from 3\n", "")


def at(done: float, message: str | None = None) -> Progress:
    return Progress(progress_token=1, progress=done, total=10, message=message)


def test_words_outside_a_call_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with attached(monkeypatch) as screen:
        bar = Bar()
        bar.update(at(1))
        with bar.over("work"), bar.aside():
            bar.update(at(2))
        bar.update(at(3))
    assert screen.raw == b""


def test_the_bar_comes_back_after_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with attached(monkeypatch) as screen:
        bar = Bar()
        with bar.over("work"):
            bar.update(at(1, "before"))
            with bar.aside():
                bar.update(at(2, "meanwhile"))
            bar.update(at(3, "after \x1b[31m[red]"))
    assert "before" in screen.text
    assert "meanwhile" not in screen.text
    assert json.dumps("after \x1b[31m")[1:-1].replace("u00", "x") in screen.text
    assert "[red]" in screen.text


@pytest.mark.req("F3")
def test_a_slow_start_is_shown_and_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    client = holdfast.connect(["npx", "thing"])
    with attached(monkeypatch) as screen:
        assert StartNotice.wanted()
        StartNotice(client)
        client.events.emit(ServerStarting(client="npx", elapsed=7.2))
        client.events.emit(Transition(client="npx", old="opening", new="ready"))
    assert "starting npx … 7 s (it may be downloading)" in screen.text
    assert screen.lines == []

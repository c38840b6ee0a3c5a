"""The line editor: completion and history."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path

import pytest

from holdfast.cli.verbs.shell import ask, completer, editing, history_file


def test_history_is_kept_where_state_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert history_file() == home / "state" / "holdfast" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert history_file() == home / ".local" / "state" / "holdfast" / "history"


def test_without_a_terminal_there_is_neither(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
    with editing(lambda line: []):
        assert ask("prompt> ") == "one"
        with pytest.raises(EOFError):
            ask("prompt> ")
    assert not history_file().exists()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.req("E2")
def test_what_tab_puts_into_the_line_is_one_line_that_can_be_seen() -> None:
    complete = completer(lambda line: ["a\nexit\n=", "b\u200b"])
    assert [complete("", at) for at in range(3)] == [r"a\nexit\n=", r"b\u200b ", None]


class Keyboard(io.StringIO):
    """Somebody at a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_typed_is_nobody_elses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    history_file().parent.mkdir(parents=True)
    history_file().touch(mode=0o644)
    with editing(lambda line: []):
        pass
    assert stat.S_IMODE(history_file().stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_done_without(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
    with editing(lambda line: []):
        pass


def test_the_prompt_stays_out_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard("one\n"))
    assert ask("prompt> ") == "one"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "prompt> ")

"""tools/fuzz.py finds what breaks a target, and keeps it for the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS
from tools import fuzz


def test_a_broken_target_is_found_and_the_input_is_small(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(data: bytes) -> None:
        assert b"\r" not in data, "a carriage return"

    tried, found = fuzz.by_chance("lines", broken, 20)
    assert tried
    assert found is not None
    assert b"\r" in found
    assert len(found) <= 40
    assert "lines: AssertionError: a carriage return" in capsys.readouterr().err


def test_a_target_that_holds_is_tried_until_the_time_is_over() -> None:
    tried, found = fuzz.by_chance("lines", lambda data: None, 0.01)
    assert tried >= fuzz.ROUND
    assert found is None


def test_what_was_found_is_kept_in_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path)
    (tmp_path / "lines").mkdir()
    path = fuzz.keep("lines", b"\0abc")
    assert path.parent == tmp_path / "lines"
    assert path.read_bytes() == b"\0abc"
    assert fuzz.keep("lines", b"\0abc") == path


def test_an_unknown_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz.main(["nothing"])
    assert f"there are: {', '.join(TARGETS)}" in capsys.readouterr().err


def test_the_number_of_runs_is_read_from_the_last_word() -> None:
    assert fuzz._runs(b"#3 NEW\nDone 12345 runs in 10 second(s)\n") == 12345
    assert fuzz._runs(b"crashed") == 0

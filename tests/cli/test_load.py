"""``holdfast load``: recorded calls again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli

CALLS = '{"name": "add", "arguments": {"a": 1, "b": 2}}\n{"name": "fail", "arguments": {}}\n'


@pytest.mark.req("S4")
def test_calls_are_repeated_and_counted_by_tool(cli: Cli, tmp_path: Path) -> None:
    sequence, page = tmp_path / "calls.jsonl", tmp_path / "load.html"
    sequence.write_text(CALLS.splitlines()[0] + "\n")
    words = ("load", str(sequence), "-j", "4", "--for", "0.3s", "-y", "--json")
    done = cli(*words, "--html", str(page), "--", *DEMO)
    assert done.code == 0, done.err
    assert done.value["total"]["ok"] == done.value["total"]["calls"] > 0
    assert list(done.value["tools"]) == ["add"]
    assert done.value["tools"]["add"]["p99"] > 0
    assert "Content-Security-Policy" in page.read_text()


@pytest.mark.req("S4")
@pytest.mark.parametrize("time", ["0", "-1s", "2x", "s", "nan", "9999h"])
def test_a_time_that_is_none_is_refused(cli: Cli, tmp_path: Path, time: str) -> None:
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text(CALLS)
    done = cli("load", str(sequence), "--for", time, "-y", "--", *DEMO)
    assert (done.code, f"--for {time}: must be a time" in done.err) == (2, True)


@pytest.mark.req("S4")
def test_what_is_not_declared_harmless_is_asked_about(cli: Cli, tmp_path: Path) -> None:
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text('{"name": "crash", "arguments": {}}\n')
    done = cli("load", str(sequence), "--for", "0.2s", "--", *DEMO)
    assert done.code == 2
    assert "Nothing was sent. Add --yes" in done.err


@pytest.mark.req("S4")
def test_an_empty_log_is_refused(cli: Cli, tmp_path: Path) -> None:
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text("")
    done = cli("load", str(sequence), "--for", "0.2s", "-y", "--", *DEMO)
    assert done.code == 2
    assert "no call" in done.err

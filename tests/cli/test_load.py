"""``holdfast load``: recorded calls again and again."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli, Seen

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


@pytest.mark.req("S4")
def test_a_page_that_cannot_be_written_is_told_first(cli: Cli, tmp_path: Path) -> None:
    sequence, page = tmp_path / "calls.jsonl", tmp_path / "none" / "load.html"
    sequence.write_text(CALLS)
    done = cli("load", str(sequence), "--for", "1h", "-y", "--html", str(page), "--", *DEMO)
    assert done.code == 2
    assert "there is no such folder" in done.err


@pytest.mark.req("S4")
def test_calls_that_wait_for_the_rate_are_not_begun(cli: Cli, tmp_path: Path) -> None:
    """They waited at the limit, which counted as the server's time, and after the test's end."""
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text(CALLS.splitlines()[0] + "\n")
    words = ("load", str(sequence), "-j", "50", "--for", "0.5s", "--rate", "20/s", "-y", "--json")
    done = cli(*words, "--", *DEMO)
    assert done.code == 0, done.err
    assert 1 <= done.value["total"]["calls"] <= 20 * 0.5 + 3


@pytest.mark.req("S4")
@pytest.mark.parametrize("columns", [40, 120])
def test_every_number_has_its_name_on_every_terminal(
    seen: Seen, tmp_path: Path, columns: int
) -> None:
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text(CALLS.splitlines()[0] + "\n")
    screen = seen("load", str(sequence), "--for", "0.2s", "-y", "--", *DEMO, columns=columns)
    text = " ".join(screen.text.split())
    for name in ("calls", "ok", "error", "unknown", "p50", "p95", "p99", "max"):
        assert re.search(rf"\b{name} \d" if columns == 40 else rf"tool .*\b{name}\b", text), text


@pytest.mark.req("S4")
def test_a_folder_is_no_page(cli: Cli, tmp_path: Path) -> None:
    sequence = tmp_path / "calls.jsonl"
    sequence.write_text(CALLS)
    done = cli("load", str(sequence), "--for", "1h", "-y", "--html", str(tmp_path), "--", *DEMO)
    assert done.code == 2
    assert f"--html {tmp_path}: is a folder" in done.err


@pytest.mark.req("S4")
def test_an_interrupt_reports_what_there_is(tmp_path: Path) -> None:
    sequence, page, seen = tmp_path / "calls.jsonl", tmp_path / "load.html", tmp_path / "seen"
    sequence.write_text(CALLS.splitlines()[0] + "\n")
    seen.touch()
    server = ["sh", "-c", f"tee {shlex.quote(str(seen))} | {shlex.join(DEMO)}"]
    command = [sys.executable, "-m", "holdfast", "load", str(sequence), "-j", "2", "--for", "1h"]
    with subprocess.Popen(
        [*command, "-y", "--json", "--html", str(page), "--", *server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while process.poll() is None and seen.read_text().count("tools/call") < 20:
            threading.Event().wait(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert json.loads(out)["total"]["ok"] >= 18
    assert json.loads(err)["error"]["kind"] == "interrupted"
    assert "Calls per second" in page.read_text()

"""``holdfast view`` on servers, and on a trace that grows."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from holdfast.cli.output import Exit
from tests.cli.conftest import Cli

SERVER = [sys.executable, "-m", "holdfast.demo.server"]
HEADER = '{"holdfast-trace": 1, "started": "2026-07-29T10:14:03Z"}\n'


def served(words: list[str]) -> None:
    """Serve a page, look at it, and end it as a person does."""
    command = [sys.executable, "-m", "holdfast", "view", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url) as answer:
            assert b"<title>Holdfast</title>" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == Exit.INTERRUPTED


@pytest.mark.req("W3")
def test_a_command_is_served_until_ctrl_c() -> None:
    served(["--", *SERVER])


@pytest.mark.req("W3")
def test_a_trace_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(HEADER)
    served(["--live", str(tmp_path / "run.jsonl")])


@pytest.mark.req("W3")
def test_wrong_words_are_explained(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    trace.write_text(HEADER)
    for words, text in [
        (["view"], "Which trace, or which server?"),
        (["view", "nosuch"], "There is no trace and no server 'nosuch'"),
        (["view", "--live"], "Give one trace"),
        (["view", "--live", str(trace), "--", "x"], "Give one trace"),
        (["view", "--live", str(trace), "-o", "x.html"], "A live page is no file"),
        (["view", "--live", str(tmp_path / "none.jsonl")], "No such file"),
        (["view", str(trace), "--port", "99999", "--live"], "--port 99999"),
    ]:
        result = cli(*words)
        assert result.code != Exit.OK, words
        assert text in result.err, (words, result.err)

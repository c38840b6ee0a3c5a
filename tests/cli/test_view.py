"""``holdfast view``: a page from a trace, or the trace for another viewer."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.view.sample import bad_day


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(bad_day(20), encoding="utf-8")
    return path


@pytest.mark.req("W2")
def test_a_page_is_written_beside_the_trace(cli: Cli, trace: Path) -> None:
    done = cli("view", str(trace))
    assert (done.code, done.out.strip(), done.err) == (0, str(trace.with_suffix(".html")), "")
    page = trace.with_suffix(".html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Content-Security-Policy" in page


@pytest.mark.req("W2")
def test_a_trace_may_come_by_standard_input(
    process: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = process("view", "-", stdin=trace.read_text(encoding="utf-8"))
    assert (done.code, done.out.strip()) == (0, "stdin.html")
    assert Path("stdin.html").exists()


@pytest.mark.req("W4")
@pytest.mark.parametrize(
    ("form", "key"), [("har", "log"), ("otlp", "resourceSpans"), ("chrome", "traceEvents")]
)
def test_it_is_written_for_another_viewer(cli: Cli, trace: Path, form: str, key: str) -> None:
    target = trace.with_name("other.json")
    done = cli("view", str(trace), "--to", form, "-o", str(target), "--json")
    assert json.loads(done.out) == {"file": str(target), "cut": False, "unreadable": 0}
    assert key in json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.req("W2")
def test_rotated_files_are_one_trace(cli: Cli, trace: Path) -> None:
    lines = trace.read_text(encoding="utf-8").splitlines(keepends=True)
    half = len(lines) // 2
    trace.with_name("run.jsonl.1").write_text("".join(lines[:half]), encoding="utf-8")
    trace.write_text(lines[0] + "".join(lines[half:]), encoding="utf-8")
    target = trace.with_name("all.json")
    assert cli("view", str(trace), "--to", "har", "-o", str(target)).code == 0
    entries = json.loads(target.read_text(encoding="utf-8"))["log"]["entries"]
    assert len(entries) == sum(json.loads(line).get("kind") == "request" for line in lines) > 0


@pytest.mark.req("W2")
def test_what_is_missing_is_said(cli: Cli, trace: Path) -> None:
    text = trace.read_text(encoding="utf-8")
    trace.write_text(text.replace("\n", "\nnot json\n", 1)[:-5], encoding="utf-8")
    done = cli("view", str(trace))
    assert done.code == 0
    assert "The end of the trace is missing" in done.err
    assert "Lines that cannot be read: 1, the first in line 2" in done.err


@pytest.mark.req("W2")
def test_a_line_without_an_end_is_not_held_in_memory(
    cli: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.trace.format.LONGEST_LINE", 1000)
    text = trace.read_text(encoding="utf-8")
    # What stands behind the bound looks like a line, and is none.
    inside = "x" * 1001 + '{"t": 1, "kind": "stderr", "text": "smuggled"}'
    trace.write_text(text.replace("\n", f"\n{inside}\n", 1), encoding="utf-8")
    done = cli("view", str(trace))
    reason = "Lines that cannot be read: 1, the first in line 2: longer than 1000 bytes"
    assert (done.code, reason in done.err) == (0, True)


@pytest.mark.req("W2")
def test_wrong_input_is_refused_and_nothing_is_lost(cli: Cli, trace: Path, tmp_path: Path) -> None:
    before = trace.read_bytes()
    other = tmp_path / "notes.txt"
    other.write_text("hello\n", encoding="utf-8")
    log, page, empty, older = (tmp_path / name for name in ("l", "p", "e", "run.jsonl.1"))
    log.write_text('{"name":"add","arguments":{},"_phase":"before","_seq":1}\n', encoding="utf-8")
    page.write_text("<!doctype html>\n", encoding="utf-8")
    empty.touch()
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(before))
    older.write_bytes(before)
    har, later = tmp_path / "run.har", tmp_path / "later.jsonl"
    assert cli("view", str(trace), "--to", "har", "-o", str(har)).code == 0
    later.write_bytes(before.replace(b'"holdfast-trace":1', b'"holdfast-trace":9', 1))
    for words, reason in [
        ([str(log)], "it is a call log; --trace-file"),
        ([str(page)], "it is a page; open it in a browser"),
        ([str(empty)], "it is empty"),
        ([str(packed)], "it is compressed; gunzip -c FILE | holdfast view -"),
        ([str(trace), "-o", str(older)], "this is the trace itself"),
        ([str(tmp_path / "none.jsonl")], "none.jsonl: no such file; --trace-file writes"),
        ([str(tmp_path)], "a folder; give the trace in it"),
        (["."], ".: a folder; give the trace in it"),
        ([str(har)], f"{har}: not a trace: it is a HAR"),
        ([str(later)], "a trace of version 9, of a later Holdfast; this one reads version 1"),
        ([str(trace), str(har)], "run.jsonl is a trace: give it alone"),
        (["-", "--live"], "--live follows a file that grows"),
        ([str(trace), "-o", str(tmp_path)], "a folder; give a file in it with -o"),
        ([str(trace), "-o", "-", "--open"], "--open shows a file"),
        ([str(other)], "not a trace: its first line is not a header; --trace-file"),
        ([str(trace), "-o", str(trace)], "this is the trace itself"),
        ([str(trace), "-o", str(tmp_path / "no" / "where.html")], "there is no folder"),
        ([str(trace), "--open", "--to", "har"], "--open shows the page"),
        ([str(trace), "--to", "pdf"], "'pdf' is not one of"),
    ]:
        done = cli("view", *words)
        assert done.code == 2, words
        assert reason in done.err
    assert trace.read_bytes() == older.read_bytes() == before


@pytest.mark.req("W2")
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_page_goes_to_stdout_or_into_a_pipe_which_stays_one(process: Cli, trace: Path) -> None:
    done = process("view", str(trace), "-o", "-")
    assert (done.code, done.out.startswith("<!doctype html>"), done.err) == (0, True, "")
    assert done.out.rstrip().endswith("</html>")
    assert not Path("-").exists()
    pipe = trace.with_name("pipe.html")
    os.mkfifo(pipe)
    read: list[bytes] = []
    reading = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reading.start()
    assert process("view", str(trace), "-o", str(pipe)).code == 0
    reading.join()
    assert read[0].decode() == done.out
    assert pipe.is_fifo()
    assert "is not a file that grows" in process("view", str(pipe), "--live").err


@pytest.mark.req("W2")
def test_without_a_browser_the_address_is_said(
    cli: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_NO_BROWSER", "1")
    done = cli("view", str(trace), "--open")
    assert done.code == 0
    assert f"Open it yourself: {trace.with_suffix('.html').as_uri()}" in done.err


@pytest.mark.req("W2")
def test_a_trace_without_its_end_is_told(cli: Cli, trace: Path) -> None:
    text = trace.read_text(encoding="utf-8")
    trace.write_text(text[:-30], encoding="utf-8")
    assert "its last line is not whole" in cli("view", str(trace)).err
    trace.write_text("".join(text.splitlines(keepends=True)[:-6]), encoding="utf-8")
    assert "ends with open connections (3)" in cli("view", str(trace)).err


@pytest.mark.req("W2")
@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_what_is_made_of_a_private_trace_is_private(cli: Cli, trace: Path) -> None:
    trace.chmod(0o600)
    trace.with_suffix(".html").write_text("an older one", encoding="utf-8")
    for form in ([], ["--to", "har"]):
        target = Path(cli("view", str(trace), *form).out.strip())
        assert target.stat().st_mode & 0o777 == 0o600
    trace.chmod(0o644)
    target = trace.with_name("shared.html")
    assert cli("view", str(trace), "-o", str(target)).code == 0
    assert target.stat().st_mode & 0o044


@pytest.mark.req("W2")
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_read_once_and_one_beside_the_trace_not_at_all(
    process: Cli, trace: Path, tmp_path: Path
) -> None:
    # A folder that was unpacked may have a pipe in it, which nobody will ever write to.
    os.mkfifo(tmp_path / "run.jsonl.1")
    assert process("view", str(trace)).code == 0
    pipe, target = tmp_path / "pipe.jsonl", tmp_path / "pipe.html"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(trace.read_bytes(),))
    writing.start()
    done = process("view", str(pipe), "-o", str(target), "--json")
    writing.join()
    assert (done.code, json.loads(done.out)["unreadable"]) == (0, 0)
    assert "The" not in done.err

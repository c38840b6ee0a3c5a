"""``holdfast view``: a page from a trace, or the trace for another viewer."""

from __future__ import annotations

import json
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
def test_wrong_input_is_refused_and_nothing_is_lost(cli: Cli, trace: Path, tmp_path: Path) -> None:
    before = trace.read_bytes()
    other = tmp_path / "notes.txt"
    other.write_text("hello\n", encoding="utf-8")
    for words, reason in [
        ([str(tmp_path / "none.jsonl")], "No such file"),
        ([str(tmp_path)], "Is a directory"),
        ([str(other)], "not a trace"),
        ([str(trace), "-o", str(trace)], "this is the trace itself"),
        ([str(trace), "-o", str(tmp_path / "no" / "where.html")], "No such file"),
        ([str(trace), "--open", "--to", "har"], "--open shows the page"),
        ([str(trace), "--to", "pdf"], "'pdf' is not one of"),
    ]:
        done = cli("view", *words)
        assert done.code == 2, words
        assert reason in done.err
    assert trace.read_bytes() == before

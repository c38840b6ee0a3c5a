"""A trace file that others write to as well, and a disk that is full."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast._core.boundary import Generation
from holdfast._core.tap import TraceEvent
from holdfast.trace import writer
from holdfast.trace.format import Reading, rotated
from holdfast.trace.writer import TraceFile
from holdfast.view.index import Index


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def message(number: int, text: str = "ping") -> TraceEvent:
    frame = json.dumps({"id": number, "method": text}).encode()
    return TraceEvent(time.monotonic(), "message", Generation(1), "→", frame)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


SECOND = """
import json, sys, time
from holdfast._core.boundary import Generation
from holdfast._core.tap import TraceEvent
from holdfast.trace.writer import TraceFile

trace = TraceFile(sys.argv[1])
tap = trace.tap("git")
for line in sys.stdin:
    frame = json.dumps({"id": int(line), "method": "second"}).encode()
    tap(TraceEvent(time.monotonic(), "message", Generation(1), "→", frame))
    trace.flush()
    print("written", flush=True)
"""


class OtherProcess:
    """Writes to the trace whenever it is asked to."""

    def __init__(self, path: Path) -> None:
        words = [sys.executable, "-c", SECOND, str(path)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)

    def write(self, number: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(number, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "written\n"

    def end(self) -> None:
        assert self.process.stdin is not None
        with self.process:
            self.process.stdin.close()
        assert self.process.returncode == 0


@pytest.mark.req("W1")
def test_two_processes_write_to_one_file_and_neither_moves_it_away(path: Path) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    tap(message(1))
    trace.flush()
    other = OtherProcess(path)
    other.write(2)
    tap(message(3))
    trace.flush()
    other.write(4)
    trace.close()
    # The first is gone; the second goes on in the same file.
    other.write(5)
    other.end()
    header, *lines = lines_of(path)
    assert header["holdfast-trace"] == 1
    messages = [(line["server"], line["id"]) for line in lines if "id" in line]
    second = f"git ({other.process.pid})"
    assert messages == [("git", 1), (second, 2), ("git", 3), (second, 4), (second, 5)]
    times = [line["t"] for line in lines if "id" in line]
    assert times == sorted(times), "both count from the same start"
    assert rotated(path) == [path]
    # A later run finds that nobody writes any more.
    third = TraceFile(path)
    third.tap("git")
    third.close()
    assert path.with_name("run.jsonl.1").exists()
    assert [line["server"] for line in lines_of(path)[1:]] == ["git"]


@pytest.mark.req("W1")
@pytest.mark.parametrize("is_closed_before", [False, True])
def test_a_process_follows_the_file_that_another_has_begun(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_closed_before: bool
) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    tap(message(1))
    trace.flush()
    other = OtherProcess(path)
    other.write(2)
    monkeypatch.setattr(writer, "ROTATE_AT", 300)
    tap(message(3))
    trace.flush()
    if is_closed_before:
        trace.close()
    other.write(4)
    trace.close()
    other.end()
    files = rotated(path)
    assert [file.name for file in files] == ["run.jsonl.1", "run.jsonl"]
    ids = [[line["id"] for line in lines_of(file) if "id" in line] for file in files]
    assert ids == [[1, 2], [3, 4]]


@pytest.mark.req("W1")
def test_a_file_that_somebody_emptied_or_took_away_begins_with_a_header_again(path: Path) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    for number, disturb in enumerate(("", "emptied", "taken away")):
        if disturb == "emptied":
            path.write_bytes(b"")
        elif disturb:
            path.unlink()
        tap(message(number))
        trace.flush()
        header, *lines = lines_of(path)
        assert "holdfast-trace" in header
        assert [line["id"] for line in lines if "id" in line] == [number]
    trace.close()


@pytest.mark.req("W1")
def test_ids_of_two_processes_are_not_mixed_up(path: Path) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    tap(message(1, "first"))
    trace.flush()
    other = OtherProcess(path)
    other.write(1)
    tap(TraceEvent(time.monotonic(), "message", Generation(1), "←", b'{"id":1,"result":{}}'))
    trace.close()
    other.end()
    reading, index = Reading(path.name), Index()
    for line in reading.lines(path.read_bytes().splitlines(keepends=True)):
        index.add(line)
    outcomes = {row.method: row.outcome for row in index.rows if row.kind == "request"}
    assert outcomes == {"first": "ok", "second": "pending"}


@pytest.mark.req("W1")
def test_who_began_the_trace_keeps_its_names_when_another_rotates_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = TraceFile(path), TraceFile(path)
    taps = first.tap("git"), second.tap("git")
    taps[0](message(1))
    first.flush()
    taps[1](message(2))
    second.flush()
    monkeypatch.setattr(writer, "ROTATE_AT", 100)
    taps[1](message(3))
    second.flush()
    monkeypatch.undo()
    taps[0](message(4))
    first.close()
    second.close()
    assert [file.name for file in rotated(path)] == ["run.jsonl.1", "run.jsonl"]
    lines = [line for file in rotated(path) for line in lines_of(file) if "id" in line]
    names = {line["id"]: line["server"] for line in lines}
    assert names[1] == names[4] == "git"
    assert names[2] == names[3] != "git"


@pytest.mark.req("W1")
def test_a_file_that_another_has_begun_after_a_rotation_from_outside_is_of_its_run(
    path: Path,
) -> None:
    first = TraceFile(path)
    taps = [first.tap("git")]
    taps[0](message(1))
    first.flush()
    path.rename(path.with_suffix(".old"))
    second = TraceFile(path)
    taps.append(second.tap("git"))
    taps[1](message(2))
    second.flush()
    taps[0](message(3))
    first.close()
    second.close()
    names = {line["id"]: line["server"] for line in lines_of(path) if "id" in line}
    assert names[2] == "git" != names[3]


FULL = """
import asyncio, resource, signal, sys, holdfast

async def main():
    command = [sys.executable, "-m", "holdfast.demo.server"]
    async with holdfast.connect(command, trace=sys.argv[1]) as client:
        await client.call_tool("add", {"a": 1, "b": 1})
        # From here on no file of this process grows beyond 4 kB, as on a disk that is full.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        for number in range(200):
            result = await client.call_tool("add", {"a": number, "b": 1})
            assert result.structured == {"sum": number + 1}
        client_trace = holdfast.trace.writer.open_trace(sys.argv[1])
        client_trace.flush()
        print(client_trace.lost)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await client.call_tool("add", {"a": 1000, "b": 1})

import holdfast.trace.writer
asyncio.run(main())
"""


@pytest.mark.req("W1")
def test_on_a_full_disk_every_call_succeeds_and_the_trace_goes_on_later(path: Path) -> None:
    words = [sys.executable, "-c", FULL, str(path)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 100
    reading, index = Reading(path.name), Index()
    rows = [row for file in rotated(path) for row in file.read_bytes().splitlines(keepends=True)]
    for line in reading.lines(rows):
        index.add(line)
    assert any("1000" in line.decode() for line in rows), "lines are written again"
    # One line was cut in the middle by the end of the disk; what follows it is whole.
    assert reading.skipped <= 1
    assert not reading.is_cut

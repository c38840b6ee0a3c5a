"""A trace of the wire: complete or honest about what is missing, redacted, never in the way."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, Timeouts
from holdfast._core.boundary import Generation, Ticket
from holdfast._core.tap import TraceEvent, watcher
from holdfast.errors import HoldfastError, TransportError
from holdfast.testing import SILENCE, Peer
from holdfast.trace import recorder, writer
from holdfast.trace.format import Reading, rotated
from holdfast.trace.writer import TraceFile
from holdfast.view.index import Index, Row

LINK = Generation(1)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows_of(path: Path) -> list[Row]:
    reading, index = Reading(path.name), Index()
    for line in reading.lines(path.read_bytes().splitlines(keepends=True)):
        index.add(line)
    return index.rows


def message(text: str, direction: Any = "→", **fields: Any) -> TraceEvent:
    return TraceEvent(1.0, "message", LINK, direction, text.encode(), **fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def peer() -> Peer:
    peer = Peer()
    peer.tool("say")(lambda words: words)
    peer.tool("stuck")(lambda: SILENCE)
    return peer


def traced(peer: Peer, path: Path, **options: Any) -> tuple[holdfast.Client, TraceFile]:
    client, trace = holdfast.connect(peer, name="git", **options), TraceFile(path)
    client._attach_tap(watcher(trace.tap("git", transport="memory")))
    return client, trace


def deaf_tool(peer: Peer) -> asyncio.Event:
    """Add a tool that never answers; return what is set when it was called."""
    arrived = asyncio.Event()

    @peer.tool("deaf")
    def deaf() -> Any:
        arrived.set()
        return SILENCE

    return arrived


@pytest.mark.req("W1")
def test_times_are_finer_than_those_of_a_loop(peer: Peer, path: Path) -> None:
    """The clock of uvloop goes by milliseconds, and stands still while a callback runs."""
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with holdfast.connect(peer, name="git", trace=path) as client:
            for number in range(20):
                await client.call_tool("say", {"words": str(number)})

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    times = [line["t"] for line in lines_of(path)[1:]]
    assert times == sorted(times)
    assert len({round(time * 1e6) % 1000 for time in times}) > 5


@pytest.mark.req("W1")
async def test_every_message_and_state_of_a_client_is_a_line(peer: Peer, path: Path) -> None:
    client, trace = traced(peer, path)
    async with client:
        await client.call_tool("say", {"words": "hello"})
    trace.close()
    header, *lines = lines_of(path)
    assert header["holdfast-trace"] == 1
    assert header["servers"] == {"git": {"transport": "memory"}}
    assert {line["server"] for line in lines} == {"git"}
    (call,) = [line for line in lines if line.get("method") == "tools/call"]
    assert (call["kind"], call["dir"], call["link"]) == ("request", ">", 1)
    assert call["body"]["params"]["arguments"] == {"words": "hello"}
    (answer,) = [line for line in lines if line.get("of") == call["id"]]
    assert (answer["kind"], answer["dir"]) == ("result", "<")
    states = [(line["from"], line["to"]) for line in lines if line["kind"] == "state"]
    assert states[0] == ("new", "starting")
    assert states[-1][1] == "closed"
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    assert all(line["bytes"] > 0 for line in lines if line["kind"] in ("request", "result"))


@pytest.mark.req("W1")
async def test_a_request_without_an_answer_has_its_outcome(peer: Peer, path: Path) -> None:
    arrived = deaf_tool(peer)
    client, trace = traced(peer, path)
    async with client:
        # Else the time could be over before the call is sent.
        await client.list_tools()
        with pytest.raises(holdfast.RequestTimeout):
            await client.call_tool("stuck", timeout=0.2)
        running = asyncio.create_task(client.call_tool("deaf"))
        await arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    trace.close()
    calls = [row for row in rows_of(path) if row.kind == "request" and row.method == "tools/call"]
    assert {row.name: row.outcome for row in calls} == {"stuck": "timeout", "deaf": "cancelled"}


@pytest.mark.req("W1")
async def test_a_lost_link_leaves_its_calls_unknown(peer: Peer, path: Path) -> None:
    client, trace = traced(peer, path, backoff=Backoff(first=60, max=60))
    arrived = deaf_tool(peer)
    async with client:
        running = asyncio.create_task(client.call_tool("deaf"))
        await arrived.wait()
        peer.hang_up()
        with pytest.raises(HoldfastError):
            await running
    trace.close()
    rows = rows_of(path)
    (row,) = [row for row in rows if row.name == "deaf" and row.kind == "request"]
    assert row.outcome == "unknown"
    (outcome,) = [row for row in rows if row.kind == "outcome"]
    assert rows[outcome.of] is row


@pytest.mark.req("W1")
def test_junk_is_kept_as_text(path: Path) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    for text in ("hello", "[1]", "{", "\x00\xff"):
        tap(message(text, "←"))
    trace.close()
    junk = [line for line in lines_of(path) if line.get("kind") == "junk"]
    assert [line["text"] for line in junk] == ["hello", "[1]", "{", "\x00\xff"]


@pytest.mark.req("W1")
@pytest.mark.parametrize("text", ["plain", "password=hunter2hunter2"])
def test_a_message_over_several_lines_is_one_line(path: Path, text: str) -> None:
    trace = TraceFile(path)
    body = {"id": 1, "result": {"text": text, "list": [1, 2]}}
    trace.tap("git")(message(json.dumps(body, indent=2).replace("\n", "\r\n"), "←"))
    trace.close()
    (line,) = [line for line in lines_of(path) if line.get("kind") == "result"]
    assert line["body"]["result"]["list"] == [1, 2]
    assert (line["id"], line["of"], line["dir"]) == (1, 1, "<")


@pytest.mark.req("W1")
@pytest.mark.parametrize("direction", "→←")
@pytest.mark.parametrize(
    "body",
    [
        {"id": 7, "method": "tools/call", "params": {"name": "x"}},
        {"id": 7, "result": {}},
        {"id": 7, "error": {"code": 1, "message": "no"}},
        {"error": {"code": 1, "message": "no"}},
        {"id": 7, "result": {}, "error": {"code": 1}},
        {"method": "notifications/message", "params": {}},
        {"method": "notifications/progress", "params": {"progressToken": 7}},
        {"id": "seven", "method": "ping"},
        {"id": 7},
    ],
)
def test_a_line_is_the_same_whether_or_not_there_was_something_to_hide(
    path: Path, body: dict[str, Any], direction: str
) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    secret = {"_meta": {"password": "hunter2hunter2"}}
    for part in ({}, secret):
        tap(message(json.dumps({**body, **part}), direction))
    trace.close()
    plain, hidden = lines_of(path)[-2:]
    assert hidden["body"].pop("_meta") == {"password": "[redacted]"}
    for line in (plain, hidden):
        del line["bytes"]
    assert list(plain) == list(hidden)
    assert plain == hidden


FORKED = """
import os, sys, time
from holdfast._core.boundary import Generation
from holdfast._core.tap import TraceEvent
from holdfast.trace.writer import TraceFile

def send(number):
    frame = b'{"id":%d,"method":"ping"}' % number
    tap(TraceEvent(time.monotonic(), "message", Generation(1), "→", frame))

trace = TraceFile(sys.argv[1])
tap = trace.tap("git")
send(1)
trace.flush()
with trace._queue.lock:  # all waits
    send(2)
    child = os.fork()
    if child:
        send(3)
if not child:
    send(4)
    trace.close()
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.req("W1")
def test_a_forked_process_writes_its_own_messages_alone(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, str(path)], timeout=300, check=True)
    lines = [line for line in lines_of(path) if line.get("method") == "ping"]
    assert sorted(line["id"] for line in lines) == [1, 2, 3, 4]
    servers = {line["id"]: line["server"] for line in lines}
    assert servers[1] == servers[2] == servers[3] == "git"
    assert servers[4].startswith("git (")


@pytest.mark.req("W1")
def test_secrets_are_in_no_line(path: Path) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    params = {"name": "log_in", "arguments": {"password": "hunter2hunter2"}}
    tap(message(json.dumps({"id": 1, "method": "tools/call", "params": params})))
    tap(message("junk: password=hunter2hunter2", "←"))
    error = TransportError("it said: token=hunter2hunter2")
    tap(TraceEvent(1.0, "state", LINK, old="ready", new="backoff", error=error))
    tap(TraceEvent(1.0, "failed", LINK, ticket=Ticket(1), error=error))
    trace.stderr("git")("Authorization: Bearer hunter2hunter2hunter2")
    # The words of a server are in more fields than the body.
    secret = "token=hunter2hunter2"
    reason = {"requestId": secret, "reason": secret}
    for body in (
        {"method": secret, "params": {}},
        {"id": secret, "method": "roots/list"},
        {"id": secret, "result": {}},
        {"method": "notifications/cancelled", "params": reason},
        {"method": "notifications/progress", "params": {"progressToken": secret}},
    ):
        tap(message(json.dumps(body), "←"))
    # One that goes on behind the cut of what is kept.
    tap(message("x" * 4080 + " password=hunter2hunter2", "←"))
    trace.close()
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) == 13
    assert "hunter2" not in text


@pytest.mark.req("W1")
def test_a_full_queue_counts_what_it_cannot_take(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_EVENTS", 4)
    trace = TraceFile(path)
    tap = trace.tap("git")
    with trace._queue.lock:  # the thread cannot write meanwhile
        for number in range(10):
            tap(message(f'{{"id":{number},"method":"ping"}}'))
    trace.close()
    lines = lines_of(path)
    kept = [line for line in lines if line.get("method") == "ping"]
    (dropped,) = [line["count"] for line in lines if line.get("kind") == "dropped"]
    assert len(kept) + dropped == 10
    assert dropped >= 6


@pytest.mark.req("W1")
def test_the_bytes_that_wait_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_BYTES", 1000)
    trace = TraceFile(path)
    tap = trace.tap("git")
    with trace._queue.lock:
        tap(message(json.dumps({"id": 1, "method": "a", "params": {"x": "y" * 900}})))
        tap(message(json.dumps({"id": 2, "method": "b", "params": {"x": "y" * 900}})))
    trace.close()
    assert [line.get("method") for line in lines_of(path) if "method" in line] == ["a"]
    assert [line["count"] for line in lines_of(path) if line.get("kind") == "dropped"] == [1]


@pytest.mark.req("W1")
def test_a_large_message_is_cut_or_goes_beside(tmp_path: Path) -> None:
    body = json.dumps({"id": 1, "result": {"text": "z" * 100_000, "password": "hunter2"}})
    for sidecars in (False, True):
        path = tmp_path / f"{sidecars}.jsonl"
        trace = TraceFile(path, sidecars=sidecars)
        trace.tap("git")(message(body, "←"))
        trace.close()
        line = lines_of(path)[-1]
        assert line["bytes"] == len(body)
        assert "body" not in line
        assert len(line["text"]) <= 4096
        if sidecars:
            whole = (tmp_path / line["sidecar"]).read_text(encoding="utf-8")
            assert json.loads(whole)["result"]["text"] == "z" * 100_000
            assert "hunter2" not in whole
        else:
            assert "sidecar" not in line


@pytest.mark.req("W1")
def test_a_file_that_is_there_is_kept_and_old_ones_end(path: Path) -> None:
    for number in range(7):
        trace = TraceFile(path)
        trace.tap(f"server{number}")
        trace.close()
    files = [path.with_name(f"run.jsonl.{number}") for number in (4, 3, 2, 1)] + [path]
    assert sorted(path.parent.iterdir()) == sorted(files)
    assert rotated(path) == [path], "those of other runs are no part of this one"
    servers = [next(iter(lines_of(file)[0]["servers"])) for file in files]
    assert servers == ["server2", "server3", "server4", "server5", "server6"]


@pytest.mark.req("W1")
def test_a_long_trace_goes_on_in_another_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROTATE_AT", 2000)
    trace = TraceFile(path)
    tap = trace.tap("git")
    for number in range(60):
        tap(message(f'{{"id":{number},"method":"ping"}}'))
        trace.flush()
    trace.close()
    lines = [line for file in rotated(path) for line in lines_of(file)]
    ids = [line["id"] for line in lines if "id" in line]
    assert ids == sorted(ids)
    assert ids[-1] == 59
    assert len(rotated(path)) > 1
    assert all("holdfast-trace" in lines_of(file)[0] for file in rotated(path))


@pytest.mark.req("W1")
def test_a_full_disk_costs_the_trace_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    trace.flush()

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        tap(message('{"id":1,"method":"ping"}'))
        trace.flush()
        tap(message('{"id":2,"method":"ping"}'))
        trace.flush()
    assert trace.lost == 2
    assert sum("lines were lost" in record.message for record in caplog.records) == 1
    tap(message('{"id":3,"method":"ping"}'))
    trace.close()
    assert lines_of(path)[-1]["id"] == 3


@pytest.mark.req("W1")
def test_lines_that_were_written_before_the_disk_was_full_are_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = TraceFile(path)
    tap = trace.tap("git")
    trace.flush()
    write, room = os.write, path.stat().st_size + 330

    def limited(descriptor: int, data: bytes) -> int:
        left = room - os.fstat(descriptor).st_size
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:left])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", limited)
        for number in range(5):
            tap(message(f'{{"id":{number},"method":"ping"}}'))
        trace.flush()
    *_, last = path.read_text().split("\n")
    assert last, "a line was cut"
    whole = path.read_text().count('"kind":"request"') - ('"kind":"request"' in last)
    assert whole > 0
    assert trace.lost == 5 - whole
    trace.close()


@pytest.mark.req("W1")
async def test_a_traced_client_makes_the_same_calls(peer: Peer, path: Path) -> None:
    client, trace = traced(peer, path, timeouts=Timeouts(request=5))
    async with client:
        results = await asyncio.gather(
            *(client.call_tool("say", {"words": str(number)}) for number in range(200))
        )
    trace.close()
    assert [result.text for result in results] == [str(number) for number in range(200)]
    calls = [row for row in rows_of(path) if row.name == "say" and row.kind == "request"]
    assert {row.outcome for row in calls} == {"ok"}
    assert len(calls) == 200


@pytest.mark.req("W1")
async def test_connect_takes_a_trace_and_the_page_shows_it(path: Path) -> None:
    script = "import sys; print('warming up', file=sys.stderr, flush=True); "
    script += "import runpy; runpy.run_module('holdfast.demo.server', run_name='__main__')"
    async with holdfast.connect([sys.executable, "-c", script], name="echo", trace=path) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
    header = lines_of(path)[0]
    assert header["servers"]["echo"]["transport"] == "stdio"
    rows = rows_of(path)
    assert {row.outcome for row in rows if row.kind == "request"} == {"ok"}
    (stderr,) = [line for line in lines_of(path) if line.get("kind") == "stderr"]
    assert stderr["text"] == "warming up"


@pytest.mark.req("W1")
async def test_clients_of_one_process_share_a_file(peer: Peer, path: Path) -> None:
    async with (
        holdfast.connect(peer, name="one", trace=path) as first,
        holdfast.connect(Peer(), name="two", trace=str(path)) as second,
    ):
        await first.call_tool("say", {"words": "x"})
        await second.ping()
    assert {line["server"] for line in lines_of(path)[1:]} == {"one", "two"}
    assert not path.with_name("run.jsonl.1").exists()


@pytest.mark.req("W1")
@pytest.mark.parametrize("where", [7, b"run", object()])
def test_a_trace_is_a_path(where: Any) -> None:
    with pytest.raises(holdfast.ValidationError, match="trace="):
        holdfast.connect("server.py", trace=where)


@pytest.mark.req("W1")
def test_a_place_where_no_file_can_be_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refusals: dict[str | Path, str] = {
        tmp_path: "Is a directory",
        tmp_path / "none" / "run.jsonl": f"there is no folder {tmp_path / 'none'}",
        tmp_path / "pipe": "is not a regular file",
        "/dev/full": "is not a regular file",
    }
    for place, why in refusals.items():
        with pytest.raises(holdfast.ValidationError, match=f"trace={str(place)!r}: .*{why}"):
            holdfast.connect("server.py", trace=place)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


KILLED = """
import asyncio, sys, holdfast
async def main():
    command = [sys.executable, "-m", "holdfast.demo.server"]
    async with holdfast.connect(command, trace=sys.argv[1]) as client:
        for number in range(200):
            await client.call_tool("add", {"a": number, "b": 1})
        print("go", flush=True)
        while True:
            await client.call_tool("add", {"a": 1, "b": 1})
asyncio.run(main())
"""


@pytest.mark.req("W1")
def test_a_process_that_is_killed_leaves_whole_lines(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        deadline = time.monotonic() + 300
        while not path.exists() or path.stat().st_size < 20_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
    calls = [row for row in rows_of(path) if row.method == "tools/call" and row.kind == "request"]
    assert len(calls) > 20
    assert {row.outcome for row in calls[:20]} == {"ok"}

"""Messages are searched and decoded together, and each line is what it would be alone."""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.boundary import Delivered, Generation, Send
from holdfast.errors import ProtocolError
from holdfast.trace.writer import TraceFile

LINK = Generation(1)
ODD = (
    b'{"id":1,"method":"tools/call","params":{}}',
    b'{"id":2,"result":{"ok":true}}',
    b'{"id":3,"result":{},"error":{}}',
    b'{"method":"notifications/message","params":{}}',
    b'{"method":"notifications/progress","params":{"progressToken":1}}',
    b'{"id":"four","result":{}}',
    b'{"id":5,"method":"50%d"}',
    b"{}",
    # None of these is a message; two of them beside each other may be one.
    b'{"id":6,"result":',
    b"{}} {}",
    b'{"id":7}{"id":8}',
    b'{"a":"}',
    b'{"}',
    b"}",
    b"{",
    b"[]",
    b"junk",
    b"\xff\xfe",
    b'{"id":9,"result":{}}\r',
    b'{"id":10,"result":{"password":"hunter2hunter2"}}',
    b'{"id":11,"result":{"text":"' + b"long " * 200 + b'"}}',
    b" ",
)


def lines_of(path: Path, frames: list[bytes], *, alone: bool, together: bool) -> list[Any]:
    """Return the lines of messages; ``alone``: each is delivered and written on its own."""
    trace = TraceFile(path)
    watch = trace._watcher(trace._maker("100% git"), {})
    with trace._queue.lock:
        for frame in [b"\n".join(frames)] if together else frames:
            watch(Delivered(LINK, frame + b"\n"), 1.0, LINK, lambda _: None)
            if alone:
                trace.flush()
    trace.close()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return [{name: line[name] for name in line if name != "t"} for line in lines[2:]]


@pytest.mark.req("W1")
@pytest.mark.parametrize("seed", range(20))
def test_each_line_is_what_it_would_be_alone(tmp_path: Path, seed: int) -> None:
    frames = random.Random(seed).choices(ODD, k=40)
    alone = lines_of(tmp_path / "alone", frames, alone=True, together=False)
    assert lines_of(tmp_path / "at once", frames, alone=False, together=False) == alone
    assert lines_of(tmp_path / "in one", frames, alone=False, together=True) == alone
    assert "hunter2hunter2" not in str(alone)


@pytest.mark.req("W1")
@pytest.mark.parametrize(
    "frames",
    [
        [b'{"id":1,"result":', b'{}} {"id":2}'],
        [b'{"id":1,"result":{"a":1}', b'{"id":2}}'],
        [b'{"id":1,"result":"}', b'{"}', b'{"id":2}{"id":3}'],
        [b'{"id":1}{"id":2}', b"", b'{"id":3}'],
    ],
)
def test_no_message_reaches_into_the_next(tmp_path: Path, frames: list[bytes]) -> None:
    alone = lines_of(tmp_path / "alone", frames, alone=True, together=False)
    assert lines_of(tmp_path / "at once", frames, alone=False, together=False) == alone
    assert all(line["kind"] == "junk" or "body" in line for line in alone)


@pytest.mark.req("W1")
def test_a_text_of_several_lines_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace = TraceFile(path)
    watch = trace._watcher(trace._maker("git"), {})
    bodies = [b'{"id":1,\r\n"result":{}\n}', b'{"id":2,"result":{}}\n{"id":', b"3}"]
    with trace._queue.lock:
        watch(Send(b'{"id":1,"method":"ping"}'), 1.0, LINK, lambda _: None)
        for body in bodies:
            watch(Delivered(LINK, body, whole=True), 1.0, LINK, lambda _: None)
    trace.close()
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    assert [line["kind"] for line in lines[2:]] == ["request", "result", "junk", "junk"]
    assert lines[3]["body"] == {"id": 1, "result": {}}


@pytest.mark.req("W1", "R10")
@pytest.mark.parametrize(
    ("frame", "read"),
    [
        (rb'{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}', {1: {"a": "\ufffd"}}),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}', {1: {}}),
        (
            b'{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}',
            {1: {}, 2: {}},
        ),
        (b'Loading 3/3 {"jsonrpc":"2.0","id":1,"result":{}}', {"junk": "Loading 3/3 ", 1: {}}),
        (b'Loading {"jsonrpc":"2.0","id":1,"result":', {"junk": "Loading "}),
    ],
)
def test_what_a_client_reads_in_a_line_is_a_message(
    tmp_path: Path, frame: bytes, read: dict[Any, Any]
) -> None:
    """A call that got its answer so would look as if it had none."""
    lines = lines_of(tmp_path / "trace", [frame], alone=True, together=False)
    found = {
        line.get("of", line["kind"]): line["body"]["result"] if "body" in line else line["text"]
        for line in lines
    }
    if "junk" in found:
        assert found["junk"].startswith(read.pop("junk"))
        del found["junk"]
    assert found == read


BATCHING = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] == "initialize":
        facts = {"serverInfo": {"name": "s", "version": "1"}, "capabilities": {}}
        answer["result"] = {"protocolVersion": sys.argv[1], **facts}
        print(json.dumps(answer), flush=True)
    elif request["method"] == "ping":
        print(json.dumps([{**answer, "result": {}}]), flush=True)
"""


@pytest.mark.req("W1", "R10")
@pytest.mark.parametrize(("version", "kind"), [("2025-03-26", "result"), ("2025-06-18", "junk")])
async def test_a_batch_is_what_the_client_takes_it_for(
    tmp_path: Path, version: str, kind: str
) -> None:
    path = tmp_path / "run.jsonl"
    command = [sys.executable, "-c", BATCHING, version]
    async with holdfast.connect(command, protocol=version, trace=path) as client:
        with suppress(ProtocolError):  # it is the answer to the ping, and cannot be read
            await client.ping()
    last = [json.loads(line) for line in path.read_text().splitlines() if '"dir":"<"' in line][-1]
    assert last["kind"] == kind

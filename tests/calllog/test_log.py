"""Every call in two lines, written by a real client."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

import holdfast
from holdfast import Observability, Timeouts, ValidationError
from holdfast._core.observers.observer import Observers
from holdfast.calllog import log as log_module
from holdfast.calllog.log import CallLog, open_log
from holdfast.policies import Redaction
from holdfast.testing import SILENCE, Peer, RequestError
from holdfast.types.base import decode
from holdfast.types.content import TextContent
from holdfast.types.tools import Tool, ToolResult

SOON = Timeouts(request=5)
LOGIN = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "phrase": {"type": "string", "writeOnly": True}},
}


@pytest.fixture
def peer() -> Peer:
    peer = Peer()

    @peer.tool("session.open")
    def session_open(**_: Any) -> Any:
        return {"content": [{"type": "text", "text": '{"opened":true}'}]}

    @peer.tool("nav.goto")
    def goto(url: str, **_: Any) -> Any:
        if url == "bad":
            text = {"type": "text", "text": "net::ERR_NAME_NOT_RESOLVED"}
            return {"content": [text], "isError": True}
        return {"content": []}

    @peer.tool("browser.snapshot")
    def snapshot(**_: Any) -> str:
        return "x" * 3847

    @peer.tool("login", input_schema=LOGIN)
    def login(**_: Any) -> Any:
        return {"token": "hunter2", "hello": "Bearer hunter2hunter2"}

    @peer.tool("say")
    def say(text: str = "hello", **_: Any) -> str:
        return text

    @peer.tool("silent")
    def silent(**_: Any) -> Any:
        return SILENCE

    @peer.tool("refused")
    def refused(**_: Any) -> Any:
        raise RequestError(-32050, "not today, Bearer hunter2hunter2")

    return peer


def connect(peer: Peer, log: Any, **options: Any) -> holdfast.Client:
    return holdfast.connect(peer, log=log, timeouts=SOON, name="shop", **options)


def timeless(line: str) -> str:
    """A line as if the call had taken 7 ms."""
    found = json.loads(line)
    if "_ms" not in found:
        return line
    assert type(found["_ms"]) is int
    return line.replace(f'"_ms":{found["_ms"]},', '"_ms":7,')


P4N = '"arguments":{"sessionName":"p4n-test"'


@pytest.mark.req("G1", "G2")
async def test_a_run_is_logged_byte_for_byte(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    p4n = {"sessionName": "p4n-test"}
    async with connect(peer, CallLog(path, sidecars=True)) as client:
        await client.call_tool("session.open", p4n)
        await client.call_tool("nav.goto", {**p4n, "url": "https://park4night.com/en"})
        await client.call_tool("nav.goto", {**p4n, "url": "bad"})
        await client.call_tool("browser.snapshot", p4n)
    assert [timeless(line) for line in path.read_text(encoding="utf-8").splitlines()] == [
        f'{{"name":"session.open",{P4N}}},"_phase":"before","_seq":1}}',
        f'{{"name":"session.open",{P4N}}},"_phase":"after","_result":{{"opened":true}},'
        '"_ok":true,"_ms":7,"_seq":1}',
        f'{{"name":"nav.goto",{P4N},"url":"https://park4night.com/en"}},"_phase":"before","_seq":2}}',
        f'{{"name":"nav.goto",{P4N},"url":"https://park4night.com/en"}},"_phase":"after",'
        '"_ok":true,"_ms":7,"_seq":2}',
        f'{{"name":"nav.goto",{P4N},"url":"bad"}},"_phase":"before","_seq":3}}',
        f'{{"name":"nav.goto",{P4N},"url":"bad"}},"_phase":"after","_ok":false,"_ms":7,'
        '"_error":"net::ERR_NAME_NOT_RESOLVED","_seq":3}',
        f'{{"name":"browser.snapshot",{P4N}}},"_phase":"before","_seq":4}}',
        f'{{"name":"browser.snapshot",{P4N}}},"_phase":"after",'
        '"_result":"[text 3847 chars → .mcp-log/4-browser.snapshot.txt]",'
        '"_ok":true,"_ms":7,"_seq":4}',
    ]
    assert (tmp_path / ".mcp-log" / "4-browser.snapshot.txt").read_text() == "x" * 3847


@pytest.mark.req("G2")
async def test_without_sidecars_a_long_result_is_only_summarised(
    peer: Peer, tmp_path: Path
) -> None:
    async with connect(peer, str(tmp_path / "a")) as client:
        await client.call_tool("browser.snapshot")
    assert '"_result":"[text 3847 chars]"' in (tmp_path / "a").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.req("G2")
async def test_up_to_two_hundred_characters_stand_in_the_line_unless_set(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, lines.append) as client:
        for size in (197, 198):
            await client.call_tool("say", {"text": "x" * size})
    assert json.loads(lines[1])["_result"] == "x" * 197
    assert json.loads(lines[3])["_result"] == "[text 198 chars]"


@pytest.mark.req("G2")
async def test_threshold_and_folder_can_be_set(peer: Peer, tmp_path: Path) -> None:
    lines: list[str] = []
    log = CallLog(lines.append, threshold=5, sidecars=tmp_path / "kept")
    async with connect(peer, log) as client:
        await client.call_tool("say", {"text": "12345"})
        await client.call_tool("say", {"text": "ab"})
    assert f"[text 5 chars → {tmp_path}/kept/1-say.txt]" in lines[1]
    assert '"_result":"ab"' in lines[3]
    with pytest.raises(ValidationError, match="threshold"):
        CallLog(lines.append, threshold=-1)


@pytest.mark.req("G1")
async def test_a_log_goes_to_a_stream_or_a_function(peer: Peer) -> None:
    stream, lines = io.StringIO(), list[str]()
    for log in (stream, lines.append):
        async with connect(peer, log) as client:
            await client.call_tool("say")
            assert len(stream.getvalue().splitlines()) == 2  # at once, before the close
    assert [timeless(one) for one in stream.getvalue().splitlines()] == [
        timeless(one) for one in lines
    ]
    assert not stream.closed


async def test_nothing_is_written_before_the_first_call(peer: Peer, tmp_path: Path) -> None:
    async with connect(peer, tmp_path / "a") as client:
        await client.list_tools()
    assert list(tmp_path.iterdir()) == []


async def test_a_hopeless_path_is_refused_when_connecting(peer: Peer, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="there is no folder"):
        connect(peer, tmp_path / "none" / "calls.jsonl")


@pytest.mark.req("G5")
async def test_parallel_calls_have_their_own_numbers(peer: Peer) -> None:
    lines: list[str] = []
    log = CallLog(lines.append)
    async with connect(peer, log) as one, connect(peer, log) as other:
        work = [(one, other)[n % 2].call_tool("say", {"text": str(n)}) for n in range(40)]
        await asyncio.gather(*work)
    found = [json.loads(line) for line in lines]
    for phase in ("before", "after"):
        mine = [one for one in found if one["_phase"] == phase]
        assert sorted(one["_seq"] for one in mine) == list(range(1, 41))
    asked = {one["_seq"]: one["arguments"]["text"] for one in found if one["_phase"] == "before"}
    assert all(
        asked[one["_seq"]] == str(one["_result"]) for one in found if one["_phase"] == "after"
    )


@pytest.mark.req("G1")
async def test_a_cancelled_call_has_its_second_line(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, lines.append) as client:
        running = client.start_tool("silent")
        await peer.expect("tools/call")
        running.cancel()
        with pytest.raises(holdfast.errors.CancelledCallError):
            await running
    found = json.loads(lines[1])
    assert (found["_phase"], found["_ok"], found["_error"]) == ("after", False, "cancelled")


@pytest.mark.req("G1")
async def test_errors_say_what_went_wrong_without_repeating_the_call(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, lines.append) as client:
        with pytest.raises(holdfast.RpcError):
            await client.call_tool("refused")
        with pytest.raises(holdfast.RequestTimeout):
            await client.call_tool("silent", timeout=0.01)
        await client.list_tools()
        with pytest.raises(ValidationError):
            await client.call_tool("login", {"user": 5, "phrase": ["open sesame"]})
        with pytest.raises(ValidationError):
            await client.call_tool("say", {"odd": object()})
    errors = [json.loads(line)["_error"] for line in lines[1::2]]
    assert errors[0] == "the server answered with error -32050: not today, Bearer [redacted]"
    assert errors[1].startswith("no answer within 10 ms (timeout)")
    assert errors[2] == (
        "the arguments do not fit its schema; nothing was sent: /user: type; /phrase: type"
    )
    assert "cannot be written as JSON" in errors[3]
    assert "sesame" not in "".join(lines)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def logged(name: str, arguments: Any, **ending: Any) -> tuple[str, str]:
    """The two lines of a call, without redaction."""
    lines: list[str] = []
    log = CallLog(lines.append, redaction=Redaction(on=False))
    params = {"name": name, "arguments": arguments}
    Observers("peer", [log]).begin("tools/call", name, params).end(**ending)
    return lines[0], timeless(lines[1])


@pytest.mark.req("G1")
@given(st.text(), st.dictionaries(st.text(), JSON, max_size=4), st.text())
def test_a_line_is_one_line_for_every_reader(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    before, after = logged(name, arguments, result=ToolResult(content=[TextContent(text=said)]))
    for line in (before, after):
        assert len(line.splitlines()) == 1
        found = json.loads(line)
        assert (found["name"], found["arguments"]) == (name, arguments)
        assert list(found)[:2] == ["name", "arguments"]


def test_other_alphabets_stay_readable() -> None:
    line, _ = logged("ü", {"où": "→"}, result=ToolResult())
    assert line == '{"name":"ü","arguments":{"où":"→"},"_phase":"before","_seq":1}'


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    before, after = logged("a\ud800", {}, error=KeyError("\udfff"))
    assert before.startswith('{"name":"a?"')
    assert "KeyError: '\\\\udfff'" in after
    assert '"_error":"?"' in logged("t", {}, error=ValidationError("\udfff"))[1]


@pytest.mark.parametrize("arguments", [{"a": object()}, {"a": "\ud800"}, None, [1]])
def test_arguments_that_are_no_json_object_do_not_fail(arguments: Any) -> None:
    line, _ = logged("t", arguments, result=ToolResult())
    assert line.startswith('{"name":"t","arguments":{},')


async def test_an_error_of_another_kind_is_named() -> None:
    lines: list[str] = []
    log = CallLog(lines.append)

    watch = Observers("peer", [log]).begin("tools/call", "t", {"name": "t", "arguments": {}})
    watch.end(error=KeyError("Bearer hunter2hunter2"))
    assert json.loads(lines[1])["_error"] == "KeyError: 'Bearer [redacted]'"


async def test_a_long_error_is_cut(peer: Peer) -> None:
    lines: list[str] = []

    @peer.tool("fail")
    def fail() -> Any:
        return {"content": [{"type": "text", "text": "x" * 9000}], "isError": True}

    async with connect(peer, lines.append) as client:
        await client.call_tool("fail")
    assert json.loads(lines[1])["_error"] == "x" * 499 + "…"


@pytest.mark.req("G5")
async def test_secrets_are_never_in_the_log(peer: Peer, tmp_path: Path) -> None:
    @peer.tool("dump")
    def dump(**_: Any) -> str:
        return json.dumps({"password": "hunter2", "rows": ["row"] * 200})

    @peer.tool("fail")
    def fail(**_: Any) -> Any:
        text = json.dumps({"password": "hunter2", "rows": ["row"] * 2000})
        return {"content": [{"type": "text", "text": text}], "isError": True}

    @peer.tool("parts")
    def parts(**_: Any) -> Any:
        text = {"type": "text", "text": json.dumps({"password": "hunter2"})}
        return {"content": [text, *[{"type": "text", "text": "x" * 100}] * 3]}

    given = {"password": "hunter2", "nested": [{"api_key": "hunter2"}], "phrase": "hunter2"}
    async with connect(peer, CallLog(tmp_path / "calls.jsonl", sidecars=True)) as client:
        await client.list_tools()
        for tool in ("login", "dump", "fail", "parts"):
            wanted = given if tool == "login" else {"password": "hunter2"}
            await client.call_tool(tool, {**wanted, "user": "https://me:hunter2@host/"})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "hunter2" not in text
        assert "[redacted]" in text


@pytest.mark.req("G5")
async def test_redaction_is_the_client_s_or_the_log_s_own(peer: Peer) -> None:
    off = Redaction(on=False)
    lines: list[str] = []
    async with connect(peer, lines.append, observability=Observability(redaction=off)) as client:
        await client.call_tool("say", {"password": "open"})
    async with connect(peer, CallLog(lines.append, redaction=off)) as client:
        await client.call_tool("say", {"password": "open"})
    assert all('"password":"open"' in line for line in lines)
    log = CallLog(lines.append)
    assert open_log(log, off) is log


@pytest.mark.req("G1")
async def test_a_file_that_was_taken_away_is_begun_anew(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "a"
    log = CallLog(path)

    @peer.tool("slow")
    async def slow() -> str:
        log.flush()
        path.rename(tmp_path / "moved")
        return "done"

    async with connect(peer, log) as client:
        for _ in range(3):
            await client.call_tool("say")
            log.flush()
            assert len(path.read_text().splitlines()) == 2
            path.unlink()
        await client.call_tool("slow")
    (before,) = (tmp_path / "moved").read_text().splitlines()
    (after,) = path.read_text().splitlines()
    assert (json.loads(before)["_phase"], json.loads(after)["_phase"]) == ("before", "after")


@pytest.mark.req("G1")
async def test_arguments_are_logged_as_they_were_sent(peer: Peer, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"text": "sent", "list": [1]}

    @peer.tool("change")
    def change(**_: Any) -> str:
        arguments["text"] = "changed"
        arguments["list"].append(2)
        return "answered"

    async with connect(peer, tmp_path / "a") as client:
        result = await client.call_tool("change", arguments)
        result.content.clear()
    for line in (tmp_path / "a").read_text().splitlines():
        assert json.loads(line)["arguments"] == {"text": "sent", "list": [1]}
    assert json.loads(line)["_result"] == "answered"


@pytest.mark.req("G1")
async def test_calls_that_wait_together_are_redacted_each_by_itself(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CallLog(tmp_path / "a")
    monkeypatch.setattr(log._queue, "_start", lambda: None)  # no thread takes anything
    texts = [
        "hello",
        "password=hunter2hunter2",
        "2 of 3",
        "Bearer hunter2hunter2",
        "--token hunter2",
    ]
    async with connect(peer, log) as client:
        for text in texts * 3:
            await client.call_tool("say", {"text": text})
    lines = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert [line["_seq"] for line in lines] == [number for number in range(1, 16) for _ in "ba"]
    shown = [line["_result"] for line in lines if line["_phase"] == "after"]
    assert shown[:5] == shown[5:10] == shown[10:]
    assert [shown[0], shown[2]] == ["hello", "2 of 3"]
    assert "hunter2" not in str(lines)
    assert all(line["arguments"]["text"] == shown[line["_seq"] - 1] for line in lines)


@pytest.mark.req("G1")
def test_a_call_that_ends_in_a_forked_process_is_redacted_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CallLog(tmp_path / "a")
    monkeypatch.setattr(log._queue, "_start", lambda: None)
    params = {"name": "t", "arguments": {"text": "password=hunter2hunter2"}}
    watch = Observers("peer", [log]).begin("tools/call", "t", params)
    log._queue.begin_in_fork()  # the first line is the parent's
    raw = Raw(b'{"content":[{"type":"text","text":"hello"}]}')
    watch.end(raw, decode(raw, ToolResult))
    log.close()
    (line,) = (tmp_path / "a").read_text().splitlines()
    assert json.loads(line)["_result"] == "hello"
    assert "hunter2" not in line


@pytest.mark.req("G1")
async def test_a_full_queue_is_written_by_the_call_and_loses_nothing(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MOST_LINES", 3)
    log = CallLog(tmp_path / "a")
    monkeypatch.setattr(log._queue, "_start", lambda: None)  # no thread takes anything
    async with connect(peer, log) as client:
        for _ in range(10):
            await client.call_tool("say")
        assert len((tmp_path / "a").read_text().splitlines()) >= 17
    seqs = [json.loads(line)["_seq"] for line in (tmp_path / "a").read_text().splitlines()]
    assert seqs == [number for number in range(1, 11) for _ in "ba"]


CALLS = """
import asyncio, multiprocessing, os, sys, holdfast
from holdfast.testing import Peer

def peer():
    peer = Peer()
    peer.tool("say")(lambda **_: "hello")
    return peer

async def call(client, number):
    await client.open()
    for _ in range(number):
        await client.call_tool("say", {"pid": os.getpid()})
"""
ENDS = {
    "returns": "asyncio.run(call(holdfast.connect(peer(), log=sys.argv[1]), 5))",
    "raises": """
async def fail():
    await call(holdfast.connect(peer(), log=sys.argv[1]), 5)
    raise SystemExit("done")
asyncio.run(fail())
""",
    "multiprocessing": """
def work():
    asyncio.run(call(holdfast.connect(peer(), log=sys.argv[1]), 5))
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
""",
}


@pytest.mark.req("G1")
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_closes_nothing_ends_with_every_line(end: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    subprocess.run([sys.executable, "-c", CALLS + ENDS[end], str(path)], timeout=300, check=False)
    assert len(path.read_text().splitlines()) == 10


FORKED = """
from holdfast.calllog import CallLog
log = CallLog(sys.argv[1])
log._queue._start = lambda: None  # all waits
asyncio.run(call(holdfast.connect(peer(), log=log), 3))
del log._queue._start
child = os.fork()
asyncio.run(call(holdfast.connect(peer(), log=log), 2))
log.close()
if child:
    os.waitpid(child, 0)
"""


@pytest.mark.req("G5")
def test_a_forked_process_writes_its_own_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    subprocess.run([sys.executable, "-c", CALLS + FORKED, str(path)], timeout=300, check=True)
    pids = Counter(json.loads(line)["arguments"]["pid"] for line in path.read_text().splitlines())
    assert sorted(pids.values()) == [4, 10]


@pytest.mark.req("G1")
def test_a_process_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    program = "asyncio.run(call(holdfast.connect(peer(), log=sys.argv[1]), 10**9))"
    with subprocess.Popen([sys.executable, "-c", CALLS + program, str(path)]) as process:
        deadline = time.monotonic() + 300
        while not path.exists() or path.stat().st_size < 20_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
    lines = path.read_text().splitlines()
    assert len(lines) > 100
    assert [json.loads(line)["_phase"] for line in lines[:100]] == ["before", "after"] * 50


class Full(io.StringIO):
    """A stream on a disk that has no space left."""

    name = "/dev/full"

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("sink", ["full", "closed", "raises"])
async def test_a_log_that_fails_fails_no_call(
    peer: Peer, sink: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(line: str) -> None:
        raise RuntimeError(line)

    closed = io.StringIO()
    closed.close()
    sinks: dict[str, Any] = {"full": Full(), "closed": closed, "raises": fail}
    log = CallLog(sinks[sink])
    async with connect(peer, log) as client:
        for _ in range(5):
            assert (await client.call_tool("say")).text == "hello"
    assert log.lost == 10
    assert "10 lines lost" in repr(log)
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 1


async def test_what_cannot_be_shown_fails_no_call(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    log = CallLog(lines.append)

    tool = Tool(name="t", input_schema_json=Raw(b"{"))

    class Broken(ToolResult):
        @property
        def raw(self) -> dict[str, Any]:
            raise RuntimeError("no result today")

    params = {"name": "t", "arguments": {"a": 1}}
    Observers("peer", [log]).begin("tools/call", "t", params, tool).end(result=Broken())
    assert [timeless(line) for line in lines] == [
        '{"name":"t","arguments":{"a":1},"_phase":"before","_seq":1}',
        '{"name":"t","arguments":{"a":1},"_phase":"after","_ok":true,"_ms":7,"_seq":1}',
    ]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["../../x", "a/b", "nul\0", "π" * 300, "line\u2028end", "\n"])
async def test_hostile_names_harm_neither_log_nor_folder(
    peer: Peer, tmp_path: Path, name: str
) -> None:
    peer.tool(name)(lambda **_: "x" * 500)
    folder = tmp_path / "inner"
    folder.mkdir()
    async with connect(peer, CallLog(folder / "calls.jsonl", sidecars=True)) as client:
        await client.call_tool(name)
    lines = (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["name"] for line in lines] == [name, name]
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert len(list((folder / ".mcp-log").iterdir())) == 1


async def test_an_image_is_kept_whole(peer: Peer, tmp_path: Path) -> None:
    image = {"type": "image", "data": "A" * 400, "mimeType": "image/png"}
    peer.tool("shot")(lambda: {"content": [image]})
    async with connect(peer, CallLog(tmp_path / "a", sidecars=True)) as client:
        await client.call_tool("shot")
    kept = json.loads((tmp_path / ".mcp-log" / "1-shot.json").read_text())
    assert kept == {"content": [image]}
    assert "[image 463 chars → .mcp-log/1-shot.json]" in (tmp_path / "a").read_text()


async def test_a_log_can_be_used_again_after_a_client_closed(peer: Peer, tmp_path: Path) -> None:
    log = CallLog(tmp_path / "a", sidecars=True)
    for _ in range(2):
        async with connect(peer, log) as client:
            await client.call_tool("browser.snapshot")
    log.close()
    seqs = [json.loads(line)["_seq"] for line in (tmp_path / "a").read_text().splitlines()]
    assert seqs == [1, 1, 2, 2]
    assert len(list((tmp_path / ".mcp-log").iterdir())) == 2


@pytest.mark.req("G1")
@pytest.mark.parametrize("protocol", ["stateless", "handshake"])
async def test_a_process_of_either_era_is_logged_the_same(protocol: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.demo.server", "--eras", protocol]
    async with holdfast.connect(command, log=tmp_path / "a") as client:
        await client.call_tool("echo", {"text": "hello"})
        await client.call_tool("add", {"a": 1, "b": 2})
    lines = [timeless(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert lines[1].endswith('"_phase":"after","_result":"hello","_ok":true,"_ms":7,"_seq":1}')
    assert lines[3].endswith('"_phase":"after","_result":{"sum":3},"_ok":true,"_ms":7,"_seq":2}')


def test_a_log_says_where_it_goes(tmp_path: Path) -> None:
    take: Callable[[str], None] = print
    assert repr(CallLog(tmp_path / "a")) == f"<CallLog to the call log {tmp_path / 'a'}>"
    assert "function" in repr(CallLog(take))

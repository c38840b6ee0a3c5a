"""Calls sent again, and compared with what was recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Timeouts, ToolError, ValidationError
from holdfast.calllog.entries import Entry, read_log
from holdfast.calllog.log import CallLog
from holdfast.calllog.replay import replay
from holdfast.testing import Peer, RequestError

SOON = Timeouts(request=5)


@pytest.fixture
def peer() -> Peer:
    peer = Peer()
    count = 0

    @peer.tool("count")
    def counting(**_: Any) -> str:
        nonlocal count
        count += 1
        return str(count)

    @peer.tool("say")
    def say(text: str = "hello", **_: Any) -> str:
        return text

    @peer.tool("fail")
    def fail(**_: Any) -> Any:
        raise ValueError("no luck")

    @peer.tool("refuse")
    def refuse(**_: Any) -> Any:
        raise RequestError(-32050, "not today")

    @peer.tool("long")
    def long(size: int = 500) -> str:
        return "x" * size

    return peer


def connect(peer: Peer, **options: Any) -> holdfast.Client:
    return holdfast.connect(peer, timeouts=SOON, **options)


def sent(peer: Peer) -> list[tuple[str, Any]]:
    calls = [one.params for one in peer.received if one.method == "tools/call"]
    return [(one["name"], one["arguments"]) for one in calls]


@pytest.mark.req("G3")
async def test_the_calls_of_a_log_are_sent_again_in_order(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    async with connect(peer, log=path) as client:
        await client.call_tool("say", {"text": "a"})
        await client.call_tool("fail")
        await client.invoke_tool("refuse", {"x": [1]})
        await client.call_tool("say", {"text": "b"})
    before = sent(peer)
    peer.received.clear()
    async with connect(peer) as client:
        report = await replay(client, path)
    assert sent(peer) == before
    assert report.ok
    assert [one.verdict for one in report] == ["same"] * 4
    assert str(report).splitlines()[0] == "4 calls: 4 same"
    assert [None if one is None else one.text for one in report.results] == [
        "a",
        "ValueError: no luck",
        None,
        "b",
    ]
    assert report.raise_for_error() is report


@pytest.mark.req("G3")
async def test_a_pasted_line_is_sent_without_its_observations(peer: Peer) -> None:
    lines = [
        '{"name":"say","arguments":{"text":"a"},"_phase":"before","_seq":3,"_note":1}',
        '{"name":"say","arguments":{"text":"a"},"_phase":"after","_ok":true,"_ms":1,"_seq":9}',
        '{"name":"say","arguments":{"text":"b"}}',
    ]
    async with connect(peer) as client:
        report = await replay(client, lines)
    assert sent(peer) == [("say", {"text": "a"}), ("say", {"text": "b"})]
    assert [one.verdict for one in report] == ["unrecorded", "unrecorded"]


async def test_a_difference_is_shown(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, log=lines.append) as client:
        await client.call_tool("count")
        await client.call_tool("fail")
        changed = [line.replace('"fail"', '"say"') for line in lines]
        report = await replay(client, changed)
    assert not report.ok
    assert [one.verdict for one in report] == ["different", "different"]
    assert report.outcomes[0].note == "result: recorded 1, now 2"
    assert report.outcomes[1].note == "recorded: failed: ValueError: no luck"
    assert str(report) == (
        "2 calls: 2 different\n"
        "  1 'count' (line 1): different, ok\n"
        "      result: recorded 1, now 2\n"
        "  2 'say' (line 3): different, ok\n"
        "      recorded: failed: ValueError: no luck"
    )


SCRIPT = '{"name":"say"}\n{"name":"fail"}\n{"name":"refuse"}\n{"name":"say"}'


@pytest.mark.req("G3")
async def test_it_stops_at_an_error_or_goes_on(peer: Peer) -> None:
    async with connect(peer) as client:
        stopped = await replay(client, SCRIPT)
        whole = await replay(client, SCRIPT, stop=False)
    assert [one.verdict for one in stopped] == ["unrecorded", "unrecorded", "unsent", "unsent"]
    assert [one.ok for one in whole] == [True, False, False, True]
    assert not stopped.ok
    assert not whole.ok
    assert "not sent" in str(stopped)
    with pytest.raises(ToolError, match="no luck"):
        whole.raise_for_error()
    assert isinstance(whole.outcomes[2].exception, holdfast.RpcError)


async def test_a_failure_that_was_recorded_does_not_stop_it(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, log=lines.append) as client:
        await client.call_tool("fail")
        await client.call_tool("say")
        assert (await replay(client, lines)).ok


@pytest.mark.req("G3")
async def test_a_replayed_call_is_measured_in_milliseconds() -> None:
    class Slow:
        def call_tool(self, name: str, arguments: Any) -> Any:
            time.sleep(0.05)
            return {}

    began = time.perf_counter()
    report = await replay(Slow(), '{"name":"a"}')
    passed = time.perf_counter() - began
    assert [45 <= one.ms <= passed * 1000 + 1 for one in report] == [True]


async def test_a_caller_that_raises_for_tools_is_understood(peer: Peer) -> None:
    class Strict:
        def __init__(self, client: holdfast.Client) -> None:
            self._client = client

        async def call(self, name: str, arguments: Any, **options: Any) -> Any:
            return (await self._client.call_tool(name, arguments, **options)).raise_for_error()

    async with connect(peer) as client:
        report = await replay(Strict(client), SCRIPT, stop=False)
    assert [one.ok for one in report] == [True, False, False, True]
    assert report.results[1].is_error


async def test_a_caller_that_gives_something_else_is_understood() -> None:
    class Plain:
        def call_tool(self, name: str, arguments: Any) -> Any:
            return {"id": len(arguments)}

    script = ['{"name":"a"}', '{"name":"b","arguments":{"x":"${1.result.id}"}}']
    report = await replay(Plain(), script)
    assert report.results == [{"id": 0}, {"id": 1}]
    recorded = '{"name":"a","arguments":{},"_phase":"before","_seq":1}'
    end = '{"name":"a","arguments":{},"_phase":"after","_result":1,"_ok":true,"_ms":1,"_seq":1}'
    report = await replay(Plain(), [recorded, end])
    assert "was not compared" in report.outcomes[0].note
    with pytest.raises(ValidationError, match="no client and no handle"):
        await replay(object(), script)


# Long results


@pytest.mark.req("G3")
async def test_a_long_result_is_compared_with_its_sidecar(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "a"
    log = CallLog(path, sidecars=True)
    async with connect(peer, log=log) as client:
        await client.call_tool("long")
        log.flush()
        assert (await replay(client, path)).ok
    (tmp_path / ".mcp-log" / "1-long.txt").write_text("y" * 500)
    async with connect(peer) as client:
        assert not (await replay(client, path)).ok


async def test_without_a_sidecar_only_the_length_is_compared(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, log=lines.append) as client:
        await client.call_tool("long")
        report = await replay(client, lines)
        assert report.ok
        assert "too long for the log" in report.outcomes[0].note
        shorter = [line.replace("500 chars", "400 chars") for line in lines[:2]]
        report = await replay(client, shorter)
    assert report.outcomes[0].note == "recorded [text 400 chars], now [text 500 chars]"


# Secrets


@pytest.mark.req("G5")
async def test_blacked_out_arguments_are_not_sent_by_mistake(peer: Peer) -> None:
    lines: list[str] = []
    async with connect(peer, log=lines.append) as client:
        await client.call_tool("say", {"text": "a", "password": "hunter2", "in": {"otp": "1"}})
        peer.received.clear()
        with pytest.raises(ValidationError, match=r"'say' \(line 1\): password, otp"):
            await replay(client, lines)
        assert sent(peer) == []
        report = await replay(client, lines, fill={"password": "hunter2", "otp": "1"})
        assert report.ok
        await replay(client, lines[:1], fill={"password": "[redacted]", "otp": "2"})
    assert [given["password"] for _, given in sent(peer)] == ["hunter2", "[redacted]"]


@pytest.mark.req("G5")
async def test_blacked_out_arguments_are_asked_for_once_each(peer: Peer) -> None:
    asked: list[tuple[str, str]] = []

    async def ask(entry: Entry, name: str) -> str | None:
        asked.append((entry.name, name))
        return None if name == "pin" else f"the {name}"

    lines: list[str] = []
    async with connect(peer, log=lines.append) as client:
        secrets = {"password": "x", "in": {"otp": "1", "keys": ["password=hunter2", "a", "b"]}}
        await client.call_tool("say", {"text": "a", **secrets})
        await client.call_tool("say", {"text": "b", **secrets})
        peer.received.clear()
        await replay(client, lines, fill={"otp": "2"}, ask=ask)
        assert asked == [("say", "password"), ("say", "keys")]
        given = {"password": "the password", "in": {"otp": "2", "keys": ["the keys", "a", "b"]}}
        assert sent(peer) == [("say", {"text": text, **given}) for text in "ab"]
        await client.call_tool("say", {"text": "c", "password": "x", "pin": "[redacted]"})
        peer.received.clear()
        with pytest.raises(ValidationError, match="pin"):
            await replay(client, lines[-2:], ask=ask)
        assert sent(peer) == []


# Confirmation


@pytest.mark.req("G3")
async def test_calls_that_may_change_something_are_sent_only_if_confirmed() -> None:
    peer = Peer()

    @peer.tool("look", annotations={"readOnlyHint": True})
    def look() -> str:
        return "seen"

    @peer.tool("delete", annotations={"destructiveHint": True})
    def delete(path: str) -> str:
        return "gone"

    look_only = [{"name": "look", "arguments": {}}]
    both = [*look_only, {"name": "delete", "arguments": {"path": "/"}}]
    asked: list[list[str]] = []

    def refuse(calls: list[Entry]) -> bool:
        asked.append([call.name for call in calls])
        return False

    async def agree(calls: list[Entry]) -> bool:
        return True

    async with connect(peer) as client:
        assert (await replay(client, look_only, confirm=refuse)).ok
        assert asked == []
        peer.received.clear()
        with pytest.raises(ValidationError, match="delete were not confirmed; nothing was sent"):
            await replay(client, both, confirm=refuse)
        assert (asked, sent(peer)) == ([["delete"]], [])
        report = await replay(client, both, confirm=agree)
        assert [one.text for one in report.results] == ["seen", "gone"]
        assert (await replay(client, both)).ok


@pytest.mark.req("G3")
async def test_a_name_listed_twice_is_read_only_if_both_are() -> None:
    hints = ({"readOnlyHint": True}, {"readOnlyHint": False})
    schema = {"type": "object"}
    peer = Peer()
    peer.capabilities = {"tools": {}}
    listed = [{"name": "look", "inputSchema": schema, "annotations": one} for one in hints]
    peer.on("tools/list", {"tools": listed})
    async with connect(peer) as client:
        with pytest.raises(ValidationError, match="not confirmed; nothing was sent"):
            await replay(client, [{"name": "look"}], confirm=lambda calls: False)
    assert sent(peer) == []


async def test_nothing_to_send_is_fine(peer: Peer) -> None:
    async with connect(peer) as client:
        report = await replay(client, [])
    assert (report.ok, len(report), str(report)) == (True, 0, "0 calls")


async def test_a_log_that_was_read_can_be_replayed(peer: Peer) -> None:
    log = read_log([{"name": "say", "arguments": {}}])
    async with connect(peer) as client:
        assert (await replay(client, log)).results[0].text == "hello"

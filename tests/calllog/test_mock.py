"""A log served back as a server."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import RpcError, Timeouts, ValidationError
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, VERSIONS
from holdfast._core.redact.known import KNOWN
from holdfast.calllog.compare import compare
from holdfast.calllog.log import CallLog
from holdfast.calllog.mock import MockServer
from holdfast.calllog.replay import replay
from holdfast.testing import Peer, RequestError
from holdfast.types.tools import Tool
from tests.rows import rows

SOON = Timeouts(request=5)


def connect(target: Any, **options: Any) -> holdfast.Client:
    return holdfast.connect(target, timeouts=SOON, **options)


def line(name: str, arguments: Any, result: Any = "ok", **rest: Any) -> str:
    end = {"_phase": "after", "_result": result, "_ok": True, "_ms": 1, "_seq": 1, **rest}
    return json.dumps({"name": name, "arguments": arguments, **end})


def failed(name: str, arguments: Any, error: str) -> str:
    end = {"_phase": "after", "_ok": False, "_ms": 1, "_error": error, "_seq": 1}
    return json.dumps({"name": name, "arguments": arguments, **end})


@pytest.mark.req("G5")
@rows("version", VERSIONS)
async def test_every_revision_is_spoken(version: str) -> None:
    mock = MockServer([line("say", {"a": 1}, {"x": 1})], instructions="as recorded")
    async with connect(mock, protocol=version) as client:
        assert (await client.call_tool("say", {"a": 1})).structured == {"x": 1}
        assert client.protocol_version == version
        assert client.server_info is not None
        assert (client.server_info.name, client.instructions) == ("recorded", "as recorded")
        await client.ping()
        assert client.violations == {}


@pytest.mark.req("G5")
async def test_calls_are_matched_on_name_and_normal_arguments() -> None:
    mock = MockServer([line("t", {"a": 1, "b": {"c": 2, "d": 3}}, "yes")])
    async with connect(mock) as client:
        given = {"b": {"d": 3.0, "c": 2}, "a": 1.0}
        assert (await client.call_tool("t", given)).text == "yes"
    assert mock.unused == []


@pytest.mark.req("G5")
async def test_repeated_calls_are_answered_in_order() -> None:
    lines = [line("t", {}, "one"), line("u", {}), line("t", {}, "two")]
    mock = MockServer(lines)
    async with connect(mock) as client:
        assert [(await client.call_tool("t")).text for _ in range(2)] == ["one", "two"]
        with pytest.raises(RpcError, match="'t' was recorded 2 times with these arguments"):
            await client.call_tool("t")
        await client.call_tool("u")
        with pytest.raises(RpcError, match="recorded once"):
            await client.call_tool("u")


@pytest.mark.req("G5")
async def test_an_unmatched_call_names_the_nearest() -> None:
    mock = MockServer(
        [line("goto", {"url": "a", "wait": 1}), line("goto", {"url": "b", "wait": 2})]
    )
    async with connect(mock) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("goto", {"url": "c", "wait": 2})
        assert (
            '\'goto\' was not recorded with these arguments: {"url":"c","wait":2}; '
            'nearest is line 2: url: recorded "b", now "c"'
        ) in str(caught.value)
        with pytest.raises(ValidationError, match="Did you mean 'goto'"):
            await client.call_tool("got")
        with pytest.raises(RpcError, match="no call of 'got' was recorded; did you mean 'goto'"):
            await client.request("tools/call", {"name": "got", "arguments": {}})
        with pytest.raises(RpcError, match="method not found: resources/list"):
            await client.list_resources()
    assert [entry.line for entry in mock.unused] == [1, 2]


async def test_what_came_is_blacked_out_in_a_refusal() -> None:
    async with connect(MockServer([line("t", {"a": 1})])) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("t", {"password": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.req("G5")
async def test_secrets_that_were_blacked_out_match_any() -> None:
    lines = [
        line("t", {"password": "[redacted]", "user": "me"}, "by name"),
        line("t", {"phrase": "[redacted]", "user": "me"}, "by a hint that we do not have"),
    ]
    async with connect(MockServer(lines)) as client:
        result = await client.call_tool("t", {"user": "me", "password": "hunter2"})
        assert result.text == "by name"
        result = await client.call_tool("t", {"user": "me", "phrase": "open sesame"})
        assert result.text == "by a hint that we do not have"
        with pytest.raises(RpcError, match="nearest is line 2: user"):
            await client.call_tool("t", {"user": "you", "phrase": "open sesame"})


@pytest.mark.req("G5")
async def test_failures_are_served_as_failures() -> None:
    lines = [
        failed("t", {"n": 1}, "no luck"),
        failed("t", {"n": 2}, "the server answered with error -32050: not today"),
        '{"name":"t","arguments":{"n":3},"_phase":"before","_seq":1}',
        line("t", {"n": 4}, "[text 900 chars]"),
        line("t", {"n": 5}, "[text 900 chars → 9-none.txt]"),
    ]
    async with connect(MockServer(lines)) as client:
        result = await client.call_tool("t", {"n": 1})
        assert (result.is_error, result.text) == (True, "no luck")
        with pytest.raises(RpcError, match="not today") as caught:
            await client.call_tool("t", {"n": 2})
        assert caught.value.code == -32050
        for n, why in (
            (3, "how it ended was not recorded"),
            (4, r"'t' \(line 4\): its result .text, 900 characters.*sidecars=True"),
            (5, r"its sidecar 9-none\.txt cannot be read"),
        ):
            with pytest.raises(RpcError, match=why):
                await client.call_tool("t", {"n": n})


async def test_the_tools_are_made_of_what_the_log_shows() -> None:
    lines = [line("a", {"x": 1}), line("a", {"y": "z"}), line("b", {})]
    async with connect(MockServer(lines)) as client:
        tools = await client.list_tools()
    assert {tool.name: tool.input_schema for tool in tools} == {
        "a": {
            "type": "object",
            "properties": {"x": {"type": ["number"]}, "y": {"type": ["string"]}},
        },
        "b": {"type": "object", "properties": {}},
    }


@pytest.mark.req("G5")
async def test_the_tools_can_be_given() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    tool = Tool.make("a", description="does it", input_schema=schema)
    plain = {"name": "a", "description": "does it", "inputSchema": schema}
    locked = {"a": {**plain, "fingerprint": "sha256:0"}}
    for tools in ([tool], [plain], locked):
        async with connect(MockServer([line("a", {"x": 1})], tools=tools)) as client:
            (found,) = await client.list_tools()
            assert found.raw == plain
            with pytest.raises(holdfast.ValidationError):
                await client.call_tool("a", {})
            await client.call_tool("a", {"x": 1})


# There and back


@pytest.mark.req("G5")
async def test_a_recorded_session_is_logged_the_same_when_it_is_played(tmp_path: Path) -> None:
    peer = Peer()
    image = {"type": "image", "data": "A" * 400, "mimeType": "image/png"}
    answers: dict[str, Any] = {
        "text": "hello",
        "json": {"opened": True},
        "empty": {"content": []},
        "long": "x" * 3000,
        "image": {"content": [image]},
        "parts": {"content": [{"type": "text", "text": "x" * 150}] * 2, "structuredContent": [1]},
        "fail": {"content": [{"type": "text", "text": "no"}], "isError": True},
    }
    for name, answer in answers.items():
        peer.tool(name)(lambda answer=answer, **_: answer)

    @peer.tool("refuse")
    def refuse() -> Any:
        raise RequestError(-32001, "not\ntoday")

    async def session(target: Any, path: Path) -> list[Any]:
        found = []
        async with connect(target, log=CallLog(path, sidecars=path.stem)) as client:
            for name in (*answers, "refuse", "text"):
                done = await client.invoke_tool(name, {"password": "x"} if name == "text" else {})
                found.append((done.success, [one.raw for one in done.content]))
        return found

    live = await session(peer, tmp_path / "live.jsonl")
    mock = MockServer(tmp_path / "live.jsonl")
    played = await session(mock, tmp_path / "played.jsonl")
    assert played == live
    assert mock.unused == []
    assert not compare(tmp_path / "live.jsonl", tmp_path / "played.jsonl")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "content", "token"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["t", "a/b", "é\u2028"]),
        st.dictionaries(st.sampled_from(["x", "y", "pin"]), VALUES, max_size=2),
        st.one_of(VALUES, st.text(max_size=8)),
        st.booleans(),
    ),
    max_size=5,
)


@pytest.mark.req("G5")
@settings(max_examples=60)
@given(CALLS)
@example(calls=[("t", {}, {"a": {"token": []}, "token": 0}, True)])
def test_whatever_is_recorded_can_be_played_and_recorded_again(calls: list[Any]) -> None:
    async def run(target: Any) -> list[str]:
        lines: list[str] = []
        KNOWN.forget()  # a secret argument of the first run would be hidden in all of the second
        async with connect(target, log=CallLog(lines.append, threshold=100_000)) as client:
            for name, arguments, _, _ in calls:
                await client.call_tool(name, arguments)
        return lines

    peer, left = Peer(), list(calls)

    def answer(_: Any) -> Any:
        _, _, value, is_error = left.pop(0)
        text = value if isinstance(value, str) else json.dumps(value)
        return {"content": [{"type": "text", "text": text}], "isError": is_error}

    peer.on("tools/call", answer)
    live = asyncio.run(run(peer))
    # What holds the secret of an earlier call is hidden in part: nobody can send it again.
    assume(not re.search(r'[^"]\[redacted\]|\[redacted\][^"]', "".join(live)))
    played = asyncio.run(run(MockServer(live)))
    strip = [
        [{key: value for key, value in json.loads(one).items() if key != "_ms"} for one in log]
        for log in (live, played)
    ]
    assert strip[0] == strip[1]


# Over stdio, and badly spoken to


SERVE = (
    "import asyncio, sys; from holdfast.calllog.mock import MockServer; "
    "asyncio.run(MockServer(sys.argv[1]).serve_stdio())"
)


@pytest.mark.req("G5")
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[1]])
async def test_a_log_is_served_over_stdio(tmp_path: Path, version: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(line("say", {}, "one") + "\n" + line("say", {}, "two") + "\n")
    command = [sys.executable, "-c", SERVE, str(path)]
    async with holdfast.connect(command, protocol=version) as client:
        assert [(await client.call_tool("say")).text for _ in range(2)] == ["one", "two"]
        assert client.violations == {}


async def test_serving_ends_with_the_input_or_the_reader() -> None:
    mock = MockServer([line("t", {})])
    ask = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n\n{"jsonrpc":"2.0","method":"x"}\n'
    out = io.BytesIO()
    await mock.serve_stdio(io.BytesIO(ask), out)
    assert out.getvalue() == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'

    class Gone(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    await mock.serve_stdio(io.BytesIO(ask), Gone())


def test_a_call_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":%b}}'
    mock = MockServer([line("t", {"a": 1})])
    mock.server.strict = False
    out = io.BytesIO()
    asyncio.run(mock.serve_stdio(io.BytesIO(call % deep), out))
    assert "error" in msgspec.json.decode(out.getvalue())


def test_it_says_what_it_serves() -> None:
    assert repr(MockServer([line("t", {})])) == "<MockServer recorded: 1 calls of the log>"


def workshop(versions: tuple[str, ...]) -> Peer:
    peer = Peer("workshop", versions=versions)

    @peer.tool(task=True)
    def build(target: str) -> str:
        if target == "nothing":
            raise RequestError(-32050, "no such target")
        return f"built {target}"

    @peer.tool()
    def echo(text: str) -> str:
        return text

    return peer


BUILD = [{"target": "all"}, {"target": "nothing"}]


async def recorded(versions: tuple[str, ...]) -> list[str]:
    """The log of a task that completes, one that fails, and a plain call."""
    lines: list[str] = []
    async with connect(workshop(versions), log=lines.append) as client:
        await client.call_tool("build", BUILD[0], task=True)
        with pytest.raises(RpcError):
            await client.call_tool("build", BUILD[1], task=True)
        await client.call_tool("echo", {"text": "hi"}, task=True)
    return lines


@pytest.mark.req("K1")
@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE])
async def test_a_task_is_recorded_and_served_as_a_task_in_both_forms(
    versions: tuple[str, ...],
) -> None:
    lines = await recorded(versions)
    ends = [json.loads(line).get("_task") for line in lines if '"after"' in line]
    assert [one and one["status"] for one in ends] == ["completed", "failed", None]
    for version in (STATELESS[0], HANDSHAKE[0]):
        async with connect(MockServer(lines), protocol=version) as client:
            running = client.start_tool("build", BUILD[0], task=True)
            assert (await running).text == "built all"
            assert running.task is not None
            assert (running.task.task_id, running.task.status) == (ends[0]["id"], "completed")
            with pytest.raises(RpcError, match="no such target") as caught:
                await client.call_tool("build", BUILD[1], task=True)
            assert caught.value.code == -32050
            assert (await client.call_tool("echo", {"text": "hi"}, task=True)).text == "hi"


@pytest.mark.req("K1")
@pytest.mark.parametrize("version", [STATELESS[0], HANDSHAKE[0]])
async def test_a_recorded_task_can_be_asked_for_by_its_id_alone(version: str) -> None:
    task = {"id": "t-1", "status": "cancelled"}
    gone = {**json.loads(failed("build", {}, "task 't-1': was cancelled")), "_task": task}
    done = line("build", {"target": "all"}, "built", _task={"id": "t-2", "status": "completed"})
    mock = MockServer([gone, done])
    async with connect(mock, protocol=version) as client:
        assert (await client.resume_task("t-2")).text == "built"
        with pytest.raises(holdfast.errors.CancelledCallError):
            await client.resume_task("t-1")
        assert (await client.get_task("t-1")).status == "cancelled"
        with pytest.raises(
            RpcError, match="no longer knows it: the server answered with error -32602"
        ):
            await client.resume_task("t-3")
        assert not mock.unused
        # Without a task the same call is an ordinary one.
        assert (await client.call_tool("build", {})).is_error


@pytest.mark.req("K1")
async def test_a_task_is_replayed_as_a_task() -> None:
    lines = await recorded(STATELESS)
    peer = workshop(STATELESS)
    async with connect(peer) as client:
        report = await replay(client, lines)
    assert [one.verdict for one in report.outcomes] == ["same"] * 3
    assert "tasks/get" in [one.method for one in peer.received]

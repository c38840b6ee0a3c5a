"""Relays over HTTP: sessions, stateless requests, strangers, and several hosts on one server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from msgspec import Raw

import holdfast
from holdfast import Handlers, types
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from holdfast._core.serve import http
from holdfast._core.serve.http import HttpServer
from holdfast.policies import Identity
from holdfast.relay.serving import ServedRelays
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import Pair, input_required

pytestmark = pytest.mark.req("Y1", "Y3")


@pytest.fixture(params=["handshake", "stateless"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(str(request.param), "handshake")


def offering(pair: Pair, word: str = "one") -> Peer:
    peer = pair.peer(
        capabilities={
            "tools": {"listChanged": True},
            "resources": {"subscribe": True},
            "logging": {},
        }
    )
    peer.tool("say")(lambda: word)
    peer.resource("x://a", word)
    return peer


class Served:
    """A relay that listens."""

    def __init__(self, url: str, shared: dict[str, SharedRelay]) -> None:
        self.url = url
        self.shared = shared


@asynccontextmanager
async def serving(
    *peers: Peer, host: str = "127.0.0.1", token: str | None = None
) -> AsyncIterator[Served]:
    async with AsyncExitStack() as stack:
        shared = {}
        for number, peer in enumerate(peers):
            client = await stack.enter_async_context(holdfast.connect(peer, when_down="wait"))
            shared[f"s{number}"] = SharedRelay(client)
        relays = ServedRelays(shared)
        server = HttpServer(relays.endpoints(), host, token)
        port = await server.start()
        try:
            yield Served(f"http://127.0.0.1:{port}", shared)
        finally:
            await server.close()
            await relays.close()
        assert not any(relay.hosts for relay in shared.values())


def connect(url: str, pair: Pair, **options: Any) -> holdfast.Client:
    return holdfast.connect(url, protocol=pair.host, **options)


async def test_each_server_has_a_path_and_all_are_at_the_root(pair: Pair) -> None:
    async with serving(offering(pair, "one"), offering(pair, "two")) as served:
        async with connect(f"{served.url}/s1", pair) as host:
            assert (await host.call_tool("say")).text == "two"
        async with connect(f"{served.url}/", pair) as host:
            assert [tool.name for tool in await host.list_tools()] == ["s0.say", "s1.say"]
            assert (await host.call_tool("s1.say")).text == "two"
        async with connect(f"{served.url}/none", pair) as host:
            with pytest.raises(holdfast.HoldfastError, match="404"):
                await host.open()


async def test_questions_progress_and_log_messages_pass(pair: Pair) -> None:
    peer, runs = offering(pair), list[str]()

    async def call(request: ServerRequest) -> Any:
        runs.append("run")
        request.progress(1, total=2)
        request.log("error", "loud")
        answer = await request.session.ask("roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    steps: list[types.Progress] = []
    logs: asyncio.Queue[Any] = asyncio.Queue()
    handlers = Handlers(roots=["file:///a"])
    async with (
        serving(peer) as served,
        connect(f"{served.url}/s0", pair, handlers=handlers) as host,
    ):
        host.on_log(logs.put_nowait)
        await host.set_log_level("error")
        result = await host.call_tool("say", on_progress=steps.append)
        assert (result.text, runs, len(steps)) == ("file:///a", ["run"], 1)
        assert (await logs.get()).data == "loud"


@pytest.mark.parametrize("reports", [0, 1], ids=["JSON", "an event stream"])
async def test_a_large_result_arrives_whole(pair: Pair, reports: int) -> None:
    """It is written in parts, as JSON or, behind its progress, as an event."""
    peer, size = pair.peer(), 5 * http.PART + 7

    async def call(request: ServerRequest) -> Any:
        for number in range(reports):
            request.progress(number)
            await asyncio.sleep(0)
        return {"content": [{"type": "text", "text": "é" + size * "x"}]}

    peer.on("tools/call", call)
    seen: list[Any] = []
    async with serving(peer) as served, connect(f"{served.url}/s0", pair) as host:
        for _ in range(2):
            result = await host.call_tool("large", on_progress=seen.append)
            assert result.text == "é" + size * "x"
    assert len(seen) == 2 * reports


async def test_a_stateless_server_asks_its_own_caller() -> None:
    pair = Pair("stateless", "stateless")
    peer = offering(pair)

    async def call(request: ServerRequest) -> Any:
        if "inputResponses" not in request.params:
            return input_required("roots/list", {})
        answer = await pair.ask(request, "roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    async with serving(peer) as served:
        hosts = [
            connect(f"{served.url}/s0", pair, handlers=Handlers(roots=[f"file:///{name}"]))
            for name in "ab"
        ]
        async with hosts[0], hosts[1]:
            results = await asyncio.gather(*(host.call_tool("say") for host in hosts))
    assert [result.text for result in results] == ["file:///a", "file:///b"]


async def test_a_question_is_not_given_to_one_of_two_stateless_hosts() -> None:
    pair = Pair("stateless", "handshake")
    peer, both = offering(pair), asyncio.Barrier(2)

    async def call(request: ServerRequest) -> Any:
        await both.wait()
        with pytest.raises(RequestError, match="2 calls are open, which may be of several hosts"):
            await request.session.ask("roots/list", {})
        return {"content": []}

    peer.on("tools/call", call)
    async with serving(peer) as served:
        hosts = [
            connect(f"{served.url}/s0", pair, handlers=Handlers(roots=["file:///a"]))
            for _ in range(2)
        ]
        async with hosts[0], hosts[1]:
            await asyncio.gather(*(host.call_tool("say") for host in hosts))


async def test_updates_pass_and_a_host_that_goes_is_forgotten(pair: Pair) -> None:
    peer, updates = offering(pair), asyncio.Queue[str]()
    updated = "notifications/resources/updated"
    async with serving(peer) as served:
        shared = served.shared["s0"]
        async with connect(f"{served.url}/s0", pair) as host:
            host.on_notification(lambda update: updates.put_nowait(update.params["uri"]), updated)
            await host.subscribe_resource("x://a")
            peer._server.announce(updated, {"uri": "x://a"})
            assert await updates.get() == "x://a"
        # DELETE ends a session; a stateless stream ends with its connection.
        await peer.expect("resources/unsubscribe")
        while shared._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert not shared._watchers
        assert len(shared.hosts) == (1 if pair.is_host_stateless else 0)


async def test_a_cancelled_call_is_cancelled_at_the_server(pair: Pair) -> None:
    peer = offering(pair)
    peer.on("tools/call", SILENCE)
    async with serving(peer) as served, connect(f"{served.url}/s0", pair) as host:
        call = asyncio.ensure_future(host.call_tool("say"))
        await peer.expect("tools/call")
        call.cancel()
        await peer.expect("notifications/cancelled")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


async def post(url: str, message: Any = INITIALIZE, **headers: str) -> tuple[int, Any]:
    """Return the status and the headers of a response."""
    accept = {"Accept": "application/json, text/event-stream", **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=message, headers=accept) as response,
    ):
        await response.read()
        return response.status, response.headers


def stateless_call(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a call of the stateless era, and the headers that repeat it."""
    version = Pair("stateless", "handshake").host
    info = {"name": "raw", "version": "1"}
    meta = {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {}, CLIENT_INFO: info}
    params = {"name": name, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    repeated = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": name}
    return message, repeated


@pytest.mark.parametrize(
    ("name", "status"),
    [("say", 200), ("=?base64?c2F5?=", 200), ("=?base64?c2F4?=", 400), ("=?base64?c2F?=", 400)],
)
async def test_a_name_in_a_header_is_decoded_before_it_is_compared(name: str, status: int) -> None:
    message, repeated = stateless_call("say")
    async with serving(offering(Pair("stateless", "handshake"))) as served:
        sent = {**repeated, "Mcp-Name": name}
        assert (await post(f"{served.url}/s0", message, **sent))[0] == status


async def test_a_stateless_request_that_lacks_a_field_is_a_bad_request() -> None:
    async with serving(offering(Pair("stateless", "handshake"))) as served:
        for field, code in ((PROTOCOL_VERSION, -32020), (CLIENT_CAPABILITIES, -32602)):
            message, repeated = stateless_call("say")
            del message["params"]["_meta"][field]
            assert await refusal(f"{served.url}/s0", message, repeated) == (400, code)
        message, repeated = stateless_call("say")
        del message["params"]["_meta"]
        assert await refusal(f"{served.url}/s0", message, repeated) == (400, -32020)


async def refusal(url: str, message: Any, headers: dict[str, str]) -> tuple[int, int]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=message, headers=headers) as response,
    ):
        return response.status, (await response.json())["error"]["code"]


async def test_a_notification_needs_no_headers_that_repeat_it() -> None:
    message, repeated = stateless_call("say")
    del message["id"]
    message["method"] = "notifications/x"
    version = repeated["MCP-Protocol-Version"]
    async with serving(offering(Pair("stateless", "handshake"))) as served:
        url = f"{served.url}/s0"
        assert (await post(url, message, **{"MCP-Protocol-Version": version}))[0] == 202
        assert (await post(url, message, **repeated))[0] == 400


async def test_strangers_are_refused() -> None:
    async with serving(offering(Pair("handshake", "handshake"))) as served:
        url = f"{served.url}/s0"
        assert (await post(url))[0] == 200
        assert (await post(url, Host="evil.example"))[0] == 403
        assert (await post(url, Host="evil.example:80"))[0] == 403
        assert (await post(url, Origin="http://evil.example"))[0] == 403
        assert (await post(url, Origin="http://["))[0] == 403
        assert (await post(url, Origin="http://localhost:3000"))[0] == 200


async def test_a_token_is_needed_where_it_is_set() -> None:
    peer = offering(Pair("handshake", "handshake"))
    async with serving(peer, host="0.0.0.0", token="s3cret-token") as served:
        url = f"{served.url}/s0"
        status, headers = await post(url)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        for wrong in ("Bearer wrong", "Bearer", "Bearer ", "Basic s3cret-token", "Bearer s3cret-é"):
            assert (await post(url, Authorization=wrong))[0] == 401
        assert (await post(url, Authorization="bearer  s3cret-token"))[0] == 200
        assert (await post(url, Authorization="Bearer s3cret-token"))[0] == 200
        right = {"Authorization": "Bearer s3cret-token"}
        assert (await post(url, **right, Host="desk.example"))[0] == 200
        assert (await post(url, **right, Origin="http://evil.example"))[0] == 403
        async with holdfast.connect(url, auth=holdfast.Bearer("s3cret-token")) as host:
            assert (await host.call_tool("say")).text == "one"


async def test_a_message_of_several_lines_is_passed_in_one() -> None:
    # Whoever reads lines, such as a server on stdio, would see other messages in it.
    pair = Pair("stateless", "handshake")
    peer = offering(pair)
    peer.on("tools/call", lambda request: Raw(request.params_raw))
    meta = {
        PROTOCOL_VERSION: pair.host,
        CLIENT_CAPABILITIES: {},
        CLIENT_INFO: {"name": "x", "version": "1"},
    }
    params = {"name": "say", "arguments": {"a": [{"jsonrpc": "2.0"}]}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": pair.host, "Mcp-Method": "tools/call", "Mcp-Name": "say"}
    async with serving(peer) as served, aiohttp.ClientSession() as session:
        body = json.dumps(message, indent=2).replace("\n", "\r\n").encode()
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
        async with session.post(f"{served.url}/s0", data=body, headers=headers) as response:
            answer = await response.read()
    assert json.loads(answer)["result"]["arguments"] == params["arguments"]
    assert (b"\r" in answer, answer.count(b"\n")) == (False, 1)
    assert b"\n" not in bytes(peer.received[-1].params_raw)


async def test_a_session_is_of_one_path_and_ends_with_delete() -> None:
    pair = Pair("handshake", "handshake")
    async with serving(offering(pair), offering(pair)) as served:
        url = f"{served.url}/s0"
        _, headers = await post(url)
        name = headers["Mcp-Session-Id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await post(url, ping, **{"Mcp-Session-Id": name}))[0] == 200
        assert (await post(f"{served.url}/s1", ping, **{"Mcp-Session-Id": name}))[0] == 404
        assert (await post(url, ping, **{"Mcp-Session-Id": "guessed"}))[0] == 404
        assert (await post(url, ping))[0] == 400
        async with aiohttp.ClientSession() as session:
            sent = {"Mcp-Session-Id": name}
            stream = await session.get(url, headers=sent)
            async with session.delete(url, headers=sent) as response:
                assert response.status == 204
            assert await stream.read() == b""  # it ends with the session
        assert (await post(url, ping, **{"Mcp-Session-Id": name}))[0] == 404
        while served.shared["s0"].hosts:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_the_response_to_an_id_that_is_in_use_ends() -> None:
    pair = Pair("handshake", "handshake")
    peer = offering(pair)
    peer.on("tools/call", SILENCE)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "say"}}
    async with serving(peer) as served:
        url = f"{served.url}/s0"
        sent = {"Mcp-Session-Id": (await post(url))[1]["Mcp-Session-Id"]}
        first = asyncio.ensure_future(post(url, call, **sent))
        await peer.expect("tools/call")
        assert (await post(url, call, **sent))[0] == 200
        first.cancel()


@pytest.mark.parametrize("ends", ["cancellation", "delete"])
async def test_the_response_to_a_call_that_is_not_answered_ends(ends: str) -> None:
    """Hosts of the handshake era cancel by another request, and may wait for the first to end."""
    pair = Pair("handshake", "handshake")
    peer = offering(pair)
    peer.on("tools/call", SILENCE)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "say"}}
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 2}}
    async with serving(peer) as served, aiohttp.ClientSession() as session:
        url = f"{served.url}/s0"
        sent = {"Mcp-Session-Id": (await post(url))[1]["Mcp-Session-Id"]}
        response = asyncio.ensure_future(post(url, call, **sent))
        await peer.expect("tools/call")
        if ends == "delete":
            async with session.delete(url, headers=sent):
                pass
        else:
            assert (await post(url, {"jsonrpc": "2.0", **cancelled}, **sent))[0] == 202
        status, headers = await response
        assert (status, headers["Content-Type"]) == (200, "text/event-stream")


@pytest.mark.parametrize("kind", ["session", "listen"])
async def test_quiet_streams_are_kept_alive(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KEEP_ALIVE", 0.01)
    pair = Pair("stateless", "handshake")
    method = "subscriptions/listen"
    meta = {PROTOCOL_VERSION: pair.host, CLIENT_CAPABILITIES: {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    listen = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    named = {"MCP-Protocol-Version": pair.host, "Mcp-Method": method}
    async with serving(offering(pair)) as served, aiohttp.ClientSession() as session:
        url = f"{served.url}/s0"
        if kind == "session":
            sent = {"Mcp-Session-Id": (await post(url))[1]["Mcp-Session-Id"]}
            stream = await session.get(url, headers=sent)
        else:
            stream = await session.post(url, json=listen, headers=named)
            assert b"acknowledged" in await stream.content.readline()
            await stream.content.readline()
        assert stream.headers["X-Accel-Buffering"] == "no"
        comments = [await stream.content.readline() for _ in range(4)]
        assert comments == [b":\n", b"\n"] * 2
        stream.close()


async def test_a_body_that_is_not_encoded_as_it_says_is_refused() -> None:
    async with serving(offering(Pair("handshake", "handshake"))) as served:
        assert (await post(f"{served.url}/s0", **{"Content-Encoding": "gzip"}))[0] == 400


async def test_sessions_streams_and_bodies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_SESSIONS", 2)
    monkeypatch.setattr(http, "LARGEST_BODY", 10_000)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with serving(offering(Pair("handshake", "handshake"))) as served:
        url = f"{served.url}/s0"
        names = [(await post(url))[1]["Mcp-Session-Id"] for _ in range(2)]
        assert (await post(url, ping, **{"Mcp-Session-Id": names[0]}))[0] == 200
        await post(url)
        # The one that was used longest ago went.
        assert (await post(url, ping, **{"Mcp-Session-Id": names[0]}))[0] == 200
        assert (await post(url, ping, **{"Mcp-Session-Id": names[1]}))[0] == 404
        assert (await post(url, {"x": "y" * 20_000}))[0] == 413
        monkeypatch.setattr(http, "MOST_OPEN", 0)
        assert (await post(url))[0] == 503


async def test_a_handshake_that_fails_leaves_no_host() -> None:
    async with serving(offering(Pair("handshake", "handshake"))) as served:
        bad = {**INITIALIZE, "params": {}}
        await post(f"{served.url}/s0", bad)
        while served.shared["s0"].hosts:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_closing_ends_open_calls_and_streams(pair: Pair) -> None:
    peer = offering(pair)
    peer.on("tools/call", SILENCE)
    async with serving(peer) as served:
        host = connect(f"{served.url}/s0", pair, backoff=holdfast.Backoff(attempts=1))
        await host.subscribe_resource("x://a")
        call = asyncio.ensure_future(host.call_tool("say"))
        await peer.expect("tools/call")
    with pytest.raises(holdfast.HoldfastError):
        await call
    await host.close()


async def test_a_stateless_server_is_told_the_capabilities_of_each_request() -> None:
    """The stateless requests of HTTP may each be of another host."""
    pair = Pair("stateless", "stateless")
    peer = offering(pair)
    declared: list[dict[str, Any]] = [{"roots": {}}, {}, {"sampling": {}}, {"roots": {}}, {}]
    async with serving(peer) as served:
        for capabilities in declared:
            identity = Identity(capabilities=capabilities)
            async with connect(f"{served.url}/s0", pair, identity=identity) as host:
                await host.call_tool("say")
    calls = [request for request in peer.received if request.method == "tools/call"]
    assert [request.era.capabilities for request in calls] == declared

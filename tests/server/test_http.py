"""The server side over HTTP, met by a client and by raw requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

import holdfast
from holdfast import Handlers, Timeouts
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.serve.http import HttpServer
from holdfast._core.serve.unread import MOST_LINES
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server
from holdfast.demo.server import make_server
from tests.rows import rows

ERAS = (STATELESS[0], HANDSHAKE[0])


@asynccontextmanager
async def serving(server: Server | None = None) -> AsyncIterator[str]:
    http = HttpServer(server or make_server())
    port = await http.start()
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        await http.close()


def connect(url: str, version: str, **options: Any) -> holdfast.Client:
    return holdfast.connect(url, protocol=version, timeouts=Timeouts(request=20), **options)


@pytest.mark.parametrize("version", ERAS)
async def test_lists_calls_and_progress_pass(version: str) -> None:
    async with serving() as url, connect(url, version) as client:
        assert len(await client.list_tools()) == 12
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
        steps: list[float] = []
        await client.call_tool(
            "countdown", {"steps": 3}, on_progress=lambda step: steps.append(step.progress)
        )
        assert steps == [1, 2, 3]
        with pytest.raises(holdfast.errors.ResourceNotFoundError):
            await client.read_resource("demo://none")
        assert client.violations == {}


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_asks_the_client(version: str) -> None:
    def answer(_: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    handlers = Handlers(elicitation=answer)
    async with serving() as url, connect(url, version, handlers=handlers) as client:
        assert (await client.call_tool("ask_name")).text == "Hello, Ada!"


@pytest.mark.parametrize("version", ERAS)
async def test_a_cancelled_call_is_cancelled_on_the_server(version: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: ServerRequest) -> dict[str, Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    server = Server("slow", {"tools/call": slow, "tools/list": lambda _: {"tools": []}})
    options = {"tools": holdfast.ToolPolicy(validate="off")}
    async with serving(server) as url, connect(url, version, **options) as client:
        await client.open()
        call = client.start_tool("slow")
        async with asyncio.timeout(20):
            await begun.wait()
            call.cancel()
            await ended.wait()


@pytest.mark.req("R7")
@pytest.mark.parametrize("version", ERAS)
async def test_a_flood_of_notifications_costs_neither_memory_nor_the_answer(version: str) -> None:
    async def loud(request: ServerRequest) -> dict[str, Any]:
        for step in range(3 * MOST_LINES):
            request.progress(step + 1)
        return {"content": [{"type": "text", "text": "done"}]}

    server = Server("loud", {"tools/call": loud, "tools/list": lambda _: {"tools": []}})
    options = {"tools": holdfast.ToolPolicy(validate="off")}
    steps: list[float] = []
    async with serving(server) as url, connect(url, version, **options) as client:
        call = client.call_tool("loud", on_progress=lambda step: steps.append(step.progress))
        assert (await call).text == "done"
    assert 1 <= len(steps) <= MOST_LINES + 1


@pytest.mark.parametrize("version", ERAS)
async def test_updates_of_a_resource_arrive(version: str) -> None:
    heard: asyncio.Queue[holdfast.calls.Notification] = asyncio.Queue()
    async with serving() as url, connect(url, version) as client:
        client.on_notification(heard.put_nowait, "notifications/resources/updated")
        await client.subscribe_resource("demo://note/a")
        await client.call_tool("note", {"name": "a", "text": "x"})
        async with asyncio.timeout(20):
            updated = await heard.get()
        assert updated.params is not None
        assert updated.params["uri"] == "demo://note/a"


@rows(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 400),
        ({"Mcp-Session-Id": "guessed"}, 404),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
async def test_strangers_are_refused(headers: dict[str, str], status: int) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with (
        serving() as url,
        aiohttp.ClientSession() as session,
        session.post(url, json=ping, headers=headers) as response,
    ):
        assert response.status == status


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"Mcp-Method": "tools/call"}, -32020), ({"MCP-Protocol-Version": HANDSHAKE[0]}, -32020)],
)
async def test_headers_that_differ_from_the_body_are_refused(
    changed: dict[str, str], code: int
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS[0],
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    right = {"MCP-Protocol-Version": STATELESS[0], "Mcp-Method": "tools/list"}
    async with serving() as url, aiohttp.ClientSession() as session:
        async with session.post(url, json=body, headers=right) as response:
            assert response.status == 200
        async with session.post(url, json=body, headers={**right, **changed}) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "version", "status", "code"),
    [
        ("tools/list", STATELESS[0], 200, None),
        ("vendor/unknown", STATELESS[0], 404, -32601),
        ("tools/list", "2031-01-01", 400, -32022),
        ("tools/call", STATELESS[0], 400, -32021),
        ("prompts/get", STATELESS[0], 200, -32602),
    ],
)
async def test_errors_of_the_stateless_era_have_a_status(
    method: str, version: str, status: int, code: int | None
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "ask_name", "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    sent = {"MCP-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": "ask_name"}
    async with (
        serving() as url,
        aiohttp.ClientSession() as session,
        session.post(url, json=body, headers=sent) as response,
    ):
        assert response.status == status
        assert (await response.json()).get("error", {}).get("code") == code


async def test_a_session_ends_with_delete() -> None:
    async with serving() as url:
        client = connect(url, HANDSHAKE[0])
        await client.ping()
        await client.close()
        async with connect(url, HANDSHAKE[0]) as another:
            await another.ping()

"""A server that is replaced by one of the other era, behind an address that stays up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Backoff, Client, RequestTimeout, RpcError, TransportError
from tests.http.harness import connect, failure, say
from tests.http.rogue import (
    LEGACY,
    MODERN,
    OLD,
    Gate,
    Legacy,
    Modern,
    Old,
    Reply,
    Request,
    Rogue,
    event,
    fault,
)


class Gateway(Rogue):
    """Hands every request to one of two servers; no connection breaks when that changes."""

    def __init__(self, *, modern: bool) -> None:
        super().__init__()
        self.is_modern = modern
        self.modern = Strict()
        self.legacy = Demanding()

    async def handle(self, request: Request, reply: Reply) -> None:
        server: Rogue = self.modern if self.is_modern else self.legacy
        server.requests.append(request)
        server.changed()
        await server.handle(request, reply)


class Strict(Modern):
    """Takes only its own revision, as the specification says."""

    status = 400
    refusal = fault(None, -32022, "Unsupported protocol version", {"supported": [MODERN]})

    async def handle(self, request: Request, reply: Reply) -> None:
        version = request.header("MCP-Protocol-Version")
        if request.method != "POST":
            await reply.status(405)
        elif version != MODERN:
            await reply.json({**self.refusal, "id": request.id}, self.status)
        else:
            await super().handle(request, reply)

    async def otherwise(self, request: Request, reply: Reply) -> None:
        await reply.status(202)


class Demanding(Legacy):
    """Wants a session for everything but the handshake; ``refusal`` is how it says so."""

    refusal: tuple[int, dict[str, Any]] = (400, fault(None, -32000, "Bad Request: Missing session"))
    streams = 0

    async def handle(self, request: Request, reply: Reply) -> None:
        greeting = request.message.get("method") == "initialize"
        if request.header("Mcp-Session-Id") is None and not greeting:
            status, body = self.refusal
            await reply.json({**body, "id": request.id} if status == 200 else body, status)
        else:
            await super().handle(request, reply)

    async def otherwise(self, request: Request, reply: Reply) -> None:
        if request.method != "GET":
            await super().otherwise(request, reply)
            return
        self.streams += 1
        await reply.stream(event({"jsonrpc": "2.0", "method": "notifications/message"}))
        await reply.gone()
        self.streams -= 1
        self.changed()


@pytest.mark.req("L3", "X2")
async def test_a_legacy_server_replaced_by_a_modern_one_is_recognised() -> None:
    async with Gateway(modern=False) as gateway, connect(gateway) as client:
        assert await say(client) == "ahoy"
        assert client.protocol_version == LEGACY
        await gateway.legacy.until(lambda: gateway.legacy.streams)
        gateway.is_modern = True
        assert await say(client, "after") == "after"
        assert client.protocol_version == MODERN
        await gateway.legacy.until(lambda: not gateway.legacy.streams)


REFUSALS = [
    (400, fault(None, -32000, "Bad Request: Missing session ID")),
    (400, fault(None, -32600, "Bad Request: Server not initialized")),
    (400, {}),
    (404, {}),
    (422, fault(None, -32600, "no")),
    (200, fault(None, -32000, "Server not initialized")),
    (200, fault(None, -32002, "Received request before initialization was complete")),
    (200, fault(None, -32600, "Bad Request: Mcp-Session-Id header is required")),
    (200, fault(None, -32602, "Invalid request parameters", "")),
    (200, fault(None, -32601, "Method not found: tools/call")),
    (200, fault(None, -32022, "Unsupported protocol version", {"supported": [LEGACY]})),
]


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_modern_server_replaced_by_a_legacy_one_is_recognised(
    refusal: tuple[int, dict[str, Any]],
) -> None:
    async with Gateway(modern=True) as gateway, connect(gateway) as client:
        assert await say(client) == "ahoy"
        assert client.protocol_version == MODERN
        gateway.is_modern = False
        gateway.legacy.refusal = refusal
        assert await say(client, "after") == "after"
        assert client.protocol_version == LEGACY


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    "refusal",
    [
        Strict.refusal,
        fault(None, -32020, "Mcp-Method is missing"),
        fault(None, -32602, "Invalid params: _meta is required"),
        fault(None, -32602, "params._meta['io.modelcontextprotocol/protocolVersion'] is missing"),
    ],
)
async def test_a_modern_error_is_recognised(refusal: dict[str, Any], status: int) -> None:
    async with Gateway(modern=False) as gateway, connect(gateway) as client:
        assert await say(client) == "ahoy"
        gateway.modern.refusal, gateway.modern.status = refusal, status
        gateway.is_modern = True
        assert await say(client, "after") == "after"
        assert client.protocol_version == MODERN


class Moved(Rogue):
    """A server of HTTP+SSE that is replaced by a newer one at the same URL."""

    def __init__(self, heir: Rogue) -> None:
        super().__init__()
        self.old = Old()
        self.heir = heir
        self.is_replaced = False
        self.refusal = 404

    async def handle(self, request: Request, reply: Reply) -> None:
        if not self.is_replaced:
            await self.old.handle(request, reply)
        elif request.path != self.path:
            await reply.status(self.refusal)
        else:
            await self.heir.handle(request, reply)


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("stream", ["open", "ended"])
@pytest.mark.parametrize(("heir", "version"), [(Strict, MODERN), (Demanding, LEGACY)])
@pytest.mark.parametrize("refusal", [400, 404, 405, 410])
async def test_http_sse_replaced_by_streamable_http_is_recognised(
    heir: type[Rogue], version: str, refusal: int, stream: str
) -> None:
    once = Backoff(first=0.01, max=0.05, jitter=0, healthy_after=0, attempts=1)
    async with Moved(heir()) as server, connect(server, backoff=once, when_down="wait") as client:
        server.refusal = refusal
        assert await say(client) == "ahoy"
        assert client.protocol_version == OLD
        server.is_replaced = True
        if stream == "ended":
            assert server.old.stream is not None
            server.old.stream.close()
            while client.is_connected:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert await say(client, "after") == "after"
        assert client.protocol_version == version


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("verb", ["ping", "subscribe", "unsubscribe", "level"])
async def test_what_has_another_form_in_each_era_is_sent_in_the_new_one(
    verb: str, modern: bool
) -> None:
    verbs: dict[str, Callable[[Client], Awaitable[None]]] = {
        "ping": lambda client: client.ping(),
        "subscribe": lambda client: client.subscribe_resource("file:///b"),
        "unsubscribe": lambda client: client.unsubscribe_resource("file:///a"),
        "level": lambda client: client.set_log_level("error"),
    }
    methods = {"resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"}
    async with Gateway(modern=modern) as gateway, connect(gateway) as client:
        gateway.modern.on["subscriptions/listen"] = acknowledge
        async with asyncio.timeout(20):
            await client.subscribe_resource("file:///a")
            gateway.is_modern = not modern
            await verbs[verb](client)
            assert await say(client, "after") == "after"
        assert client.protocol_version == (LEGACY if modern else MODERN)
        wrong = {"server/discover", "subscriptions/listen"} if modern else methods
        heir = gateway.legacy if modern else gateway.modern
        known = [one for one in heir.requests if one.header("Mcp-Session-Id") or not modern]
        assert not wrong & {one.message.get("method") for one in known[1:]}


async def acknowledge(request: Request, reply: Reply) -> None:
    """Stand as a subscription, until the client ends it."""
    meta = {"io.modelcontextprotocol/subscriptionId": request.id}
    granted = {"notifications": request.params["notifications"], "_meta": meta}
    method = "notifications/subscriptions/acknowledged"
    await reply.stream(event({"jsonrpc": "2.0", "method": method, "params": granted}))
    await reply.gone()


@pytest.mark.req("L3", "R11")
@pytest.mark.parametrize("modern", [True, False])
async def test_a_tool_whose_error_only_looks_like_that_is_not_called_twice(modern: bool) -> None:
    async with Gateway(modern=modern) as gateway, connect(gateway) as client:
        assert await say(client) == "ahoy"
        server = gateway.modern if modern else gateway.legacy
        error = (-32000, "The database is not initialized") if modern else (-32022, "No such plan")

        async def fails(request: Request, reply: Reply) -> None:
            await reply.json(fault(request.id, *error))

        before = len(server.posts("tools/call"))
        server.on["tools/call"] = fails
        refused = await failure(say(client))
        assert isinstance(refused, RpcError)
        assert refused.code == error[0]
        assert len(server.posts("tools/call")) == before + 1


@pytest.mark.req("L3", "P2")
async def test_the_stream_of_a_subscription_does_not_outlive_its_era() -> None:
    open_streams: list[Any] = []

    async def listening(request: Request, reply: Reply) -> None:
        open_streams.append(request.id)
        await acknowledge(request, reply)
        open_streams.remove(request.id)
        gateway.changed()

    async with Gateway(modern=True) as gateway:
        gateway.modern.capabilities = {"resources": {"subscribe": True}}
        gateway.modern.on["subscriptions/listen"] = listening
        async with connect(gateway) as client:
            async with asyncio.timeout(20):
                await client.subscribe_resource("file:///a")
            assert open_streams
            gateway.is_modern = False
            assert await say(client, "after") == "after"
            await gateway.until(lambda: not open_streams)


PLAUSIBLE = {
    True: fault(None, -32602, "Invalid request parameters"),
    False: fault(None, -32602, "Invalid params: _meta is required"),
}
"""By era: an error with which a server may mean that it speaks the other one, and may not."""


@pytest.mark.req("L3", "R11")
@pytest.mark.parametrize("modern", [True, False])
async def test_such_an_error_that_comes_after_the_negotiation_is_not_answered_by_a_second_call(
    modern: bool,
) -> None:
    gates = {"first": Gate(), "second": Gate()}

    async def fails(request: Request, reply: Reply) -> None:
        await gates[request.params["arguments"]["text"]]()
        await reply.json({**PLAUSIBLE[modern], "id": request.id})

    async with Modern() if modern else Legacy() as server, connect(server) as client:
        await client.ping()
        server.on["tools/call"] = fails
        calls = [asyncio.create_task(failure(say(client, words))) for words in gates]
        await server.heard("tools/call", 2)
        for gate, call in zip(gates.values(), calls, strict=True):
            gate.open()
            refused = await call
            assert isinstance(refused, RpcError)
            assert refused.code == -32602
        assert len(server.posts("tools/call")) == 2


@pytest.mark.req("L3", "R11")
async def test_a_refusal_that_only_looks_like_that_is_not_answered_by_a_second_call() -> None:
    async def fails(request: Request, reply: Reply) -> None:
        await reply.json({**PLAUSIBLE[False], "id": request.id}, 400)

    async with Legacy() as server, connect(server) as client:
        server.on["tools/call"] = fails
        refused = await failure(say(client))
        assert isinstance(refused, RpcError)
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("L3", "R6")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("status", [200, 400, 404])
@pytest.mark.parametrize("standing", [True, False])
async def test_a_server_that_refuses_subscriptions_is_not_negotiated_with_without_end(
    modern: bool, status: int, standing: bool
) -> None:
    async def fails(request: Request, reply: Reply) -> None:
        if status == 200:
            await reply.json({**PLAUSIBLE[modern], "id": request.id})
        else:
            await reply.status(status)

    method = "subscriptions/listen" if modern else "resources/subscribe"
    greeting = "server/discover" if modern else "initialize"
    async with Modern() if modern else Legacy() as server, connect(server) as client:
        server.on["subscriptions/listen"] = acknowledge
        if standing:
            await client.subscribe_resource("file:///a")
        server.on[method] = fails
        error = await failure(client.subscribe_resource("file:///b"))
        assert isinstance(error, RpcError | TransportError)
        assert not isinstance(error, RequestTimeout)
        for _ in range(20):
            await client.call_tool("echo", {"text": "on"})
        assert len(server.posts(greeting)) < 10

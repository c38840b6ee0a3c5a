"""Servers that do not respond: what they can make a client hold is bounded in number and time."""

from __future__ import annotations

import asyncio
import ssl

import pytest

import holdfast
from holdfast import AuthError, Limits, TransportError
from holdfast._core.transports.http_link import AT_ONCE
from tests.http.harness import ONCE, connect, descriptors, failure, say
from tests.http.rogue import (
    Handler,
    Legacy,
    Modern,
    Old,
    Reply,
    Request,
    event,
)
from tests.http.test_tls import Authority, authority
from tests.skipping import run_skipping, skip

__all__ = ["authority"]

EVERY_SHAPE = [Modern, Legacy, Old]


async def never(request: Request, reply: Reply) -> None:
    await reply.gone()


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1000):
        pass
    writer.close()


class Pinging(Legacy):
    """Asks a great many things on its own stream, and takes no answer to any."""

    async def otherwise(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            pings = (
                event({"jsonrpc": "2.0", "id": f"p{n}", "method": "ping"}) for n in range(3000)
            )
            await reply.stream(*pings)
            await reply.gone()
        elif "result" in request.message:
            await reply.gone()
        else:
            await super().otherwise(request, reply)


@pytest.mark.req("R7", "X2")
async def test_answers_that_nobody_takes_hold_few_connections() -> None:
    async with Pinging() as server, connect(server) as client:
        await client.open()
        await server.until(lambda: len(server.answers()) >= AT_ONCE)
        assert await say(client) == "ahoy"
        assert server.standing <= AT_ONCE + 3
        # The server of this test has a task for each connection, too.
        assert len(asyncio.all_tasks()) <= 2 * (AT_ONCE + 3) + 5


@pytest.mark.req("R4", "R7")
def test_a_cancellation_that_is_not_responded_to_ends() -> None:
    run_skipping(_a_cancellation_that_is_not_responded_to_ends())


async def _a_cancellation_that_is_not_responded_to_ends() -> None:
    async with Legacy() as server:
        server.on["notifications/cancelled"] = server.on["tools/call"] = never
        target = holdfast.Http(server.url, message_timeout=20)
        async with holdfast.connect(target, backoff=ONCE) as client:
            await client.open()
            calls = [asyncio.create_task(say(client)) for _ in range(30)]
            await server.heard("tools/call", 30)
            for call in calls:
                call.cancel()
            await server.heard("notifications/cancelled", 30)
            skip(21)
            await server.until(lambda: server.standing <= 1)
            del server.on["tools/call"]
            assert await say(client) == "ahoy"


@pytest.mark.req("R7", "X2")
@pytest.mark.parametrize("shape", [Modern, Legacy])
async def test_calls_to_a_server_that_reads_nothing_leave_no_sockets(
    shape: type[Modern] | type[Legacy],
) -> None:
    async with shape() as server:
        async with connect(server) as client:
            assert await say(client) == "ahoy"
            server.deaf, server.on["tools/call"] = True, never
            server.on["DELETE"] = never
            before = descriptors() - server.standing
            large = "x" * 8_000_000
            calls = [failure(say(client, large, timeout=0.3)) for _ in range(4)]
            in_time = (holdfast.RequestTimeout, holdfast.errors.BackpressureError)
            assert all(isinstance(one, in_time) for one in await asyncio.gather(*calls))
            seen = server.connections
            last = asyncio.create_task(failure(say(client, large)))
            await server.until(lambda: server.connections > seen)
        assert isinstance(await last, holdfast.errors.ShutdownError)
        await asyncio.sleep(0)
        assert descriptors() - server.standing <= before


@pytest.mark.req("R7", "X3")
async def test_http_sse_survives_requests_that_are_not_responded_to() -> None:
    async with Old() as server:
        server.on["tools/call"] = server.on["notifications/cancelled"] = never
        target = holdfast.Http(server.url, connections=20, message_timeout=0.2)
        async with holdfast.connect(target, backoff=ONCE) as client:
            await client.open()
            calls = [asyncio.create_task(say(client)) for _ in range(20)]
            await server.heard("tools/call", 20)
            for call in calls:
                call.cancel()
            del server.on["tools/call"]
            assert await say(client) == "ahoy"
            await server.until(lambda: server.standing <= 2)


@pytest.mark.req("R7", "X3")
async def test_http_sse_survives_answers_without_responses() -> None:
    """The answer comes on the stream, but the POST of the request is left open."""

    async def left_open(request: Request, reply: Reply) -> None:
        await server.give(reply, server.reply_to(request))
        await reply.gone()

    async with Old() as server:
        server.on["tools/call"] = left_open
        async with connect(server, connections=5) as client:
            for number in range(50):
                assert await say(client, str(number)) == str(number)
            await server.until(lambda: server.standing <= 8)


@pytest.mark.req("R11")
@pytest.mark.parametrize("shape", EVERY_SHAPE)
async def test_a_call_that_waited_for_a_place_was_not_sent(
    shape: type[Modern] | type[Legacy] | type[Old],
) -> None:
    async with shape() as server:
        server.on["tools/call"] = never
        async with connect(server, connections=3) as client:
            await client.open()
            held = [asyncio.create_task(failure(say(client))) for _ in range(3)]
            await server.heard("tools/call", 3)
            error = await failure(say(client, timeout=0.1))
            assert not error.outcome_unknown
            assert len(server.posts("tools/call")) == 3
        assert all(error.outcome_unknown for error in await asyncio.gather(*held))


@pytest.mark.req("R11")
async def test_a_call_whose_connection_was_not_made_was_not_sent(authority: Authority) -> None:
    """The server accepts a second TCP connection, but does not finish its TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("slow", "IP:127.0.0.1"))
    async with Modern(tls=context) as server, connect(server, ca=authority.ca) as client:
        await client.list_tools()
        port = server.port
        await server.stop()
        async with await asyncio.start_server(mute, "127.0.0.1", port):
            error = await failure(say(client, timeout=0.2))
            assert not error.outcome_unknown


@pytest.mark.req("R7", "R11")
@pytest.mark.parametrize("shape", EVERY_SHAPE)
async def test_requests_above_the_backlog_are_sent_once_there_is_room(
    shape: type[Modern] | type[Legacy] | type[Old],
) -> None:
    async with shape() as server:
        target = holdfast.Http(server.url, connections=2)
        limits = Limits(backlog_bytes=100_000)
        async with holdfast.connect(target, backoff=ONCE, limits=limits) as client:
            await client.list_tools()
            server.on["tools/call"] = never
            text = "x" * 20_000
            calls = [asyncio.create_task(say(client, text)) for _ in range(50)]
            await server.heard("tools/call", 2)
            del server.on["tools/call"]
            for call in calls[:2]:
                call.cancel()
            said = await asyncio.gather(*calls[2:])
            assert said == [text] * 48


@pytest.mark.req("X2")
@pytest.mark.parametrize("shape", EVERY_SHAPE)
async def test_calls_wait_for_a_place(shape: type[Modern] | type[Legacy] | type[Old]) -> None:
    async with shape() as server, connect(server, connections=3) as client:
        said = await asyncio.gather(*(say(client, str(number)) for number in range(50)))
        assert said == [str(number) for number in range(50)]


@pytest.mark.req("E2", "R11")
async def test_a_missing_client_certificate_means_that_nothing_ran(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("strict", "IP:127.0.0.1"))
    async with Modern(tls=context) as server, connect(server, ca=authority.ca) as client:
        await client.open()
        await server.stop()
        # From now on it demands one.
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca)
        await server.start()
        error = await failure(say(client))
        assert isinstance(error, TransportError)
        assert not error.outcome_unknown
        assert "cert=" in str(error)
        assert server.posts("tools/call") == []


def forbidding(body: bytes, status: int = 403, **headers: str) -> Handler:
    return lambda request, reply: reply.body(body, status, "text/plain", **headers)


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"Invalid Host header", 403),
        (b"Invalid Host header", 421),
        (b"", 421),
        (b"Forbidden: Origin not allowed", 403),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Origin: x"}}', 403),
        (b"DNS rebinding protection", 403),
        (b"DisallowedHost at /mcp", 403),
        (b'{"error":"host_not_allowed"}', 403),
        (b"CORS: not allowed", 403),
    ],
)
async def test_a_check_of_host_or_origin_is_no_matter_of_credentials(
    body: bytes, status: int
) -> None:
    async with Modern() as server, connect(server) as client:
        server.on["POST"] = forbidding(body, status)
        error = await failure(client.open())
        assert isinstance(error, TransportError)
        assert not isinstance(error, AuthError)
        assert "Host or Origin" in str(error)
        assert "credentials" not in str(error)


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    "handler",
    [
        forbidding(b"no"),
        forbidding(b"your token may not read this host"),
        forbidding(b"you are not the origin of this", WWW_Authenticate='Bearer error="x"'),
    ],
)
async def test_another_403_is_one_of_credentials(handler: Handler) -> None:
    async with Modern() as server, connect(server) as client:
        server.on["POST"] = handler
        error = await failure(client.open())
        assert isinstance(error, AuthError)


@pytest.mark.req("R2", "X2")
async def test_an_error_whose_body_never_ends_is_an_error() -> None:
    async def endless(request: Request, reply: Reply) -> None:
        await reply.head(500, "text/plain", Content_Length="1000000")
        await reply.raw(b"the beginning")
        await reply.gone()

    async with Modern() as server, connect(server) as client:
        await client.open()
        server.on["tools/call"] = endless
        assert "the beginning" in str(await failure(say(client)))


@pytest.mark.req("R9")
async def test_codings_inside_codings_are_not_taken_apart() -> None:
    async def nested(request: Request, reply: Reply) -> None:
        body = b"anything"
        lines = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        codings = "Content-Encoding: gzip\r\nContent-Encoding: deflate"
        await reply.raw(f"{lines}\r\n{codings}\r\n\r\n".encode() + body)

    async with Modern() as server, connect(server) as client:
        await client.open()
        server.on["tools/call"] = nested
        error = await failure(say(client))
        assert "'gzip, deflate'" in str(error)


@pytest.mark.req("L8", "X2")
async def test_the_servers_own_stream_ends_with_its_session() -> None:
    class Holding(Legacy):
        """Holds its streams open, whatever becomes of their sessions."""

        async def otherwise(self, request: Request, reply: Reply) -> None:
            if request.method == "GET":
                streams.append(request.header("Mcp-Session-Id"))
                await reply.stream(event({"jsonrpc": "2.0", "method": "hello"}))
                await reply.gone()
                ended.append(request.header("Mcp-Session-Id"))
                self.changed()
            else:
                await super().otherwise(request, reply)

    streams: list[str | None] = []
    ended: list[str | None] = []
    async with Holding() as server, connect(server) as client:
        await client.open()
        await server.until(lambda: streams)
        server.sessions.clear()
        assert await say(client) == "ahoy"
        await server.until(lambda: ended)
        assert ended == ["session-1"]


@pytest.mark.req("X2")
async def test_an_answer_in_json_may_span_lines() -> None:
    async def pretty(request: Request, reply: Reply) -> None:
        text = '{"type": "text",\n "text": "pretty"}'
        result = f'{{"resultType": "complete",\r\n "content": [{text}]}}'
        await reply.body(
            f'\n{{"jsonrpc": "2.0",\n"id": {request.id}, "result": {result}}}\n'.encode()
        )

    async with Modern() as server, connect(server) as client:
        await client.open()
        server.on["tools/call"] = pretty
        assert await say(client) == "pretty"


@pytest.mark.req("R2", "X2")
async def test_a_notification_that_is_not_responded_to_does_not_hold_calls_for_ever() -> None:
    async with Legacy() as server:
        server.on["notifications/initialized"] = never
        target = holdfast.Http(server.url, message_timeout=0.2)
        async with holdfast.connect(target, backoff=ONCE) as client:
            assert await say(client) == "ahoy"


@pytest.mark.req("R2", "X2", "X3")
@pytest.mark.parametrize("shape", [Legacy, Old])
async def test_the_first_notification_holds_calls_for_a_short_time_only(
    shape: type[Legacy] | type[Old], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_link.FIRST", 0.01)
    async with shape() as server:
        server.on["notifications/initialized"] = never
        async with connect(server) as client:
            assert await say(client) == "ahoy"


@pytest.mark.req("R9", "R7")
async def test_what_waits_to_be_accepted_is_bounded_in_bytes() -> None:
    async with Legacy() as server:
        server.on["notifications/roots/list_changed"] = never
        limits = holdfast.Limits(backlog_bytes=2000)
        handlers = holdfast.Handlers(roots=[])
        async with connect(server, limits=limits, handlers=handlers) as client:
            await client.open()
            for _ in range(200):
                await client.roots_changed()
            await server.heard("notifications/roots/list_changed", 5)
            assert await say(client) == "ahoy"
            assert len(server.posts("notifications/roots/list_changed")) <= 2000 // 50

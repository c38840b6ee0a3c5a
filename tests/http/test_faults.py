"""A server, or what stands before it, that misbehaves: each call ends in its own way, alone."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import AuthError, ProtocolError, RequestTimeout, RpcError, TransportError
from holdfast.errors import HoldfastError
from tests.http.harness import QUICK, connect, failure, say
from tests.http.rogue import (
    EVENTS,
    JSON,
    PATIENCE,
    Gate,
    Handler,
    Legacy,
    Modern,
    Obliging,
    Reply,
    Request,
    Rogue,
    answer,
    event,
    fault,
    nobody,
    notice,
    text,
)

PAGE = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n".encode()
SHAPES: list[Callable[[], Obliging]] = [Modern, Legacy]


def good(request: Request) -> dict[str, Any]:
    return answer(request.id, {"resultType": "complete", **text("ok")})


def status(
    code: int, body: bytes = b"", kind: str | None = "text/plain", **headers: str
) -> Handler:
    return lambda request, reply: reply.body(body, code, kind, **headers)


def raw(*pieces: bytes, end: str = "close") -> Handler:
    async def write(request: Request, reply: Reply) -> None:
        await reply.raw(*pieces)
        getattr(reply, end)()

    return write


def answering(make: Callable[[Request], bytes], kind: str | None = JSON, **more: str) -> Handler:
    return lambda request, reply: reply.body(make(request), 200, kind, **more)


def streaming(make: Callable[[Request], list[bytes]], end: str = "end") -> Handler:
    async def write(request: Request, reply: Reply) -> None:
        await reply.stream(*make(request))
        if end == "end":
            await reply.end()
        else:
            getattr(reply, end)()

    return write


# How one call ends; (what the server does, the error, words in it, whether it may have run)

Row = tuple[Handler, type[HoldfastError], str, bool]

FAULTS: dict[str, Row] = {
    "400 text": (status(400, b"bad thing"), TransportError, "400: bad thing", False),
    "400 error object": (
        lambda request, reply: reply.json(fault(request.id, -32602, "bad arguments"), 400),
        RpcError,
        "bad arguments",
        False,
    ),
    "401": (status(401), AuthError, "401", False),
    "403": (status(403, b"not you"), AuthError, "not you", False),
    "404 method": (
        lambda request, reply: reply.json(fault(request.id, -32601, "Method not found"), 404),
        RpcError,
        "Method not found",
        False,
    ),
    "413": (status(413, b"too much"), TransportError, "413: too much", False),
    "500": (status(500, b"oops"), TransportError, "500: oops", True),
    "500 error object": (
        lambda request, reply: reply.json(fault(request.id, -32603, "broken inside"), 500),
        RpcError,
        "broken inside",
        False,
    ),
    "502 HTML": (status(502, PAGE, "text/html"), TransportError, "502: <!doctype html>", True),
    "504": (status(504), TransportError, "504", True),
    "HTML with 200": (status(200, PAGE, "text/html"), ProtocolError, "text/html", True),
    "no content type": (
        lambda request, reply: reply.body(json.dumps(good(request)).encode(), kind=None),
        ProtocolError,
        "no content type",
        True,
    ),
    "wrong content type": (
        answering(lambda request: json.dumps(good(request)).encode(), "text/plain"),
        ProtocolError,
        "text/plain",
        True,
    ),
    "202 for a request": (status(202, kind=None), ProtocolError, "no content type", True),
    "empty JSON": (answering(lambda request: b""), ProtocolError, "no answer", True),
    "bad JSON": (answering(lambda request: b'{"id": 1,'), ProtocolError, "no answer", True),
    "another's id": (
        answering(lambda request: json.dumps(answer(999, text("x"))).encode()),
        ProtocolError,
        "999",
        True,
    ),
    "no id at all": (
        answering(lambda request: json.dumps({"jsonrpc": "2.0", "result": {}}).encode()),
        ProtocolError,
        "",
        True,
    ),
    "half a body": (
        raw(HEAD + b"Content-Length: 1000\r\n\r\n" + b'{"jsonrpc": "2.0"'),
        TransportError,
        "broke",
        True,
    ),
    "half a chunk": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b'ff\r\n{"jsonrpc"'),
        TransportError,
        "broke",
        True,
    ),
    "bad chunk": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\nhello\r\n"),
        TransportError,
        "broke",
        True,
    ),
    "chunks without an end": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\n{}\r\n"),
        TransportError,
        "broke",
        True,
    ),
    "reset before the head": (raw(end="reset"), TransportError, "broke", True),
    "reset after the head": (
        raw(HEAD + b"Content-Length: 10\r\n\r\n", end="reset"),
        TransportError,
        "broke",
        True,
    ),
    "hung up": (raw(), TransportError, "broke", True),
    "not HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), TransportError, "broke", True),
    "stream without an answer": (
        streaming(lambda request: [event(notice("notifications/x"))]),
        TransportError,
        "before the answer",
        True,
    ),
    "stream that breaks": (
        streaming(lambda request: [event(notice("notifications/x"))], "reset"),
        TransportError,
        "broke",
        True,
    ),
    "stream of junk": (
        streaming(lambda request: [event("this is no JSON"), event("[]"), event("5")]),
        TransportError,
        "before the answer",
        True,
    ),
    "stream with another's answer": (
        streaming(lambda request: [event(answer(999, text("x")))]),
        ProtocolError,
        "999",
        True,
    ),
    "empty stream": (streaming(lambda request: []), TransportError, "before the answer", True),
    "bad gzip": (
        answering(lambda request: b"this is not gzip", Content_Encoding="gzip"),
        ProtocolError,
        "gzip",
        True,
    ),
    "unknown coding": (
        answering(lambda request: b"x", Content_Encoding="br"),
        ProtocolError,
        "br",
        True,
    ),
    "redirect away": (
        status(307, Location="http://evil.test/mcp"),
        TransportError,
        "http://evil.test",
        False,
    ),
    "redirects in a circle": (status(308, Location="/mcp"), TransportError, "more than 5", False),
    "303": (status(303, Location="/other"), TransportError, "303", True),
}


@pytest.mark.req("E2", "R2", "R11", "X2")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_ends_its_own_call_and_no_other(
    name: str, shape: Callable[[], Obliging]
) -> None:
    handler, kind, words, may_have_run = FAULTS[name]
    gate = Gate()

    async def mixed(request: Request, reply: Reply) -> None:
        if request.tool == "bad":
            await handler(request, reply)
            return
        await gate()
        await server.respond(request, reply)

    async with shape() as server, connect(server) as client:
        await client.open()
        server.on["tools/call"] = mixed
        others = [asyncio.ensure_future(say(client, str(number))) for number in range(3)]
        await server.until(lambda: gate.waiting == 3)
        error = await failure(client.call_tool("bad"))
        assert isinstance(error, kind), repr(error)
        assert words in str(error)
        assert "tools/call 'bad'" in str(error), "which call it was"
        assert error.outcome_unknown == may_have_run
        assert client.is_connected
        gate.open()
        assert await asyncio.gather(*others) == ["0", "1", "2"]
        assert len([post for post in server.posts("tools/call") if post.tool == "bad"]) <= 6


@pytest.mark.req("E2", "L6")
@pytest.mark.parametrize(
    "name", ["401", "403", "502 HTML", "HTML with 200", "hung up", "not HTTP", "redirect away"]
)
async def test_a_fault_while_connecting_is_told_and_tried_again(name: str) -> None:
    handler, kind, words, _ = FAULTS[name]
    async with Modern() as server:
        server.on["POST"] = handler
        async with connect(server, backoff=QUICK) as client:
            error = await failure(client.open())
            assert isinstance(error, kind), repr(error)
            assert words in str(error)
            server.on.clear()
            await client.wait_ready(PATIENCE)
            assert await say(client) == "ahoy"


@pytest.mark.req("E2")
async def test_a_head_that_is_cut_off_is_told_without_its_contents() -> None:
    async with Modern() as server, connect(server) as client:
        await say(client)
        server.on["tools/call"] = raw(HEAD + b"X-Secret: SESAME\r\nContent-Le")
        error = await failure(say(client))
        assert "the head of its response is cut off; it may have run" in str(error)
        assert "SESAME" not in str(error)


@pytest.mark.req("E2", "L11")
async def test_a_refused_connection_says_so_at_once() -> None:
    async with nobody() as url, connect(url) as client:
        error = await failure(say(client))
        assert isinstance(error, TransportError)
        assert "Connection refused" in str(error)
        assert not error.outcome_unknown


@pytest.mark.req("L5", "E2")
async def test_a_server_that_goes_away_between_calls_is_told_and_comes_back() -> None:
    async with Modern() as server, connect(server) as client:
        await say(client)
        await server.stop()
        error = await failure(say(client))
        assert "Connection refused" in str(error)
        assert not error.outcome_unknown
        await server.start()
        assert await say(client) == "ahoy"


@pytest.mark.req("L5")
async def test_a_restart_between_calls_is_not_noticed() -> None:
    async with Modern() as server, connect(server) as client:
        for _ in range(3):
            assert await say(client) == "ahoy"
            await server.stop()
            await server.start()
        assert await say(client) == "ahoy"


@pytest.mark.req("L11")
async def test_a_call_that_waits_outlasts_a_server_that_is_down() -> None:
    async with Modern() as server:
        async with connect(server, backoff=QUICK, when_down="wait") as client:
            await say(client)
            await server.stop()
            call = asyncio.ensure_future(say(client))
            await asyncio.sleep(0)
            await server.start()
            assert await call == "ahoy"


# Time


async def _slow_head(request: Request, reply: Reply) -> None:
    await reply.gone()


async def _half_a_head(request: Request, reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await reply.gone()


async def _slow_body(request: Request, reply: Reply) -> None:
    await reply.raw(HEAD + b"Content-Length: 1000\r\n\r\n{")
    await reply.gone()


async def _slow_stream(request: Request, reply: Reply) -> None:
    await reply.stream(b": still here\n\n")
    await reply.gone()


async def _half_an_event(request: Request, reply: Reply) -> None:
    await reply.stream(b'data: {"jsonrpc"')
    await reply.gone()


async def _slow_error(request: Request, reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 500 No\r\nContent-Length: 1000\r\n\r\nhalf")
    await reply.gone()


@pytest.mark.req("R3", "R4", "R2")
@pytest.mark.parametrize(
    "slow",
    [_slow_head, _half_a_head, _slow_body, _slow_stream, _half_an_event, _slow_error],
)
async def test_slowness_is_bounded_by_the_calls_own_deadline(slow: Handler) -> None:
    async def mixed(request: Request, reply: Reply) -> None:
        await (slow if request.tool == "slow" else server.respond)(request, reply)

    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = mixed
        await client.open()
        patient = asyncio.ensure_future(failure(client.call_tool("slow", timeout=0.2)))
        error = await failure(client.call_tool("slow", timeout=0.05))
        assert isinstance(error, RequestTimeout)
        assert not patient.done(), "its own deadline is another one"
        assert await say(client) == "ahoy"
        assert isinstance(await patient, RequestTimeout)
        await server.until(lambda: server.standing <= 1)


@pytest.mark.req("L6", "R2")
@pytest.mark.parametrize("slow", [_slow_head, _slow_body, _slow_stream])
async def test_slowness_while_connecting_is_bounded_by_the_handshake_timeout(slow: Handler) -> None:
    times = holdfast.Timeouts(handshake=0.1, probe=0.03)
    async with Modern() as server:
        server.on["POST"] = slow
        async with connect(server, timeouts=times) as client:
            assert isinstance(await failure(client.open()), holdfast.errors.HandshakeTimeout)
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("R11", "R3")
@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_says_later_is_asked_later(code: int) -> None:
    async def busy(request: Request, reply: Reply) -> None:
        if len(server.posts("tools/call")) < 3:
            await reply.status(code, Retry_After="0")
        else:
            await server.respond(request, reply)

    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = busy
        assert await say(client) == "ahoy"
        ids = [post.id for post in server.posts("tools/call")]
        assert ids == sorted(set(ids)), "each time under a new id"


@pytest.mark.req("R11", "R3")
@pytest.mark.parametrize("code", [429, 503])
async def test_later_than_the_deadline_is_an_error_now(code: int) -> None:
    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = status(code, b"overloaded", Retry_After="3600")
        error = await failure(say(client))
        assert isinstance(error, TransportError)
        assert f"{code}: overloaded" in str(error)
        assert not error.outcome_unknown
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("R11", "S3")
@pytest.mark.parametrize("code", [429, 503])
async def test_a_date_to_come_back_is_read_by_the_servers_own_clock(code: int) -> None:
    """By ours it is long over, and the server would be asked again at once."""
    dates = {
        "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
        "Retry_After": "Sun, 06 Nov 1994 09:49:37 GMT",
    }
    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = status(code, b"overloaded", **dates)
        assert isinstance(await failure(say(client)), TransportError)
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("R11")
async def test_an_error_of_the_server_is_not_asked_again() -> None:
    async with Modern() as server, connect(server, replay="safe") as client:
        server.on["tools/call"] = status(500, Retry_After="0")
        await failure(say(client))
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("R11")
async def test_a_read_that_broke_is_repeated_once_where_that_is_wanted() -> None:
    async def flaky(request: Request, reply: Reply) -> None:
        if len(server.posts("resources/read")) == 1:
            reply.reset()
        else:
            await server.respond(request, reply)

    async with Modern() as server:
        server.on["resources/read"] = flaky
        async with connect(server, replay="safe") as client:
            assert (await client.read_resource("file:///a")).text == "content"
        server.requests.clear()
        async with connect(server) as client:
            assert (await failure(client.read_resource("file:///a"))).outcome_unknown


# Sizes

LIMIT = 50_000


def _big(request: Request) -> bytes:
    return json.dumps(answer(request.id, {"resultType": "complete", **text("x" * LIMIT)})).encode()


def _bare(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush()


async def _endless_stream(request: Request, reply: Reply) -> None:
    await reply.stream(b"data: ")
    while not reply.over:
        await reply.send(b"x" * 10_000)


async def _endless_body(request: Request, reply: Reply) -> None:
    await reply.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not reply.over:
        await reply.send(b" " * 10_000)


async def _packed_stream(request: Request, reply: Reply) -> None:
    packed = gzip.compress(b"data: " + _big(request) + b"\n\n")
    await reply.body(packed, 200, EVENTS, Content_Encoding="gzip")


SIZES: dict[str, Handler] = {
    "JSON": answering(_big),
    "JSON, gzip": answering(lambda one: gzip.compress(_big(one)), Content_Encoding="gzip"),
    "JSON, deflate": answering(lambda one: zlib.compress(_big(one)), Content_Encoding="deflate"),
    "JSON, bare deflate": answering(lambda one: _bare(_big(one)), Content_Encoding="deflate"),
    "event": streaming(lambda request: [event(_big(request).decode())]),
    "event of many lines": streaming(
        lambda request: [b"data: x\n" * (LIMIT // 2 + 1) + b"\n", event(good(request))]
    ),
    "event, gzip": _packed_stream,
    "endless event": _endless_stream,
    "endless body": _endless_body,
    "bomb": answering(lambda one: gzip.compress(bytes(50_000_000)), Content_Encoding="gzip"),
}


@pytest.mark.req("R9", "X2")
@pytest.mark.parametrize("name", SIZES)
async def test_a_message_over_the_limit_ends_its_call_alone(name: str) -> None:
    limits = holdfast.Limits(frame_bytes=LIMIT)
    async with Modern() as server, connect(server, limits=limits) as client:
        await client.open()
        server.on["tools/call"] = SIZES[name]
        error = await failure(say(client))
        assert isinstance(error, ProtocolError)
        assert f"more than {LIMIT} bytes" in str(error)
        assert "frame_bytes" in str(error)
        del server.on["tools/call"]
        assert await say(client) == "ahoy"


@pytest.mark.req("X2")
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_answer_within_the_limit_is_read(coding: str) -> None:
    pack = gzip.compress if coding == "gzip" else zlib.compress
    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = answering(lambda one: pack(_big(one)), Content_Encoding=coding)
        assert len(await say(client)) == LIMIT
        assert coding in (server.requests[0].header("Accept-Encoding") or "")


# Credentials and redirects


@pytest.mark.req("X5", "E1")
@pytest.mark.parametrize("later", [False, True])
async def test_401_has_the_headers_read_once_more(later: bool) -> None:
    token = ["old"]

    def plain() -> dict[str, str]:
        return {"Authorization": f"Bearer {token[-1]}"}

    async def slowly() -> dict[str, str]:
        await asyncio.sleep(0)
        return plain()

    async def guarded(request: Request, reply: Reply) -> None:
        if request.header("Authorization") == "Bearer new":
            await server.obey(request, reply)
        else:
            token.append("new")
            await reply.status(401)

    async with Modern() as server:
        server.on["POST"] = guarded
        async with connect(server, headers=slowly if later else plain) as client:
            assert await say(client) == "ahoy"
        assert len(server.posts("server/discover")) == 2
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("X5", "E1", "E2")
async def test_401_again_is_an_auth_error() -> None:
    async with Modern() as server:
        server.on["POST"] = status(401, b"who are you?")
        async with connect(server, headers=lambda: {"Authorization": "x"}) as client:
            error = await failure(say(client))
        assert isinstance(error, AuthError)
        assert error.code == 401
        assert "who are you?" in str(error)
        assert len(server.requests) == 2, "one re-read, and no fallback to another era"


@pytest.mark.req("X4", "X2")
@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_at_home_is_followed(code: int) -> None:
    async def move(request: Request, reply: Reply) -> None:
        if request.path == "/mcp":
            await reply.status(code, Location="/mcp/")
        else:
            await server.obey(request, reply)

    async with Modern() as server:
        server.on["POST"] = move
        async with connect(server, headers={"Authorization": "x"}) as client:
            assert await say(client) == "ahoy"
        assert {request.header("Authorization") for request in server.requests} == {"x"}


@pytest.mark.req("X4")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_credentials_never_follow_a_redirect_to_another_origin(code: int) -> None:
    async with Modern() as other, Modern() as server:
        server.on["POST"] = status(code, Location=other.url)
        async with connect(server, headers={"Authorization": "x", "X-Key": "y"}) as client:
            assert isinstance(await failure(client.open()), TransportError)
        assert other.connections == 0, "it hears nothing at all"


# Others


@pytest.mark.req("R8", "R10", "P6")
async def test_a_flood_on_one_stream_does_not_starve_another_call() -> None:
    gate = Gate()

    async def flood(request: Request, reply: Reply) -> None:
        if request.tool != "flood":
            await server.respond(request, reply)
            return
        await reply.stream()
        many = event(notice("notifications/message", {"data": "x" * 100})) * 100
        for _ in range(100):
            await reply.send(many)
        await gate()
        await reply.send(event(good(request)))
        await reply.end()

    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = flood
        client.on_notification(lambda one: None)
        running = asyncio.ensure_future(client.call_tool("flood"))
        for number in range(20):
            assert await say(client, str(number)) == str(number)
        gate.open()
        assert (await running).text == "ok"


@pytest.mark.req("R6", "R2")
async def test_cancelling_one_task_touches_no_other() -> None:
    gate = Gate()

    async def held(request: Request, reply: Reply) -> None:
        await gate()
        await server.respond(request, reply)

    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = held
        calls = [asyncio.ensure_future(say(client, str(number))) for number in range(10)]
        await server.until(lambda: gate.waiting == 10)
        for call in calls[::2]:
            call.cancel()
        gate.open()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert found[1::2] == ["1", "3", "5", "7", "9"]
        assert all(isinstance(one, asyncio.CancelledError) for one in found[::2])


@pytest.mark.req("X2", "R10")
async def test_priming_and_junk_on_a_stream_are_passed_over() -> None:
    def make(request: Request) -> list[bytes]:
        return [
            b"\xef\xbb\xbfid: 1\ndata:\n\n",
            b": comment\r\n\r\n",
            event("no JSON at all"),
            b"event: ping\ndata: {}\n\n",
            event(good(request)),
        ]

    async with Modern() as server, connect(server) as client:
        server.on["tools/call"] = streaming(make)
        assert await say(client) == "ok"
        assert client.violations


@pytest.mark.req("E2")
async def test_a_web_page_is_recognised_as_no_server() -> None:
    async with Rogue(status(200, PAGE, "text/html")) as server, connect(server) as client:
        error = await failure(client.list_tools())
        assert isinstance(error, ProtocolError)
        assert "text/html" in str(error)
        assert "Bad gateway" in str(error)

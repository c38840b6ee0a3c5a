"""HTTP as both URL transports use it: headers, redirects, bodies, and errors in our words."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest
from multidict import CIMultiDict

from holdfast._core.boundary import RefusalReason, Refused
from holdfast._core.transports.http import Http
from holdfast._core.transports.http_client import (
    JSON,
    Headers,
    HttpClient,
    HttpConnector,
    SmallPost,
)
from holdfast._core.transports.http_responses import TURN, body_reader, read_body, read_start
from holdfast.errors import AuthError, ProtocolError, TransportError, ValidationError
from tests.http.rogue import Handler, Reply, Request, Rogue, fault, nobody
from tests.rows import rows

LIMIT = 10_000


@asynccontextmanager
async def web(url: str, **settings: Any) -> AsyncIterator[HttpClient]:
    found = HttpClient(Http(url, auth=None, **settings), LIMIT)
    try:
        yield found
    finally:
        await found.close()


async def body(found: HttpClient, headers: Mapping[str, str] | None = None) -> bytes:
    """What a POST brings."""
    async with found.request("POST", headers or {}, body=b"{}") as response:
        return await read_body(response, found.limit)


async def refusal(handler: Handler, **settings: Any) -> Refused:
    async with Rogue(handler) as server, web(server.url, **settings) as found:
        with pytest.raises(Refused) as caught:
            await body(found)
        return caught.value


def status(status: int, **headers: str) -> Handler:
    return lambda request, reply: reply.status(status, **headers)


async def ok(request: Request, reply: Reply) -> None:
    await reply.body(b"fine")


# Headers


@pytest.mark.req("X2")
async def test_a_post_says_what_it_is_and_what_it_takes() -> None:
    async with Rogue(ok) as server, web(server.url) as found:
        assert await body(found, {"Mcp-Method": "x"}) == b"fine"
        (request,) = server.requests
        assert request.header("Accept") == "application/json, text/event-stream"
        assert request.header("Content-Type") == JSON
        assert request.header("Mcp-Method") == "x"
        assert request.header("Content-Length") == "2"
        assert request.header("Expect") is None
        assert request.header("Origin") is None


@pytest.mark.req("X2")
async def test_an_unknown_aiohttp_sends_by_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallPost, "FAMILIAR", False)
    monkeypatch.setattr(HttpConnector, "post", None)
    async with Rogue(ok) as server, web(server.url) as found:
        assert await body(found, {"Mcp-Method": "x"}) == b"fine"
        (request,) = server.requests
        assert request.header("Content-Type") == JSON
        assert request.header("Content-Length") == "2"


@pytest.mark.req("X5")
async def test_own_headers_replace_the_usual_ones_however_they_are_written() -> None:
    own = {"user-agent": "mine", "AUTHORIZATION": "Bearer x", "accept": "nothing"}
    async with Rogue(ok) as server, web(server.url, headers=own) as found:
        await body(found, {"Accept": "text/event-stream"})
        (request,) = server.requests
        assert request.all("User-Agent") == ["mine"]
        assert request.all("Authorization") == ["Bearer x"]
        assert request.all("Accept") == ["text/event-stream"], "the protocol's own come last"


@pytest.mark.req("X5")
@pytest.mark.parametrize("url", ["/mcp", "/elsewhere"])
async def test_a_cookie_comes_back_with_every_later_request(url: str) -> None:
    """Load balancers name the machine of a session in one."""

    async def first(request: Request, reply: Reply) -> None:
        if request.header("Cookie"):
            await reply.body(b"fine")
        else:
            await reply.body(b"fine", Set_Cookie="machine=7; Path=/")

    # Cookies of a bare address are not kept: a name it is.
    async with Rogue(first) as server, web(f"http://localhost:{server.port}/mcp") as found:
        await body(found)
        await body(found)
        async with found.request("GET", {}, url=found.url.with_path(url)):
            pass
        sent = [request.header("Cookie") for request in server.requests]
        assert sent == [None, "machine=7", "machine=7"]


def _counting(kind: str) -> Headers:
    numbers = iter(range(1, 100))

    def plain() -> dict[str, str]:
        return {"X-Number": str(next(numbers))}

    async def later() -> dict[str, str]:
        await asyncio.sleep(0)
        return plain()

    return plain if kind == "sync" else later


@pytest.mark.req("X5")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_headers_by_callable_are_asked_for_each_request(kind: str) -> None:
    async with Rogue(ok) as server, web(server.url, headers=_counting(kind)) as found:
        await body(found)
        await body(found)
        assert [request.header("X-Number") for request in server.requests] == ["1", "2"]


@pytest.mark.req("X5")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_401_reads_the_headers_once_more_and_tries_again(kind: str) -> None:
    async def second(request: Request, reply: Reply) -> None:
        await (ok(request, reply) if request.header("X-Number") == "2" else reply.status(401))

    async with Rogue(second) as server, web(server.url, headers=_counting(kind)) as found:
        assert await body(found) == b"fine"
        assert [request.body for request in server.requests] == [b"{}", b"{}"]


@pytest.mark.req("X5", "E1")
@pytest.mark.parametrize(("headers", "tries"), [(_counting("sync"), 2), ({"A": "b"}, 1), (None, 1)])
async def test_401_again_is_an_auth_error(headers: Headers | None, tries: int) -> None:
    async with Rogue(status(401)) as server, web(server.url, headers=headers) as found:
        with pytest.raises(Refused) as caught:
            await body(found)
        assert isinstance(caught.value.error, AuthError)
        assert (caught.value.reason, caught.value.processed) == (RefusalReason.UNAUTHORIZED, False)
        assert len(server.requests) == tries


def _failing() -> Mapping[str, str]:
    raise TimeoutError("the vault is closed")


async def _failing_later() -> Mapping[str, str]:
    return _failing()


@pytest.mark.req("X5", "E2")
@pytest.mark.parametrize("headers", [_failing, _failing_later, lambda: 5, lambda: None])
async def test_headers_that_cannot_be_had_are_told(headers: Any) -> None:
    found = await refusal(ok, headers=headers)
    assert isinstance(found.error, AuthError)
    assert "headers() failed" in found.error.message
    assert not found.processed


@pytest.mark.req("X5", "X4")
@pytest.mark.parametrize("bad", [{"A": "b\r\nEvil: 1"}, {"A\r\nB": "c"}, {"A": 5}, {"A": "b\0"}])
async def test_headers_that_cannot_be_sent_are_told(bad: Any) -> None:
    async with Rogue(ok) as server, web(server.url, headers=lambda: bad) as found:
        with pytest.raises(Refused) as caught:
            await body(found)
        assert isinstance(caught.value.error, ValidationError)
        assert server.requests == []


@pytest.mark.req("X5")
async def test_credentials_in_the_url_are_sent_as_such() -> None:
    async with Rogue(ok) as server, web(server.url.replace("//", "//me:secret@")) as found:
        await body(found)
        assert server.requests[0].header("Authorization") == "Basic bWU6c2VjcmV0"
        assert "secret" not in found.origin


@pytest.mark.req("X5")
async def test_credentials_in_the_url_and_in_a_header_are_too_many() -> None:
    async with Rogue(ok) as server:
        url = server.url.replace("//", "//me:secret@")
        async with web(url, headers={"Authorization": "x"}) as found:
            with pytest.raises(Refused) as caught:
                await body(found)
        assert isinstance(caught.value.error, ValidationError)
        assert "secret" not in str(caught.value)


# Redirects


@pytest.mark.req("X4")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("absolute", [True, False])
async def test_a_redirect_at_home_is_followed_with_the_same_request(
    status: int, absolute: bool
) -> None:
    async def move(request: Request, reply: Reply) -> None:
        where = (server.origin if absolute else "") + "/new"
        await (
            ok(request, reply) if request.path == "/new" else reply.status(status, Location=where)
        )

    async with Rogue(move) as server, web(server.url, headers={"Authorization": "x"}) as found:
        assert await body(found, {"Mcp-Method": "m"}) == b"fine"
        first, second = server.requests
        for request in (first, second):
            assert (request.method, request.body) == ("POST", b"{}")
            assert request.header("Authorization") == "x"
            assert request.header("Mcp-Method") == "m"


@pytest.mark.req("X4")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_to_another_origin_is_not_followed(status: int) -> None:
    async with Rogue(ok) as other:

        async def away(request: Request, reply: Reply) -> None:
            await reply.status(status, Location=other.url)

        found = await refusal(away, headers={"Authorization": "secret"})
        assert other.connections == 0
    assert isinstance(found.error, TransportError)
    assert other.origin in found.error.message
    assert not found.processed


@pytest.mark.req("X4")
@pytest.mark.parametrize("where", ["http://[bad", "mailto:x", "ftp://x/", "https://127.0.0.1/"])
async def test_a_redirect_to_nowhere_is_not_followed(where: str) -> None:
    found = await refusal(status(307, Location=where))
    assert "which is not followed" in found.error.message


@pytest.mark.req("X4", "R2")
async def test_redirects_in_a_circle_end() -> None:
    async with Rogue(status(307, Location="/mcp")) as server, web(server.url) as found:
        with pytest.raises(Refused, match="more than 5 times"):
            await body(found)
        assert len(server.requests) == 6


@pytest.mark.req("R11")
async def test_see_other_is_not_followed_for_the_request_was_processed() -> None:
    found = await refusal(status(303, Location="/mcp"))
    assert (found.error.code, found.processed) == (303, True)


@pytest.mark.req("E2")
async def test_a_redirect_without_a_place_is_a_bad_status() -> None:
    assert (await refusal(status(307))).error.code == 307


# Bodies

FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "GZIP": gzip.compress,
    "identity": bytes,
    "": bytes,
}


def packed(data: bytes, coding: str) -> Handler:
    return lambda request, reply: reply.body(FORMS[coding](data), Content_Encoding=coding)


@pytest.mark.req("X2")
@pytest.mark.parametrize("coding", FORMS)
async def test_a_body_is_unpacked(coding: str) -> None:
    async with Rogue(packed(b"hello", coding)) as server, web(server.url) as found:
        assert await body(found) == b"hello"


@pytest.mark.req("R9")
@pytest.mark.parametrize("coding", FORMS)
async def test_the_limit_holds_for_what_a_body_becomes(coding: str) -> None:
    async with Rogue(packed(b"x" * LIMIT, coding)) as server, web(server.url) as found:
        assert len(await body(found)) == LIMIT
    found_refusal = await refusal(packed(b"x" * (LIMIT + 1), coding))
    assert isinstance(found_refusal.error, ProtocolError)
    assert str(LIMIT) in found_refusal.error.message
    assert "frame_bytes" in str(found_refusal.error)


@pytest.mark.req("R9")
async def test_a_bomb_is_stopped_where_it_passes_the_limit() -> None:
    bomb = gzip.compress(bytes(100_000_000))
    started = time.process_time()

    async def drop(request: Request, reply: Reply) -> None:
        await reply.body(bomb, Content_Encoding="gzip")

    found = await refusal(drop)
    assert str(LIMIT) in found.error.message
    assert time.process_time() - started < 10


@pytest.mark.req("R8", "R9")
async def test_other_tasks_run_while_many_members_are_unpacked() -> None:
    """A gzip member takes as long as kilobytes of text, and one read brings thousands of them."""
    flood = gzip.compress(b"x" * 64) * 3000
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    content = asyncio.StreamReader()
    content.readany = lambda: content.read(len(flood))  # type: ignore[attr-defined]
    content.feed_data(flood)
    content.feed_eof()
    response: Any = SimpleNamespace(
        content=content, headers=CIMultiDict({"Content-Encoding": "gzip"})
    )
    counting = asyncio.create_task(count())
    read, size = body_reader(response), 0
    while piece := await read():
        size += len(piece)
    counting.cancel()
    assert size == 3000 * 64
    assert turns >= len(flood) // TURN


@pytest.mark.req("X2", "E2")
@pytest.mark.parametrize(
    ("coding", "data", "words"),
    [
        ("br", b"x", "not asked for"),
        ("gzip, gzip", gzip.compress(b"x", mtime=0), "not asked for"),
        ("gzip", b"this is plain", "incorrect header"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-9], "too early"),
    ],
)
async def test_what_cannot_be_unpacked_is_told(coding: str, data: bytes, words: str) -> None:
    found = await refusal(lambda request, reply: reply.body(data, Content_Encoding=coding))
    assert isinstance(found.error, ProtocolError)
    assert words in found.error.message


@pytest.mark.req("X2")
async def test_a_large_body_goes_out() -> None:
    async with Rogue(ok) as server, web(server.url) as found:
        large = b"x" * 3_000_000
        async with found.request("POST", {}, body=large) as response:
            await read_start(response)
        assert server.requests[0].body == large
        assert server.requests[0].header("Content-Length") == "3000000"


# Errors


@pytest.mark.req("E2")
@rows(
    ("code", "reason", "processed"),
    [
        (400, RefusalReason.NOT_UNDERSTOOD, False),
        (404, RefusalReason.NOT_UNDERSTOOD, False),
        (408, RefusalReason.BUSY, True),
        (413, RefusalReason.REJECTED, False),
        (500, RefusalReason.CRASHED, True),
        (501, RefusalReason.NOT_UNDERSTOOD, True),
        (502, RefusalReason.CRASHED, True),
        (504, RefusalReason.CRASHED, True),
    ],
)
async def test_a_bad_status_is_told_with_the_beginning_of_its_body(
    code: int, reason: RefusalReason, processed: bool
) -> None:
    page = b"<html><h1>Sorry</h1>" + b"." * 200_000
    found = await refusal(lambda request, reply: reply.body(page, code, "text/html"))
    assert isinstance(found.error, TransportError)
    assert (found.error.code, found.reason, found.processed) == (code, reason, processed)
    assert f"HTTP status {code}: <html><h1>Sorry</h1>" in found.error.message
    assert len(found.error.message) < 500


@pytest.mark.req("E2")
async def test_without_a_body_the_reason_is_told() -> None:
    assert "HTTP status 418: Because" in (await refusal(status(418))).error.message


@pytest.mark.req("E2")
async def test_a_bad_status_counts_even_if_its_body_breaks_off() -> None:
    async def broken(request: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 404 No\r\nContent-Length: 100\r\n\r\nhalf")
        reply.close()

    found = await refusal(broken)
    assert found.error.code == 404
    assert "half" in found.error.message


@pytest.mark.req("E1")
async def test_forbidden_is_an_auth_error_with_the_servers_words() -> None:
    message = fault(None, -32000, "Only for members")
    found = await refusal(lambda request, reply: reply.json(message, 403))
    assert isinstance(found.error, AuthError)
    assert "Only for members" in found.error.message


@pytest.mark.req("E3", "L3")
async def test_the_error_object_in_a_body_is_found() -> None:
    message = fault(None, -32022, "no", {"supported": ["x"]})
    found = await refusal(lambda request, reply: reply.json(message, 400))
    assert found.fault is not None
    assert (found.fault.code, found.fault.data) == (-32022, {"supported": ["x"]})


@pytest.mark.req("E2")
@rows(
    "said",
    [b"", b"null", b"[]", b'{"error": "invalid_token"}', b'{"error": {}}', b"\xff", b"{" * 9],
)
async def test_what_is_no_error_object_is_none(said: bytes) -> None:
    found = await refusal(lambda request, reply: reply.body(said, 400))
    assert found.fault is None


@pytest.mark.req("R11")
@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize(
    ("said", "meant"),
    [("0", 0), ("7", 7), ("", 1), ("soon", 1), ("-5", 1), ("²", 1), ("9" * 400, float("inf"))],
)
async def test_retry_after_is_seconds(code: int, said: str, meant: float) -> None:
    found = await refusal(status(code, Retry_After=said))
    assert (found.retry_after, found.processed) == (meant, False)


@pytest.mark.req("R11")
async def test_retry_after_may_be_a_date() -> None:
    found = await refusal(status(503, Retry_After=formatdate(time.time() + 100, usegmt=True)))
    assert found.retry_after is not None
    assert 50 < found.retry_after <= 100
    found = await refusal(status(503, Retry_After=formatdate(0, usegmt=True)))
    assert found.retry_after == 0


@pytest.mark.req("E2")
async def test_a_refused_connection_is_told_at_once() -> None:
    async with nobody() as url, web(url) as found:
        with pytest.raises(Refused, match=r"cannot connect to .*: Connection refused") as caught:
            await body(found)
        assert not caught.value.processed


@pytest.mark.req("E2")
async def test_a_name_that_is_not_known_is_told() -> None:
    async with web("http://no-such-host.invalid/mcp") as found:
        with pytest.raises(Refused, match=r"cannot connect to http://no-such-host\.invalid"):
            await body(found)


async def _nothing(request: Request, reply: Reply) -> None:
    reply.close()


async def _reset(request: Request, reply: Reply) -> None:
    reply.reset()


def _raw(*pieces: bytes) -> Handler:
    async def write(request: Request, reply: Reply) -> None:
        await reply.raw(*pieces)
        reply.close()

    return write


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.req("E2", "R11")
@pytest.mark.parametrize(
    "handler",
    [
        _nothing,
        _reset,
        _raw(b"nonsense\r\n\r\n"),
        _raw(b"HTTP/1.1 2"),
        _raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
        _raw(HEAD + b"Content-Length: 100\r\n\r\nhalf"),
        _raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
        _raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\nzz\r\n"),
        _raw(HEAD + b"Content-Length: -5\r\n\r\n"),
        _raw(HEAD + b"A: " + b"x" * 100_000 + b"\r\n\r\n"),
    ],
    ids=[
        "nothing",
        "reset",
        "nonsense",
        "half a head",
        "another protocol",
        "half a body",
        "half a chunk",
        "bad chunk",
        "bad length",
        "endless head",
    ],
)
async def test_a_broken_connection_is_a_transport_error_that_may_have_run(handler: Handler) -> None:
    found = await refusal(handler)
    assert isinstance(found.error, TransportError)
    assert found.processed
    assert found.broken
    assert "http://127.0.0.1" in found.error.message


# Proxies


@asynccontextmanager
async def forward() -> AsyncIterator[Rogue]:
    """A proxy that knows the answer itself."""
    async with Rogue(ok) as proxy:
        yield proxy


@pytest.mark.req("X5")
async def test_an_explicit_proxy_is_used() -> None:
    async with forward() as proxy, web("http://far.test/mcp", proxy=proxy.origin) as found:
        assert await body(found) == b"fine"
        assert proxy.requests[0].path == "http://far.test/mcp"
        assert proxy.requests[0].header("Host") == "far.test"


@pytest.mark.req("X5")
async def test_the_credentials_of_a_proxy_are_for_the_proxy() -> None:
    async with forward() as proxy:
        named = proxy.origin.replace("//", "//me:secret@")
        async with web("http://far.test/mcp", proxy=named) as found:
            await body(found)
        assert proxy.requests[0].header("Proxy-Authorization") == "Basic bWU6c2VjcmV0"
        assert proxy.requests[0].header("Authorization") is None


@pytest.mark.req("X5")
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_a_proxy_is_found_in_the_environment(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forward() as proxy:
        monkeypatch.setenv("http_proxy", f"{scheme}127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "near.test")
        async with web("http://far.test/mcp") as found:
            assert await body(found) == b"fine"
        assert len(proxy.requests) == 1
        async with web("http://near.test/mcp") as found:
            assert found._proxy is None
        async with web("http://far.test/mcp", trust_env=False) as found:
            assert found._proxy is None


@pytest.mark.req("X5", "E2")
async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with nobody() as url, web("http://far.test/mcp", proxy=url) as found:
        with pytest.raises(Refused, match=r"through the proxy 127\.0\.0\.1: Connection refused"):
            await body(found)


@pytest.mark.req("X5", "E2")
async def test_a_proxy_that_refuses_is_told() -> None:
    async with Rogue(status(407)) as proxy, web("https://far.test/", proxy=proxy.origin) as found:
        with pytest.raises(Refused, match="the proxy answered 407") as caught:
            await body(found)
        assert not caught.value.processed
        assert proxy.requests[0].method == "CONNECT"


@pytest.mark.req("X5", "E2")
async def test_what_is_no_proxy_is_told() -> None:
    async with web("http://far.test/", proxy="socks5://127.0.0.1:1") as found:
        with pytest.raises(Refused):
            await body(found)


# Connections


@pytest.mark.req("X2")
async def test_one_connection_serves_many_requests() -> None:
    async with Rogue(ok) as server, web(server.url) as found:
        for _ in range(5):
            await body(found)
        assert server.connections == 1


@pytest.mark.req("L8")
async def test_dropping_closes_every_connection_at_once() -> None:
    async with Rogue(ok) as server:
        found = HttpClient(Http(server.url, auth=None), LIMIT)
        await body(found)
        found.drop()
        found.drop()
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("X2")
async def test_a_body_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_responses.LINGER", 0.01)

    async def endless(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.gone()

    async with Rogue(endless) as server, web(server.url) as found:
        async with found.request("POST", {}, body=b"{}") as response:
            await read_start(response)
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("X2")
@rows(
    ("code", "body", "reason"),
    [
        (404, b"", RefusalReason.NO_SUCH_SESSION),
        (404, b'{"error": {"code": -32001, "message": "gone"}}', RefusalReason.NO_SUCH_SESSION),
        (404, b'{"error": {"code": -32601, "message": "no method"}}', RefusalReason.NOT_UNDERSTOOD),
        (400, b'{"error": {"code": -32000, "message": "No valid session ID"}}', "no such session"),
        (
            400,
            b'{"error": {"code": -32602, "message": "bad arguments"}}',
            RefusalReason.NOT_UNDERSTOOD,
        ),
        (400, b"", RefusalReason.NOT_UNDERSTOOD),
    ],
)
async def test_a_refusal_of_a_named_session_says_that_it_is_not_known(
    code: int, body: bytes, reason: str
) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        await reply.body(body, code, "application/json")

    async with Rogue(answer) as server, web(server.url) as found:
        with pytest.raises(Refused) as caught:
            await found.open("POST", {"Mcp-Session-Id": "one"}, b"{}")
        assert caught.value.reason == reason
        with pytest.raises(Refused) as caught:
            await found.open("POST", {}, b"{}")
        assert caught.value.reason is RefusalReason.NOT_UNDERSTOOD

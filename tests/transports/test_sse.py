"""HTTP+SSE of 2024-11-05, link by link."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast._core.boundary import (
    Drained,
    Generation,
    Lost,
    Opened,
    Refused,
    StreamOptions,
    Transport,
    WireId,
)
from holdfast._core.transports.http import Http
from holdfast._core.transports.http_streams import SseLink
from holdfast._core.wire import jsonrpc
from holdfast.errors import ProtocolError, TransportError
from holdfast.policies import Limits
from holdfast.testing.contract import Probe, TransportContract
from tests.http.echo import EchoSse
from tests.http.rogue import Gate, Old, Reply, Request, Rogue, event, nobody
from tests.rows import rows


@pytest.mark.req("V2", "X3", "R9")
class TestSse(TransportContract):
    ordered = False

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        async with EchoSse() as server:
            yield Http(server.url, transport="sse")


@asynccontextmanager
async def linked(url: str) -> AsyncIterator[tuple[Probe, SseLink]]:
    probe = Probe()
    link = Http(url, transport="sse").open(Generation(1), Limits(), probe.report)
    assert isinstance(link, SseLink)
    probe.link = link
    try:
        yield probe, link
    finally:
        link.close()
        await probe.until(lambda: probe.seen(Drained))


async def loss(server: Rogue) -> Lost:
    """How a link to this server ends."""
    async with linked(server.url) as (probe, _):
        await probe.until(lambda: probe.seen(Lost))
        (lost,) = probe.seen(Lost)
        assert isinstance(lost, Lost)
        return lost


# The endpoint


@pytest.mark.req("X3")
@pytest.mark.parametrize("absolute", [False, True])
async def test_messages_go_to_the_endpoint_that_the_server_names(absolute: bool) -> None:
    async with Old() as server:
        path = server.endpoint
        named = server.origin + path if absolute else path
        await server.until(lambda: True)
        server.on["GET"] = _opening(server, event(named, name="endpoint"))
        async with linked(server.url) as (probe, _):
            await probe.until(lambda: probe.seen(Opened))
            probe.order("ping")
            await server.heard("ping")
        assert server.posts("ping")[0].path == path


def _opening(server: Old, *events: bytes):  # type: ignore[no-untyped-def]
    async def get(request: Request, reply: Reply) -> None:
        await reply.stream(*events)
        server.stream = reply
        await reply.gone()

    return get


@pytest.mark.req("X3", "X4")
@rows(
    "named",
    ["http://evil.test/messages", "//evil.test/x", "https://127.0.0.1/x", "http://[bad", "ftp:x"],
)
async def test_an_endpoint_of_another_origin_is_refused(named: str) -> None:
    async with Old() as server:
        server.on["GET"] = _opening(server, event(named, name="endpoint"))
        lost = await loss(server)
        assert isinstance(lost.error, ProtocolError)
        assert "another origin" in lost.error.message


@pytest.mark.req("X3")
async def test_a_stream_that_does_not_begin_with_an_endpoint_is_refused() -> None:
    async with Old() as server:
        server.on["GET"] = _opening(server, event("{}"))
        lost = await loss(server)
        assert "did not name its endpoint" in lost.error.message


@pytest.mark.req("X3", "E2")
async def test_what_is_no_stream_is_refused() -> None:
    async with Old() as server:
        server.on["GET"] = lambda request, reply: reply.body(b"<html>", kind="text/html")
        lost = await loss(server)
        assert isinstance(lost.error, ProtocolError)
        assert "text/html" in lost.error.message


@pytest.mark.req("X3", "E2")
async def test_a_server_that_is_not_there_says_so() -> None:
    async with nobody() as url, linked(url) as (probe, _):
        (lost,) = await probe.until(lambda: probe.seen(Lost))
        assert "Connection refused" in lost.error.message


# The stream


@pytest.mark.req("X3", "L5")
@pytest.mark.parametrize("properly", [True, False])
async def test_the_end_of_the_stream_is_the_end_of_the_link(properly: bool) -> None:
    async with Old() as server, linked(server.url) as (probe, _):
        await probe.until(lambda: probe.seen(Opened))
        assert server.stream is not None
        if properly:
            await server.stream.end()
        else:
            server.stream.reset()
        (lost,) = await probe.until(lambda: probe.seen(Lost))
        assert isinstance(lost.error, TransportError)


@pytest.mark.req("X3", "R2")
async def test_a_post_that_is_refused_fails_its_request_alone() -> None:
    async with Old() as server:
        server.on["bad"] = lambda request, reply: reply.body(b"broken", 500, "text/plain")
        async with linked(server.url) as (probe, _):
            await probe.until(lambda: probe.seen(Opened))
            number = probe.order("bad")
            await probe.until(lambda: probe.seen(Refused))
            assert probe.seen(Refused)[0].wire_id == number
            assert "broken" in probe.seen(Refused)[0].error.message
            assert await probe.answer(probe.order("ping")) == {}


@pytest.mark.req("X3")
async def test_what_follows_waits_for_the_first_notification() -> None:
    gate = Gate()

    async def slow(request: Request, reply: Reply) -> None:
        await gate()
        await reply.status(202)

    async with Old() as server:
        server.on["notifications/initialized"] = slow
        async with linked(server.url) as (probe, link):
            await probe.until(lambda: probe.seen(Opened))
            link.send(jsonrpc.notification("notifications/initialized"), None)
            number = probe.order("ping")
            await server.until(lambda: gate.waiting)
            assert server.posts("ping") == []
            gate.open()
            await probe.answer(number)


@pytest.mark.req("X3", "L8")
async def test_a_post_whose_body_never_ends_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_responses.LINGER", 0.01)
    gone = asyncio.Event()

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.gone()
        gone.set()

    async with Old() as server:
        server.on["hold"] = post
        async with linked(server.url) as (probe, link):
            await probe.until(lambda: probe.seen(Opened))
            link.send(jsonrpc.request(1, "hold"), WireId(1))
            await asyncio.wait_for(gone.wait(), 20)
            assert probe.seen(Refused) == [], "it was taken"


@pytest.mark.req("X3")
async def test_there_are_no_streams_to_listen_to_finish_or_withdraw() -> None:
    async with Old() as server, linked(server.url) as (probe, link):
        await probe.until(lambda: probe.seen(Opened))
        link.listen(StreamOptions({}))
        link.finish(WireId(1))
        assert not link.withdraw(WireId(1))
        assert not link.unread()
        assert "127.0.0.1" in repr(link)
        assert len(server.gets()) == 1

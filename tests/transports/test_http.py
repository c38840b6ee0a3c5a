"""Streamable HTTP, link by link. What a client makes of it is in tests/http."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast import ValidationError
from holdfast._core.boundary import (
    Delivered,
    Drained,
    Expired,
    Generation,
    Opened,
    Refused,
    Room,
    StreamOptions,
    Transport,
    WireId,
)
from holdfast._core.transports.http import Http
from holdfast._core.transports.http_link import CLOSE_WAIT
from holdfast._core.transports.http_streams import LONGEST_PAUSE, Stream, StreamableLink
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.sse import SseParser
from holdfast.policies import Limits
from holdfast.testing.contract import Probe, TransportContract
from tests.http.echo import EchoHttp
from tests.http.rogue import Gate, Legacy, Reply, Request, Rogue, answer, event, notice
from tests.rows import rows
from tests.skipping import run_skipping, skip

SESSION = {"Mcp-Session-Id": "s", "MCP-Protocol-Version": "2025-11-25"}
LASTING = StreamOptions(SESSION, resume=True)


@pytest.mark.req("V2", "X2", "R9")
class TestJsonAnswers(TransportContract):
    streams = True
    ordered = False
    events = False

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        async with EchoHttp() as server:
            server.events = self.events
            yield Http(server.url)


@pytest.mark.req("V2", "X2", "R9")
class TestEventAnswers(TestJsonAnswers):
    events = True


# Targets


@pytest.mark.req("X5", "E2")
@rows("url", ["http://", "ftp://host/x", "http:///x", "host/mcp", "http://[x"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="target"):
        Http(url)


@pytest.mark.req("X5")
def test_a_transport_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="'auto' or 'streamable' or 'sse'"):
        Http("http://host/", transport="grpc")  # type: ignore[arg-type]


@pytest.mark.req("X5")
@rows(
    ("options", "words"),
    [
        ({"url": 5}, r"url=5"),
        ({"headers": 5}, r"headers=5.*mapping"),
        ({"headers": {"A": 5}}, r"headers\['A'\]=5"),
        ({"headers": ["Authorization: x"]}, r"headers=<list>.*pairs"),
        ({"headers": {"A": b"secret"}}, r"headers\['A'\]=<bytes>"),
        ({"headers": {"A b": "c"}}, r"'A b': ….*not the name of a header"),
        ({"headers": {"A": "b\r\nC: d"}}, r"'A': ….*cannot be sent"),
        ({"headers": [("A", "b"), ("a", "c")]}, r"given twice"),
        ({"base_url": 5}, r"base_url=5"),
        ({"base_url": "host"}, r"'host'.*http://"),
        ({"sse_endpoint": 5}, r"sse_endpoint=5"),
        ({"message_endpoint": "http://other/"}, r"same origin"),
        ({"ca": 5}, r"ca=5"),
        ({"cert": ("a", "b", "c")}, r"cert=.*pair of files"),
        ({"cert": 5}, r"cert="),
        ({"ssl": True}, r"ssl=True.*SSLContext"),
        ({"proxy": "proxy:3128"}, r"proxy='proxy:3128'.*URL"),
        ({"trust_env": "no"}, r"trust_env='no'"),
        ({"connections": 0}, r"connections=0"),
        ({"connections": 2.5}, r"connections=2.5"),
        ({"connect_timeout": 0}, r"connect_timeout=0"),
        ({"message_timeout": "1"}, r"message_timeout='1'"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_by_name_and_value(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        Http(**{"url": "http://host/", **options})


@pytest.mark.req("X5")
async def test_headers_may_be_pairs_and_a_context_may_be_given() -> None:
    async with EchoHttp() as server:
        pairs = [("X-One", "1"), ("X-Two", "2")]
        for headers in (pairs, lambda: pairs):
            async with holdfast.connect(Http(server.url, headers=headers)) as client:
                await client.open()
    context = ssl.create_default_context()
    assert Http("https://host/", ssl=context).name == "host"


@pytest.mark.req("X5")
def test_credentials_are_not_shown() -> None:
    target = Http("https://me:secret@host:8443/mcp")
    assert target.name == "host:8443"
    assert "secret" not in repr(target)


@pytest.mark.req("L3")
def test_the_same_url_is_the_same_server() -> None:
    assert Http("http://host/mcp").key == Http("http://host/mcp", headers={"a": "b"}).key
    assert Http("http://host/mcp").key != Http("http://host/other").key


@pytest.mark.req("X5", "E2")
async def test_a_ca_that_cannot_be_read_is_told() -> None:
    target = Http("https://127.0.0.1:1/mcp", ca="/no/such/file")
    async with holdfast.connect(target) as client:
        with pytest.raises(holdfast.TransportError, match="TLS settings cannot be used"):
            await client.open()


# Links


@asynccontextmanager
async def linked(
    server: Rogue, *, limits: Limits | None = None, **options: Any
) -> AsyncIterator[tuple[Probe, StreamableLink]]:
    probe = Probe()
    transport = Http(server.url, **options)
    link = transport.open(Generation(1), limits or Limits(), probe.report)
    assert isinstance(link, StreamableLink)
    probe.link = link
    await probe.until(lambda: probe.seen(Opened))
    try:
        yield probe, link
    finally:
        link.close()
        await probe.until(lambda: probe.seen(Drained))


def ask(link: StreamableLink, number: int = 1, options: StreamOptions = LASTING) -> None:
    link.send(jsonrpc.request(number, "tools/call"), WireId(number), options)


@pytest.mark.req("R7", "R11")
async def test_requests_that_wait_are_bounded_in_bytes_and_taken_again_once_there_is_room() -> None:
    gate = Gate()

    async def post(request: Request, reply: Reply) -> None:
        await gate()
        await reply.json(answer(request.id, {}))

    def send(number: int, size: int) -> bool:
        return link.send(jsonrpc.request(number, "x" * size), WireId(number), LASTING)

    async with Rogue(post) as server:
        limits = Limits(backlog_bytes=2000)
        async with linked(server, connections=1, limits=limits) as (probe, link):
            assert send(1, 5000)
            await server.heard("x" * 5000)
            assert send(2, 5000), "one that waits may be larger than the bound"
            assert not send(3, 1)
            assert link.unsent() == {2}
            gate.open()
            await probe.until(lambda: probe.seen(Room))
            assert send(3, 1)
            for number in (1, 2, 3):
                await probe.answer(number)
            assert link.unsent() == frozenset()
            assert len(probe.seen(Room)) == 1


@pytest.mark.req("R7", "R11")
async def test_a_request_that_waits_can_be_taken_back_and_leaves_its_place() -> None:
    gate = Gate()

    async def post(request: Request, reply: Reply) -> None:
        await gate()
        await reply.json(answer(request.id, {}))

    async with Rogue(post) as server, linked(server, connections=1) as (probe, link):
        for number in (1, 2, 3, 4):
            ask(link, number)
        await server.until(lambda: gate.waiting)
        assert link.withdraw(WireId(2))
        assert not link.withdraw(WireId(2))
        assert not link.withdraw(WireId(1)), "it has left; its place is free"
        ask(link, 5)
        assert link.withdraw(WireId(5))
        gate.open()
        await probe.answer(3)
        await probe.answer(4)
        assert [request.id for request in server.requests] == [1, 3, 4]


@pytest.mark.req("X5", "R7")
async def test_a_request_that_waits_is_sent_with_the_credentials_of_its_caller() -> None:
    who = ContextVar("who", default="")
    gate = Gate()

    async def post(request: Request, reply: Reply) -> None:
        await gate()
        await reply.json(answer(request.id, {}))

    def own() -> dict[str, str]:
        return {"X-Who": who.get()}

    async with Rogue(post) as server:
        async with linked(server, connections=1, headers=own) as (probe, link):
            for number, name in enumerate(("ann", "bob", "eve"), 1):
                who.set(name)
                ask(link, number)
            who.set("nobody")
            gate.open()
            for number in (1, 2, 3):
                await probe.answer(number)
            assert [one.header("X-Who") for one in server.requests] == ["ann", "bob", "eve"]


@pytest.mark.req("X2")
async def test_a_stream_is_given_up_after_five_failed_connections_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_streams.RETRY", 0.001)

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 0\n" + event("", id="1"))
        await reply.end()

    async def get(request: Request, reply: Reply) -> None:
        if len(server.gets()) == 5:
            await reply.stream(event("", id="2"))
            await reply.end()
        else:
            await reply.stream()
            reply.reset()

    async with Rogue() as server:
        server.on.update(POST=post, GET=get)
        async with linked(server) as (probe, link):
            ask(link)
            await probe.until(partial(probe.seen, Refused))
            (refused,) = probe.seen(Refused)
            assert "ended the stream" in str(refused)
            assert [one.header("Last-Event-ID") for one in server.gets()] == ["1"] * 5 + ["2"] * 5


@pytest.mark.req("X2", "R11")
async def test_a_stream_that_was_taken_is_never_said_to_be_unprocessed() -> None:
    """A 404, or a "later", for the resumption says nothing of the request, which has run."""

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 0\n" + event("", id="1"))
        await reply.end()

    async def get(request: Request, reply: Reply) -> None:
        await reply.status(status, Retry_After="0")

    for status in (404, 405, 429, 503):
        async with Rogue() as server:
            server.on.update(POST=post, GET=get)
            async with linked(server) as (probe, link):
                ask(link)
                await probe.until(partial(probe.seen, Refused))
                (refused,) = probe.seen(Refused)
                assert refused.processed
                assert (refused.reason, refused.retry_after) == ("unanswered", None)
                assert str(status) in refused.error.message
                expected = [Expired(Generation(1), "s")] if status == 404 else []
                assert probe.seen(Expired) == expected


@pytest.mark.req("X2")
async def test_only_a_broken_stream_is_taken_up_again() -> None:
    """One that was too large, or unreadable, would only be so again."""

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(event("", id="1") + event("x" * 5000))
        await reply.gone()

    async with Rogue() as server:
        server.on["POST"] = post
        async with linked(server, limits=Limits(frame_bytes=1000)) as (probe, link):
            ask(link)
            (refused,) = await probe.until(lambda: probe.seen(Refused))
            assert "1000" in refused.error.message
        assert server.gets() == []


@pytest.mark.req("X2")
async def test_a_broken_event_does_not_spoil_the_resumed_stream() -> None:
    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 0\n" + event("", id="1") + b'id: 2\ndata: {"half')
        reply.reset()

    async def get(request: Request, reply: Reply) -> None:
        assert request.header("Last-Event-ID") == "1"
        await reply.stream(event(answer(1, {"n": 1}), id="2"))
        await reply.end()

    async with Rogue() as server:
        server.on.update(POST=post, GET=get)
        async with linked(server) as (probe, link):
            ask(link)
            assert await probe.answer(1) == {"n": 1}


@pytest.mark.req("X2")
async def test_a_server_may_have_us_ask_again_as_often_as_it_likes() -> None:
    polls = 8

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 1\n" + event("", id="0"))
        await reply.end()

    async def get(request: Request, reply: Reply) -> None:
        count = len(server.gets())
        await reply.stream(event("", id=f"{count}") if count < polls else event(answer(1, {})))
        await reply.end()

    async with Rogue() as server:
        server.on.update(POST=post, GET=get)
        async with linked(server) as (probe, link):
            ask(link)
            await probe.answer(1)
        seen = [request.header("Last-Event-ID") for request in server.gets()]
        assert seen == [str(number) for number in range(polls)]


@pytest.mark.req("X2")
async def test_a_session_named_before_a_stream_broke_is_not_forgotten() -> None:
    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 0\n" + event("", id="1"), Mcp_Session_Id="named")
        await reply.end()

    async def get(request: Request, reply: Reply) -> None:
        await reply.stream(event(answer(1, {})))
        await reply.end()

    async with Rogue() as server:
        server.on.update(POST=post, GET=get)
        async with linked(server) as (probe, link):
            ask(link, options=StreamOptions({}, resume=True))
            await probe.answer(1)
            assert probe.seen(Delivered)[-1].session == "named"


@pytest.mark.req("X2", "L8")
async def test_a_stream_that_stays_open_after_its_answer_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_link.LINGER", 0.01)
    gone = asyncio.Event()

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(event(answer(1, {})))
        await reply.gone()
        gone.set()

    async with Rogue() as server:
        server.on["POST"] = post
        async with linked(server) as (probe, link):
            ask(link)
            await probe.answer(1)
            await asyncio.wait_for(gone.wait(), 20)
            assert "0 requests" in repr(link)
            assert probe.seen(Refused) == []


@pytest.mark.req("X2")
async def test_what_follows_waits_for_the_first_message_and_for_no_more_than_its_arrival() -> None:
    gate = Gate()
    order = []

    async def post(request: Request, reply: Reply) -> None:
        order.append(request.message["method"])
        if request.id is None:
            await gate()
            # A stream in answer to a notification never ends; nobody should wait for that.
            await reply.stream()
            await reply.gone()
        else:
            await reply.json(answer(request.id, {}))

    async with Rogue() as server:
        server.on["POST"] = post
        async with linked(server) as (probe, link):
            link.send(jsonrpc.notification("first"), None, StreamOptions({}, first=True))
            link.send(jsonrpc.notification("second"), None)
            ask(link)
            await server.until(lambda: gate.waiting)
            assert order == ["first"]
            gate.open()
            await probe.answer(1)
            await server.until(lambda: "second" in order)


@pytest.mark.req("X2")
async def test_a_first_message_that_is_not_taken_holds_nobody_back() -> None:
    async with Rogue() as server:
        server.on["tools/call"] = lambda request, reply: reply.json(answer(1, {}))
        async with linked(server) as (probe, link):
            link.send(jsonrpc.notification("first"), None, StreamOptions({}, first=True))
            ask(link)
            await probe.answer(1)


@pytest.mark.req("P4", "R12", "R2")
async def test_answers_to_the_server_get_through_when_all_connections_are_busy() -> None:
    async def post(request: Request, reply: Reply) -> None:
        if "method" not in request.message:
            await reply.status(202)
            heard.set()
        else:
            await reply.stream(event(notice("busy")))
            await heard.wait()
            await reply.send(event(answer(request.id, {})))
            await reply.end()

    heard = asyncio.Event()
    async with Rogue() as server:
        server.on["POST"] = post
        async with linked(server, connections=2) as (probe, link):
            for number in (1, 2, 3):
                ask(link, number)
            await server.until(lambda: len(server.posts()) == 2)
            link.send(jsonrpc.response("x", {}), None, LASTING)
            for number in (1, 2, 3):
                await probe.answer(number)
        assert len(server.posts("tools/call")) == 3


@pytest.mark.req("X2")
async def test_the_servers_own_stream_is_held_and_taken_up_again() -> None:
    async def get(request: Request, reply: Reply) -> None:
        count = len(server.gets())
        if count == 3:
            await reply.stream(event(notice("again"), id="c"))
            await reply.gone()
        await reply.stream(b"retry: 1\n", event(notice("hello"), id=f"{count}"))
        if count == 2:
            reply.reset()
        else:
            await reply.end()

    async with Rogue() as server:
        server.on["GET"] = get
        async with linked(server) as (probe, link):
            link.listen(LASTING)
            await probe.until(lambda: len(probe.messages) == 3)
            assert {report.stream for report in probe.seen(Delivered)} == {0}
        assert [get.header("Last-Event-ID") for get in server.gets()] == [None, "1", "2"]
        assert server.gets()[0].header("Accept") == "text/event-stream"


@pytest.mark.req("X2")
@rows("status", [400, 404, 405, 406, 501])
async def test_a_server_without_a_stream_of_its_own_is_left_alone(status: int) -> None:
    async with Rogue() as server:
        server.on["GET"] = lambda request, reply: reply.status(status)
        server.on["POST"] = lambda request, reply: reply.json(answer(request.id, {}))
        async with linked(server) as (probe, link):
            link.listen(LASTING)
            await server.until(server.gets)
            ask(link)
            await probe.answer(1)
            assert probe.seen(Expired) == [], "a 404 may mean that there is no such stream"
        assert len(server.gets()) == 1


@pytest.mark.req("X2")
async def test_a_stream_that_stood_tells_that_its_session_is_gone() -> None:
    async def get(request: Request, reply: Reply) -> None:
        if len(server.gets()) > 1:
            await reply.status(404)
        else:
            await reply.stream(b"retry: 0\n\n")
            await reply.end()

    async with Rogue() as server:
        server.on["GET"] = get
        async with linked(server) as (probe, link):
            link.listen(LASTING)
            await probe.until(lambda: probe.seen(Expired))
            assert probe.seen(Expired) == [Expired(Generation(1), "s")]


@pytest.mark.req("X2")
async def test_a_new_session_has_a_new_stream_and_the_old_one_ends() -> None:
    gone = asyncio.Event()

    async def get(request: Request, reply: Reply) -> None:
        await reply.stream(event(notice("hello")))
        await reply.gone()
        gone.set()

    async with Rogue() as server:
        server.on["GET"] = get
        async with linked(server) as (probe, link):
            link.listen(LASTING)
            await probe.until(lambda: probe.seen(Delivered))
            link.listen(StreamOptions({"Mcp-Session-Id": "t"}))
            await asyncio.wait_for(gone.wait(), 20)
            await probe.until(lambda: len(probe.seen(Delivered)) == 2)
        assert [get.header("Mcp-Session-Id") for get in server.gets()] == ["s", "t"]


@pytest.mark.req("X2", "R2")
def test_the_pause_is_the_servers_word_and_grows_while_it_stays_mute() -> None:
    stream = Stream(WireId(1), LASTING, SseParser(100))
    assert [stream.pause() for _ in range(4)] == [1.0, 1.0, 2.0, 4.0]
    for _ in range(20):
        stream.pause()
    assert stream.pause() == LONGEST_PAUSE
    stream.heard = True
    assert stream.pause() == 1.0
    stream.events.feed(b"retry: 90000\n")
    assert stream.pause() == 90.0, "never sooner than the server says"
    stream.events.feed(b"retry: 0\n")
    stream.heard = True
    assert 0 < stream.pause() < 1, "and never at once"


@pytest.mark.req("R4", "R6")
async def test_a_withdrawn_request_ends_its_stream_and_says_nothing_more() -> None:
    gone = asyncio.Event()

    async def post(request: Request, reply: Reply) -> None:
        await reply.stream(event(notice("begun")))
        await reply.gone()
        gone.set()

    async with Rogue() as server:
        server.on["POST"] = post
        async with linked(server) as (probe, link):
            ask(link)
            await probe.until(lambda: probe.seen(Delivered))
            assert not link.withdraw(WireId(1))
            assert not link.withdraw(WireId(1))
            await asyncio.wait_for(gone.wait(), 20)
            assert probe.seen(Refused) == []


@pytest.mark.req("L7", "L8")
def test_a_silent_delete_cannot_hold_the_end() -> None:
    run_skipping(_a_silent_delete_cannot_hold_the_end())


async def _a_silent_delete_cannot_hold_the_end() -> None:
    async with Legacy() as server:
        server.sessions.append("s")
        server.on["DELETE"] = lambda request, reply: reply.gone()
        async with linked(server) as (probe, link):
            link.close(StreamOptions(SESSION))
            await server.until(lambda: server.said() == ["DELETE"])
            assert not probe.seen(Drained)
            skip(2 * CLOSE_WAIT)
            await probe.until(lambda: probe.seen(Drained))


@pytest.mark.req("L8")
async def test_what_is_sent_after_the_end_goes_nowhere() -> None:
    async with Rogue() as server:
        async with linked(server) as (_, link):
            link.close()
            ask(link)
        assert server.requests == []

"""Who may ask the server of a live page, and what it answers."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

import holdfast
from holdfast._core.eras.revisions import VERSIONS
from holdfast.testing import SILENCE, Peer
from holdfast.trace.format import Line
from holdfast.view.feed import Feed, FeedRecorder
from holdfast.view.live import LiveServer
from holdfast.view.questions import PageQuestions
from holdfast.view.workbench import Workbench

HANDSHAKE = [version for version in VERSIONS if version < "2026"]
"""The revisions in which a server may ask at any time."""
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "door": {"type": "string", "writeOnly": True}},
    "required": ["a"],
}


class Live:
    """A live page over a server in memory, and a client of it."""

    def __init__(self) -> None:
        self.feed = Feed("live", lambda: 1.0)
        self.peer = Peer()
        self.calls: list[Any] = []
        self.questions = PageQuestions(self.feed.wake)
        handlers = self.questions.handlers(lambda: "house")
        self.client = holdfast.connect(self.peer, name="house", handlers=handlers)
        self.recorder = FeedRecorder(self.feed, asyncio.get_running_loop())
        self.recorder.watch(self.client)
        self.bench = Workbench([self.client])
        self.server = LiveServer(self.feed, self.bench, self.questions)
        self.arrived = asyncio.Event()

        @self.peer.tool("open", input_schema=SCHEMA)
        def open_door(a: int, door: str = "") -> str:
            self.calls.append((a, door))
            return f"opened {a}"

        @self.peer.tool("stuck")
        def stuck() -> Any:
            self.arrived.set()
            return SILENCE

    @property
    def origin(self) -> str:
        return "/".join(self.server.url.split("/")[:3])

    async def post(self, what: str, **fields: Any) -> Any:
        headers = {"Origin": self.origin}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.server.url}{what}", json=fields) as answer,
        ):
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def events(self, last: str = "") -> AsyncIterator[tuple[str, Any]]:
        headers = {"Last-Event-ID": last} if last else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{self.server.url}events") as answer,
        ):
            name = ""
            async for line in answer.content:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    yield name, json.loads(line[6:])


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    live = Live()
    await live.server.start()
    yield live
    await live.server.close()
    await live.bench.close()
    live.recorder.close()


@pytest.mark.req("W3")
async def test_strangers_are_refused(live: Live) -> None:
    url, origin = live.server.url, live.origin
    port = origin.rsplit(":", 1)[1]
    cases: list[tuple[str, str, dict[str, str], int]] = [
        ("GET", url, {}, 200),
        ("GET", url, {"Host": f"localhost:{port}"}, 200),
        # A name that an attacker lets point here.
        ("GET", url, {"Host": f"evil.example:{port}"}, 421),
        ("GET", url, {"Host": "127.0.0.1:1"}, 421),
        ("GET", url, {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", url, {"Sec-Fetch-Site": "same-site"}, 403),
        ("GET", f"{url}events", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", f"{origin}/", {}, 404),
        ("GET", f"{origin}/{'x' * 43}/", {}, 404),
        ("GET", f"{url[:-2]}/", {}, 404),
        ("GET", f"{url}body/1/999", {}, 404),
        ("GET", f"{url}body/1/{'9' * 5000}", {}, 404),
        ("GET", f"{url}body/1/../../../etc/passwd", {}, 404),
        ("GET", f"{url}%2e%2e/%2e%2e/etc/passwd", {}, 404),
        ("POST", f"{url}call", {"Content-Type": "application/json"}, 403),
        ("POST", f"{url}call", {"Origin": "null", "Content-Type": "application/json"}, 403),
        ("POST", f"{url}call", {"Origin": "http://evil.example"}, 403),
        ("POST", f"{url}call", {"Origin": origin, "Content-Type": "text/plain"}, 415),
        ("POST", f"{url}call", {"Origin": origin, "Content-Type": "application/json"}, 400),
        ("POST", f"{url}answer", {"Origin": origin, "Content-Type": "application/json"}, 400),
    ]
    async with aiohttp.ClientSession() as session:
        for method, address, headers, status in cases:
            data = b'{"number": "x"}' if method == "POST" else None
            async with session.request(method, address, headers=headers, data=data) as answer:
                text = await answer.text()
                assert answer.status == status, (method, headers, text)
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["X-Frame-Options"] == "DENY"
                if status != 200:
                    assert "house" not in text
    assert live.calls == []


@pytest.mark.req("W3")
async def test_the_page_has_a_policy_and_listens_on_loopback_only(live: Live) -> None:
    async with aiohttp.ClientSession() as session, session.get(live.server.url) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    port = int(live.origin.rsplit(":", 1)[1])
    for _, _, _, _, address in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET):
        if not str(address[0]).startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((str(address[0]), port), 1).close()


@pytest.mark.req("W3")
async def test_a_call_is_checked_by_the_library_and_its_faults_have_places(live: Live) -> None:
    answer = await live.post("call", server="house", tool="open", arguments={"a": "x"})
    assert list(answer["faults"]) == ["/a"]
    answer = await live.post("call", server="house", tool="open", arguments={})
    assert answer["faults"]["/a"] == "required and missing"
    answer = await live.post("call", server="house", tool="open", arguments=[1])
    assert answer["faults"]
    assert live.calls == []
    answer = await live.post("call", server="house", tool="open", arguments={"a": 1})
    assert answer["id"]
    assert live.calls == [(1, "")]
    assert "no server" in (await live.post("call", server="x", tool="open", arguments={}))["error"]


@pytest.mark.req("W3")
async def test_a_call_is_sent_again_with_arguments_that_no_trace_has(live: Live) -> None:
    await live.post("tools", server="house")
    arguments = {"a": 2, "door": "sesame-4711-open"}
    first = await live.post("call", server="house", tool="open", arguments=arguments)
    again = await live.post("again", server="house", id=first["id"])
    assert again["id"] != first["id"]
    assert live.calls == [(2, "sesame-4711-open")] * 2
    live.recorder.flush()
    await asyncio.sleep(0)
    whole = b"".join(live.feed.body(1, number) or b"" for number in range(len(live.feed)))
    assert b"tools/call" in whole
    assert b"sesame" not in whole
    answer = await live.post("again", server="house", id="999")
    assert "not remembered" in answer["error"]


@pytest.mark.req("W3")
async def test_a_call_under_way_is_cancelled(live: Live) -> None:
    call = asyncio.create_task(live.post("call", server="house", tool="stuck", arguments={}))
    await live.arrived.wait()
    (wire_id,) = [wire_id for _, wire_id in live.bench._sent]
    assert await live.post("cancel", server="house", id=wire_id) == {}
    assert (await call)["cancelled"]
    assert "has ended" in (await live.post("cancel", server="house", id=wire_id))["error"]


@pytest.mark.req("W3")
async def test_a_stream_goes_on_where_a_page_was(live: Live) -> None:
    live.feed.add([Line(t=float(number), kind="stderr", text="x") for number in range(2500)])
    numbers: list[int] = []
    async for name, event in live.events():
        if name == "rows":
            numbers += [row[0] for row in event["rows"]]
            if not event["more"]:
                break
    assert numbers == list(range(2500))
    async for name, event in live.events("1-2400"):
        assert name == "rows", "it is not told to begin anew"
        assert [row[0] for row in event["rows"]] == list(range(2400, 2500))
        break
    for place in ("7-3", "1-999999", "nonsense", "-", "9" * 400):
        async for name, _ in live.events(place):
            assert name == "reset"
            break


@pytest.mark.req("W3")
async def test_a_page_that_does_not_read_costs_no_memory(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = live.origin.removeprefix("http://").split(":")
    path = live.server.url.removeprefix(live.origin)
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(f"GET {path}events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await reader.readuntil(b"retry: 500\n\n")
    runner = live.server._runner
    assert runner is not None
    assert runner.server is not None
    (slow,) = runner.server.connections
    assert slow.transport is not None
    for start in range(0, 90_000, 1000):
        numbers = range(start, start + 1000)
        live.feed.add(Line(t=float(number), kind="stderr", text="x" * 200) for number in numbers)
        await asyncio.sleep(0)
    # Another page has everything, while the first one has read nothing yet.
    seen = 0
    async for name, event in live.events():
        seen += len(event["rows"]) if name == "rows" else 0
        if name == "rows" and not event["more"]:
            break
    assert seen == 90_000
    assert slow.transport.get_write_buffer_size() < 4_000_000
    # It goes away in the middle of an event.
    writer.transport.abort()
    await live.server.close()
    assert caplog.records == []


@pytest.mark.req("W3")
async def test_a_form_of_the_server_is_answered_and_checked(live: Live) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
    }

    @live.peer.tool("ask")
    async def ask() -> str:
        answer = await live.peer.ask(
            "elicitation/create", {"message": "How old?", "requestedSchema": schema}
        )
        return json.dumps(answer)

    live.peer.versions = HANDSHAKE
    call = asyncio.create_task(live.post("call", server="house", tool="ask", arguments={}))
    async for name, event in live.events():
        if name == "questions" and event:
            (question,) = event
            break
    assert (question["server"], question["message"]) == ("house", "How old?")
    number = question["number"]
    bad = await live.post("answer", number=number, action="accept", content={"age": -1})
    assert list(bad["faults"]) == ["/age"]
    good = await live.post("answer", number=number, action="accept", content={"age": 7})
    assert good == {"faults": {}}
    assert (await call)["id"]
    late = await live.post("answer", number=number, action="accept", content={"age": 7})
    assert "does not wait" in late["error"]


@pytest.mark.req("W3")
async def test_the_page_can_be_saved_as_a_file(live: Live) -> None:
    live.feed.add([Line(t=1.0, kind="stderr", server="house", text="hello")])
    async with aiohttp.ClientSession() as session, session.get(f"{live.server.url}save") as answer:
        text = await answer.text()
    assert "attachment" in answer.headers["Content-Disposition"]
    assert text.startswith("<!doctype html>")
    assert "connect-src" not in text


ODD_REQUESTS = {
    "OPTIONS * HTTP/1.1": b"404",
    "CONNECT other:1 HTTP/1.1": b"404",
    "GET http://127.0.0.1 HTTP/1.1": b"404",
    "GET //{token}/ HTTP/1.1": b"404",
    "GET /{token}/../../etc/passwd HTTP/1.1": b"404",
    "GET /{token}/%2e%2e/%2e%2e/etc/passwd HTTP/1.1": b"404",
    "GET /{token}/body/1/-1 HTTP/1.1": b"404",
    "HEAD /{token}/ HTTP/1.1": b"403",
    "PUT /{token}/call HTTP/1.1": b"403",
    "GET /" + "x" * 100_000 + " HTTP/1.1": b"400",
    "\0\x01": b"400",
}


@pytest.mark.req("W3")
async def test_odd_requests_are_refused_and_nothing_is_written_about_them(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    address = live.server.url.split("/")
    for line, status in ODD_REQUESTS.items():
        host, _, port = address[2].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = f"{line.format(token=address[3])}\r\nHost: {address[2]}\r\n\r\n"
        writer.write(request.encode())
        answer = await reader.readline()
        assert answer.split()[1] == status, line[:60]
        writer.close()
    # One that goes away in the middle of what it has to say.
    head = f"POST /{address[3]}/call HTTP/1.1\r\nHost: {address[2]}\r\nOrigin: {live.origin}\r\n"
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{".encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    headers = {"Origin": live.origin, "Content-Type": "application/json"}
    deep = '{"server": "house", "tool": "open", "arguments": ' + "[" * 99_999
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{live.server.url}call", data=deep) as response,
    ):
        assert response.status == 400
    assert [record.getMessage() for record in caplog.records] == []

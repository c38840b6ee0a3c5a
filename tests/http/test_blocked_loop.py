"""An application that holds up the loop: what came meanwhile is read before time is called."""

from __future__ import annotations

import asyncio
import fcntl
import json
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import holdfast
from holdfast import RequestTimeout, Timeouts

CALLS = 20
AWHILE = 20.0  # seconds; a guard against hanging, not a measure of speed


class Answers:
    """Holds answers back until all requests are there, then writes them while nobody reads."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind = kind
        self.size = size
        self.requested = threading.Semaphore(0)
        self.release = threading.Event()
        self.answered = threading.Semaphore(0)

    def result(self, message: Any) -> Any:
        tool = {"name": "t", "inputSchema": {"type": "object"}}
        results: dict[str, dict[str, Any]] = {
            "server/discover": {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
            },
            "tools/list": {"tools": [tool], "ttlMs": 60_000, "cacheScope": "private"},
            "tools/call": {"content": [{"type": "text", "text": "x" * self.size}]},
        }
        return {"resultType": "complete", **results[message["method"]]}


def handler_for(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_call = message["method"] == "tools/call"
            result = answers.result(message)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            if is_call:
                answers.requested.release()
                answers.release.wait(AWHILE)
            kind = "application/json"
            if is_call and answers.kind != "json":
                kind, body = "text/event-stream", b"data: " + body + b"\n\n"
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
            if answers.kind == "chunks":
                parts = [body[start : start + 1000] for start in range(0, len(body), 1000)]
                text = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])
                self.wfile.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + text)
            else:
                self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            self.wfile.flush()
            if is_call:
                wait_until_received(self.connection)
                answers.answered.release()

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


def wait_until_received(connection: socket.socket) -> None:
    """Wait until all that was written has reached the other side, where nobody reads."""
    until = time.monotonic() + AWHILE
    while struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]:
        assert time.monotonic() < until
        time.sleep(0.001)


class Serve:
    def __init__(self) -> None:
        self._servers: list[ThreadingHTTPServer] = []

    def __call__(self, answers: Answers) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(answers))
        server.daemon_threads = True
        server.block_on_close = False
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/mcp"

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers = Serve()
    yield servers
    servers.close()


class LateLoop(asyncio.SelectorEventLoop):
    """A loop that can be made to find out that it was held up for a long time."""

    late = 0.0

    def time(self) -> float:
        return super().time() + self.late


async def hold_up(answers: Answers, *, answered: bool) -> None:
    """Hold up the loop until the answers have come, and for a minute after their deadline."""
    await asyncio.to_thread(lambda: [answers.requested.acquire() for _ in range(CALLS)])
    if answered:
        answers.release.set()
        for _ in range(CALLS):
            assert answers.answered.acquire(timeout=AWHILE)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LateLoop)
    loop.late += 100


def run(work: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=LateLoop) as runner:
        return runner.run(work())


@pytest.mark.req("R2")
@pytest.mark.parametrize("size", [10, 50_000])  # less than a window of TCP
@pytest.mark.parametrize("kind", ["json", "events", "chunks"])
def test_answers_that_came_in_time_are_delivered_however_late_they_are_read(
    serve: Serve, kind: str, size: int
) -> None:
    answers = Answers(kind, size)
    url = serve(answers)

    async def main() -> list[int]:
        async with holdfast.connect(url, protocol="2026-07-28", auth=None) as client:
            await client.list_tools()
            calls = [
                asyncio.create_task(client.call_tool("t", timeout=40, total_timeout=50))
                for _ in range(CALLS)
            ]
            await hold_up(answers, answered=True)
            return [len((await call).text) for call in calls]

    assert run(main) == [size] * CALLS


@pytest.mark.req("R2")
def test_answers_that_did_not_come_time_out_all_the_same(serve: Serve) -> None:
    answers = Answers("json", 10)
    url = serve(answers)

    async def main() -> list[type]:
        times = Timeouts(request=40)
        async with holdfast.connect(url, protocol="2026-07-28", auth=None, timeouts=times) as one:
            await one.list_tools()
            calls = [asyncio.create_task(one.call_tool("t")) for _ in range(CALLS)]
            await hold_up(answers, answered=False)
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            answers.release.set()
            return [type(outcome) for outcome in outcomes]

    assert run(main) == [RequestTimeout] * CALLS

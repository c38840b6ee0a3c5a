"""The server side over stdio: pipes, files, clients that stop reading, and the end."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

import pytest

from holdfast._core.serve import stdio, unread
from holdfast._core.serve.stdio import serve
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'


def ask(number: int, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def make_server(**handlers: Callable[[ServerRequest], Any]) -> Server:
    server = Server("test", {})
    server.overrides = {"ping": lambda request: {}, **handlers}
    return server


class Pipes:
    """Both pipes of a server, with the client's ends of them."""

    def __init__(self) -> None:
        source, self.stdin = os.pipe()
        self.stdout, target = os.pipe()
        self.source: BinaryIO = os.fdopen(source, "rb")
        self.target: BinaryIO = os.fdopen(target, "wb")

    def answers(self) -> list[Any]:
        """Read all answers, after the end."""
        self.target.close()
        with os.fdopen(self.stdout, "rb") as file:
            return [json.loads(line) for line in file]


@pytest.fixture(params=["pipes", "files"])
def exchange(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Serve some input to its end; return the answers."""

    def over_pipes(server: Server, data: bytes) -> list[Any]:
        pipes = Pipes()

        async def main() -> None:
            serving = asyncio.create_task(serve(server, pipes.source, pipes.target))
            await asyncio.to_thread(os.write, pipes.stdin, data)
            os.close(pipes.stdin)
            await serving

        asyncio.run(main())
        assert os.get_blocking(pipes.source.fileno())
        pipes.source.close()
        return pipes.answers()

    def over_files(server: Server, data: bytes) -> list[Any]:
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
            source.write(data)
            source.seek(0)
            asyncio.run(serve(server, source, target))
            target.seek(0)
            return [json.loads(line) for line in target]

    return over_pipes if request.param == "pipes" else over_files


def test_requests_are_answered_in_order(exchange: Callable[..., list[Any]]) -> None:
    data = b"".join(PING % number for number in range(300)) + b"\n" + (PING % 300).rstrip()
    answers = exchange(make_server(), data)
    assert [answer["id"] for answer in answers] == list(range(301))


def test_a_handler_that_need_not_wait_is_answered_though_the_input_has_ended(
    exchange: Callable[..., list[Any]],
) -> None:
    async def quick(request: ServerRequest) -> dict[str, int]:
        return {"n": request.params["n"]}

    (answer,) = exchange(make_server(quick=quick), ask(1, "quick", n=5))
    assert answer["result"] == {"n": 5}


def test_a_handler_that_waits_is_cancelled_by_the_end_of_the_input(
    exchange: Callable[..., list[Any]],
) -> None:
    ended: list[str] = []

    async def forever(request: ServerRequest) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("forever")

    assert exchange(make_server(forever=forever), ask(1, "forever")) == []
    assert ended == ["forever"]


async def finished(patience: float, takes: float) -> list[Any]:
    """Return the answers to a call and a stream of changes, after which the input ends."""
    pipes = Pipes()

    async def slow(request: ServerRequest) -> dict[str, str]:
        await asyncio.sleep(takes)
        return {}

    async def listen(request: ServerRequest) -> None:
        request.session.streams[1] = {}
        await asyncio.Event().wait()

    os.write(pipes.stdin, ask(1, "listen") + ask(2, "slow"))
    os.close(pipes.stdin)
    server = make_server(slow=slow, listen=listen)
    began = asyncio.get_running_loop().time()
    await serve(server, pipes.source, pipes.target, patience=patience)
    assert asyncio.get_running_loop().time() - began >= min(patience, takes)
    pipes.source.close()
    return pipes.answers()


async def test_handlers_have_some_time_left_where_that_is_asked_for() -> None:
    # A stream of changes, which never ends by itself, is not waited for: it ends with the session.
    assert [answer["id"] for answer in await finished(patience=1000, takes=5)] == [2, 1]
    assert [answer["id"] for answer in await finished(patience=5, takes=1000)] == [1]


async def test_nobody_waits_for_answers_that_nobody_reads() -> None:
    pipes = Pipes()
    os.close(pipes.stdout)

    async def slow(request: ServerRequest) -> None:
        await asyncio.Event().wait()

    os.write(pipes.stdin, ask(1, "slow") + PING % 2)
    os.close(pipes.stdin)
    await serve(make_server(slow=slow), pipes.source, pipes.target, patience=100_000)
    pipes.source.close()
    pipes.target.close()


@pytest.mark.parametrize(
    ("message", "wire_id"),
    [(b"x" * 300_000 + b"\n", None), (ask(1, "ping", pad="x" * 300_000), 1)],
    ids=["junk", "request"],
)
def test_a_message_beyond_the_limit_is_refused_and_the_next_one_is_answered(
    exchange: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    message: bytes,
    wire_id: int | None,
) -> None:
    monkeypatch.setattr(stdio, "LARGEST", 100_000)
    refusal, answer = exchange(make_server(), message + PING % 2)
    assert refusal.get("id") == wire_id
    assert refusal["error"]["message"] == "a message has more than 100000 bytes"
    assert answer["id"] == 2


async def test_a_client_that_does_not_read_is_not_read_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answers wait, bounded by what it has asked; notifications beyond a bound are dropped."""
    monkeypatch.setattr(stdio, "BACKLOG", 100_000)
    monkeypatch.setattr(unread, "MOST_LINES", 10)
    handled: list[int] = []

    def flood(request: ServerRequest) -> dict[str, str]:
        handled.append(request.params["n"])
        for number in range(50):
            request.notify("notifications/tick", {"number": number, "pad": "x" * 1_000})
        return {"text": "x" * 100_000}

    pipes = Pipes()
    os.set_blocking(pipes.stdin, False)
    serving = asyncio.create_task(serve(make_server(flood=flood), pipes.source, pipes.target))
    asked = 0
    try:
        while True:
            os.write(pipes.stdin, ask(asked, "flood", n=asked, pad="x" * 3_000))
            asked += 1
            await asyncio.sleep(0)
    except BlockingIOError:
        pass
    assert len(handled) < asked
    answers: list[int] = []
    lines, rest = 0, b""
    while len(answers) < asked:
        chunk = await asyncio.to_thread(os.read, pipes.stdout, 1 << 20)
        *whole, rest = (rest + chunk).split(b"\n")
        lines += len(whole)
        answers += [json.loads(line)["id"] for line in whole if b'"result"' in line]
    assert answers == handled == list(range(asked))
    assert lines < asked * 51
    os.close(pipes.stdin)
    await serving
    pipes.source.close()
    pipes.answers()


@pytest.mark.parametrize("method", ["notifications/tick", "vendor/tick"])
async def test_large_notifications_that_nobody_reads_are_bounded_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(stdio, "BACKLOG", 100_000)
    monkeypatch.setattr(unread, "MOST_BYTES", 1_000_000)

    def flood(request: ServerRequest) -> dict[str, str]:
        for _ in range(100):
            request.notify(method, {"pad": "x" * 100_000})
        return {}

    pipes = Pipes()
    serving = asyncio.create_task(serve(make_server(flood=flood), pipes.source, pipes.target))
    os.write(pipes.stdin, ask(1, "flood"))
    os.close(pipes.stdin)
    with os.fdopen(pipes.stdout, "rb") as stdout:
        reading = asyncio.create_task(asyncio.to_thread(stdout.readlines))
        await serving
        pipes.source.close()
        pipes.target.close()
        *ticks, answer = await reading
    assert json.loads(answer)["id"] == 1
    assert 9 <= len(ticks) <= 20


async def test_the_end_does_not_wait_for_a_client_that_has_stopped_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "LONGEST_END", 0.05)
    pipes = Pipes()
    big = make_server(big=lambda request: {"text": "x" * 1_000_000})
    serving = asyncio.create_task(serve(big, pipes.source, pipes.target))
    os.write(pipes.stdin, ask(1, "big"))
    os.close(pipes.stdin)
    await serving
    pipes.source.close()
    pipes.target.close()
    os.close(pipes.stdout)


async def test_the_last_answers_are_written_to_a_client_that_reads_slowly() -> None:
    pipes = Pipes()
    big = make_server(big=lambda request: {"text": "x" * 1_000_000})
    serving = asyncio.create_task(serve(big, pipes.source, pipes.target))
    os.write(pipes.stdin, ask(1, "big"))
    os.close(pipes.stdin)
    reading = asyncio.create_task(asyncio.to_thread(pipes_read, pipes.stdout, 1_000_000))
    await serving
    pipes.source.close()
    pipes.target.close()
    assert len(json.loads(await reading)["result"]["text"]) == 1_000_000
    os.close(pipes.stdout)


def pipes_read(descriptor: int, size: int) -> bytes:
    """Read until the end, or until a line is there."""
    data = b""
    while not data.endswith(b"\n") and (chunk := os.read(descriptor, size)):
        data += chunk
    return data


async def test_serving_ends_when_nobody_reads_any_more() -> None:
    pipes = Pipes()
    os.close(pipes.stdout)
    serving = asyncio.create_task(serve(make_server(), pipes.source, pipes.target))
    os.write(pipes.stdin, PING % 1)
    await serving
    pipes.source.close()
    pipes.target.close()
    os.close(pipes.stdin)


async def test_memory_and_broken_files_are_served_too() -> None:
    target = io.BytesIO()
    await serve(make_server(), io.BytesIO(PING % 1), target)
    assert json.loads(target.getvalue())["id"] == 1

    class Gone(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    await serve(make_server(), io.BytesIO(PING % 1), Gone())


PROGRAM = """
from holdfast._core.serve.stdio import run
from holdfast._core.server.server import Server
server = Server("test", {})
server.strict = False
run(server)
"""


@pytest.mark.parametrize("ends", ["input", "interrupt"])
def test_a_program_ends_with_its_input_or_by_an_interrupt(ends: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(PING % 7)
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["id"] == 7
    if ends == "interrupt":
        child.send_signal(2)
    out, errors = child.communicate(timeout=120)
    assert (out, errors) == (b"", b"")
    assert child.returncode == (130 if ends == "interrupt" else 0)

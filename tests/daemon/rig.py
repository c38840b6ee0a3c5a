"""A daemon in this process, scripted or real, at a socket of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import holdfast
from holdfast._core.serve.stdio import Conversation
from holdfast._core.transports.daemon_socket import (
    FINGERPRINT,
    LONGEST_HELLO,
    Hello,
    Welcome,
    decode_hello,
    encode_line,
    read_line,
    require_private,
    socket_path,
)
from holdfast.daemon.server import Daemon
from holdfast.testing.echo_server import make_server

SERVER = [sys.executable, str(Path(__file__).with_name("server.py"))]

Serve = Callable[[socket.socket, Hello], Awaitable[None]]


def listen() -> socket.socket:
    """A socket where clients look for the daemon."""
    require_private(os.path.dirname(socket_path()), create=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(socket_path())
    listener.listen(64)
    listener.setblocking(False)
    return listener


def welcome(**fields: Any) -> bytes:
    return encode_line(Welcome(**{"holdfast": FINGERPRINT, "pid": os.getpid(), **fields}))


async def serve_echo(connection: socket.socket, hello: Hello) -> None:
    """Answer as the daemon does, and then as `echo_server`."""
    connection.sendall(welcome())
    server = make_server(lambda: conversation.end(b""))
    conversation = Conversation(server, connection, connection)
    conversation.write(b"!ready\n")
    await conversation.serve()


@asynccontextmanager
async def scripted(serve: Serve = serve_echo) -> AsyncIterator[list[Hello]]:
    """A daemon that treats each client as told; yields what the clients said."""
    heard: list[Hello] = []
    listener = listen()
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    async def attend(connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            line, _ = await read_line(connection, LONGEST_HELLO)
            heard.append(decode_hello(line))
            await serve(connection, heard[-1])

    async def accept() -> None:
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setblocking(False)
            tasks.append(loop.create_task(attend(connection)))

    accepting = loop.create_task(accept())
    try:
        yield heard
    finally:
        accepting.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(accepting, *tasks, return_exceptions=True)
        listener.close()
        os.unlink(socket_path())


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Daemon]:
    """A real daemon on this loop."""
    daemon = Daemon(listen(), **options)
    serving = asyncio.create_task(daemon.run(lambda: os.unlink(socket_path())))
    try:
        yield daemon
    finally:
        daemon.stop()
        await serving


@asynccontextmanager
async def connected(*words: str, **options: Any) -> AsyncIterator[holdfast.Client]:
    """A client of the test's server, through the daemon."""
    async with holdfast.connect([*SERVER, *words], shared=True, **options) as client:
        yield client


async def text(client: holdfast.Client, tool: str, **arguments: Any) -> str:
    return (await client.call_tool(tool, arguments)).text


def is_alive(pid: str | int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def until_noted(client: holdfast.Client, word: str) -> None:
    """Wait until the server has noted something."""
    while word not in await text(client, "notes"):  # noqa: ASYNC110
        await asyncio.sleep(0)

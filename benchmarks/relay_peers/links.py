"""How a host reaches a relay, by stdio or HTTP; and what a server tells aside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import aiohttp

Message = dict[str, Any]
Take = Callable[[Message], None]

LARGEST_LINE: Final = 64 * 1024 * 1024
LONGEST_START: Final = 60.0
"""Seconds until a relay listens; some compile themselves first."""
SESSION: Final = "Mcp-Session-Id"
VERSION: Final = "MCP-Protocol-Version"


class Journal:
    """What the server tells, from whichever process it runs in."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._news = asyncio.Event()
        self.port = 0

    def count(self, event: str) -> int:
        return sum(line.split()[0] == event for line in self.events)

    async def wait_for(self, event: str) -> None:
        """Wait until the server has told something, once."""
        while not self.count(event):
            self._news.clear()
            await self._news.wait()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.events.append(line.decode())
                self._news.set()
        except ConnectionError:
            pass  # it was killed
        finally:
            writer.close()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Journal]:
        server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


class Process:
    """A command and all that it starts; what it prints besides messages is heard."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self._command = [str(word) for word in command]
        self._environment = {**os.environ, **environment}
        self._child: asyncio.subprocess.Process | None = None
        self._listeners: list[asyncio.Task[None]] = []
        self.printed = asyncio.Event()
        """Set by each line that it prints."""

    @property
    def child(self) -> asyncio.subprocess.Process:
        assert self._child is not None
        return self._child

    async def start(self) -> None:
        self._child = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LARGEST_LINE,
            start_new_session=True,
        )
        self.hear(self._child.stderr)

    def hear(self, stream: asyncio.StreamReader | None) -> None:
        """Read a stream, so that it does not fill up."""
        assert stream is not None
        self._listeners.append(asyncio.create_task(self._hear(stream)))

    async def _hear(self, stream: asyncio.StreamReader) -> None:
        try:
            async for _ in stream:
                self.printed.set()
        finally:
            self.printed.set()

    def terminate(self) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                self._child.terminate()

    async def stop(self, patience: float = 10.0) -> None:
        """Close its input, give it time to end, and end what is left."""
        if self._child is None:
            return
        assert self.child.stdin is not None
        self.child.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.child.wait(), patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        await self.child.wait()
        for listener in self._listeners:
            listener.cancel()
        self._listeners.clear()
        self._child = None


class Link(Protocol):
    """Carries messages to a relay and from it."""

    is_lost: bool

    async def open(self, take: Take, lost: Callable[[], None]) -> None: ...

    def send(self, message: Message) -> None: ...

    def listen(self) -> None:
        """Be ready for messages that belong to no request."""

    def abort(self, request_id: Any) -> bool:
        """End a request by closing what carries it; False: a message is needed."""

    async def close(self) -> None: ...


class StdioLink:
    """A relay that the host starts, and speaks to by its standard streams."""

    def __init__(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self.process = Process(command, environment or {})
        self.is_lost = False
        self._reader: asyncio.Task[None] | None = None

    async def open(self, take: Take, lost: Callable[[], None]) -> None:
        await self.process.start()
        self.is_lost = False
        self._reader = asyncio.create_task(self._read(take, lost))

    async def _read(self, take: Take, lost: Callable[[], None]) -> None:
        stdout = self.process.child.stdout
        assert stdout is not None
        while line := await stdout.readline():
            with contextlib.suppress(ValueError):  # some print what is no message
                message = json.loads(line)
                if isinstance(message, dict):
                    take(message)
        self.is_lost = True
        lost()

    def send(self, message: Message) -> None:
        stdin = self.process.child.stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")

    def listen(self) -> None:
        return

    def abort(self, request_id: Any) -> bool:
        return False

    async def close(self) -> None:
        await self.process.stop()
        if self._reader is not None:
            self._reader.cancel()


class HttpLink:
    """A relay that listens on a port."""

    def __init__(
        self, command: Sequence[str | Path], url: str, *, is_stateless: bool = False
    ) -> None:
        self.process = Process(command, {})
        self.is_lost = False
        self._url = url
        self._is_stateless = is_stateless
        self._headers: dict[str, str] = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._posts: dict[Any, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: asyncio.Task[None] | None = None
        self._take: Take = lambda message: None
        self._http: aiohttp.ClientSession | None = None

    async def open(self, take: Take, lost: Callable[[], None]) -> None:
        self._take = take
        self._http = aiohttp.ClientSession()
        await self.process.start()
        self.process.hear(self.process.child.stdout)
        async with asyncio.timeout(LONGEST_START):
            # Each line that it prints may mean that it listens by now.
            while not await self._is_listening():
                await self.process.printed.wait()
                self.process.printed.clear()

    async def _is_listening(self) -> bool:
        host, _, port = self._url.split("/")[2].partition(":")
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return False
        writer.close()
        return True

    def send(self, message: Message) -> None:
        post = asyncio.create_task(self._post(message, self._last))
        if "id" not in message:
            self._last = post  # what comes after a notification is sent after it
        self._posts[message.get("id")] = post
        self._keep(post)

    async def _post(self, message: Message, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        assert self._http is not None
        headers = {**self._headers, **(_standard(message) if self._is_stateless else {})}
        with contextlib.suppress(aiohttp.ClientError):
            body = json.dumps(message).encode()
            async with self._http.post(self._url, data=body, headers=headers) as response:
                if message.get("method") == "initialize" and SESSION in response.headers:
                    self._headers[SESSION] = response.headers[SESSION]
                await self._read(response)

    def listen(self) -> None:
        if not self._is_stateless:
            self._keep(asyncio.create_task(self._get()))

    async def _get(self) -> None:
        assert self._http is not None
        with contextlib.suppress(aiohttp.ClientError):
            async with self._http.get(self._url, headers=self._headers) as response:
                await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> None:
        if response.content_type == "application/json":
            message = await response.json()
            if isinstance(message, dict):
                self._take(message)
        elif response.content_type == "text/event-stream":
            async for line in response.content:
                if line.startswith(b"data:") and line[5:].strip():
                    self._take(json.loads(line[5:]))

    def abort(self, request_id: Any) -> bool:
        post = self._posts[request_id]
        if self._is_stateless:
            post.cancel()
            return True
        # It is told first, and then nobody reads what would have been its response.
        asyncio.get_running_loop().call_soon(self._close_after, post)
        return False

    def _close_after(self, post: asyncio.Task[None]) -> None:
        assert self._last is not None
        self._last.add_done_callback(lambda _: post.cancel())

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._http is not None:
            await self._http.close()
        self.process.terminate()
        await self.process.stop()


def _standard(message: Message) -> dict[str, str]:
    """Return the headers that repeat a message of 2026-07-28."""
    params = message.get("params") or {}
    headers = {VERSION: "2026-07-28", "Mcp-Method": str(message.get("method"))}
    source = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
    name = params.get(source.get(str(message.get("method")), ""))
    return {**headers, "Mcp-Name": name} if isinstance(name, str) else headers

"""POSTs of messages that have no answer: notifications, and our answers to the server."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextvars import Context, copy_context
from functools import partial
from typing import Final

from msgspec import Struct
from yarl import URL

from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import HttpClient

log: logging.Logger = logging.getLogger("holdfast")

AT_ONCE: Final = 32
"""Messages on their way at once. They need places of their own: every request may be waiting
for an answer of ours."""
FIRST: Final = 3.0
"""Seconds for the server to accept the message that must come first."""


class _Message(Struct):
    frame: bytes
    headers: Mapping[str, str]
    url: URL | None
    after: asyncio.Event | None
    until: float
    arrived: asyncio.Event
    context: Context


class MessagePoster:
    """Sends messages, bounded in number, in bytes and in time.

    An attack to withstand: a server that asks thousands of things, or makes thousands of calls
    time out, and never responds to what we POST. Without bounds each of these would hold a
    socket and a task for ever.
    """

    def __init__(self, client: HttpClient, backlog: int) -> None:
        self._client = client
        self._backlog = backlog
        self._bytes = 0
        """Bytes of messages that the server has not accepted yet."""
        self._waiting: deque[_Message] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        count = len(self._tasks) + len(self._waiting)
        return f"<MessagePoster {count} messages, {self._bytes} bytes>"

    def post(
        self,
        frame: bytes,
        headers: Mapping[str, str],
        *,
        url: URL | None = None,
        after: asyncio.Event | None = None,
    ) -> asyncio.Event | None:
        """Send a message in the background; return None if too much is waiting already.

        Args:
            frame: The message.
            headers: The protocol's headers for it.
            url: Where to send it, if not to the URL of the client.
            after: Wait for this before sending.

        Returns:
            An event that is set when the server has accepted the message, or never will.
        """
        if self._bytes and self._bytes + len(frame) > self._backlog:
            return None
        self._bytes += len(frame)
        until = self._loop.time() + self._client.settings.message_timeout
        arrived = asyncio.Event()
        # A function that gives credentials may depend on the context of the caller.
        message = _Message(frame, headers, url, after, until, arrived, copy_context())
        self._waiting.append(message)
        self._advance()
        return arrived

    def cancel(self) -> list[asyncio.Task[None]]:
        """Give all messages up; return the tasks to wait for."""
        while self._waiting:
            self._end(self._waiting.popleft())
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def _advance(self) -> None:
        """Start as many of the waiting messages as there are places."""
        while self._waiting and len(self._tasks) < AT_ONCE:
            message = self._waiting.popleft()
            if message.until <= self._loop.time():
                self._end(message)
                continue
            task = self._loop.create_task(self._post(message), context=message.context)
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, message))

    def _ended(self, message: _Message, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._end(message)
        self._advance()

    def _end(self, message: _Message) -> None:
        self._bytes -= len(message.frame)
        message.arrived.set()

    async def _post(self, message: _Message) -> None:
        client = self._client
        try:
            async with asyncio.timeout_at(message.until):
                if message.after is not None:
                    await accepted(message.after)
                request = client.request(
                    "POST", message.headers, body=message.frame, url=message.url
                )
                async with request as response:
                    message.arrived.set()
                    await client.skip(response)
        except BaseException as error:
            if ends_task(error):
                raise
            log.debug("%s: a message was not accepted: %s", client.origin, str(error) or "timeout")


async def accepted(first: asyncio.Event) -> None:
    """Wait until the server has accepted the message that must come first, but not for ever."""
    try:
        async with asyncio.timeout(FIRST):
            await first.wait()
    except TimeoutError:
        first.set()

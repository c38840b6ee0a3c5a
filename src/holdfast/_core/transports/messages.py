"""POSTs of messages that have no answer: notifications, and our answers to the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from yarl import URL

from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import HttpClient

log: logging.Logger = logging.getLogger("holdfast")

AT_ONCE: Final = 32
"""Messages on their way at once. They need places of their own: every request may be waiting
for an answer of ours."""


class MessagePoster:
    """Sends messages, bounded in number, in bytes and in time.

    An attack to withstand: a server that asks thousands of things, or makes thousands of calls
    time out, and never responds to what we POST. Without bounds each of these would hold a
    socket and a task for ever.
    """

    def __init__(self, client: HttpClient, backlog: int) -> None:
        self._client = client
        self._backlog = backlog
        self._waiting = 0
        """Bytes of messages that the server has not accepted yet."""
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<MessagePoster {len(self._tasks)} messages, {self._waiting} bytes>"

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
        if self._waiting and self._waiting + len(frame) > self._backlog:
            return None
        self._waiting += len(frame)
        arrived = asyncio.Event()
        task = asyncio.get_running_loop().create_task(
            self._post(frame, headers, url, after, arrived)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return arrived

    def cancel(self) -> list[asyncio.Task[None]]:
        """Give all messages up; return the tasks to wait for."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks

    async def _post(
        self,
        frame: bytes,
        headers: Mapping[str, str],
        url: URL | None,
        after: asyncio.Event | None,
        arrived: asyncio.Event,
    ) -> None:
        client = self._client
        try:
            async with asyncio.timeout(client.settings.message_timeout), self._places:
                if after is not None:
                    await after.wait()
                async with client.request("POST", headers, body=frame, url=url) as response:
                    arrived.set()
                    await client.skip(response)
        except BaseException as error:
            if ends_task(error):
                raise
            log.debug("%s: a message was not accepted: %s", client.origin, str(error) or "timeout")
        finally:
            self._waiting -= len(frame)
            arrived.set()

"""Where a server lives while it is tried, and what is heard from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

import holdfast
from holdfast import Backoff, Client, Handlers, Stdio, Timeouts, TransportError
from holdfast._core.transports.http import Http
from holdfast.calls import Notification
from tests.interop.catalogue import Question, Server, Way
from tests.interop.processes import MARK, child_of, ended, family, freeze, gone, outermost, thaw

PATIENT = Timeouts(handshake=30.0, request=45.0)
"""A machine may be busy with other things; what hangs is stopped by the suite's own guard."""
GRACE = 0.5
"""Seconds for a server to end by itself; some never do."""
SOON = Backoff(first=0.05, max=0.2)


@dataclass
class Home:
    """An installed server with a folder to work in, and the mark of its processes."""

    server: Server
    folder: Path
    work: Path
    way: Way = "stdio"
    mark: str = field(default_factory=lambda: uuid4().hex)

    def target(self, **options: Any) -> Stdio | Http:
        env = {**self.server.env(self.work), MARK: self.mark}
        options = {"grace": GRACE, **options}
        return Counted(self.server.command(self.folder, self.work), env=env, **options)

    def connect(self, target: Stdio | Http | None = None, **options: Any) -> Client:
        options = {"timeouts": PATIENT, "backoff": SOON, "name": self.server.name, **options}
        return holdfast.connect(self.target() if target is None else target, **options)

    def question(self, number: int) -> Question:
        return self.server.question(number, self.work)

    def processes(self) -> set[int]:
        return family(self.mark)

    def process(self) -> int:
        """The server itself, behind whatever launched it."""
        pids = self.processes()
        first = outermost(pids)
        return child_of(first, pids) if self.server.launched else first

    async def crash(self, client: Client) -> TransportError:
        """Kill the server in the middle of a call, and wait until it is back."""
        # In whatever order the tests run: a client that has not listed the tools would ask for them
        # first, and the call itself would not have been sent when the server dies.
        await client.list_tools()
        process, before, question = self.process(), self.processes(), self.question(0)
        await freeze(before)
        call = client.start_tool(question.tool, question.arguments)
        await asyncio.sleep(0)
        os.kill(process, signal.SIGKILL)
        thaw(before)
        with pytest.raises(TransportError, match=self.server.name) as caught:
            await call
        await client.wait_ready(30)
        for pid in before:
            await ended(pid)
        return caught.value

    def remains(self) -> int:
        """How much there is of what the client has to clear up."""
        return len(self.processes())

    async def is_empty(self) -> bool:
        return await gone(self.mark)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """The server can be reached; on stdio it always can."""
        yield

    @asynccontextmanager
    async def visit(self, **options: Any) -> AsyncIterator[Client]:
        """An open client; afterwards nothing of it is left."""
        async with self.up():
            async with self.connect(**options) as client:
                await client.open()
                yield client
            assert await self.is_empty()


class Counted(Stdio):
    """Counts how often the server is started."""

    starts = 0

    def open(self, *arguments: Any) -> Any:
        self.starts += 1
        return super().open(*arguments)


class Settle(Protocol):
    """Install a server if need be, and give it a folder to work in."""

    def __call__(self, server: Server, way: Way = "stdio") -> Home: ...


async def ask(client: Client, question: Question) -> str:
    """Ask, see that the answer is right, and give it."""
    result = await client.call_tool(question.tool, question.arguments)
    assert not result.is_error, result.text
    assert question.answer in result.text
    return result.text


async def ask_until_answered(client: Client, question: Question) -> str:
    """The same of a server that may die of what came before, and is brought back."""
    for _ in range(5):
        with contextlib.suppress(TransportError):
            await client.wait_ready(30)
            return await ask(client, question)
    raise AssertionError("it died of every question")


class Heard:
    """Notifications as they come, to be waited for."""

    def __init__(self) -> None:
        self.all: list[Notification] = []
        self._news = asyncio.Event()

    def __call__(self, notification: Notification) -> None:
        self.all.append(notification)
        self._news.set()

    def of(self, method: str) -> list[dict[str, Any]]:
        return [one.params for one in self.all if one.method == method]

    async def until(self, enough: Callable[[Heard], Any]) -> None:
        """Wait until what has been heard will do."""
        while not enough(self):
            self._news.clear()
            await self._news.wait()


class Person:
    """Answers a server's questions, and remembers them."""

    def __init__(self, roots: list[str] | None = None) -> None:
        self.asked: list[Any] = []
        self.answer: dict[str, Any] = {"action": "accept", "content": {"name": "Ada"}}
        self.roots = roots or ["file:///somewhere"]
        self.heard = Heard()

    @property
    def handlers(self) -> Handlers:
        return Handlers(
            sampling=self.sample,
            elicitation=self.elicit,
            roots=lambda: self.roots,
            notification=self.heard,
        )

    def sample(self, request: Any) -> dict[str, Any]:
        self.asked.append(request)
        content = {"type": "text", "text": "Paris"}
        return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}

    async def elicit(self, request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return self.answer

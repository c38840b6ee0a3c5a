"""A scripted server behind HTTP, in a thread: one tool that becomes a task, and one skill."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.serve.http import HttpServer
from holdfast.testing import Peer

MAIN = "---\nname: refunds\ndescription: Process refunds\n---\n# Refunds\n"


class Shop:
    """The tool ``build`` ends when `release` is set; ``runs`` counts its calls."""

    def __init__(self, versions: tuple[str, ...] = VERSIONS, support: str = "optional") -> None:
        self.runs = 0
        self.release = threading.Event()
        self.peer = Peer("shop", versions=versions)
        self.peer.skill("skill://refunds", {"SKILL.md": MAIN, "guide.md": "Be kind.\n"})

        @self.peer.tool(task=True, execution={"taskSupport": support})
        async def build(target: str) -> str:
            self.runs += 1
            await asyncio.to_thread(self.release.wait)
            return f"built {target}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        ready.wait()
        return self

    async def _serve(self, ready: threading.Event) -> None:
        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        http = HttpServer(self.peer._server)
        self._port = await http.start()
        ready.set()
        await self._end.wait()
        self.release.set()
        await http.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

"""The server side in memory: its client is in the same process."""

from __future__ import annotations

from typing import Protocol

from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession


class ServerEnd(Protocol):
    """The server's end of a link in memory."""

    def write(self, data: bytes) -> None:
        """Send the client a line; nothing comes of that once the link has ended."""


def accept(server: Server, line: ServerEnd, number: int = 1) -> ServerSession:
    """Return the session of a client that connected in memory."""
    return ServerSession(server, line.write, LoopRunner(), number)

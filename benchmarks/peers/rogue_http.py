"""The HTTP server of the benchmarks, with tools that misbehave: ``expire``, ``cut``, ``mute``.

It prints its port, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import http_server
from benchmarks.http_server import Connection, Message, Mode
from benchmarks.peers.clients import ROOT

MISBEHAVING = (
    ("expire", "Answer, and forget the session.", "text", "string", "What to return"),
    ("cut", "Reset the connection.", "text", "string", "Not looked at"),
    ("mute", "Never answer.", "text", "string", "Not looked at"),
)
"""Listed with the others: Holdfast does not send calls of tools that a server does not list."""


class Rogue(Connection):
    """Behaves, unless the tool that is called says otherwise."""

    def serve(self, chosen: Mode, request: Message) -> None:
        match request.params.name:
            case "cut":  # in the middle of the call: nothing has been answered
                self.transport.abort()
            case "mute":
                pass
            case "expire":  # answered; from here on its session is unknown
                request.params.name = "echo"
                super().serve(chosen, request)
                if chosen.sessions is not None:
                    chosen.sessions.clear()
            case _:
                super().serve(chosen, request)


@contextmanager
def running() -> Iterator[str]:
    """The server in a process of its own; its address."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "benchmarks.peers.rogue_http"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Rogue, "127.0.0.1", 0, backlog=http_server.BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(0, ended.set)
    await ended.wait()


if __name__ == "__main__":
    http_server.TOOLS += MISBEHAVING
    asyncio.run(serve())

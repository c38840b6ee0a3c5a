"""A server for the transport contract: it does exactly what each request says.

``echo`` answers with its params, ``big`` with ``size`` bytes of text, ``flood`` with ``count``
notifications before the answer, ``junk`` with a line that is not JSON and then the answer;
``silent`` is not answered, and ``die`` ends the server. It is `EchoServer` in memory, and
``python -m holdfast.testing.echo_server`` as a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast._core.server.request import SILENCE, ServerRequest
from holdfast._core.server.server import Server

if TYPE_CHECKING:
    from holdfast._core.transports.memory import MemoryLink


def make_server(die: Callable[[], Any]) -> Server:
    """Return the server; ``die`` is called to end it."""

    def dies(request: ServerRequest) -> Any:
        die()
        return SILENCE

    server = Server("echo", {})
    server.overrides = {
        "echo": lambda request: request.params,
        "big": lambda request: {"text": "x" * request.params["size"]},
        "flood": _flood,
        "junk": _junk,
        "silent": lambda request: SILENCE,
        "die": dies,
    }
    server.verbatim = True
    return server


def _flood(request: ServerRequest) -> Any:
    for number in range(request.params["count"]):
        request.session.notify("notifications/tick", {"number": number})
    return request.params


def _junk(request: ServerRequest) -> Any:
    request.session.write(b"this is not JSON\n")
    return request.params


class EchoServer:
    """The server in memory."""

    name = "echo"

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        """Serve one connection; return the function that takes its frames."""
        from holdfast._core.serve.memory import accept

        return accept(make_server(lambda: line.hang_up("asked to die")), line).feed


if __name__ == "__main__":
    from holdfast._core.serve.stdio import run

    run(make_server(lambda: os._exit(3)))

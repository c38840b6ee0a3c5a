"""A server that does exactly what it is told, for the transport contract.

It takes JSON-RPC requests: ``echo`` answers with its params, ``big`` with ``size`` bytes of
text, ``flood`` with ``count`` notifications before the answer, ``junk`` with a line that is
no JSON and then the answer; ``silent`` is not answered, and ``die`` ends the server.
Runs in memory, or as a process: ``python -m holdfast.testing.echo_server``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from holdfast._core.transports.memory import ServerLine


class Die(Exception):  # noqa: N818  (an order)
    """The server was told to end."""


def obey(line: bytes) -> Iterator[bytes]:
    """The lines to write for one line read."""
    message = msgspec.json.decode(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "die":
        raise Die
    if "id" not in message or method == "silent":
        return
    if method == "flood":
        for number in range(params["count"]):
            yield _line({"method": "notifications/tick", "params": {"number": number}})
    if method == "junk":
        yield b"this is not JSON\n"
    result = {"text": "x" * params["size"]} if method == "big" else params
    yield _line({"id": message["id"], "result": result})


def _line(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"


class Obedient:
    """The same server in memory."""

    name = "obedient"

    def accept(self, line: ServerLine) -> Callable[[bytes], None]:
        def take(frame: bytes) -> None:
            try:
                for answer in obey(frame):
                    line.write(answer)
            except Die:
                line.hang_up("told to die")

        return take


def main() -> None:
    for line in sys.stdin.buffer:
        try:
            for answer in obey(line):
                sys.stdout.buffer.write(answer)
        except Die:
            sys.exit(3)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

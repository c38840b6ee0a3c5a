"""The least that a relay in Python can do: bytes from one pipe to the other, without a look.

It knows no messages, ids, revisions, limits of time, or ends; it is what process switches, system
calls and asyncio's loop cost on the way of a call, whatever a relay does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

READ_SIZE = 64 * 1024


async def relay(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def copy(source: int, target: int) -> None:
        data = os.read(source, READ_SIZE)
        if not data:
            loop.remove_reader(source)
            if not ended.done():
                ended.set_result(None)
        while data:
            data = data[os.write(target, data) :]

    loop.add_reader(0, copy, 0, server.stdin.fileno())
    loop.add_reader(server.stdout.fileno(), copy, server.stdout.fileno(), 1)
    await ended


def main() -> None:
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        asyncio.run(relay(server))


if __name__ == "__main__":
    main()

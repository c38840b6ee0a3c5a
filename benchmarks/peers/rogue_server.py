"""A server on stdio that misbehaves when it is asked to; the tool's name says how.

``python rogue_server.py [--stubborn] [--mark TEXT]``: the mark is only there to be found in the
list of processes; a stubborn one ignores the end of its input and the request to terminate. It
speaks the handshake era, needs nothing but Python, and ends itself after two minutes in any case.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Final

LIFETIME: Final = 120.0
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
PIECE: Final = 64 * 1024
NOTE: Final = {"level": "info", "logger": "rogue", "data": "the quick brown fox " * 5}

writing = threading.Lock()


def write(data: bytes) -> None:
    view = memoryview(data)
    with writing:
        while view:
            view = view[os.write(1, view) :]


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


# -- the tools -----------------------------------------------------------------------------------


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def babble() -> None:
    """One line without end."""
    write(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"')
    while True:
        write(b"x" * PIECE)


def chatter() -> None:
    """Notifications without end, from a thread, so that other calls are still answered."""

    def talk() -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": NOTE}
        many = (json.dumps(note).encode() + b"\n") * 200
        while True:
            write(many)

    threading.Thread(target=talk, daemon=True).start()


def mute() -> None:
    """No answer, ever; everything else goes on."""


def deafen() -> None:
    """Nothing is read any more."""
    time.sleep(LIFETIME)


TOOLS: Final = {"die": die, "babble": babble, "chatter": chatter, "mute": mute, "deafen": deafen}


# -- the server ----------------------------------------------------------------------------------


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in LEGACY else LEGACY[0],
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "rogue", "version": "1.0"},
            }
        case "ping":
            return {}
        case "tools/list":
            names = ["echo", *TOOLS]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "tools/call" if params.get("name") in TOOLS:
            TOOLS[params["name"]]()
            return None
        case "tools/call":
            return text(str((params.get("arguments") or {}).get("text")))
    raise LookupError


def handle(message: dict[str, Any]) -> None:
    if "id" not in message or "method" not in message:
        return
    try:
        result = answer(message)
    except LookupError:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        if result is not None:
            send({"id": message["id"], "result": result})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--mark", default="")
    chosen = parser.parse_args()
    end = threading.Timer(LIFETIME, os._exit, (3,))
    end.daemon = True
    end.start()
    if chosen.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        handle(json.loads(line))
    if chosen.stubborn:
        time.sleep(LIFETIME)
    os._exit(0)


if __name__ == "__main__":
    main()

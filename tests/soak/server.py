"""A fast server for the soak: answers, or stays silent, or dies, as the request says."""

from __future__ import annotations

import os

import msgspec

INFO = {"name": "soak", "version": "1"}
FIRST = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    }
}


def answer(line: bytes) -> bytes:
    message = msgspec.json.decode(line)
    if "id" not in message:
        return b""
    name = message.get("params", {}).get("name")
    if name == "die":
        os._exit(9)
    if name == "silent":
        return b""
    content = {"content": [{"type": "text", "text": str(message["id"])}]}
    result = FIRST.get(message["method"], content)
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "result": result}) + b"\n"


def main() -> None:
    rest = b""
    while data := os.read(0, 65536):
        *lines, rest = (rest + data).split(b"\n")
        out = b"".join(map(answer, lines))
        while out:
            out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()

"""A server in plain JSON whose tools answer what models of pydantic cannot read."""

from __future__ import annotations

import json
import sys
from typing import Any

FINE = {"content": [{"type": "text", "text": "fine"}]}
NUMBER = '{"content": [], "structuredContent": {"value": %s}}'
RESULTS = {"digits": NUMBER % ("1" * 6_000), "deep": NUMBER % ("[" * 300 + "]" * 300)}
CAPABILITIES = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(request_id: Any, tool: str) -> None:
    if tool in RESULTS:
        line = '{"jsonrpc": "2.0", "id": %s, "result": %s}'
        print(line % (json.dumps(request_id), RESULTS[tool]), flush=True)
        return
    if tool == "notice":
        say(method="notifications/odd", params=[1])
    if tool == "asks":
        say(id="question", method="roots/list", params={"value": "x"})
        answer = json.loads(sys.stdin.readline())
        text = "refused" if "error" in answer else "answered"
        say(id=request_id, result={"content": [{"type": "text", "text": text}]})
        return
    say(id=request_id, result=FINE)


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            say(id=message["id"], result=CAPABILITIES)
        elif message["method"] == "tools/call":
            call(message["id"], message["params"]["name"])
        elif message["method"] == "tools/list":
            names = ("digits", "deep", "notice", "asks", "fine")
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            say(id=message["id"], result={"tools": tools})
        else:
            say(id=message["id"], result={})

"""A server that dies twice in a run: ``python server.py [LEDGER]``.

Each run of ``record`` is a line in LEDGER, written before anything else happens. Step 2 ends the
server after it is written and before it is answered, step 4 after it is answered, both once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
STEP = {"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]}
NONE: dict[str, Any] = {"type": "object", "properties": {}}
NAMES = ("config", "run_manager", "callbacks", "self", "ctx", "name", "tool_args", "a b")
NAMED = {"type": "object", "properties": {name: {"type": "string"} for name in NAMES}}
TOOLS: list[dict[str, Any]] = [
    {"name": "record", "description": "Records a step.", "inputSchema": STEP},
    {"name": "recorded", "inputSchema": NONE, "annotations": {"readOnlyHint": True}},
    {"name": "picture", "description": "A pixel.", "inputSchema": NONE},
    {"name": "refuse", "description": "Fails.", "inputSchema": NONE},
    {"name": "named", "description": "Says its arguments.", "inputSchema": NAMED},
    {"name": "wait", "description": "Waits until cancelled.", "inputSchema": NONE},
]
DOUBLING = {
    f"d{at}": {"properties": {name: {"$ref": f"#/$defs/d{at + 1}"} for name in ("left", "right")}}
    for at in range(30)
}
DOUBLED = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**DOUBLING, "d30": {}}}
ODD: list[dict[str, Any]] = [
    {"name": "odd_title", "title": 5, "inputSchema": NONE},
    {"name": "odd_icons", "icons": "x", "inputSchema": NONE},
    {"name": "odd_output", "outputSchema": [], "inputSchema": NONE},
    {"name": "odd_hints", "annotations": {"readOnlyHint": "yes"}, "inputSchema": NONE},
    {"name": "odd_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "any"}}}},
    {"name": "dangling", "inputSchema": {"properties": {"a": {"$ref": "#/$defs/nowhere"}}}},
    {"name": "doubling", "inputSchema": DOUBLED},
]
"""Tools that no reader of schemas takes: ``--odd`` adds them."""


def write_line(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class Dying:
    """The server. ``dies_after`` is the step after whose answer it ends."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.deaths = ledger.with_suffix(".deaths")
        self.dying = False

    def die_once(self, step: int) -> bool:
        if str(step) in lines(self.deaths):
            return False
        write_line(self.deaths, str(step))
        return True

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        text = {"type": "text", "text": ""}
        if name == "record":
            step = arguments["step"]
            write_line(self.ledger, f"record {step}")
            if step == 2 and self.die_once(step):
                os._exit(9)
            self.dying = step == 4 and self.die_once(step)
            return {"content": [{**text, "text": f"recorded {step}"}]}
        if name == "recorded":
            steps = [int(one.split()[1]) for one in lines(self.ledger) if one.startswith("record")]
            found = {"steps": steps}
            return {
                "content": [{**text, "text": json.dumps(found)}],
                "structuredContent": found,
            }
        if name == "picture":
            return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
        if name == "refuse":
            return {"content": [{**text, "text": "not today"}], "isError": True}
        if name == "named":
            return {"content": [{**text, "text": json.dumps(arguments)}]}
        write_line(self.ledger, "waiting")
        return None

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "ledger", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": TOOLS + (ODD if "--odd" in sys.argv else [])}
        if method == "ping":
            return {}
        return self.call(params["name"], params.get("arguments") or {})

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params") or {}
            if method == "notifications/cancelled":
                write_line(self.ledger, "cancelled")
            if "id" not in message or method is None:
                continue
            answered = {"jsonrpc": "2.0", "id": message["id"]}
            if method not in ("initialize", "tools/list", "tools/call", "ping"):
                error = {"code": -32601, "message": "method not found"}
                print(json.dumps({**answered, "error": error}), flush=True)
                continue
            result = self.answer(method, params)
            if result is not None:
                print(json.dumps({**answered, "result": result}), flush=True)
            if self.dying:
                os._exit(9)


if __name__ == "__main__":
    Dying(Path(sys.argv[1] if sys.argv[1:] else "ledger")).serve()

"""A server that writes down every call that it runs, and can be told to die around it.

``python ledger_server.py LEDGER``: each run of a tool is a line ``name key`` in LEDGER,
written and flushed to the file before anything else happens. Arguments: ``key`` names the
call; ``die`` is ``"before"`` or ``"after"`` it is written, the first time only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOLS: dict[str, dict[str, bool]] = {
    "write": {},
    "destroy": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False},
    "read": {"readOnlyHint": True},
    "upsert": {"idempotentHint": True},
}


def write_line(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def die_once(ledger: Path, key: str) -> None:
    deaths = ledger.with_suffix(".deaths")
    if key not in lines(deaths):
        write_line(deaths, key)
        os._exit(7)


def call(ledger: Path, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    key, die = arguments["key"], arguments.get("die")
    if die == "before":
        die_once(ledger, key)
    write_line(ledger, f"{name} {key}")
    if die == "after":
        die_once(ledger, key)
    return {"content": [{"type": "text", "text": key}]}


def answer(ledger: Path, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ledger", "version": "1"},
        }
    if method == "tools/list":
        listed = [
            {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}
            for name, hints in TOOLS.items()
        ]
        return {"tools": listed}
    if method == "tools/call":
        return call(ledger, params["name"], params["arguments"])
    return None


def main() -> None:
    ledger = Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(ledger, message["method"], message.get("params") or {})
        ending = (
            {"error": {"code": -32601, "message": "method not found"}}
            if result is None
            else {"result": result}
        )
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **ending}), flush=True)


if __name__ == "__main__":
    main()

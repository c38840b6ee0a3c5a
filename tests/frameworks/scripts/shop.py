"""A server on stdio that takes payments: ``python shop.py RUNS``; each run is a line in RUNS.

``charge`` answers with a receipt; 13 cents end the server after the line is written, and 17 are
never answered.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

CENTS = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}


def charge(runs: str, cents: int) -> dict[str, Any] | None:
    descriptor = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{cents}\n".encode())
    os.close(descriptor)
    if cents == 13:
        os._exit(9)
    if cents == 17:
        return None
    receipt = {"receipt": f"{cents} cents"}
    return {"content": [{"type": "text", "text": "paid"}], "structuredContent": receipt}


def answer(message: dict[str, Any], runs: str) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            known = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            return {**known, "serverInfo": {"name": "shop", "version": "1"}}
        case "tools/list":
            return {"tools": [{"name": "charge", "inputSchema": CENTS}]}
        case "tools/call":
            return charge(runs, message["params"]["arguments"]["cents"])
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and (result := answer(request, sys.argv[1])) is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)

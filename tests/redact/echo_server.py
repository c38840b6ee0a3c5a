"""A server over stdio that repeats, wrapped to order, the secrets that it was started with.

The tool ``echo`` repeats ``text``, ``password``, and the variables of its environment whose names
begin with ``ECHO_``, each in the wrapping and the place that the arguments name; ``how`` says where
to: ``result``, ``tool_error``, ``error`` (message and data), ``stderr``, ``notification``, ``junk``
(a line that is no message) or ``death`` (stderr, and the end of the process).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.redact.wraps import PLACES, WRAPS

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "format": "password"}},
}
TOOLS = [{"name": "echo", "inputSchema": SCHEMA}]
if "ECHO_TOOL" in os.environ:
    TOOLS.append({"name": f"a tool {os.environ['ECHO_TOOL']}", "inputSchema": SCHEMA})
SECRETS = [value for name, value in sorted(os.environ.items()) if name.startswith("ECHO_")]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": f"echo of {SECRETS}", "version": "1"},
    "instructions": f"say {SECRETS}",
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def repeated(arguments: dict[str, Any]) -> str:
    """Every secret, wrapped and in its place, each on a line of its own."""
    secrets = [*SECRETS, *sys.argv[1:]]
    secrets += [arguments[name] for name in ("text", "password") if name in arguments]
    place = PLACES[arguments["place"]]
    return "\n".join(place.replace("{}", WRAPS[arguments["wrap"]](secret)) for secret in secrets)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call, after whatever else it wants."""
    arguments = request["params"]["arguments"]
    text, how = repeated(arguments), arguments["how"]
    content = {"content": [{"type": "text", "text": text}]}
    match how:
        case "error":
            return {"error": {"code": -32050, "message": text, "data": {"said": [text]}}}
        case "tool_error":
            return {"result": {**content, "isError": True}}
        case "stderr" | "death":
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
            if how == "death":
                sys.exit(3)
        case "notification":
            send({"method": "notifications/message", "params": {"level": "info", "data": text}})
            send({"method": f"notifications/{text}"})
        case "junk":
            sys.stdout.write("junk " + text.replace("\n", " ") + "\n")
    return {"result": content}


def main() -> None:
    print(f"it begins with {SECRETS}", file=sys.stderr, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        match request["method"]:
            case "initialize":
                reply: dict[str, Any] = {"result": HELLO}
            case "tools/list":
                reply = {"result": {"tools": TOOLS}}
            case "tools/call":
                reply = answer(request)
            case _:
                reply = {"error": {"code": -32601, "message": "no such method"}}
        send({"id": request["id"], **reply})


if __name__ == "__main__":
    main()

"""A small server that does as it is told: ``python puppet.py '{…}'``.

    tools     what it lists; each is a name, or a definition. null: it has no list
    results   by tool, what a call gives; without one, the arguments come back as text
    held      tools that are never answered
    journal   a file that gets every message that comes in, a line each
    banner    written to stdout before anything else
    stderr    written to stderr at the start
    exit      end at the start, with this code
    delay     seconds before it reads its input
    gate      a pipe with a name; it reads its input once that was written to
    deaf      ["eof", "SIGTERM"]: what does not end it
    notify    [[method, params], …]: sent once it is initialized
    question  the parameters of an elicitation; sent once it is initialized, and before each result
    crash     tools that end it
    fatal     methods that end it
    brief     whether it ends once it has notified

A text "@1e400@" is sent without its quotes, as the number.

It speaks the handshake's revisions, and imports little, so as to start at once.
"""

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

told = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
tools = told.get("tools", ["echo"])


def send(message: "Json") -> None:
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
    sys.stdout.write(text.replace('"@', "").replace('@"', "") + "\n")
    sys.stdout.flush()


def definition(tool: "str | Json") -> "Json":
    if isinstance(tool, dict):
        return tool
    return {"name": tool, "description": f"Does {tool}.", "inputSchema": {"type": "object"}}


def answer(method: str, params: "Json") -> "Json | None":
    if method == "initialize":
        info = {"name": "puppet", "version": "1"}
        version = params["protocolVersion"]
        can: Json = {} if tools is None else {"tools": {}}
        return {"protocolVersion": version, "capabilities": can, "serverInfo": info}
    if method == "tools/list" and tools is not None:
        return {"tools": [definition(tool) for tool in tools]}
    if method == "tools/call":
        given = json.dumps(params.get("arguments", {}))
        plain = {"content": [{"type": "text", "text": given}]}
        found: Json = told.get("results", {}).get(params["name"], plain)
        return found
    return {} if method == "ping" else None


def ask() -> None:
    if "question" in told:
        send({"id": "question", "method": "elicitation/create", "params": told["question"]})


def handle(message: "Json") -> None:
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/initialized":
        for name, facts in told.get("notify", ()):
            send({"method": name, "params": facts})
        ask()
        if told.get("brief"):
            os._exit(0)
    if method is None or "id" not in message:
        return
    if method in told.get("fatal", ()):
        os._exit(1)
    if method == "tools/call" and params.get("name") in told.get("crash", ()):
        os._exit(1)
    if method == "tools/call" and params.get("name") in told.get("held", ()):
        return
    if method == "tools/call":
        ask()
    found = answer(method, params)
    if found is None:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}})
    else:
        send({"id": message["id"], "result": found})


def main() -> None:
    if "SIGTERM" in told.get("deaf", ()):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "stderr" in told:
        print(told["stderr"], file=sys.stderr, flush=True)
    if "exit" in told:
        os._exit(told["exit"])
    if "banner" in told:
        print(told["banner"], flush=True)
    time.sleep(told.get("delay", 0))
    if "gate" in told:
        with open(told["gate"], encoding="utf-8") as gate:
            gate.read()
    for line in sys.stdin:
        if "journal" in told:
            with open(told["journal"], "a", encoding="utf-8") as file:
                file.write(line)
        handle(json.loads(line))
    while "eof" in told.get("deaf", ()):
        time.sleep(60)


main()

"""A server that keeps state, asks, reports and dies: ``python server.py [handshake|stateless]``.

``@FILE`` stands for the word that is in a file when it starts.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.serve import stdio
from holdfast._core.server.catalog import Catalog, Offered, Run, resource
from holdfast._core.server.request import ServerRequest, text_result
from holdfast._core.server.server import Server

NOTES: list[str] = []
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


def note(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    NOTES.append(arguments["text"])
    return text_result(" ".join(NOTES))


async def ask(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    answer = await request.ask("elicitation/create", FORM)
    return text_result(str(answer["content"]["name"]))


async def count(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    for number in range(3):
        request.progress(number, total=3)
        await asyncio.sleep(0)
    return text_result("3")


async def wait(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    NOTES.append("began")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        NOTES.append("cancelled")
        raise


def update(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    server.announce("notifications/resources/updated", {"uri": "test://one"})
    return text_result("")


def complain(request: ServerRequest, arguments: dict[str, Any]) -> Any:
    print(arguments["text"], file=sys.stderr, flush=True)
    return text_result("")


TOOLS: dict[str, Run] = {
    "pid": lambda request, arguments: text_result(str(os.getpid())),
    "large": lambda request, arguments: text_result("x" * arguments["size"]),
    "env": lambda request, arguments: text_result(os.environ.get(arguments["name"], "")),
    "cwd": lambda request, arguments: text_result(os.getcwd()),
    "die": lambda request, arguments: os._exit(3),
    "page_note": note,
    "close_page": lambda request, arguments: text_result(""),
    "notes": lambda request, arguments: text_result(" ".join(NOTES)),
    "ask": ask,
    "count": count,
    "wait": wait,
    "update": update,
    "complain": complain,
}
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}

catalog = Catalog()
for _name, _run in TOOLS.items():
    catalog.tools[_name] = Offered({"name": _name, "inputSchema": {"type": "object"}}, _run)
catalog.resources["test://one"] = resource("test://one", "1")
eras = {"handshake": HANDSHAKE[1:2], "stateless": STATELESS[:1]}
era = sys.argv[1] if len(sys.argv) > 1 else "handshake"
server = Server(
    "stateful",
    catalog.handlers(),
    capabilities=lambda: CAPABILITIES,
    versions=eras[Path(era[1:]).read_text() if era.startswith("@") else era],
)

if __name__ == "__main__":
    if "BROKEN" in os.environ:
        sys.exit("it cannot start")
    stdio.run(server)

"""The server of echo.c in Python, for machines without a C compiler: same behaviour, slower."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_INFO = {"name": "bench-echo", "version": "1.0"}
READ_SIZE = 256 * 1024
LINE = "the quick brown fox jumps over the lazy dog 0123456789 "

REAL = (
    ("echo", "Return the text that it is given.", "text", "string", "What to return"),
    ("blob", "Return a text of a given size.", "size", "integer", "How many bytes"),
    ("progress", "Report progress, then end.", "count", "integer", "How many reports"),
    ("served", "Say how often the tools were listed.", "unused", "string", "Not looked at"),
    ("place", "Return a place as a structured result.", "text", "string", "Its name"),
)

PLACE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "latitude": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "latitude", "tags"],
}


class Refused(Exception):  # noqa: N818  (an answer, not a failure)
    """The request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def real_tool(name: str, about: str, key: str, kind: str, meaning: str) -> dict[str, Any]:
    properties = {key: {"type": kind, "description": meaning}}
    return {
        "name": name,
        "description": about,
        "inputSchema": {"type": "object", "properties": properties},
        **({"outputSchema": PLACE} if name == "place" else {}),
    }


def listed_tool(number: int) -> dict[str, Any]:
    properties = {
        "query": {"type": "string", "description": "Words to look for", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "order": {"type": "string", "enum": ["asc", "desc"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "archived": {"type": "boolean", "description": "Also those put away"},
    }
    return {
        "name": f"records_{number:04}_search",
        "title": f"Search records {number}",
        "description": (
            f"Search the records of collection {number} and return those that match, newest first."
        ),
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": ["query"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def text_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


class Server:
    """Answers one line at a time; what leaves for it comes out as bytes."""

    def __init__(self, tools: int, legacy: bool) -> None:
        real = [real_tool(*row) for row in REAL[:tools]]
        self.tools = real + [listed_tool(number) for number in range(len(real), tools)]
        self.legacy = legacy
        self.lists_served = 0
        self.blob = ""

    def handle(self, line: bytes) -> Iterator[bytes]:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            return
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        if message["method"] == "tools/call" and params.get("name") == "progress":
            yield from self.progress(params, meta)
        yield encode({"jsonrpc": "2.0", "id": message["id"], **self.outcome(message, params, meta)})

    def outcome(
        self, message: dict[str, Any], params: dict[str, Any], meta: dict[str, Any]
    ) -> dict[str, Any]:
        modern = VERSION_KEY in meta and not self.legacy
        method = METHODS.get(message["method"])
        try:
            if method is None:
                raise Refused(-32601, "Method not found")
            result = method(self, params, modern)
        except Refused as refused:
            return {"error": {"code": refused.code, "message": str(refused)}}
        return {"result": {"resultType": "complete", **result} if modern else result}

    def initialize(self, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in LEGACY else LEGACY[0],
            "capabilities": {"tools": {}},
            "serverInfo": SERVER_INFO,
        }

    def discover(self, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        if self.legacy:
            raise Refused(-32601, "Method not found")
        return {
            "supportedVersions": [MODERN, LEGACY[0]],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
        }

    def ping(self, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        return {}

    def list_tools(self, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        self.lists_served += 1
        caching = {"ttlMs": 0, "cacheScope": "public"} if modern else {}
        return {**caching, "tools": self.tools}

    def call_tool(self, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        arguments = params.get("arguments") or {}
        match params.get("name"):
            case "echo":
                text = arguments.get("text")
                return text_result(text if isinstance(text, str) else "hello")
            case "blob":
                return text_result(self.text_of(int(arguments.get("size", 0))))
            case "progress":
                return text_result("done")
            case "served":
                return text_result(str(self.lists_served))
            case "place":
                place = {"latitude": 53.5, "tags": ["harbour", "old"]}
                structured = {"name": arguments.get("text", "hello"), **place}
                return {**text_result("a place"), "structuredContent": structured}
        raise Refused(-32602, "Unknown tool")

    def text_of(self, size: int) -> str:
        if len(self.blob) != size:
            self.blob = (LINE * (size // len(LINE) + 1))[:size]
        return self.blob

    def progress(self, params: dict[str, Any], meta: dict[str, Any]) -> Iterator[bytes]:
        if "progressToken" not in meta:
            return
        count = int((params.get("arguments") or {}).get("count", 0))
        for number in range(1, count + 1):
            report = {
                "progressToken": meta["progressToken"],
                "progress": number,
                "total": count,
            }
            yield encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})


METHODS: dict[str, Callable[[Server, dict[str, Any], bool], dict[str, Any]]] = {
    "initialize": Server.initialize,
    "server/discover": Server.discover,
    "ping": Server.ping,
    "tools/list": Server.list_tools,
    "tools/call": Server.call_tool,
}


def write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def serve(server: Server) -> None:
    """One write for the answers to all requests of one read."""
    rest = b""
    while data := os.read(0, READ_SIZE):
        *lines, rest = (rest + data).split(b"\n")
        write_all(b"".join(part for line in lines for part in server.handle(line)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=8)
    parser.add_argument("--legacy", action="store_true")
    chosen = parser.parse_args()
    serve(Server(chosen.tools, chosen.legacy))


if __name__ == "__main__":
    main()

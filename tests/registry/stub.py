"""A registry on loopback, which answers in the shapes of the API, or in any other way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, dict[str, str], bytes]
"""A status, headers and a body."""


def listing(name: str = "io.github.owner/weather", **facts: Any) -> dict[str, Any]:
    """An entry as the registry returns it."""
    status = facts.pop("status", "active")
    message = facts.pop("statusMessage", None)
    server = {
        "$schema": "https://example.org/server.schema.json",
        "name": name,
        "description": "Weather of everywhere",
        "version": "1.2.3",
        "repository": {"url": "https://example.org/owner/weather", "source": "github"},
        **facts,
    }
    official = {
        "status": status,
        "publishedAt": "2026-01-02T03:04:05Z",
        "updatedAt": "2026-01-02T03:04:05Z",
        "isLatest": True,
    }
    if message is not None:
        official["statusMessage"] = message
    return {"server": server, "_meta": {"io.modelcontextprotocol.registry/official": official}}


def npm(identifier: str = "@owner/weather", version: str = "1.2.3", **facts: Any) -> dict[str, Any]:
    return {
        "registryType": "npm",
        "identifier": identifier,
        "version": version,
        "transport": {"type": "stdio"},
        **facts,
    }


class Stub:
    """Serves entries; ``answer`` replaces it all."""

    def __init__(self, *entries: dict[str, Any], page: int = 2) -> None:
        self.entries = list(entries)
        self.page = page
        self.paths: list[str] = []
        self.answer: Callable[[str], Answer] | None = None
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.paths.append(self.path)
                status, headers, body = (stub.answer or stub._answer)(self.path)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                with suppress(ConnectionError):  # who asked may not have waited
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> Answer:
        parts = urlsplit(path)
        pieces = parts.path.split("/")
        if parts.path == "/v0.1/servers":
            return self._list(parse_qs(parts.query))
        name, version = unquote(pieces[3]), unquote(pieces[5])
        for entry in self.entries:
            server = entry["server"]
            if server["name"] == name and version in ("latest", server["version"]):
                return ok(entry)
        return 404, {}, json.dumps({"error": "Server not found"}).encode()

    def _list(self, query: dict[str, list[str]]) -> Answer:
        assert query["version"] == ["latest"]
        words = query["search"][0]
        fitting = [entry for entry in self.entries if words in entry["server"]["name"]]
        start = int(query.get("cursor", ["0"])[0])
        end = start + self.page
        more = {"nextCursor": str(end)} if end < len(fitting) else {}
        rows = fitting[start:end]
        return ok({"servers": rows, "metadata": {"count": len(rows), **more}})


def ok(value: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()

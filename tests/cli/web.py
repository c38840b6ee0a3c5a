"""A server of one tool over HTTP, in a thread."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self


class Web:
    """What came last is in ``seen``; a status in ``refuse`` is all that it answers then."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self.refuse = 0
        web = self

        class Handler(_Handler):
            owner = web

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that has gone is none of the test's concern."""


class _Handler(BaseHTTPRequestHandler):
    owner: Web
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.owner.seen = {name.lower(): value for name, value in self.headers.items()}
        if self.owner.refuse:
            self._send(self.owner.refuse, b"")
        elif "id" not in message:
            self._send(202, b"")
        else:
            reply = {"jsonrpc": "2.0", "id": message["id"], **_answer(message)}
            self._send(200, json.dumps(reply).encode())

    def do_GET(self) -> None:
        self._send(self.owner.refuse or 405, b"")

    def do_DELETE(self) -> None:
        self._send(405, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params") or {}
    if message["method"] == "initialize":
        facts = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        return {"result": {**facts, "serverInfo": {"name": "web", "version": "1"}}}
    if message["method"] == "tools/list":
        return {"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}
    if message["method"] == "tools/call":
        text = json.dumps(params.get("arguments"))
        return {"result": {"content": [{"type": "text", "text": text}]}}
    return {"error": {"code": -32601, "message": "no such method"}}

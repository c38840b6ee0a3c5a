"""A trace of a bad day: three servers, a crash, a timeout with a late answer, junk, errors."""

from __future__ import annotations

import json
import random
import struct
import zlib
from base64 import b64encode
from typing import Any
from zlib import crc32

from holdfast.view.dense import LETTERS

STARTED = "2026-07-29T10:14:03.000Z"
REPO = "/home/ada/shop"


class TraceWriter:
    """Writes the lines of a trace by hand, in the order of time."""

    def __init__(self, servers: dict[str, dict[str, str]]) -> None:
        self.lines: list[tuple[float, dict[str, Any]]] = []
        self.header = {"holdfast-trace": 1, "started": STARTED, "servers": servers}
        self._ids = dict.fromkeys(servers, 0)

    def put(self, t: float, server: str, kind: str, direction: str = "", **fields: Any) -> None:
        body = fields.get("body")
        size = len(json.dumps(body)) if body is not None else len(fields.get("text", ""))
        line = {"t": round(t, 6), "server": server, "link": 1, "dir": direction, "kind": kind}
        self.lines.append((t, {**line, "bytes": size, **fields}))

    def request(
        self, t: float, server: str, method: str, params: dict[str, Any], **fields: Any
    ) -> int:
        self._ids[server] += 1
        wire_id = self._ids[server]
        body = {"jsonrpc": "2.0", "id": wire_id, "method": method, "params": params}
        fields = {"dir": ">", **fields}
        self.put(t, server, "request", id=wire_id, method=method, body=body, **fields)
        return wire_id

    def tool(
        self, t: float, server: str, name: str, arguments: dict[str, Any], **fields: Any
    ) -> int:
        params = {"name": name, "arguments": arguments}
        return self.request(t, server, "tools/call", params, **fields)

    def result(self, t: float, server: str, wire_id: int, result: Any, **fields: Any) -> None:
        body = {"jsonrpc": "2.0", "id": wire_id, "result": result}
        fields = {"dir": "<", **fields}
        self.put(t, server, "result", id=wire_id, of=wire_id, body=body, **fields)

    def error(self, t: float, server: str, wire_id: int, code: int, message: str) -> None:
        fault = {"code": code, "message": message}
        body = {"jsonrpc": "2.0", "id": wire_id, "error": fault}
        self.put(t, server, "error", "<", id=wire_id, of=wire_id, body=body)

    def notify(
        self, t: float, server: str, method: str, params: dict[str, Any], **fields: Any
    ) -> None:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        fields = {"dir": "<", **fields}
        self.put(t, server, "notification", method=method, body=body, **fields)

    def state(self, t: float, server: str, steps: tuple[str, str], **fields: Any) -> None:
        self.put(t, server, "state", **{"from": steps[0], "to": steps[1], **fields})

    def text(self) -> str:
        ordered = [line for _, line in sorted(self.lines, key=lambda pair: pair[0])]
        return "".join(
            json.dumps(line, separators=(",", ":")) + "\n" for line in [self.header, *ordered]
        )


def text_result(text: str, *, is_error: bool = False, **structured: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {**result, "structuredContent": structured} if structured else result


def bad_day(calls: int = 150, seed: int = 11) -> str:
    """Return the text of a trace; ``calls`` ordinary calls between the troubles."""
    chance = random.Random(seed)
    trace = TraceWriter(
        {
            "git": {"transport": "stdio", "target": "uvx mcp-server-git"},
            "browser": {"transport": "stdio", "target": "npx @playwright/mcp"},
            "docs": {"transport": "http", "target": "https://docs.example.org/mcp"},
        }
    )
    for server, spans in _SPANS.items():
        before = "new"
        for t, after, why, link in spans:
            trace.state(t, server, (before, after), why=why, link=link)
            before = after
    for _ in range(calls):
        _ordinary_call(trace, chance)
    _troubles(trace)
    return trace.text()


_SPANS: dict[str, list[tuple[float, str, str, int]]] = {
    "git": [
        (0, "starting", "first use", 1),
        (0.31, "initializing", "opened", 1),
        (0.42, "ready", "revision 2025-11-25", 1),
        (59.1, "closing", "close() was called", 1),
        (59.34, "closed", "drained", 1),
    ],
    "browser": [
        (0, "starting", "first use", 1),
        (1.62, "initializing", "opened", 1),
        (1.9, "ready", "revision 2025-11-25", 1),
        (23.412, "backoff", "the server exited with code 137 (killed)", 1),
        (24.42, "starting", "the delay of 1.0 s is over", 2),
        (25.05, "backoff", "exited with code 1 during the start", 2),
        (27.1, "starting", "the delay of 2.0 s is over", 3),
        (28.66, "initializing", "opened", 3),
        (28.94, "ready", "revision 2025-11-25", 3),
        (59.1, "closing", "close() was called", 3),
        (59.81, "closed", "drained", 3),
    ],
    "docs": [
        (0, "starting", "first use", 1),
        (0.12, "initializing", "opened", 1),
        (0.51, "ready", "revision 2026-07-28", 1),
        (59.1, "closing", "close() was called", 1),
        (59.2, "closed", "drained", 1),
    ],
}

_TOOLS: dict[str, list[tuple[str, float, dict[str, Any]]]] = {
    "git": [
        ("git_status", 0.04, {"repo_path": REPO}),
        ("git_log", 0.07, {"max_count": 3, "repo_path": REPO}),
        ("git_diff", 0.16, {"target": "main", "repo_path": REPO}),
        ("git_blame", 0.9, {"file": "src/api/auth.py", "repo_path": REPO}),
    ],
    "browser": [
        ("browser_navigate", 1.3, {"url": "https://shop.example.org/cart"}),
        ("browser_snapshot", 0.55, {}),
        ("browser_click", 0.4, {"element": "Check out", "ref": "e17"}),
    ],
    "docs": [
        ("search", 0.6, {"query": "vat rounding", "limit": 5}),
        ("embed", 0.25, {"texts": ["refund", "policy"], "model": "small"}),
    ],
}


def _ordinary_call(trace: TraceWriter, chance: random.Random) -> None:
    server = chance.choice(list(_TOOLS))
    name, mean, arguments = chance.choice(_TOOLS[server])
    took = mean * (0.4 + chance.random() * 1.1)
    t = 2.4 + chance.random() * 55
    link = 1
    if server == "browser":
        if 21.0 < t < 29.2:
            t = 29.3 + chance.random() * 25
        link = 3 if t > 28 else 1
    wire_id = trace.tool(t, server, name, arguments, link=link)
    trace.result(t + took, server, wire_id, text_result("done " * 12, count=3), link=link)


def _troubles(trace: TraceWriter) -> None:
    indexing = trace.tool(3.35, "docs", "index_folder", {"path": "handbook/"})
    for step in range(1, 20):
        ticks = {"progressToken": indexing, "progress": step, "total": 19}
        trace.notify(3.35 + step * 0.55, "docs", "notifications/progress", ticks, of=indexing)
    trace.result(14.75, "docs", indexing, text_result("Indexed 1,284 pages", pages=1284))
    trace.tool(22.105, "browser", "browser_click", {"element": "Pay now", "ref": "e63"})
    trace.tool(22.9, "browser", "browser_snapshot", {})
    slow = trace.tool(31.02, "docs", "fetch_page", {"url": "https://docs.example.org/archive"})
    trace.notify(
        41.02,
        "docs",
        "notifications/cancelled",
        {"requestId": slow, "reason": "no answer within 10 s"},
        of=slow,
        dir=">",
    )
    why = "no answer within 10 s (timeout); the server was told to stop, it may have run"
    trace.put(41.0201, "docs", "outcome", of=slow, outcome="timeout", why=why)
    trace.result(43.63, "docs", slow, text_result("# Archive 2019"))
    cancelled = trace.tool(46.8, "docs", "index_folder", {"path": "archive/"})
    params: dict[str, Any] = {"requestId": cancelled, "reason": "cancelled"}
    trace.notify(51.5, "docs", "notifications/cancelled", params, of=cancelled, dir=">")
    wrong = trace.tool(12.3, "docs", "embed", {"texts": [], "model": "small"})
    trace.error(12.51, "docs", wrong, -32602, "texts must not be empty")
    failed = trace.tool(17.4, "git", "git_checkout", {"branch_name": "main", "repo_path": REPO})
    said = "error: Your local changes to src/api/auth.py would be overwritten by checkout."
    trace.result(17.71, "git", failed, text_result(said, is_error=True))
    odd = trace.tool(33.3, "git", "git_log", {"max_count": 3, "repo_path": REPO})
    faults = {"/result/structuredContent/count": "must be an integer, is a string"}
    trace.result(33.38, "git", odd, text_result("3 commits", count="3"), faults=faults)
    asked = trace.request(44.1, "browser", "roots/list", {}, dir="<", link=3)
    trace.result(44.106, "browser", asked, {"roots": []}, dir=">", link=3)
    shot = trace.tool(45.0, "browser", "browser_screenshot", {"fullPage": False}, link=3)
    image = {"type": "image", "mimeType": "image/png", "data": png()}
    trace.result(45.8, "browser", shot, {"content": [image], "isError": False}, link=3)
    for t, server, text in [
        (2.05, "browser", "DevTools listening on ws://127.0.0.1:9222/devtools/browser/6e1d"),
        (38.8, "git", "hint: use --no-pager to get plain output"),
    ]:
        trace.put(t, server, "junk", "<", text=text)
    for t, text in [
        (0.9, "starting chromium 141.0 (headless)"),
        (22.31, "click e63: waiting for navigation"),
        (22.86, "renderer: 1.9 GiB resident, limit 2.0 GiB"),
        (23.18, "renderer: allocation failed, 64 MiB"),
        (23.39, "FATAL:memory.cc(38)] Out of memory. size=67108864"),
        (24.9, "profile pw-8f31 is locked by pid 4117"),
        (25.03, "cannot start: profile in use"),
    ]:
        trace.put(t, "browser", "stderr", "<", text=text)
    for step in range(9):
        params = {"level": "info", "data": f"cache: {step * 90} pages"}
        trace.notify(5 + step * 6.3, "docs", "notifications/message", params)


def png(side: int = 16) -> str:
    """Return a picture with stripes, in base64."""
    rows = b"".join(b"\0" + bytes((x * y) % 256 for x in range(side)) for y in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def from_dense(text: str) -> bytes:
    """Return the bytes that a page holds as text, as its ``denseBytes`` does."""
    size, _, letters = text.partition(" ")
    numbers = [LETTERS.index(letter) for letter in letters]
    data, bits, count = bytearray(), 0, 0
    for first, second in zip(numbers[::2], numbers[1::2], strict=True):
        bits = (bits << 13 | (first * len(LETTERS) + second)) & 0xFFFFF
        count += 13
        while count >= 8:
            count -= 8
            data.append(bits >> count & 0xFF)
    return bytes(data[: int(size)])

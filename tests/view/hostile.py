"""Strings that a hostile server could write, in every field that it can write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.view.sample import TraceWriter

_RUN = "window.pwned=1"

HOSTILE: tuple[str, ...] = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f'"><img src=x onerror="{_RUN}">',
    f"'><svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<iframe srcdoc='<script>parent.{_RUN}</script>'></iframe>",
    f"javascript:{_RUN}",
    f"<a href='javascript:{_RUN}' autofocus onfocus={_RUN}>x</a>",
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}>",
    f"<style>@import 'http://127.0.0.1:9/x.css';</style><x onclick={_RUN}>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<img src=http://127.0.0.1:9/x.png>",
    "<base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<form action=http://127.0.0.1:9/><input autofocus></form>",
    f"<math><mtext></p><img src=x onerror={_RUN}>",
    f"--><script>{_RUN}</script><!--",
    f"]]><script>{_RUN}</script>",
    f"{{{{{_RUN}}}}}",
    f"${{{_RUN}}}",
    f"`-{_RUN}-`",
    f"\\u003cscript\\u003e{_RUN}\\u003c/script\\u003e",
    f"&lt;script&gt;{_RUN}&lt;/script&gt;",
    f"%3Cscript%3E{_RUN}%3C/script%3E",
    "{{policy}}{{script}}{{data}}{{style}}",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "\u202ecod.exe",
    "\u2066\u2067\u2068\u2069",
    "a\u200bdmin",
    "pay\u00adment",
    "\ufeffbom",
    "\U000e0041\U000e0042 tags",
    "\x1b[31mred\x1b[0m",
    "\x00null\x07bell",
    "\x9b2J",
    "\u2028line\u2029paragraph",
    "\u3164\uffa0\u115f blank",
    "\ud7ff\ue000",
    "e\u0301" * 50,
    "Z\u0351\u036b\u0343\u036a\u0302\u036b" * 40,
    "🏴\U000e0067\U000e0062\U000e007f",
    "x" * 100_000,
    " " * 10_000,
    "\n" * 500,
    "\t|\t|",
    "…" * 2000,
    "' OR 1=1 --",
    "$(touch /tmp/pwned)",
    "; rm -rf ~",
    "../../../../etc/passwd",
    "data:text/html,<script>alert(1)</script>",
    "blob:null/0",
    "file:///etc/passwd",
    "//127.0.0.1:9/x",
    "status:error tool:x",
    '"unclosed',
    "null",
    "-1",
    "1e999",
    "NaN",
)


def hostile_trace() -> str:
    """Return a trace with each string in each place that a server's words can reach."""
    names = {text[:2000]: {"transport": text[:100], "target": text[:100]} for text in HOSTILE}
    trace = TraceWriter(names)
    servers = list(names)
    for number, text in enumerate(HOSTILE):
        server, t = servers[number], 1.0 + number
        wire_id = trace.tool(t, server, text, {text: text, "list": [text, {text: [text]}]})
        content = [
            {"type": "text", "text": text},
            {"type": "image", "mimeType": text, "data": text},
            {"type": text, text: text},
            {"type": "image", "mimeType": "image/png", "data": text},
        ]
        result = {"content": content, "structuredContent": {text: text}, "isError": number % 2 == 0}
        trace.result(
            t + 0.1, server, wire_id, result, faults={f"/result/structuredContent/{text}": text}
        )
        trace.error(t + 0.3, server, trace.request(t + 0.2, server, text, {text: text}), -1, text)
        asked = {"jsonrpc": "2.0", "id": text, "method": text, "params": {"message": text}}
        trace.put(t + 0.35, server, "request", "<", id=text, method=text, body=asked)
        answer = {"jsonrpc": "2.0", "id": text, "result": {"action": text, "content": text}}
        trace.put(t + 0.37, server, "result", ">", id=text, of=text, body=answer)
        trace.notify(t + 0.4, server, text, {"data": text, "message": text, "progress": text})
        trace.put(t + 0.5, server, "stderr", "<", text=text)
        trace.put(t + 0.6, server, "junk", "<", text=text)
        trace.state(t + 0.7, server, (text, text), why=text)
        trace.put(t + 0.8, server, "outcome", of=text, outcome=text, why=text)
        trace.put(t + 0.85, server, "http", "<", status=500, headers={text: text})
        trace.put(t + 0.88, server, "login", why=text)
        trace.put(t + 0.9, server, text, "<", text=text, sidecar=text)
    return trace.text()


ODD: tuple[Any, ...] = (12345678901234567890123, None, [[{"toString": 1}]])
"""What stands where a text is expected; JavaScript cannot make a text of each of them."""

_MESSAGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("request", "tools/call", {"params": {"name": "x", "arguments": {"a": [1]}}}),
    ("request", "initialize", {"params": {"protocolVersion": "x"}}),
    ("result", "", {"result": {"content": [{"type": "text", "text": "t"}], "isError": True}}),
    ("result", "", {"result": {"content": [{"type": "image", "mimeType": "", "data": ""}]}}),
    ("error", "", {"error": {"code": -1, "message": "m"}}),
    ("notification", "notifications/progress", {"params": {"progress": 1, "total": 2}}),
    ("notification", "notifications/message", {"params": {"data": "x", "message": "x"}}),
    ("notification", "notifications/cancelled", {"params": {"reason": "x"}}),
    ("stderr", "", {"text": "x"}),
    ("junk", "", {"text": "x"}),
    ("http", "", {"status": 1, "headers": {"a": "b"}}),
    ("dropped", "", {"count": 1}),
    ("later", "", {"text": "x", "body": 1}),
)


def odd_trace() -> str:
    """Return a trace with a value of another type in each place of each kind of message."""
    trace = TraceWriter({"git": {}})
    t = 0.0
    for kind, method, message in _MESSAGES:
        for body in _misshapen(message):
            t += 0.1
            fields: dict[str, Any] = {"method": method} if method else {}
            if kind in ("result", "error"):
                wire_id = trace.tool(t - 0.05, "git", "log", {})
                fields |= {"id": wire_id, "of": wire_id}
            elif kind == "request":
                fields["id"] = round(t * 1000) + 10_000
            trace.put(t, "git", kind, ">" if kind == "request" else "<", body=body, **fields)
    return trace.text()


def _misshapen(value: Any) -> Iterator[Any]:
    """Yield copies of a value with one part of another type."""
    yield from ODD
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            for odd in _misshapen(part):
                copy: Any = value.copy()
                copy[key] = odd
                yield copy

"""A model that makes the calls it is told to, for agents of others that have no other to ask.

It speaks as much of three services' interfaces as their own programs need: Anthropic's Messages
(Claude Code), OpenAI's Responses (Codex) and Gemini's (Gemini CLI).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Call: TypeAlias = tuple[str, Json]
USAGE: Json = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class ScriptedModel:
    """Makes one call after the other, and notes what it is told of each.

    Args:
        calls: The tools and their arguments.
        prefix: What the agent puts before the names of tools.
    """

    def __init__(self, calls: list[Call], prefix: str) -> None:
        self.calls = calls
        self.prefix = prefix
        self.url = ""
        self._told: list[Json] = []

    @property
    def told(self) -> list[str]:
        """The results of the calls, each as JSON."""
        return [json.dumps(result) for result in self._told]

    def next_call(self, results: list[Json], *, has_tools: bool) -> Call | None:
        """Note the results so far; return the call to make now, if there is one left."""
        if not has_tools:
            return None  # a question beside the task, such as one for a title
        self._told = results
        return self.calls[len(results)] if len(results) < len(self.calls) else None

    def answer(self, path: str, body: Json) -> tuple[str, bytes]:
        """Return the type and the text of a response."""
        if path.endswith("count_tokens"):
            return "application/json", b'{"input_tokens": 1}'
        if path.endswith("/messages"):
            return _stream(self._as_anthropic(body))
        if path.endswith("/responses"):
            return _stream(self._as_openai(body))
        return "text/event-stream", b"data: %b\r\n\r\n" % json.dumps(self._as_gemini(body)).encode()

    def _as_anthropic(self, body: Json) -> list[Json]:
        parts = [part for message in body["messages"] for part in _parts(message["content"])]
        results = [part for part in parts if part["type"] == "tool_result"]
        call = self.next_call(results, has_tools=bool(body.get("tools")))
        block: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": "done"}
        if call is not None:
            name, arguments = call
            block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": self.prefix + name}
            block["input"] = {}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        message = {"id": "message", "type": "message", "role": "assistant", "model": "scripted"}
        empty: Json = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
        stop = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
        return [
            {"type": "message_start", "message": {**message, **empty}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": USAGE},
            {"type": "message_stop"},
        ]

    def _as_openai(self, body: Json) -> list[Json]:
        results = [item for item in body["input"] if item.get("type") == "function_call_output"]
        call = self.next_call(results, has_tools=bool(body.get("tools")))
        text = {"type": "output_text", "text": "done"}
        item: Json = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
        if call is not None:
            name, arguments = call
            item = {"type": "function_call", "id": "f", "call_id": f"call_{len(results)}"}
            item |= {"name": name, "namespace": self.prefix, "arguments": json.dumps(arguments)}
        return [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": USAGE}},
        ]

    def _as_gemini(self, body: Json) -> Json:
        parts = [part for content in body["contents"] for part in content.get("parts", [])]
        results = [part for part in parts if "functionResponse" in part]
        call = self.next_call(results, has_tools=bool(body.get("tools")))
        part: Json = {"text": "done"}
        if call is not None:
            name, arguments = call
            part = {"functionCall": {"name": self.prefix + name, "args": arguments}}
        content = {"role": "model", "parts": [part]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve it on loopback; `url` says where."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply("application/json", b'{"data": [], "models": []}')

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
                self._reply(*model.answer(self.path.partition("?")[0], body))

            def _reply(self, kind: str, text: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()


def _parts(content: Any) -> list[Json]:
    return content if isinstance(content, list) else []


def _stream(events: list[Json]) -> tuple[str, bytes]:
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "text/event-stream", "".join(lines).encode()

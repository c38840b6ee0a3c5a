"""The HTTP interfaces of three model providers, on loopback: a model that adds by a tool.

Each answers the first request with a call of the tool that it was offered, and the second with what
the tool has returned. A request that the provider would refuse (no tools, a call without result) is
answered with status 400, so that an example cannot pass by accident.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Json = dict[str, Any]

TOOL: Final = "demo__add"
ARGUMENTS: Final = {"a": 2, "b": 40}


class RefusedError(Exception):
    """The provider would not take this request."""


def anthropic(body: Json) -> Json:
    _require(body, "model", "max_tokens", "messages")
    _offered([tool["name"] for tool in body["tools"] if tool["input_schema"]["type"] == "object"])
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    message["usage"] = {"input_tokens": 1, "output_tokens": 1}
    last = body["messages"][-1]["content"]
    if isinstance(last, str):
        call = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": ARGUMENTS}
        return {**message, "content": [call], "stop_reason": "tool_use"}
    (result,) = last
    (asked,) = body["messages"][-2]["content"]
    if result["type"] != "tool_result" or result["tool_use_id"] != asked["id"]:
        raise RefusedError("tool_use ids were found without tool_result blocks")
    text = {"type": "text", "text": _said(result["content"])}
    return {**message, "content": [text], "stop_reason": "end_turn"}


def openai(body: Json) -> Json:
    _require(body, "model", "messages")
    _offered([tool["function"]["name"] for tool in body["tools"] if tool["type"] == "function"])
    message: Json = {"role": "assistant", "content": None}
    last = body["messages"][-1]
    if last["role"] == "user":
        function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    else:
        (asked,) = body["messages"][-2]["tool_calls"]
        if last["role"] != "tool" or last["tool_call_id"] != asked["id"]:
            raise RefusedError("a message with tool_calls must be followed by tool messages")
        message["content"] = _said(last["content"])
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "chatcmpl_1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**answer, "choices": [choice]}


def gemini(body: Json) -> Json:
    _require(body, "contents", "tools")
    declared = [each for tool in body["tools"] for each in tool["functionDeclarations"]]
    _offered([declaration["name"] for declaration in declared])
    (part,) = body["contents"][-1]["parts"]
    if "text" in part:
        answer: Json = {"functionCall": {"name": TOOL, "args": ARGUMENTS}}
    elif part["functionResponse"]["name"] != TOOL:
        raise RefusedError("function response parts must match the function call parts")
    else:
        answer = {"text": _said(part["functionResponse"]["response"])}
    content = {"role": "model", "parts": [answer]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


ROUTES: Final = {
    r"/v1/messages": anthropic,
    r"/v1/chat/completions": openai,
    r"/v1(?:beta)?/models/[\w.-]+:generateContent": gemini,
}
KEYS: Final = ("x-api-key", "authorization", "x-goog-api-key")


def _require(body: Json, *names: str) -> None:
    for name in names:
        if not body.get(name):
            raise RefusedError(f"{name}: Field required")


def _offered(names: list[str]) -> None:
    if TOOL not in names:
        raise RefusedError(f"no tool {TOOL} among {names}")


def _said(content: Any) -> str:
    """Return the model's last words, from what the tool has returned."""
    numbers = re.findall(r"sum\W+(\d+)", json.dumps(content))
    return f"It is {numbers[0]}." if numbers else f"The tool failed: {content}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        answer = next((made for form, made in ROUTES.items() if re.fullmatch(form, path)), None)
        try:
            if answer is None or not any(self.headers.get(name) for name in KEYS):
                raise RefusedError(f"{path}: no such endpoint, or no key")
            self._send(200, answer(body))
        except (RefusedError, KeyError, ValueError, TypeError) as error:
            self._send(400, {"error": {"type": "invalid_request_error", "message": repr(error)}})

    def _send(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Stay silent."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve all three on a free port; give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

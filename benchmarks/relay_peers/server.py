"""The server behind the relays: plain lines on stdin and stdout, one era, nothing but Python.

``python server.py handshake|stateless [PORT]``: what happens to its calls is told, line by line, to
whoever listens on the port, because a relay may run it in places that the host cannot see.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
INFO = {"name": "scripted", "title": "Scripted Server", "version": "7.3"}
INSTRUCTIONS = "Ask before you touch anything."
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "completions": {},
    "logging": {},
    "experimental": {"vendor/relay": {"level": 2}},
}
FANCY = {
    "name": "fancy",
    "title": "Fancy Tool",
    "description": "Has everything.",
    "inputSchema": {
        "type": "object",
        "properties": {"size": {"type": "integer", "minimum": 1, "x-unit": "cm"}},
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"area": {"type": "number"}}},
    "annotations": {"title": "Fancy", "readOnlyHint": True, "openWorldHint": False},
    "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["48x48"]}],
    "_meta": {"vendor/tool": {"cost": 3}},
}
UNKNOWN_RESULT = {
    "content": [
        {"type": "text", "text": "plain"},
        {"type": "hologram", "frames": [1, 2], "nested": {"deep": None}},
    ],
    "structuredContent": {"area": 2.5},
    "vendorField": {"kept": True},
}
ERROR: dict[str, Any] = {
    "code": -31999,
    "message": "no: é",
    "data": {"why": ["a", None], "retry": 3},
}
TEXT = {
    "uri": "memo://a",
    "name": "a",
    "title": "Memo A",
    "mimeType": "text/plain",
    "size": 5,
    "_meta": {"vendor/resource": 1},
}
CONTENTS = [
    {"uri": "memo://a", "mimeType": "text/plain", "text": "héllo", "_meta": {"vendor/part": 1}},
    {"uri": "memo://a#raw", "mimeType": "application/octet-stream", "blob": "AAEC"},
]
TEMPLATE = {"uriTemplate": "memo://{name}", "name": "memo", "title": "Memo"}
PROMPT = {
    "name": "greet",
    "title": "Greeting",
    "arguments": [{"name": "who", "description": "Whom", "required": True}],
    "_meta": {"vendor/prompt": 1},
}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "elicitation": (
        "elicitation/create",
        {
            "mode": "form",
            "message": "How many?",
            "requestedSchema": {
                "type": "object",
                "properties": {"count": {"type": "integer", "title": "Count"}},
                "required": ["count"],
            },
        },
    ),
    "sampling": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}],
            "maxTokens": 7,
            "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 0.5},
            "systemPrompt": "Be brief.",
        },
    ),
    "roots": ("roots/list", {}),
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
PAGE = 4

Message = dict[str, Any]


class Fault(Exception):  # noqa: N818
    """An error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Later(Exception):  # noqa: N818
    """The answer comes when something else has happened, or never."""


class Journal:
    """Tells somebody at a port what happens."""

    def __init__(self, port: int | None) -> None:
        self._socket = None if port is None else socket.create_connection(("127.0.0.1", port))

    def tell(self, event: str) -> None:
        if self._socket is not None:
            self._socket.sendall(f"{event} {os.getpid()}\n".encode())


class Server:
    """One connection, until the end of the input."""

    def __init__(self, era: str, journal: Journal) -> None:
        self.is_stateless = era == "stateless"
        self.version = STATELESS if self.is_stateless else HANDSHAKE
        self.journal = journal
        self.client_capabilities: Any = None
        self.level = "debug"
        self.watched: set[str] = set()
        self.streams: dict[Any, Message] = {}
        self.held: set[Any] = set()
        self.answers: dict[str, Callable[[Message], None]] = {}

    def run(self) -> None:
        self.journal.tell("started")
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.settle(message)
            elif "id" in message:
                self.answer(message)
            else:
                self.notice(message["method"], message.get("params") or {})

    def settle(self, message: Message) -> None:
        answered = self.answers.pop(str(message.get("id")), None)
        if answered is not None:
            answered(message)

    def send(self, message: Message) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def notify(self, method: str, params: Message) -> None:
        self.send({"method": method, "params": params})

    # Requests

    def answer(self, message: Message) -> None:
        request_id, params = message["id"], message.get("params") or {}
        try:
            result = self.handle(message["method"], params, request_id)
        except Fault as fault:
            self.send({"id": request_id, "error": fault.body})
        except Later:
            return
        else:
            self.finish(request_id, message["method"], result)

    def finish(self, request_id: Any, method: str, result: Message) -> None:
        if self.is_stateless:
            cached = method.endswith(("/list", "/read", "/discover"))
            hints = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
            meta = {META + "serverInfo": INFO, **result.get("_meta", {})}
            result = {"resultType": "complete", **hints, **result, "_meta": meta}
        self.send({"id": request_id, "result": result})

    def handle(self, method: str, params: Message, request_id: Any) -> Message:
        if self.is_stateless:
            version = params.get("_meta", {}).get(META + "protocolVersion")
            if version != STATELESS:
                data = {"supported": [STATELESS], "requested": version}
                raise Fault(-32022, "unsupported protocol version", data)
            self.client_capabilities = params["_meta"].get(META + "clientCapabilities")
        handlers = STATELESS_METHODS if self.is_stateless else HANDSHAKE_METHODS
        handler = {**METHODS, **handlers}.get(method)
        if handler is None:
            raise Fault(-32601, f"the scripted server has no {method}")
        return handler(self, params, request_id)

    def notice(self, method: str, params: Message) -> None:
        if method == "notifications/cancelled":
            self.streams.pop(params.get("requestId"), None)
            if params.get("requestId") in self.held:
                self.held.discard(params["requestId"])
                self.journal.tell("cancelled")

    # Announcements

    def announce(self, method: str, params: Message, field: str) -> None:
        """Tell the client of a change, if it wants to know."""
        if not self.is_stateless:
            self.notify(method, params)
            return
        for stream, filters in self.streams.items():
            if params.get("uri") in filters.get(field, ()) if params else filters.get(field):
                meta = {META + "subscriptionId": stream}
                self.notify(method, {**params, "_meta": meta})


def initialize(server: Server, params: Message, request_id: Any) -> Message:
    server.client_capabilities = params.get("capabilities")
    return {
        "protocolVersion": HANDSHAKE,
        "serverInfo": INFO,
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def discover(server: Server, params: Message, request_id: Any) -> Message:
    return {
        "supportedVersions": [STATELESS],
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def set_level(server: Server, params: Message, request_id: Any) -> Message:
    if params.get("level") not in LEVELS:
        raise Fault(-32602, "no such level")
    server.level = params["level"]
    return {}


def subscribe(server: Server, params: Message, request_id: Any) -> Message:
    server.watched.add(params["uri"])
    return {}


def unsubscribe(server: Server, params: Message, request_id: Any) -> Message:
    server.watched.discard(params["uri"])
    return {}


def listen(server: Server, params: Message, request_id: Any) -> Message:
    server.streams[request_id] = params["notifications"]
    meta = {META + "subscriptionId": request_id}
    acknowledged = {"notifications": params["notifications"], "_meta": meta}
    server.notify("notifications/subscriptions/acknowledged", acknowledged)
    raise Later


def list_tools(server: Server, params: Message, request_id: Any) -> Message:
    plain = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    tools = [*plain[:2], FANCY, *plain[2:]]
    start = int(params.get("cursor", "page-0").partition("-")[2])
    more = start + PAGE < len(tools)
    following = {"nextCursor": f"page-{start + PAGE}"} if more else {}
    return {"tools": tools[start : start + PAGE], **following}


def read(server: Server, params: Message, request_id: Any) -> Message:
    if params["uri"] != "memo://a":
        code = -32602 if server.is_stateless else -32002
        raise Fault(code, f"nothing at {params['uri']}", {"uri": params["uri"]})
    return {"contents": CONTENTS}


def get_prompt(server: Server, params: Message, request_id: Any) -> Message:
    text = f"Hello, {params.get('arguments', {}).get('who')}!"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": "A greeting", "messages": [message], "_meta": {"vendor/p": 1}}


def complete(server: Server, params: Message, request_id: Any) -> Message:
    context = params.get("context", {}).get("arguments", {})
    values = [f"{params['argument']['value']}-{context.get('who')}"]
    return {"completion": {"values": values, "total": 12, "hasMore": True}}


def vendor(server: Server, params: Message, request_id: Any) -> Message:
    return {"vendor": params.get("question")}


def call_tool(server: Server, params: Message, request_id: Any) -> Message:
    tool = TOOLS.get(params.get("name", ""))
    if tool is None:
        raise Fault(-32602, f"no tool {params.get('name')!r}")
    return tool(server, params, request_id)


# Tools


def text(value: Any) -> Message:
    return {"content": [{"type": "text", "text": json.dumps(value, ensure_ascii=False)}]}


def echo(server: Server, params: Message, request_id: Any) -> Message:
    meta = {key: value for key, value in params.get("_meta", {}).items() if "vendor" in key}
    return text({"arguments": params.get("arguments"), "_meta": meta})


def steps(server: Server, params: Message, request_id: Any) -> Message:
    token = params.get("_meta", {}).get("progressToken")
    for step in (1, 2, 3) if token is not None else ():
        progress = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
        server.notify("notifications/progress", progress)
    return text("done")


def hold(server: Server, params: Message, request_id: Any) -> Message:
    server.held.add(request_id)
    server.journal.tell("held")
    raise Later


def ask(server: Server, params: Message, request_id: Any) -> Message:
    method, question = QUESTIONS[params["arguments"]["kind"]]
    if server.is_stateless:
        return _ask_by_result(server, params, method, question)
    server.journal.tell("ran")
    key = f"question-{len(server.answers)}-{request_id}"

    def answered(message: Message) -> None:
        outcome = message.get("result") or {"error": message.get("error")}
        server.finish(request_id, "tools/call", text(outcome))

    server.answers[key] = answered
    server.send({"id": key, "method": method, "params": question})
    raise Later


def _ask_by_result(server: Server, params: Message, method: str, question: Message) -> Message:
    if "inputResponses" not in params:
        server.journal.tell("ran")
        requests = {"first": {"method": method, "params": question}}
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": "the server's own",
        }
    if params.get("requestState") != "the server's own":
        raise Fault(-32602, "not the state that was given")
    return text(params["inputResponses"]["first"])


def fail(server: Server, params: Message, request_id: Any) -> Message:
    raise Fault(ERROR["code"], ERROR["message"], ERROR["data"])


def odd(server: Server, params: Message, request_id: Any) -> Message:
    return UNKNOWN_RESULT


def log(server: Server, params: Message, request_id: Any) -> Message:
    level = params.get("_meta", {}).get(META + "logLevel") if server.is_stateless else server.level
    for mentioned in ("info", "warning", "error"):
        if level is not None and LEVELS.index(mentioned) >= LEVELS.index(level):
            entry = {"level": mentioned, "logger": "work", "data": {"text": mentioned, "n": [1]}}
            server.notify("notifications/message", entry)
    return text("logged")


def flood(server: Server, params: Message, request_id: Any) -> Message:
    for number in range(params["arguments"]["count"]):
        server.notify("notifications/vendor/step", {"number": number})
    return text("flooded")


def change(server: Server, params: Message, request_id: Any) -> Message:
    server.announce("notifications/tools/list_changed", {}, "toolsListChanged")
    return text("changed")


def touch(server: Server, params: Message, request_id: Any) -> Message:
    uri = params["arguments"]["uri"]
    if server.is_stateless or uri in server.watched:
        server.announce("notifications/resources/updated", {"uri": uri}, "resourceSubscriptions")
    return text("touched")


def seen(server: Server, params: Message, request_id: Any) -> Message:
    return text(server.client_capabilities)


def pid(server: Server, params: Message, request_id: Any) -> Message:
    return text(os.getpid())


def die(server: Server, params: Message, request_id: Any) -> Message:
    server.journal.tell("died")
    os._exit(3)


Handler = Callable[[Server, Message, Any], Message]
TOOLS: dict[str, Handler] = {
    tool.__name__: tool
    for tool in (echo, steps, hold, ask, fail, odd, log, flood, change, touch, seen, pid, die)
}
METHODS: dict[str, Handler] = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": lambda server, params, request_id: {"resources": [TEXT]},
    "resources/templates/list": lambda *_: {"resourceTemplates": [TEMPLATE]},
    "resources/read": read,
    "prompts/list": lambda *_: {"prompts": [PROMPT]},
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "vendor/question": vendor,
}
HANDSHAKE_METHODS: dict[str, Handler] = {
    "initialize": initialize,
    "ping": lambda *_: {},
    "logging/setLevel": set_level,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
}
STATELESS_METHODS: dict[str, Handler] = {
    "server/discover": discover,
    "subscriptions/listen": listen,
}

if __name__ == "__main__":
    Server(sys.argv[1], Journal(int(sys.argv[2]) if len(sys.argv) > 2 else None)).run()

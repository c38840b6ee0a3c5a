"""A server that keeps browser sessions by name, with its browser left out.

    python szkrabok.py [--journal FILE] [--page-size N] [--drop TOOL] [--add TOOL] [--stuck TOOL]

Sessions are opened and closed by tools; every tool that works in one takes its name as
``sessionName``, and is refused if there is no such session. FILE gets each call as it came, as
a line of JSON, written before the call is answered. A stuck tool is never answered.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SESSION = {"type": "string", "description": "Name of the stored browser session to operate on"}

LAUNCH_OPTIONS = {
    "type": "object",
    "description": "Browser launch options — preset, stealth, headless, viewport, userAgent, "
    "locale, timezone, disableWebGL",
    "properties": {
        "preset": {"type": "string"},
        "stealth": {"type": "boolean"},
        "headless": {"type": "boolean"},
        "viewport": {"type": "object"},
        "userAgent": {"type": "string"},
        "locale": {"type": "string"},
        "timezone": {"type": "string"},
        "disableWebGL": {"type": "boolean"},
    },
}


def in_session(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """The input schema of a tool that works in a session."""
    return {
        "type": "object",
        "properties": {"sessionName": SESSION, **properties},
        "required": ["sessionName", *required],
    }


TEXT = {"type": "string"}

TESTS_RUN = {
    "type": "object",
    "properties": {"passed": {"type": "integer"}, "failed": {"type": "integer"}},
    "required": ["passed", "failed"],
}

TOOLS: list[dict[str, Any]] = [
    {
        "name": "session.open",
        "description": "Open a browser session, or launch its browser again.",
        "inputSchema": in_session(url=TEXT, launchOptions=LAUNCH_OPTIONS),
    },
    {
        "name": "session.close",
        "description": "Close a session and its browser.",
        "inputSchema": in_session(),
    },
    {
        "name": "session.list",
        "description": "List the sessions that are open.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "nav.goto",
        "description": "Go to a page.",
        "inputSchema": in_session(
            ("url",),
            url={"type": "string", "description": "Where to go"},
            wait={
                "type": "string",
                "enum": ["load", "domcontentloaded", "networkidle"],
                "default": "load",
            },
        ),
    },
    {"name": "nav.back", "description": "Go back.", "inputSchema": in_session()},
    {
        "name": "interact.click",
        "description": "Click on an element.",
        "inputSchema": in_session(("selector",), selector=TEXT),
    },
    {
        "name": "extract.text",
        "description": "The text of an element.",
        "inputSchema": in_session(selector=TEXT),
    },
    {
        "name": "browser.snapshot",
        "description": "The page's accessibility tree.",
        "inputSchema": in_session(),
    },
    {
        "name": "browser.run_test",
        "description": "Run the tests whose titles match.",
        "inputSchema": in_session(grep=TEXT, workers={"type": "integer"}),
        "outputSchema": TESTS_RUN,
    },
    {
        "name": "browser.run.file",
        "description": "Run a script file in the page.",
        "inputSchema": in_session(("path",), path=TEXT, args={"type": "array", "items": TEXT}),
    },
    {
        "name": "health",
        "description": "Whether the server is well.",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "pid": {"type": "integer"}},
            "required": ["ok", "pid"],
        },
    },
]


class FailureError(Exception):
    """The tool fails, and this is what it says."""


class Szkrabok:
    """The sessions, and what is done in them."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "session.open":
            return self.open(**arguments)
        if "sessionName" not in _properties(name):
            return self.outside(name)
        session = self.sessions.get(arguments.get("sessionName", ""))
        if session is None:
            raise FailureError(f"no session {arguments.get('sessionName')!r} is open")
        return _INSIDE[name](self, session, arguments)

    def open(self, sessionName: str, url: str = "", launchOptions: Any = None) -> Any:  # noqa: N803
        if sessionName in self.sessions:
            raise FailureError(f"session {sessionName!r} is open already")
        if launchOptions and launchOptions.get("preset") == "broken":
            raise FailureError("the browser did not start")
        self.sessions[sessionName] = {"url": url, "launchOptions": launchOptions or {}}
        return {"opened": True}

    def outside(self, name: str) -> Any:
        if name == "session.list":
            return self.sessions
        return {"ok": True, "pid": os.getpid()}

    def close(self, session: dict[str, Any], arguments: dict[str, Any]) -> Any:
        if session["url"].endswith("/crashed"):
            raise FailureError("the browser has crashed already")
        del self.sessions[arguments["sessionName"]]
        return {"closed": True}

    def goto(self, session: dict[str, Any], arguments: dict[str, Any]) -> Any:
        if ".invalid" in arguments["url"]:
            raise FailureError("net::ERR_NAME_NOT_RESOLVED")
        session["url"] = arguments["url"]
        return {"url": session["url"]}

    def snapshot(self, session: dict[str, Any], arguments: dict[str, Any]) -> Any:
        lines = [f"- link 'camp site {number}' [ref=e{number}]" for number in range(200)]
        return "\n".join([f"page {session['url']}", *lines])

    def run_test(self, session: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return {"passed": 1, "failed": 0}

    def done(self, session: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return {"done": True}


_INSIDE: dict[str, Callable[[Szkrabok, dict[str, Any], dict[str, Any]], Any]] = {
    "session.close": Szkrabok.close,
    "nav.goto": Szkrabok.goto,
    "nav.back": Szkrabok.done,
    "interact.click": Szkrabok.done,
    "extract.text": Szkrabok.done,
    "browser.snapshot": Szkrabok.snapshot,
    "browser.run_test": Szkrabok.run_test,
    "browser.run.file": Szkrabok.done,
}


def _tool(name: str) -> dict[str, Any]:
    return next((tool for tool in TOOLS if tool["name"] == name), {})


def _properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = _tool(name).get("inputSchema", {}).get("properties", {})
    return found


def result(tool: str, value: Any) -> dict[str, Any]:
    """What a tool gave, as the protocol has it."""
    text = value if isinstance(value, str) else json.dumps(value)
    found: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    return found | ({"structuredContent": value} if "outputSchema" in _tool(tool) else {})


class Server:
    """Answers one client, message by message."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.szkrabok = Szkrabok()
        kept = [tool for tool in TOOLS if tool["name"] not in options.drop]
        added = [{"name": name, "inputSchema": {"type": "object"}} for name in options.add]
        self.tools = kept + added

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "szkrabok", "version": "1"},
            }
        if method == "tools/list":
            return self.page(int(params.get("cursor", 0)))
        if method == "tools/call":
            return self.call(params["name"], params.get("arguments", {}))
        return None

    def page(self, start: int) -> dict[str, Any]:
        end = start + self.options.page_size
        more = {"nextCursor": str(end)} if end < len(self.tools) else {}
        return {"tools": self.tools[start:end], **more}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        self.write_down(name, arguments)
        if name in self.options.stuck:
            return ...
        try:
            return result(name, self.szkrabok.call(name, arguments))
        except FailureError as failure:
            return {"content": [{"type": "text", "text": str(failure)}], "isError": True}

    def write_down(self, name: str, arguments: dict[str, Any]) -> None:
        if self.options.journal is not None:
            with self.options.journal.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps({"name": name, "arguments": arguments}) + "\n")

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            found = self.answer(message["method"], message.get("params") or {})
            if found is ...:
                continue
            ending = {"result": found}
            if found is None:
                ending = {"error": {"code": -32601, "message": "method not found"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **ending}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--page-size", type=int, default=1000)
    parser.add_argument("--drop", action="append", default=[])
    parser.add_argument("--add", action="append", default=[])
    parser.add_argument("--stuck", action="append", default=[])
    Server(parser.parse_args()).serve()


if __name__ == "__main__":
    main()

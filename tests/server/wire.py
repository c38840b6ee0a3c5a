"""A session of the server side without a process: messages in, messages out, one era."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from holdfast._core.eras.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    STATELESS,
)
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from tests.server.turns import Turns

Json = dict[str, Any]

ALL_CAPABILITIES: Json = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


class Wire:
    """The client's end: writes lines, reads what the session wrote."""

    def __init__(self, server: Server) -> None:
        self._written: deque[bytes] = deque()
        self.turns = Turns()
        self.session = ServerSession(server, self._written.append, self.turns)
        self.count = 0

    def write(self, line: bytes) -> None:
        self.session.feed(line)

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def receive(self) -> Json:
        while not self._written:
            wait = self.turns.run()
            assert self._written or wait == 0, "the session waits for input, or for time to pass"
        message = json.loads(self._written.popleft())
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def rest(self) -> list[Json]:
        """Return all that was written and not received, once nothing more is ready to run."""
        while self.turns.run() == 0:
            pass
        found = [json.loads(line) for line in self._written]
        self._written.clear()
        return found

    def next_id(self) -> int:
        self.count += 1
        return self.count


class Client:
    """Speaks one revision to a wire."""

    def __init__(self, wire: Wire, version: str, capabilities: Json | None = None) -> None:
        self.wire = wire
        self.version = version
        self.capabilities = ALL_CAPABILITIES if capabilities is None else capabilities
        self.is_stateless = version in STATELESS
        if not self.is_stateless:
            self.greeting = initialize(wire, version, self.capabilities)

    def start(self, method: str, params: Json | None = None, meta: Json | None = None) -> int:
        """Send a request; return its id. A None in ``meta`` leaves that field out."""
        request_id = self.wire.next_id()
        full_meta = {**self.meta(), **(meta or {})}
        sent = {key: value for key, value in full_meta.items() if value is not None}
        self.wire.send(id=request_id, method=method, params={**(params or {}), "_meta": sent})
        return request_id

    def meta(self) -> Json:
        if not self.is_stateless:
            return {}
        return {
            PROTOCOL_VERSION: self.version,
            CLIENT_CAPABILITIES: self.capabilities,
            CLIENT_INFO: {"name": "test", "version": "1"},
        }

    def request(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        """Send a request; return its answer, which must be the next message."""
        request_id = self.start(method, params, meta)
        answer = self.wire.receive()
        assert answer.get("id") == request_id, answer
        return answer

    def result(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        answer = self.request(method, params, meta)
        assert "result" in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def error(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        answer = self.request(method, params, meta)
        assert "error" in answer, answer
        error = answer["error"]
        assert isinstance(error, dict)
        return error

    def start_tool(self, tool: str, meta: Json | None = None, /, **arguments: Any) -> int:
        return self.start("tools/call", {"name": tool, "arguments": arguments}, meta)

    def tool(self, tool: str, /, **arguments: Any) -> Json:
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self, request_id: int) -> None:
        self.wire.send(method="notifications/cancelled", params={"requestId": request_id})


def initialize(wire: Wire, version: str, capabilities: Json) -> Json:
    client_info = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info}
    wire.send(id="hello", method="initialize", params=params)
    answer = wire.receive()
    assert answer["id"] == "hello"
    wire.send(method="notifications/initialized")
    result = answer["result"]
    assert isinstance(result, dict)
    return result

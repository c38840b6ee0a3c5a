"""JSON-RPC, one message a line: taking lines apart, putting them on the pipe, and the errors."""

from __future__ import annotations

import json
import math
import threading
from typing import Any, BinaryIO, TypeAlias

Json: TypeAlias = dict[str, Any]
RequestId: TypeAlias = str | int

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Exception):
    """Answers the request with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Pipe:
    """The way to the client. Threads share it, so each line is written whole under a lock."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Json) -> None:
        """Writes one message; raises OSError once the client is gone."""
        line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()

    def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def result(self, request_id: RequestId, result: Json) -> None:
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def error(self, request_id: RequestId | None, error: RpcError) -> None:
        """Answers with an error; an id that could not be read is left out: MCP has no null ids."""
        body: Json = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        message: Json = {"jsonrpc": "2.0", "error": body}
        if request_id is not None:
            message["id"] = request_id
        self.send(message)


def parse(line: bytes) -> Any:
    """The JSON value of a line. NaN and Infinity, which Python would take, are refused."""
    try:
        return json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None


def request_id_of(message: Any) -> RequestId | None:
    """The id of a request, or None where it has none that could be answered."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if is_request_id(found) else None


def is_request_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def check_envelope(message: Any) -> None:
    """Refuses what is no JSON-RPC message; whether the method exists is another question."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if "id" in message and not is_request_id(message["id"]):
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
    if not isinstance(message.get("method"), str):
        raise RpcError(INVALID_REQUEST, "method must be a string")
    if not isinstance(message.get("params", {}), dict):
        raise RpcError(INVALID_PARAMS, "params must be an object")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    """A float; 1e999 would be infinite and could not be sent back."""
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)

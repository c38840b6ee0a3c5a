"""A call log as a server: what was recorded is what is answered.

    async with holdfast.connect(MockServer("calls.jsonl")) as client:
        await client.call_tool("session.open", {"sessionName": "a"})

Calls are found by name and arguments, and repeated ones answered in the order of the log.
Whatever was not recorded is refused, with what comes nearest to it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, BinaryIO, Final, Protocol, TypeAlias

import msgspec

from holdfast._core.eras.revisions import (
    HANDSHAKE,
    PREFIX,
    SERVER_INFO,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSIONS,
)
from holdfast._core.redaction import Redactor
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.calllog.entries import Entry, Log, Source, read_log
from holdfast.calllog.matching import brief, fits, has_hidden, key, nearest, normal_arguments, told
from holdfast.calllog.results import NotRecorded
from holdfast.lock.fingerprint import definition
from holdfast.policies import Redaction
from holdfast.types.tools import Tool

Definitions: TypeAlias = "Iterable[Tool | Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]"
"""Tools as they were listed: from a client, or from a lock file."""

_RPC_ERROR: Final = re.compile(r"the server answered with error (-?[0-9]{1,9}): (.*)", re.S)
_VERSION: Final = PREFIX + "protocolVersion"
_LISTS: Final = frozenset({"server/discover", "tools/list"})


class Line(Protocol):
    """The server's end of a link in memory."""

    @property
    def open(self) -> bool: ...

    def write(self, data: bytes) -> None: ...


class Refusal(Exception):  # noqa: N818  (an answer, not a failure of ours)
    """The error that a request is answered with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message
        self.data: Any = data


class MockServer:
    """Serves a log, in memory (as a target of ``connect``) or over stdio (`serve_stdio`).

    ``tools`` are the definitions to list; without them the list is made of the names and
    arguments in the log. A call that comes more often than it was recorded is refused;
    with ``loop`` its answers start over. ``redaction`` is that of the log.
    """

    def __init__(
        self,
        log: Source,
        *,
        tools: Definitions | None = None,
        name: str = "recorded",
        instructions: str | None = None,
        loop: bool = False,
        redaction: Redaction | None = None,
    ) -> None:
        self.name = name
        self.log: Log = read_log(log)
        self._instructions = instructions
        self._loop = loop
        self._redactor = Redactor(redaction or Redaction())
        self._tools = _derived(self.log) if tools is None else _listed(tools)
        self._known: dict[str, list[tuple[Entry, Any]]] = {}
        self._answers: dict[bytes, list[Entry]] = {}
        self._given: dict[bytes, int] = {}
        self._served: set[int] = set()
        for entry in self.log:
            arguments = self._normal(entry.name, entry.arguments)
            self._known.setdefault(entry.name, []).append((entry, arguments))
            self._answers.setdefault(key(entry.name, arguments), []).append(entry)

    def __repr__(self) -> str:
        return f"<MockServer {self.name}: {len(self.log)} calls of {self.log.label}>"

    @property
    def unused(self) -> list[Entry]:
        """The recorded calls that nobody has made yet."""
        return [entry for entry in self.log if entry.line not in self._served]

    # Messages

    def accept(self, line: Line) -> Callable[[bytes], None]:
        """A client connected in memory."""

        def take(frame: bytes) -> None:
            answer = self.answer(frame)
            if answer is not None and line.open:
                line.write(answer)

        return take

    def answer(self, frame: bytes) -> bytes | None:
        """The answer to a message, as a line; None if it wants none."""
        try:
            message = msgspec.json.decode(frame)
        except MALFORMED as error:
            return _encoded(_error(None, Refusal(PARSE_ERROR, f"not JSON: {error}")))
        if isinstance(message, list) and message:
            answers = [found for one in message if (found := self._respond(one)) is not None]
            return _encoded(answers) if answers else None
        found = self._respond(message)
        return None if found is None else _encoded(found)

    def _respond(self, message: Any) -> dict[str, Any] | None:
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return None  # we ask nothing, so it answers nothing
            return _error(None, Refusal(INVALID_REQUEST, "not a JSON-RPC request"))
        if "id" not in message:
            return None
        try:
            result = self._handle(message["method"], message.get("params") or {})
        except Refusal as refusal:
            return _error(message["id"], refusal)
        except Exception as error:
            text = f"internal error: {type(error).__name__}: {error}"
            return _error(message["id"], Refusal(INTERNAL_ERROR, text))
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _handle(self, method: str, params: Any) -> dict[str, Any]:
        handler = _METHODS.get(method)
        if handler is None:
            raise Refusal(METHOD_NOT_FOUND, f"method not found: {method}")
        if not isinstance(params, dict):
            raise Refusal(INVALID_PARAMS, "params must be an object")
        meta = params.get("_meta")
        if not isinstance(meta, dict) or _VERSION not in meta:
            return handler(self, params)
        asked = meta[_VERSION]
        if asked not in STATELESS:
            raise _unsupported(asked)
        return self._finish(method, handler(self, params))

    def _finish(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The result as it has to be where each request stands alone."""
        hints = {"ttlMs": 0, "cacheScope": "private"} if method in _LISTS else {}
        meta = {SERVER_INFO: self._info(), **result.get("_meta", {})}
        return {"resultType": "complete", **result, **hints, "_meta": meta}

    # Methods

    def _info(self) -> dict[str, str]:
        return {"name": self.name, "version": "1.0"}

    def _introduction(self) -> dict[str, Any]:
        told = {} if self._instructions is None else {"instructions": self._instructions}
        return {"capabilities": {"tools": {}}, **told}

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        agreed = asked if asked in HANDSHAKE else HANDSHAKE[0]
        return {"protocolVersion": agreed, "serverInfo": self._info(), **self._introduction()}

    def _discover(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"supportedVersions": list(VERSIONS), **self._introduction()}

    def _list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": list(self._tools.values())}

    def _ping(self, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Refusal(INVALID_PARAMS, "a call has a name and arguments")
        entry = self._find(name, arguments)
        self._served.add(entry.line)
        return self._outcome(entry)

    # What was recorded

    def _normal(self, name: str, arguments: Mapping[str, Any]) -> Any:
        schema = self._tools.get(name, {}).get("inputSchema")
        return normal_arguments(arguments, self._redactor, schema)

    def _find(self, name: str, arguments: dict[str, Any]) -> Entry:
        given = self._normal(name, arguments)
        found = key(name, given)
        if found not in self._answers:
            found = self._fitting(name, given)
        answers, count = self._answers[found], self._given.get(found, 0)
        if count >= len(answers) and not self._loop:
            times = "once" if len(answers) == 1 else f"{len(answers)} times"
            text = f"{name!r} was recorded {times} with these arguments, and now it came again"
            raise Refusal(INVALID_PARAMS, text, {"line": answers[-1].line})
        self._given[found] = count + 1
        return answers[count % len(answers)]

    def _fitting(self, name: str, given: Any) -> bytes:
        """A recorded call with something blacked out that may be what came now."""
        recorded = self._known.get(name)
        if recorded is None:
            raise self._unknown(name)
        for _, arguments in recorded:
            if has_hidden(arguments) and fits(arguments, given):
                return key(name, arguments)
        entry, found = nearest(given, recorded)
        text = (
            f"{name!r} was not recorded with these arguments: {brief(given)}; "
            f"nearest is line {entry.line}: {told(found)}"
        )
        raise Refusal(INVALID_PARAMS, text, {"line": entry.line})

    def _unknown(self, name: str) -> Refusal:
        near = get_close_matches(name[:200], self._known, 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        text = f"no call of {name!r} was recorded{hint}"
        return Refusal(INVALID_PARAMS, text, {"near": near})

    def _outcome(self, entry: Entry) -> dict[str, Any]:
        if entry.ok is None:
            raise Refusal(INTERNAL_ERROR, f"{entry}: how it ended was not recorded")
        if entry.ok:
            try:
                return self.log.result(entry)
            except NotRecorded as error:
                raise Refusal(INTERNAL_ERROR, f"{entry}: {error}") from None
        text = entry.error or ""
        refused = _RPC_ERROR.fullmatch(text)
        if refused is not None:
            raise Refusal(int(refused[1]), refused[2])
        return {"content": [{"type": "text", "text": text}], "isError": True}


_METHODS: Final[dict[str, Callable[[MockServer, dict[str, Any]], dict[str, Any]]]] = {
    "initialize": MockServer._initialize,
    "server/discover": MockServer._discover,
    "ping": MockServer._ping,
    "tools/list": MockServer._list_tools,
    "tools/call": MockServer._call_tool,
}


def _unsupported(asked: Any) -> Refusal:
    data = {"supported": list(VERSIONS), "requested": str(asked)}
    return Refusal(UNSUPPORTED_VERSION, "unsupported protocol version", data)


def _error(wire_id: Any, refusal: Refusal) -> dict[str, Any]:
    fault: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        fault["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": wire_id, "error": fault}


def _encoded(message: Any) -> bytes:
    return msgspec.json.encode(message) + b"\n"


# Definitions


def _derived(log: Log) -> dict[str, dict[str, Any]]:
    """A list of tools made of what a log shows of them: names, and what their arguments were."""
    seen: dict[str, dict[str, set[str]]] = {}
    for entry in log:
        arguments = seen.setdefault(entry.name, {})
        for name, value in entry.arguments.items():
            arguments.setdefault(name, set()).add("" if has_hidden(value) else _kind(value))
    return {
        name: {"name": name, "inputSchema": {"type": "object", "properties": _typed(arguments)}}
        for name, arguments in seen.items()
    }


def _typed(arguments: dict[str, set[str]]) -> dict[str, Any]:
    """What was blacked out may have been anything."""
    return {
        name: {} if "" in kinds else {"type": sorted(kinds)} for name, kinds in arguments.items()
    }


def _kind(value: Any) -> str:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    return "null" if value is None else kinds.get(type(value), "object")


def _listed(tools: Definitions) -> dict[str, dict[str, Any]]:
    listed = tools.values() if isinstance(tools, Mapping) else tools
    plain = [definition(one) if isinstance(one, Tool) else dict(one) for one in listed]
    for one in plain:
        one.pop("fingerprint", None)
    return {one["name"]: one for one in plain}


# Over stdio


async def serve_stdio(
    mock: MockServer, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None
) -> None:
    """Serve on standard input and output until the input ends, or nobody reads the output."""
    source = _input() if stdin is None else stdin
    target = sys.stdout.buffer if stdout is None else stdout
    loop = asyncio.get_running_loop()
    frames: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        try:
            for frame in iter(source.readline, b""):
                loop.call_soon_threadsafe(frames.put_nowait, frame)
            loop.call_soon_threadsafe(frames.put_nowait, b"")
        except (OSError, ValueError, RuntimeError):
            pass  # the loop, or the input, is gone

    # A daemon: a read that waits for input must not hold up the end.
    threading.Thread(target=read, name="holdfast-stdin", daemon=True).start()
    while frame := await frames.get():
        answer = mock.answer(frame) if frame.strip() else None
        if answer is None:
            continue
        try:
            target.write(answer)
            target.flush()
        except (BrokenPipeError, ConnectionResetError):
            return


def _input() -> BinaryIO:
    """Not sys.stdin itself: a thread may still read at the end, and Python would wait for it."""
    return os.fdopen(os.dup(sys.stdin.fileno()), "rb")

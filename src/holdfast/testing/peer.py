"""A scripted MCP server in memory: a real object, not a mock.

    peer = Peer()

    @peer.tool()
    def add(a: int, b: int) -> str:
        return str(a + b)

    async with holdfast.connect(peer) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

It speaks every revision, or those it is told to. ``on`` replaces the answer to any method,
``SILENCE`` gives none; ``received`` is all that came; ``notify``, ``ask``, ``write`` and
``hang_up`` act of the server's own accord.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from holdfast._core.eras import revisions
from holdfast._core.eras.base import best
from holdfast._core.transports.memory import ServerLine
from holdfast._core.wire import codes, jsonrpc
from holdfast._core.wire.jsonrpc import Id
from holdfast.types.tools import Tool

SILENCE: Final = object()
"""What a handler returns to give no answer at all."""

Handler: TypeAlias = "Callable[[Incoming], Any]"
ToolFunction: TypeAlias = Callable[..., Any]


class Incoming(Struct):
    """A message of the client."""

    method: str
    params: dict[str, Any]
    id: Id | None = None
    connection: int = 0

    @property
    def meta(self) -> dict[str, Any]:
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def stateless(self) -> bool:
        return revisions.PREFIX + "protocolVersion" in self.meta


class PeerError(Exception):
    """Raised by a handler: the error that the client is answered with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message
        self.data: Any = data


class Peer:
    """A server made of Python functions."""

    def __init__(
        self,
        name: str = "peer",
        *,
        versions: Iterable[str] = revisions.VERSIONS,
        capabilities: dict[str, Any] | None = None,
        instructions: str | None = None,
    ) -> None:
        self.name = name
        self.versions: tuple[str, ...] = tuple(versions)
        self.instructions = instructions
        self.capabilities = capabilities
        self.received: list[Incoming] = []
        self.connections: int = 0
        self._line: ServerLine | None = None
        self._tools: dict[str, tuple[Tool, ToolFunction]] = {}
        self._resources: dict[str, dict[str, Any]] = {}
        self._prompts: dict[str, tuple[dict[str, Any], ToolFunction]] = {}
        self._handlers: dict[str, Handler] = {}
        self._asked: dict[Id, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrival: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"<Peer {self.name} {len(self.received)} received>"

    # The script

    def tool(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Callable[[ToolFunction], ToolFunction]:
        """Offer a function as a tool: it is called with the arguments by keyword.

        A string becomes text, anything else structured content; an exception ``is_error``.
        """

        def register(function: ToolFunction) -> ToolFunction:
            tool = Tool.make(
                name or function.__name__,
                description=description or inspect.getdoc(function),
                input_schema=input_schema,
                output_schema=output_schema,
                **fields,
            )
            self._tools[tool.name] = (tool, function)
            return function

        return register

    def resource(
        self,
        uri: str,
        content: str | bytes,
        *,
        name: str | None = None,
        mime_type: str | None = None,
    ) -> None:
        """Offer a text or some bytes as a resource."""
        contents: dict[str, Any] = {"uri": uri}
        if mime_type is not None:
            contents["mimeType"] = mime_type
        if isinstance(content, bytes):
            contents["blob"] = base64.b64encode(content).decode()
        else:
            contents["text"] = content
        self._resources[uri] = {"name": name or uri, **contents}

    def prompt(
        self, name: str | None = None, *, description: str | None = None
    ) -> Callable[[ToolFunction], ToolFunction]:
        """Offer a function as a prompt; its string becomes a message of the user."""

        def register(function: ToolFunction) -> ToolFunction:
            listed = {
                "name": name or function.__name__,
                "arguments": [{"name": one} for one in inspect.signature(function).parameters],
            }
            if description is not None:
                listed["description"] = description
            self._prompts[listed["name"]] = (listed, function)  # type: ignore[index]
            return function

        return register

    def on(self, method: str, handler: Handler | Any) -> None:
        """Answer a method with ``handler(incoming)``, sync or async, or with a fixed value."""
        self._handlers[method] = handler if callable(handler) else lambda _: handler

    # Of its own accord

    @property
    def line(self) -> ServerLine:
        if self._line is None:
            raise RuntimeError("no client is connected")
        return self._line

    def write(self, data: bytes) -> None:
        """Bytes as they are, good or bad."""
        self.line.write(data)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.write(jsonrpc.notification(method, params))

    def progress(self, incoming: Incoming, progress: float, **fields: Any) -> None:
        """Report progress on a request, if its sender wants to hear it."""
        token = incoming.meta.get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": progress, **fields}
            self.notify("notifications/progress", params)

    def respond(self, incoming: Incoming, result: Any) -> None:
        """Answer a request that its handler left in ``SILENCE``, whenever."""
        assert incoming.id is not None
        self.write(jsonrpc.response(incoming.id, result))

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send the client a request and wait for its answer (handshake era)."""
        wire_id = f"peer-{len(self._asked) + 1}"
        self._asked[wire_id] = answer = asyncio.get_running_loop().create_future()
        self.write(jsonrpc.request(wire_id, method, params))
        return await answer

    def hang_up(self, reason: str = "the server hung up") -> None:
        """End the connection, as a crash would."""
        self.line.hang_up(reason)

    async def expect(self, method: str, count: int = 1) -> Incoming:
        """Wait until ``count`` messages of a method have come; the last of them."""
        if self._arrival is None:
            self._arrival = asyncio.Event()
        while True:
            found = [one for one in self.received if one.method == method]
            if len(found) >= count:
                return found[count - 1]
            self._arrival.clear()
            await self._arrival.wait()

    # The transport's side

    def accept(self, line: ServerLine) -> Callable[[bytes], None]:
        self.connections += 1
        self._line = line
        number = self.connections
        return lambda frame: self._take(frame, line, number)

    def _take(self, frame: bytes, line: ServerLine, connection: int) -> None:
        message = msgspec.json.decode(frame)
        if "method" not in message:
            self._settle(message)
            return
        incoming = Incoming(
            message["method"], message.get("params") or {}, message.get("id"), connection
        )
        self.received.append(incoming)
        if self._arrival is not None:
            self._arrival.set()
        task = asyncio.get_running_loop().create_task(self._serve(incoming, line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _settle(self, message: dict[str, Any]) -> None:
        answer = self._asked.pop(message.get("id"), None)  # type: ignore[arg-type]
        if answer is None or answer.done():
            return
        if "error" in message:
            error = message["error"]
            answer.set_exception(PeerError(error["code"], error["message"], error.get("data")))
        else:
            answer.set_result(message["result"])

    async def _serve(self, incoming: Incoming, line: ServerLine) -> None:
        handler = self._handlers.get(incoming.method) or _BUILT_IN.get(incoming.method)
        try:
            if handler is None:
                raise PeerError(codes.METHOD_NOT_FOUND, f"method not found: {incoming.method}")
            own = incoming.method in self._handlers
            result = handler(incoming) if own else handler(self, incoming)  # type: ignore[call-arg, arg-type]
            if isinstance(result, Awaitable):
                result = await result
        except PeerError as error:
            self._reply(incoming, line, error=error)
        except Exception as error:
            self._reply(incoming, line, error=PeerError(codes.INTERNAL_ERROR, str(error)))
        else:
            if result is not SILENCE:
                self._reply(incoming, line, result)

    def _reply(
        self, incoming: Incoming, line: ServerLine, result: Any = None, error: Any = None
    ) -> None:
        if incoming.id is None or not line.open:
            return
        if error is not None:
            frame = jsonrpc.error_response(incoming.id, error.code, error.message, error.data)
            line.write(frame)
            return
        if incoming.stateless and isinstance(result, dict):
            result = {"resultType": "complete", **result}
        line.write(jsonrpc.response(incoming.id, result))

    # What it answers by itself

    def _declared(self) -> dict[str, Any]:
        if self.capabilities is not None:
            return self.capabilities
        declared: dict[str, Any] = {"logging": {}, "completions": {}}
        if self._tools:
            declared["tools"] = {"listChanged": True}
        if self._resources:
            declared["resources"] = {"subscribe": True, "listChanged": True}
        if self._prompts:
            declared["prompts"] = {"listChanged": True}
        return declared

    def _info(self) -> dict[str, str]:
        return {"name": self.name, "version": "1.0"}

    def _initialize(self, incoming: Incoming) -> Any:
        ours = [version for version in revisions.HANDSHAKE if version in self.versions]
        if not ours:
            raise self._unsupported(incoming.params.get("protocolVersion"))
        asked = incoming.params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in ours else ours[0],
            "capabilities": self._declared(),
            "serverInfo": self._info(),
            **({"instructions": self.instructions} if self.instructions else {}),
        }

    def _discover(self, incoming: Incoming) -> Any:
        if not best(self.versions, revisions.STATELESS):
            raise PeerError(codes.METHOD_NOT_FOUND, "method not found: server/discover")
        asked = incoming.meta.get(revisions.PREFIX + "protocolVersion")
        if asked not in self.versions:
            raise self._unsupported(asked)
        return {
            "supportedVersions": list(self.versions),
            "capabilities": self._declared(),
            "_meta": {revisions.SERVER_INFO: self._info()},
            **({"instructions": self.instructions} if self.instructions else {}),
        }

    def _unsupported(self, asked: Any) -> PeerError:
        data = {"supported": list(self.versions), "requested": str(asked)}
        return PeerError(revisions.UNSUPPORTED_VERSION, "Unsupported protocol version", data)

    def _list_tools(self, incoming: Incoming) -> Any:
        return {"tools": [tool for tool, _ in self._tools.values()]}

    async def _call_tool(self, incoming: Incoming) -> Any:
        name = incoming.params.get("name", "")
        if name not in self._tools:
            raise PeerError(codes.INVALID_PARAMS, f"unknown tool: {name}")
        try:
            result = self._tools[name][1](**incoming.params.get("arguments", {}))
            if isinstance(result, Awaitable):
                result = await result
        except PeerError:
            raise
        except Exception as error:
            text = {"type": "text", "text": f"{type(error).__name__}: {error}"}
            return {"content": [text], "isError": True}
        return result if result is SILENCE else _tool_result(result)

    def _list_resources(self, incoming: Incoming) -> Any:
        hidden = ("text", "blob")
        return {
            "resources": [
                {key: value for key, value in one.items() if key not in hidden}
                for one in self._resources.values()
            ]
        }

    def _read_resource(self, incoming: Incoming) -> Any:
        uri = incoming.params.get("uri", "")
        if uri not in self._resources:
            code = codes.INVALID_PARAMS if incoming.stateless else codes.RESOURCE_NOT_FOUND
            raise PeerError(code, "Resource not found", {"uri": uri})
        contents = {key: value for key, value in self._resources[uri].items() if key != "name"}
        return {"contents": [contents]}

    def _list_prompts(self, incoming: Incoming) -> Any:
        return {"prompts": [listed for listed, _ in self._prompts.values()]}

    def _get_prompt(self, incoming: Incoming) -> Any:
        name = incoming.params.get("name", "")
        if name not in self._prompts:
            raise PeerError(codes.INVALID_PARAMS, f"unknown prompt: {name}")
        text = self._prompts[name][1](**incoming.params.get("arguments", {}))
        content = {"type": "text", "text": text}
        return {"messages": [{"role": "user", "content": content}]}

    def _complete(self, incoming: Incoming) -> Any:
        return {"completion": {"values": []}}

    def _listen(self, incoming: Incoming) -> Any:
        params = {
            "_meta": {revisions.SUBSCRIPTION: incoming.id},
            "notifications": incoming.params.get("notifications", {}),
        }
        self.notify("notifications/subscriptions/acknowledged", params)
        return SILENCE

    def _empty(self, incoming: Incoming) -> Any:
        return {}


def _tool_result(result: Any) -> Any:
    if isinstance(result, str):
        return {"content": [{"type": "text", "text": result}]}
    plain = msgspec.to_builtins(result)
    if isinstance(plain, dict) and ("content" in plain or "resultType" in plain):
        return plain
    text = msgspec.json.encode(plain).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": plain}


_BUILT_IN: Final[dict[str, Callable[[Peer, Incoming], Any]]] = {
    "initialize": Peer._initialize,
    "server/discover": Peer._discover,
    "ping": Peer._empty,
    "tools/list": Peer._list_tools,
    "tools/call": Peer._call_tool,
    "resources/list": Peer._list_resources,
    "resources/templates/list": lambda peer, incoming: {"resourceTemplates": []},
    "resources/read": Peer._read_resource,
    "resources/subscribe": Peer._empty,
    "resources/unsubscribe": Peer._empty,
    "prompts/list": Peer._list_prompts,
    "prompts/get": Peer._get_prompt,
    "completion/complete": Peer._complete,
    "logging/setLevel": Peer._empty,
    "subscriptions/listen": Peer._listen,
    "notifications/initialized": Peer._empty,
    "notifications/cancelled": Peer._empty,
    "notifications/roots/list_changed": Peer._empty,
}

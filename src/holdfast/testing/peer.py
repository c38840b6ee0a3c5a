"""A scripted MCP server in memory: a real object, not a mock.

    peer = Peer()

    @peer.tool()
    def add(a: int, b: int) -> str:
        return str(a + b)

    async with holdfast.connect(peer) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

It speaks every revision, or those given as ``versions``. ``on`` replaces the answer to any
method, `SILENCE` gives none; ``received`` lists all messages; ``notify``, ``ask``, ``write``
and ``hang_up`` are actions of the server of its own accord.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from holdfast._core.eras.revisions import SKILLS, TASKS, VERSIONS
from holdfast._core.serve.memory import accept
from holdfast._core.server.catalog import Catalog, Offered, Run, resource, user_message
from holdfast._core.server.request import SILENCE, Handler, ServerRequest, ToolFailure, text_result
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.server.tasks import TaskTable
from holdfast._core.transports.memory import MemoryLink
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import RequestError
from holdfast._core.yaml_reader import read_yaml
from holdfast.types.tools import Tool

Function: TypeAlias = Callable[..., Any]


class Peer:
    """A server made of Python functions.

    Args:
        name: The name that clients are given.
        versions: The revisions to speak.
        capabilities: What to declare instead of what the script offers.
        instructions: Text for the model.

    Attributes:
        received: Every request and notification, in order.
        connections: The number of connections so far.
        catalog: The tools, resources, templates and prompts; change them at any time.
        hints: ``ttlMs`` and ``cacheScope`` by method, for the stateless era; by default no
            result may be cached.
    """

    def __init__(
        self,
        name: str = "peer",
        *,
        versions: Iterable[str] = VERSIONS,
        capabilities: dict[str, Any] | None = None,
        instructions: str | None = None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.received: list[ServerRequest] = []
        self.connections: int = 0
        self.catalog: Catalog = Catalog()
        self._task_tools: set[str] = set()
        tasks = TaskTable(
            self.catalog.call_tool,
            self._task_tools,
            new_id=lambda: uuid.uuid4().hex,
            now=lambda: datetime.now(UTC).isoformat(),
        )
        self._server = Server(
            name,
            {**self.catalog.handlers(), **tasks.handlers()},
            versions=tuple(versions),
            capabilities=self._declared,
            instructions=instructions,
        )
        self.hints: dict[str, dict[str, Any]] = self._server.hints
        self._server.strict = False
        self._server.verbatim = True
        self._server.heard = self._heard
        self._server.grant = lambda filters: filters  # type: ignore[method-assign]
        self._line: MemoryLink | None = None
        self._session: ServerSession | None = None
        self._arrival: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"<Peer {self.name} {len(self.received)} received>"

    @property
    def versions(self) -> tuple[str, ...]:
        """The revisions that the next connection may speak."""
        return self._server.versions

    @versions.setter
    def versions(self, versions: Iterable[str]) -> None:
        self._server.versions = tuple(versions)

    # The script

    def tool(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        task: bool = False,
        **fields: Any,
    ) -> Callable[[Function], Function]:
        """Offer a function as a tool; it is called with the arguments by keyword.

        A string becomes text, any other value structured content; an exception becomes a
        result with ``is_error``, a `RequestError` a JSON-RPC error.

        Args:
            name: The tool's name; that of the function by default.
            description: Its description; the docstring by default.
            input_schema: The JSON Schema of its arguments.
            output_schema: The JSON Schema of its structured result.
            task: Make a task of each call whose client takes one.
            **fields: More fields of `holdfast.types.Tool`.

        Returns:
            A decorator that returns the function unchanged.
        """

        if task:
            fields.setdefault("execution", {"taskSupport": "optional"})

        def register(function: Function) -> Function:
            if task:
                self._task_tools.add(name or function.__name__)
            tool = Tool.make(
                name or function.__name__,
                description=description or inspect.getdoc(function),
                input_schema=input_schema,
                output_schema=output_schema,
                **fields,
            )
            definition = msgspec.json.decode(msgspec.json.encode(tool))
            self.catalog.tools[tool.name] = Offered(definition, _runs(function))
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
        typed: dict[str, Any] = {} if mime_type is None else {"mimeType": mime_type}
        self.catalog.resources[uri] = resource(uri, content, name=name or uri, **typed)

    def skill(self, directory: str, files: dict[str, str | bytes], **entry: Any) -> None:
        """Offer a skill (extension ``io.modelcontextprotocol/skills``) made of files.

        Args:
            directory: The URI of its directory, such as ``skill://refunds``.
            files: Contents by path; SKILL.md begins with YAML frontmatter.
            **entry: Fields of the entry that replace the true ones.
        """
        head = str(files["SKILL.md"]).split("---\n")[1]
        self.catalog.add_skill(directory, files, read_yaml(head)).update(entry)

    def prompt(
        self, name: str | None = None, *, description: str | None = None
    ) -> Callable[[Function], Function]:
        """Offer a function as a prompt; its string becomes a message of the user."""

        def register(function: Function) -> Function:
            arguments = [{"name": argument} for argument in inspect.signature(function).parameters]
            listed: dict[str, Any] = {"name": name or function.__name__, "arguments": arguments}
            if description is not None:
                listed["description"] = description
            run: Run = lambda request, values: user_message(function(**values))  # noqa: E731
            self.catalog.prompts[listed["name"]] = Offered(listed, run)
            return function

        return register

    def on(self, method: str, handler: Handler | Any) -> None:
        """Answer a method with ``handler(request)``, sync or async, or with a fixed value."""
        handles = handler if callable(handler) else lambda request: handler
        self._server.overrides[method] = handles

    # Of its own accord

    @property
    def line(self) -> MemoryLink:
        """The latest connection.

        Raises:
            RuntimeError: No client has connected.
        """
        if self._line is None:
            raise RuntimeError("no client is connected")
        return self._line

    def write(self, data: bytes) -> None:
        """Send bytes as they are, valid or not."""
        self.line.write(data)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification, regardless of subscriptions."""
        self.write(jsonrpc.notification(method, params))

    def progress(self, request: ServerRequest, progress: float, **fields: Any) -> None:
        """Report progress on a request, if its sender asked for it."""
        request.progress(progress, **fields)

    def respond(self, request: ServerRequest, result: Any) -> None:
        """Answer a request that its handler left in `SILENCE`, at any later time."""
        assert request.id is not None
        self.write(jsonrpc.response(request.id, result))

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send the client a request and return its result, whatever the era.

        Raises:
            RequestError: The client answered with an error.
        """
        if self._session is None:
            raise RuntimeError("no client is connected")
        return await self._session.ask(method, params)

    def hang_up(self, reason: str = "the server hung up") -> None:
        """End the connection, as a crash would."""
        self.line.hang_up(reason)

    async def expect(self, method: str, count: int = 1) -> ServerRequest:
        """Wait until ``count`` messages of a method have come; return the last of them."""
        if self._arrival is None:
            self._arrival = asyncio.Event()
        while True:
            arrivals = [request for request in self.received if request.method == method]
            if len(arrivals) >= count:
                return arrivals[count - 1]
            self._arrival.clear()
            await self._arrival.wait()

    # The transport's side

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        """Begin a connection; return the function that takes its frames."""
        self.connections += 1
        self._line = line
        self._session = accept(self._server, line, self.connections)
        return self._session.feed

    def _heard(self, request: ServerRequest) -> None:
        self.received.append(request)
        if self._arrival is not None:
            self._arrival.set()

    def _declared(self) -> dict[str, Any]:
        if self.capabilities is not None:
            return self.capabilities
        declared: dict[str, Any] = {"logging": {}, "completions": {}}
        if self.catalog.tools:
            declared["tools"] = {"listChanged": True}
        if self.catalog.resources or self.catalog.skills:
            declared["resources"] = {"subscribe": True, "listChanged": True}
        if self.catalog.prompts:
            declared["prompts"] = {"listChanged": True}
        extensions: dict[str, Any] = {SKILLS: {}} if self.catalog.skills else {}
        if self._task_tools:
            extensions[TASKS] = {}
            declared["tasks"] = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
        if extensions:
            declared["extensions"] = extensions
        return declared


def _runs(function: Function) -> Run:
    """Run a function as a tool; what it raises is its failure, but for a `RequestError`."""

    async def wait(work: Awaitable[Any]) -> Any:
        with _failures():
            return _tool_result(await work)

    def run(request: ServerRequest, arguments: dict[str, Any]) -> Any:
        with _failures():
            result = function(**arguments)
            return wait(result) if isinstance(result, Awaitable) else _tool_result(result)

    return run


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except RequestError:
        raise
    except Exception as error:
        raise ToolFailure(f"{type(error).__name__}: {error}") from error


def _tool_result(result: Any) -> Any:
    if result is SILENCE:
        return result
    if isinstance(result, str):
        return text_result(result)
    plain = msgspec.to_builtins(result)
    if isinstance(plain, dict) and ("content" in plain or "resultType" in plain):
        return plain
    return {**text_result(msgspec.json.encode(plain).decode()), "structuredContent": plain}

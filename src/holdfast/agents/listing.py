"""The tools of many servers in one list, and what could not be listed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Unpack, cast

import msgspec
from msgspec import Struct

from holdfast._accounts import account_of
from holdfast._core.calls.invocation import Invocation
from holdfast._core.calls.options import CallOptions
from holdfast._core.text import truncate
from holdfast.agents.budget import READ_MORE, ResultBudget, budget_of, read_more
from holdfast.agents.naming import LIMIT, VALID, Names, no_tool
from holdfast.agents.schemas import Losses, object_root, restore
from holdfast.errors import HoldfastError, RequestTimeout, ValidationError
from holdfast.schema.walk import Schema
from holdfast.servers.member import Failure
from holdfast.types.tools import Tool, ToolAnnotations, ToolResult

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.servers.group import Servers

T = TypeVar("T")

CALL: Final = "tools/call"
MOMENT: Final = 0.1
"""Seconds that a call has at least, once its server is up."""

Caller: TypeAlias = Callable[..., Awaitable[ToolResult | Invocation]]
"""Called like `Client.call_tool`, or with the arguments alone."""


class ServerTool(Struct, frozen=True):
    """A tool of one of many servers. ``name`` is what a language model knows it by."""

    server: str
    tool: Tool
    name: str

    @property
    def dotted(self) -> str:
        """The name that ``Servers.call_tool`` takes."""
        return f"{self.server}.{self.tool.name}" if self.server else self.tool.name

    @property
    def description(self) -> str:
        """The tool's description, or else its title."""
        return describe(self.tool)

    @property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments: always an object's, valid, and without references.

        A reference that leads back to itself, or would unfold to thousands of schemas, becomes a
        schema that takes any value.
        """
        return object_root(self.tool.input_schema, Losses(), expand=True)

    @property
    def annotations(self) -> ToolAnnotations | None:
        """The server's hints on what the tool does."""
        return self.tool.annotations

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dotted}>"


class ModelTool(ServerTool, frozen=True):
    """A tool that a language model can be given, whatever library talks to the model.

    Example:
        for tool in await client.model_tools():
            print(tool.name, tool.description, tool.input_schema)
        outcome = await tool.call({"query": "anchor"})
        print(outcome.text)
    """

    caller: Caller
    budget: Callable[[], ResultBudget] | None = None
    """Returns the budget of the caller, which outcomes are cut to."""
    client: Any = None
    """The `Client` of its server, which is waited for; None: there is nothing to wait for."""

    async def call(
        self, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Invocation:
        """Call the tool. A failure is an outcome too; cancelling this cancels the call.

        A server that is down is waited for, within the time of the call: a model that is told of
        each failed attempt has made all of its plan's calls before the server is back.
        """
        budget: ResultBudget | None = None
        began = time.perf_counter()
        try:
            budget = None if self.budget is None else self.budget()
            result = await self._call_when_up(arguments, options)
            outcome = (
                result
                if isinstance(result, Invocation)
                else Invocation.of_result(result, time.perf_counter() - began)
            )
        except HoldfastError as error:
            outcome = Invocation.of_error(error, time.perf_counter() - began)
        return outcome if budget is None else budget.fit(self.tool.name, outcome)

    async def _call_when_up(
        self, arguments: Mapping[str, Any] | None, options: CallOptions
    ) -> ToolResult | Invocation:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                return await self.caller(self.tool.name, arguments, **options)
            except HoldfastError as error:
                if self.client is None or not _is_down(self.client, error):
                    raise
                seconds = options.get("timeout") or options.get("total_timeout")
                if seconds is None:
                    timeouts = self.client._policy.timeouts
                    seconds = self.tool.timeout or timeouts.for_method(CALL)
                remaining = began + seconds - loop.time()
                try:
                    if remaining <= 0:
                        raise
                    await self.client.wait_ready(remaining)
                except RequestTimeout:
                    # It says why the server is down.
                    raise error from None
                options = {**options, "timeout": max(MOMENT, began + seconds - loop.time())}


def _is_down(client: Client, error: HoldfastError) -> bool:
    """Return True if nothing was sent because the server is down, and it may come back."""
    return client.state == "backoff" and not error.outcome_unknown


class SyncModelTool(ServerTool, frozen=True):
    """A `ModelTool` for code without a loop."""

    inner: ModelTool
    wait: Callable[[Coroutine[Any, Any, Invocation]], Invocation]

    def call(
        self, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Invocation:
        """Call the tool. A failure is an outcome too."""
        return self.wait(self.inner.call(arguments, **options))


def describe(tool: Tool) -> str:
    """Return the description of a tool; its title if there is none."""
    hints = tool.annotations
    return tool.description or tool.title or (hints.title if hints else None) or ""


def for_models(tool: Tool) -> bool:
    """Return True if a model may be given the tool.

    MCP Apps (SEP-1865), "Tool visibility": ``_meta.ui.visibility`` without ``"model"`` is for
    the application alone.
    """
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return tool.enabled and (not isinstance(visibility, list | str) or "model" in visibility)


class Partial(list[T]):
    """A list of what the servers gave. ``failures`` has those that gave nothing."""

    failures: tuple[Failure, ...]

    def __init__(self, items: Iterable[T] = (), failures: Iterable[Failure] = ()) -> None:
        super().__init__(items)
        self.failures = tuple(failures)

    @property
    def complete(self) -> bool:
        """True if every server gave its part."""
        return not self.failures


def with_calls(listed: Iterable[tuple[Client, ServerTool]]) -> list[ModelTool]:
    """Return the tools that a model may be given, ready to be called.

    `READ_MORE` is one of them where the results of a client have a budget.
    """
    tools: list[ModelTool] = []
    clients: dict[str, Client] = {}
    for client, server_tool in listed:
        if for_models(server_tool.tool):
            clients[server_tool.server] = client
            budget = partial(budget_of, client)
            call = client.call_tool
            tools.append(
                ModelTool(
                    server_tool.server, server_tool.tool, server_tool.name, call, budget, client
                )
            )
    if any(budget_of(client).wanted for client in clients.values()):
        tools.append(local_tool(READ_MORE, partial(read_more, clients.values())))
    return tools


def local_tool(tool: Tool, work: Caller) -> ModelTool:
    """Return a tool of no server: ``work`` is called with the arguments, checked."""

    async def call(
        name: str, arguments: Mapping[str, Any] | None, **options: Any
    ) -> ToolResult | Invocation:
        from holdfast.schema.faults import lines
        from holdfast.schema.validate import Checker

        # Models often write an object as text.
        restored = restore(dict(arguments or {}), tool.input_schema)
        if faults := Checker(tool.input_schema).faults(restored):
            text = f"{name}: the arguments do not fit its schema:\n{lines(faults)}"
            raise ValidationError(text, data=faults)
        return await work(restored, **options)

    return ModelTool("", tool, tool.name, call)


def tools_of_one(client: Client, tools: Iterable[Tool]) -> Partial[ModelTool]:
    """Return the tools of one server for models, under their own names where models take those."""
    names, listed = Names(), []
    for tool in tools:
        name = tool.name
        taken = name == READ_MORE.name and budget_of(client).wanted
        if taken or not VALID.fullmatch(name) or len(name) > LIMIT:
            name = names.add(client.name, name)
        listed.append((client, ServerTool(client.name, tool, name)))
    return Partial(with_calls(listed))


log: logging.Logger = logging.getLogger("holdfast")


MOST_LISTS: Final = 1000
"""Users whose tools are remembered; the list that is oldest is forgotten first."""


class ToolSource:
    """The tools of a client or of many servers, by name.

    A server that is down keeps the tools that it had: a run must not end because a list could
    not be had between two of its steps.
    """

    def __init__(self, source: Client | Servers) -> None:
        self._source = source
        self._lists: OrderedDict[tuple[str, ...], dict[str, ModelTool]] = OrderedDict()
        """The tools listed last, by the caller's accounts: users may have different tools."""
        self._reported: set[str] = set()
        """The servers that are down, and the tools left out, for which there was a warning."""

    @property
    def _last(self) -> dict[str, ModelTool]:
        return self._lists.get(self._accounts(), {})

    def _accounts(self) -> tuple[str, ...]:
        """Return the caller's account at each server."""
        members = getattr(self._source, "_members", None)
        clients: list[Any] = [self._source]
        clients = clients if members is None else [member.client for member in members.values()]
        return tuple(account_of(client) for client in clients)

    @property
    def name(self) -> str:
        """The name of the server; ``"holdfast"`` for many."""
        return getattr(self._source, "name", "holdfast")

    async def tools(self) -> dict[str, ModelTool]:
        """List the tools.

        Raises:
            HoldfastError: The only server cannot be reached, and it never was.
        """
        try:
            listed = await self._list()
        except HoldfastError as error:
            if not (last := self._last):
                raise
            self._warn(self.name, f"the tools are those listed last: {error}")
            return last
        absent = {failure.server for failure in listed.failures}
        for failure in listed.failures:
            self._warn(failure.server, str(failure))
        # Those that are back are reported again the next time.
        self._reported -= {tool.server for tool in listed} - absent
        former = {name: tool for name, tool in self._last.items() if tool.server in absent}
        tools, whose = {**{tool.name: tool for tool in listed}, **former}, self._accounts()
        self._lists[whose] = tools
        self._lists.move_to_end(whose)
        if len(self._lists) > MOST_LISTS:
            self._lists.popitem(last=False)
        return tools

    async def _list(self) -> Partial[ModelTool]:
        """List the tools; wait for a server that is down, if it never gave any."""
        try:
            return await self._source.model_tools()
        except HoldfastError as error:
            # Many servers do not raise: those that are down are among the failures.
            client = cast("Client", self._source)
            if self._last or not _is_down(client, error):
                raise
            try:
                await client.wait_ready(client._policy.timeouts.for_method("tools/list"))
            except RequestTimeout:
                raise error from None
            return await client.model_tools()

    async def convert(self, build: Callable[[ModelTool], T]) -> list[T]:
        """List the tools as a framework's, made by ``build``; see `convert_each`."""
        return convert_each((await self.tools()).values(), build, self._warn)

    def _warn(self, subject: str, text: str) -> None:
        """Warn once: a framework lists the tools with each turn of a model."""
        if subject not in self._reported:
            self._reported.add(subject)
            log.warning("%s", text)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None, **options: Unpack[CallOptions]
    ) -> Invocation:
        """Call a tool of the list seen last; one that is not there is an outcome too."""
        try:
            tool = self._last.get(name) or (await self.tools()).get(name)
        except HoldfastError as error:
            return Invocation.of_error(error)
        if tool is None:
            return Invocation.of_error(no_tool(name, self._last))
        return await tool.call(arguments, **options)


def convert_each(
    tools: Iterable[ServerTool], build: Callable[[Any], T], warn: Callable[[str, str], None]
) -> list[T]:
    """Return what ``build`` makes of each tool; leave out, with a warning, where it fails.

    A framework checks what it is given, and one tool of one server must not cost it all others.
    """
    built: list[T] = []
    for tool in tools:
        try:
            built.append(build(tool))
        except Exception as error:
            reason = truncate(str(error) or type(error).__name__, 300)
            warn(tool.dotted, f"left out the tool {tool.dotted!r}: {reason}")
    return built


def wire_definition(tool: ServerTool) -> dict[str, Any]:
    """Return a tool as MCP defines it, with nothing in it that is not of the right type."""
    definition: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    optional = {"title": tool.tool.title, "icons": tool.tool.icons, "annotations": tool.annotations}
    for key, value in optional.items():
        if value is not None:
            definition[key] = msgspec.to_builtins(value)
    if tool.tool.meta is not None:
        definition["_meta"] = tool.tool.meta
    output = tool.tool.output_schema
    if output is not None and is_compilable(output):
        definition["outputSchema"] = output
    return definition


def is_compilable(schema: Schema) -> bool:
    """Return True for a valid schema of bounded cost."""
    from holdfast.schema.faults import Unusable
    from holdfast.schema.validate import Checker

    try:
        Checker(schema)
    except Unusable:
        return False
    return True

"""Many servers, side by side: each starts when it is wanted, and fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast._core.calls.handlers import ProgressHandler
from holdfast.agents.listing import Partial, ServerTool
from holdfast.agents.naming import LIMIT, Names, hint, question
from holdfast.client import Client
from holdfast.errors import HoldfastError, RequestTimeout, ValidationError
from holdfast.policies import CacheMode
from holdfast.servers.member import Config, Member, members
from holdfast.servers.status import Failure, Status
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.agents.providers import Shape
    from holdfast.agents.results import Answer
    from holdfast.agents.search import Hit, Index
    from holdfast.agents.toolset import ModelCall, Toolset

T = TypeVar("T")


class Servers:
    """The servers of a configuration, each with a `Client` of its own.

    ``config`` is a mapping of names to targets, clients or options of `holdfast.connect`; the
    path of a configuration file; a `Configuration`; or None for the files in their usual
    places. ``overrides`` are options of `connect` for every client made here: they count more
    than what a file says, and less than a mapping's own.

    Nothing starts before its first use. ``concurrency`` bounds how many servers are started
    or listed at once, ``timeout`` how long one of them may keep a list of all waiting.
    """

    def __init__(
        self,
        config: Config = None,
        *,
        concurrency: int = 16,
        timeout: float = 15.0,
        name_limit: int = LIMIT,
        **overrides: Any,
    ) -> None:
        if concurrency < 1:
            raise ValidationError(f"Servers(concurrency={concurrency}): must be 1 or more")
        self._members = members(config, overrides)
        self._concurrency = concurrency
        self._timeout = timeout
        self._model_names = Names(limit=name_limit)
        self._index: tuple[Any, Index] | None = None

    def __repr__(self) -> str:
        ready = sum(status.is_ready for status in self.statuses)
        return f"<Servers {len(self)}, {ready} ready>"

    # Life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> list[Status]:
        """Start all servers, or some, at once; how each is doing afterwards. Raises for none.

        Without ``timeout`` a server has as long as its own handshake timeout.
        """
        wanted = self._wanted(servers)
        await self._each(wanted, lambda member: _open(member, timeout))
        return [member.status() for member in wanted]

    async def close(self) -> bool:
        """End all servers, at once. Any number of times; True for the call that closed one.

        A client that was given is closed as well.
        """
        ends = asyncio.gather(
            *(member.close() for member in self._members.values()), return_exceptions=True
        )
        # Whoever waits may be cancelled; what has begun to close is closed all the same.
        results = await asyncio.shield(ends)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return any(results)

    # What is known

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Client:
        """The client of a server."""
        return self._member(name).obtain()

    @property
    def statuses(self) -> list[Status]:
        """How every server is doing. Starts nothing."""
        return [member.status() for member in self._members.values()]

    def status(self, name: str) -> Status:
        """How one server is doing. Starts nothing."""
        return self._member(name).status()

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._model_names

    def _member(self, name: str) -> Member:
        found = self._members.get(name)
        if found is None:
            raise ValidationError(f"there is no server {name!r}{hint(name, self._members)}")
        return found

    def _wanted(self, names: Collection[str] | None) -> list[Member]:
        """Those named; otherwise all that are not disabled."""
        if names is None:
            return [member for member in self._members.values() if not member.disabled]
        if isinstance(names, str):
            names = (names,)
        return [self._member(name) for name in dict.fromkeys(names)]

    # Calls

    def resolve(self, name: str) -> tuple[str, str]:
        """Server and tool of ``"server.tool"``. Both may have dots in them: of the servers
        that the name may begin with, the longest is meant."""
        ends = [index for index, letter in enumerate(name) if letter == "."]
        for end in reversed(ends):
            if name[:end] in self._members and end + 1 < len(name):
                return name[:end], name[end + 1 :]
        raise self._unresolved(name)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call ``"server.tool"``, as `Client.call_tool` would."""
        server, tool = self.resolve(name)
        return await self[server].call_tool(
            tool,
            arguments,
            timeout=timeout,
            total_timeout=total_timeout,
            on_progress=on_progress,
            meta=meta,
        )

    def _unresolved(self, name: str) -> ValidationError:
        text = f"no server for the tool {name!r}: it is called as server.tool"
        if self._members:
            text += f", the servers are {', '.join(self._members)}"
        return ValidationError(text + question(self._nearby(name[:200])))

    def _nearby(self, name: str) -> list[str]:
        """What could have been meant: a tool without its server, a server with a slip in it,
        and otherwise any tool that was listed."""
        listed = {
            f"{member.name}.{tool}": tool
            for member in self._members.values()
            if member.client is not None
            for tool in member.client.tools
        }
        server, _, tool = name.partition(".")
        near = get_close_matches(server, list(self._members), 3) if tool else []
        return (
            [dotted for dotted, one in listed.items() if one == name]
            or [f"{one}.{tool}" for one in near]
            or get_close_matches(name, list(listed), 3)
        )

    # All tools

    async def list_tools(
        self,
        servers: Collection[str] | None = None,
        *,
        timeout: float | None = None,
        cache: CacheMode | None = None,
    ) -> Partial[ServerTool]:
        """The tools of all servers, or of some; ``failures`` tells of those that gave none.

        Starts what has to be started. No server keeps the others waiting for longer than
        ``timeout`` seconds.
        """
        wanted = self._wanted(servers)
        limit = self._timeout if timeout is None else timeout
        outcomes = await self._each(wanted, lambda member: _list(member, limit, cache))
        found: Partial[ServerTool] = Partial()
        for member, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, Failure):
                found.failures += (outcome,)
            else:
                found.extend(self._named(member.name, outcome))
        return found

    def _named(self, server: str, tools: Iterable[Tool]) -> Iterator[ServerTool]:
        for tool in tools:
            yield ServerTool(server, tool, self._model_names.add(server, tool.name))

    async def search(
        self, query: str, *, limit: int = 5, servers: Collection[str] | None = None
    ) -> Partial[Hit]:
        """The tools that fit some words best, best first."""
        from holdfast.agents.search import Index, signature

        tools = await self.list_tools(servers)
        now = signature(tools)
        if self._index is None or self._index[0] != now:
            self._index = (now, Index(tools))
        return Partial(self._index[1].search(query, limit), tools.failures)

    # For language models

    async def toolset(
        self, shape: Shape, *, servers: Collection[str] | None = None, **options: Any
    ) -> Toolset:
        """All tools in the shape that a provider wants; `Toolset` has the options."""
        from holdfast.agents.toolset import Toolset

        tools = await self.list_tools(servers)
        return Toolset(shape, tools, failures=tools.failures, **options)

    def finder(self, shape: Shape, **options: Any) -> Toolset:
        """Two tools instead of all: one that searches, and one that calls what was found."""
        from holdfast.agents import meta_tools
        from holdfast.agents.toolset import Toolset

        return Toolset(shape, meta_tools.TOOLS, **options)

    async def perform(self, toolset: Toolset, call: Any) -> Answer:
        """Do what a model asked for, in the provider's own words, and answer in them.

        Whatever goes wrong is told to the model. Only what is no call at all, and so has no
        answer, is raised.
        """
        try:
            read = toolset.read(call)
        except HoldfastError as error:
            return toolset.answer(call, error)
        return toolset.answer(read, await self.run(read))

    async def run(self, call: ModelCall, *, timeout: float | None = None) -> ToolResult:
        """Do what a model asked for. What goes wrong is told in the result, for it to read."""
        from holdfast.agents import meta_tools

        try:
            if not call.server:
                return await meta_tools.run(self, call.tool, call.arguments)
            return await self[call.server].call_tool(call.tool, call.arguments, timeout=timeout)
        except HoldfastError as error:
            return meta_tools.failed(error)

    # Side by side

    async def _each(
        self, wanted: list[Member], work: Callable[[Member], Awaitable[T]]
    ) -> list[T | Failure]:
        """Do something with each of some servers; a failure is a value among the others."""
        places: AbstractAsyncContextManager[None] = asyncio.Semaphore(self._concurrency)

        async def one(member: Member) -> T | Failure:
            async with places:
                try:
                    return await work(member)
                except HoldfastError as error:
                    return member.note(error)
                except Exception as error:
                    # What a handler or a header function raises is one server's trouble too.
                    wrapped = HoldfastError(f"{member.name}: {type(error).__name__}: {error}")
                    wrapped.__cause__ = error
                    return member.note(wrapped)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(member)) for member in wanted]
        return [task.result() for task in tasks]


async def _open(member: Member, timeout: float | None) -> None:
    client = member.obtain()
    try:
        async with asyncio.timeout(timeout):
            await client.open()
    except TimeoutError as error:
        raise _late(member, error, "not ready", timeout) from None


async def _list(member: Member, timeout: float, cache: CacheMode | None) -> list[Tool]:
    client = member.obtain()
    try:
        async with asyncio.timeout(timeout):
            found = await client.list_tools(cache=cache)
    except TimeoutError as error:
        raise _late(member, error, "no list of tools", timeout) from None
    unique = {tool.name: tool for tool in reversed(found) if tool.enabled}
    member.tools = len(unique)
    return list(reversed(unique.values()))


def _late(member: Member, error: TimeoutError, what: str, timeout: float | None) -> HoldfastError:
    """The client's own timeouts say more than ours."""
    if isinstance(error, HoldfastError):
        return error
    return RequestTimeout(f"{member.name}: {what} within {timeout:g} s")

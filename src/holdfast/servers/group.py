"""Many servers, side by side: each starts when it is used, and fails alone."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from holdfast._core.calls.options import CallOptions, require_toolset, require_type
from holdfast._core.eras.revisions import SKILLS
from holdfast._core.text import close_matches
from holdfast._pool import raise_first
from holdfast.agents.listing import Partial, ServerTool
from holdfast.agents.naming import Names, hint, question
from holdfast.client import Client
from holdfast.errors import HoldfastError, RequestTimeout, ValidationError
from holdfast.policies import CacheMode
from holdfast.servers.member import Config, Failure, Member, Status, members
from holdfast.types.skills import Skill, SkillFile
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.bulk.engine import Outcomes, Rows
    from holdfast.agents.listing import ModelTool
    from holdfast.agents.providers import ModelAnswer, Provider
    from holdfast.agents.search import Hit, ToolIndex
    from holdfast.agents.toolset import Toolset

T = TypeVar("T")


class Servers:
    """The servers of a configuration, each with a `Client` of its own.

    Nothing is started before its first use.

    Args:
        config: A mapping of names to targets, clients or options of `holdfast.connect`; the
            path of a configuration file; a `Configuration`; or None for the files in their
            usual places.
        concurrency: Number of servers that are started or listed at once. Default: two for
            each CPU, at least four.
        timeout: Seconds for which one server may delay a list of all tools. Default: as long
            as the server's own timeouts allow.
        **overrides: Options of `connect` for every client made here. They override a file,
            and are overridden by a mapping's own options.

    Raises:
        ValidationError: An argument is of a wrong type, or a server's options are wrong.

    Example:
        ```python
        async with holdfast.Servers({"time": "uvx mcp-server-time"}) as servers:
            print([tool.dotted for tool in await servers.list_tools()])
        ```
    """

    def __init__(
        self,
        config: Config = None,
        *,
        concurrency: int | None = None,
        timeout: float | None = None,
        **overrides: Any,
    ) -> None:
        _positive("concurrency", concurrency, int, "a whole number")
        _positive("timeout", timeout)
        self._members = members(config, overrides)
        # A start is mostly computing: twenty at once on two cores miss every handshake timeout.
        self._concurrency = concurrency or max(4, 2 * (os.cpu_count() or 1))
        self._timeout = timeout
        self._model_names = Names()
        self._index: ToolIndex | None = None

    def __repr__(self) -> str:
        ready = sum(status.is_ready for status in self.statuses)
        return f"<Servers {len(self)}, {ready} ready>"

    # Life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def open(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> list[Status]:
        """Start all servers, or some, side by side, and return the status of each.

        Args:
            servers: Names of those to start. Default: all that are not disabled.
            timeout: Seconds for each. Default: its own handshake timeout.

        Returns:
            The status of each. A server that cannot be started raises nothing here.
        """
        members = self._selected(servers)
        await self._side_by_side(
            members, lambda member: member.obtain().open(), "not ready", timeout
        )
        return [member.status() for member in members]

    async def close(self) -> bool:
        """Close all clients, those that were passed in as well. May be called repeatedly.

        Returns:
            True if this call closed a client.
        """
        ends = asyncio.gather(
            *(member.close() for member in self._members.values()), return_exceptions=True
        )
        # A cancelled caller must not leave servers half closed.
        results = await asyncio.shield(ends)
        raise_first(result for result in results if isinstance(result, BaseException))
        return any(results)

    # What is known

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Client:
        """Return the client of a server, not started.

        Raises:
            ValidationError: There is no server of that name.
        """
        return self._member(name).obtain()

    @property
    def statuses(self) -> list[Status]:
        """The status of every server. Starts nothing."""
        return [member.status() for member in self._members.values()]

    def status(self, name: str) -> Status:
        """Return the status of one server. Starts nothing."""
        return self._member(name).status()

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._model_names

    def _member(self, name: str) -> Member:
        require_type("name", name)
        member = self._members.get(name)
        if member is None:
            raise ValidationError(f"there is no server {name!r}{hint(name, self._members)}")
        return member

    def _selected(self, names: Collection[str] | None) -> list[Member]:
        """Return the named servers; by default all that are not disabled."""
        if names is None:
            return [member for member in self._members.values() if not member.disabled]
        if isinstance(names, str):
            names = (names,)
        require_type("servers", names, Iterable, "a list of names")
        names = tuple(names)
        for name in names:
            require_type("servers", name)
        return [self._member(name) for name in dict.fromkeys(names)]

    # Calls

    def resolve(self, name: str) -> tuple[str, str]:
        """Split ``"server.tool"``. Both may contain dots: the longest matching server wins.

        Raises:
            ValidationError: The name begins with no server's.
        """
        require_type("name", name)
        ends = [index for index, letter in enumerate(name) if letter == "."]
        for end in reversed(ends):
            if name[:end] in self._members and end + 1 < len(name):
                return name[:end], name[end + 1 :]
        text = f"no server for the tool {name!r}: it is called as server.tool"
        if self._members:
            text += f", the servers are {', '.join(self._members)}"
        raise ValidationError(text + question(self._nearby(name[:200])))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call ``"server.tool"``. Options, result and errors are those of `Client.call_tool`."""
        server, tool = self.resolve(name)
        return await self[server].call_tool(tool, arguments, **options)

    def map(
        self,
        tool: str,
        rows: Rows,
        *,
        concurrency: int = 32,
        ordered: bool = False,
        retry: Collection[str] = (),
        **options: Unpack[CallOptions],
    ) -> Outcomes:
        """Call ``"server.tool"`` for each row. Takes and yields what `Client.map` does."""
        from holdfast._core.bulk.engine import bulk_of

        settings: Any = {"concurrency": concurrency, "ordered": ordered, "retry": retry}
        return bulk_of(self.call_tool, tool, rows, options, **settings).outcomes()

    def _nearby(self, name: str) -> list[str]:
        """Return suggestions for an unknown name: a tool without its server, a misspelled server,
        otherwise any tool that was listed."""
        listed = {
            f"{member.name}.{tool}": tool
            for member in self._members.values()
            for tool in (member.client.tools if member.client is not None else ())
        }
        server, _, tool = name.partition(".")
        near = close_matches(server, self._members, 3) if tool else []
        return (
            [dotted for dotted, tool_name in listed.items() if tool_name == name]
            or [f"{server}.{tool}" for server in near]
            or close_matches(name, listed, 3)
        )

    # All tools

    async def list_tools(
        self,
        servers: Collection[str] | None = None,
        *,
        timeout: float | None = None,
        cache: CacheMode | None = None,
    ) -> Partial[ServerTool]:
        """List the tools of all servers, or of some. Starts what has to be started.

        Args:
            servers: Names of those to list. Default: all that are not disabled.
            timeout: Seconds for which one server may delay the others.
            cache: As for `Client.list_tools`.

        Returns:
            The tools; ``failures`` has an entry for each server that gave none.
        """

        async def work(member: Member) -> list[ServerTool]:
            listed = await member.obtain().list_tools(cache=cache)
            unique = {tool.name: tool for tool in reversed(listed) if tool.enabled}
            member.tools = len(unique)
            name, add = member.name, self._model_names.add
            tools = reversed(unique.values())
            return [ServerTool(name, tool, add(name, tool.name)) for tool in tools]

        return await self._listed(servers, work, "no list of tools", timeout)

    async def list_skills(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[Skill]:
        """List the skills of all servers, or of some; reads no file of any of them.

        Takes what `list_tools` takes. A skill is known by ``(skill.server, skill.uri)``.
        """

        async def work(member: Member) -> Sequence[Skill]:
            return await offered_skills(member.obtain())

        return await self._listed(servers, work, "no list of skills", timeout)

    async def read_skill(
        self,
        skill: Skill,
        file: str = "SKILL.md",
        *,
        dynamic: bool = False,
        timeout: float | None = None,
    ) -> SkillFile:
        """Read a file of a skill from the server that it came from, as `Client.read_skill` does."""
        require_type("skill", skill, Skill, "a Skill, from list_skills()")
        client = self[skill.server]
        return await client.read_skill(skill, file, dynamic=dynamic, timeout=timeout)

    async def search(
        self,
        query: str,
        *,
        limit: int = 5,
        servers: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> Partial[Hit]:
        """Return the tools for language models that match some words best, best first.

        Args:
            query: The words.
            limit: The most tools to return.
            servers: As for `list_tools`, and so is ``timeout``.
        """
        from holdfast.agents.listing import for_models
        from holdfast.agents.search import ToolIndex

        require_type("query", query)
        require_type("limit", limit, int, "a whole number")
        listed = await self.list_tools(servers, timeout=timeout)
        tools = [tool for tool in listed if for_models(tool.tool)]
        if self._index is None or self._index.tools != tools:
            self._index = ToolIndex(tools)
        return Partial(self._index.search(query, limit), listed.failures)

    # For language models

    async def model_tools(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Takes what `list_tools` takes.
        """
        from holdfast.agents.listing import with_calls

        listed = await self.list_tools(servers, timeout=timeout)
        return Partial(with_calls((self[tool.server], tool) for tool in listed), listed.failures)

    async def toolset(
        self,
        /,
        shape: Provider,
        *,
        servers: Collection[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Toolset:
        """Return all tools in a provider's format. `Toolset` documents the options."""
        from holdfast.agents.toolset import Toolset

        tools = await self.model_tools(servers, timeout=timeout)
        return Toolset(shape, tools, failures=tools.failures, **options)

    def finder(self, /, shape: Provider, **options: Any) -> Toolset:
        """Return two tools that stand for all: one searches, one calls what was found."""
        from holdfast.agents.search import finder_tools
        from holdfast.agents.toolset import Toolset

        tools = finder_tools(self, fence=bool(options.get("fence")))
        return Toolset(shape, tools, **options)

    async def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it.

        Args:
            toolset: The toolset whose definitions the model was given.
            call: The call in the provider's format, as an object or a dictionary.

        Returns:
            The answer. A failure is part of its message, for the model to read.

        Raises:
            ValidationError: ``call`` is not a call, so there is nothing to answer.
        """
        return await require_toolset(toolset).perform(call)

    # Side by side

    async def _listed(
        self,
        servers: Collection[str] | None,
        work: Callable[[Member], Awaitable[Sequence[T]]],
        missing: str,
        timeout: float | None,
    ) -> Partial[T]:
        """Return what each of some servers lists, in the order of the servers."""
        limit = self._timeout if timeout is None else timeout
        listing: Partial[T] = Partial()
        members = self._selected(servers)
        for outcome in await self._side_by_side(members, work, missing, limit):
            if isinstance(outcome, Failure):
                listing.failures += (outcome,)
            else:
                listing.extend(outcome)
        return listing

    async def _side_by_side(
        self,
        members: list[Member],
        work: Callable[[Member], Awaitable[T]],
        missing: str,
        timeout: float | None,
    ) -> list[T | Failure]:
        """Run work for each of some servers; return failures among the results.

        Many servers that start at once may exceed their own timeouts: those are retried one by
        one, in what is left of the ``timeout`` that each has. ``missing`` is what a server does not
        give in time.
        """
        _positive("timeout", timeout)
        places: AbstractAsyncContextManager[None] = asyncio.Semaphore(self._concurrency)
        loop = asyncio.get_running_loop()
        ends: dict[str, float] = {}

        async def attempt(member: Member) -> T | Failure:
            async with places:
                end = ends.setdefault(member.name, loop.time() + (timeout or math.inf))
                try:
                    async with asyncio.timeout_at(end if timeout else None):
                        return await work(member)
                except HoldfastError as error:
                    return member.note(error)
                except Exception as error:
                    # A handler or a header function may raise anything; the others go on.
                    text = f"{type(error).__name__}: {error}"
                    wrapped = HoldfastError(f"{member.name}: {text}")
                    if timeout and isinstance(error, TimeoutError):
                        wrapped = RequestTimeout(f"{member.name}: {missing} within {timeout:g} s")
                    wrapped.__cause__ = error
                    return member.note(wrapped)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(attempt(member)) for member in members]
        outcomes = [task.result() for task in tasks]
        for index, (member, outcome) in enumerate(zip(members, outcomes, strict=True)):
            late = isinstance(outcome, Failure) and isinstance(outcome.error, TimeoutError)
            remaining = ends[member.name] - loop.time()
            if late and len(members) > 1 and remaining > 0:
                # Through the backoff and one attempt, which gives the reason of a failure.
                policy = member.obtain()._policy
                pause = policy.backoff.first * (1 + policy.backoff.jitter)
                with suppress(HoldfastError):
                    await member.obtain().wait_ready(
                        min(pause + policy.timeouts.handshake, remaining)
                    )
                outcomes[index] = await attempt(member)
        return outcomes


def _positive(name: str, value: Any, kind: Any = int | float, expected: str = "a number") -> None:
    if value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool) or not value > 0:
        raise ValidationError(f"Servers({name}={value!r}): must be {expected}, more than 0")


async def offered_skills(client: Client) -> Sequence[Skill]:
    """Return the skills of a server; none if it does not offer skills."""
    await client.open()
    capabilities = client.server_capabilities
    offered = capabilities is not None and SKILLS in (capabilities.extensions or {})
    return await client.list_skills() if offered else []

"""Many servers, for code without a loop.

Written by tools/sync_face.py from servers/group.py: change that, and run it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from holdfast._core.calls.handlers import threaded
from holdfast._core.calls.options import CallOptions
from holdfast.agents.listing import Partial, ServerTool
from holdfast.agents.naming import Names
from holdfast.policies import CacheMode
from holdfast.servers.group import Servers as AsyncServers
from holdfast.servers.member import Config, Status
from holdfast.sync.client import Client
from holdfast.sync.portal import portal
from holdfast.types.skills import Skill, SkillFile
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast.sync.tools import ModelTool

if TYPE_CHECKING:
    from holdfast.agents.providers import ModelAnswer, Shape
    from holdfast.agents.search import Hit
    from holdfast.agents.toolset import Toolset


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
        if "handlers" in overrides:
            overrides["handlers"] = threaded(overrides["handlers"])
        self._portal = portal()
        self._servers = self._portal.do(
            lambda: AsyncServers(config, concurrency=concurrency, timeout=timeout, **overrides)
        )
        self._portal.keep(self._servers)

    def __repr__(self) -> str:
        return repr(self._servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._servers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def __getitem__(self, name: str) -> Client:
        """The client of a server."""
        return Client(self._portal.do(lambda: self._servers[name]), self._portal)

    def open(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> list[Status]:
        """Start all servers, or some, side by side, and return the status of each.

        Args:
            servers: Names of those to start. Default: all that are not disabled.
            timeout: Seconds for each. Default: its own handshake timeout.

        Returns:
            The status of each. A server that cannot be started raises nothing here.
        """
        return self._portal.run(self._servers.open(servers, timeout=timeout))

    def close(self) -> bool:
        """Close all clients, those that were passed in as well. May be called repeatedly.

        Returns:
            True if this call closed a client.
        """
        return self._portal.end(self._servers, self._servers.close())

    @property
    def statuses(self) -> list[Status]:
        """The status of every server. Starts nothing."""
        return self._servers.statuses

    def status(self, name: str) -> Status:
        """Return the status of one server. Starts nothing."""
        return self._portal.do(lambda: self._servers.status(name))

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._servers.model_names

    def resolve(self, name: str) -> tuple[str, str]:
        """Split ``"server.tool"``. Both may contain dots: the longest matching server wins.

        Raises:
            ValidationError: The name begins with no server's.
        """
        return self._portal.do(lambda: self._servers.resolve(name))

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Call ``"server.tool"``. Options, result and errors are those of `Client.call_tool`."""
        return self._portal.run(self._servers.call_tool(name, arguments, **options))

    def list_tools(
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
        return self._portal.run(self._servers.list_tools(servers, timeout=timeout, cache=cache))

    def list_skills(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[Skill]:
        """List the skills of all servers, or of some; reads no file of any of them.

        Takes what `list_tools` takes. A skill is known by ``(skill.server, skill.uri)``.
        """
        return self._portal.run(self._servers.list_skills(servers, timeout=timeout))

    def read_skill(
        self,
        skill: Skill,
        file: str = "SKILL.md",
        *,
        dynamic: bool = False,
        timeout: float | None = None,
    ) -> SkillFile:
        """Read a file of a skill from the server that it came from, as `Client.read_skill` does."""
        return self._portal.run(
            self._servers.read_skill(skill, file, dynamic=dynamic, timeout=timeout)
        )

    def search(
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
            servers: Names of those to search. Default: all that are not disabled.
            timeout: Seconds for which one server may delay the others.
        """
        return self._portal.run(
            self._servers.search(query, limit=limit, servers=servers, timeout=timeout)
        )

    def model_tools(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Args:
            servers: Names of those to list. Default: all that are not disabled.
            timeout: Seconds for which one server may delay the others.
        """
        from holdfast.sync.tools import bound

        return bound(
            self._portal, self._portal.run(self._servers.model_tools(servers, timeout=timeout))
        )

    def toolset(
        self,
        shape: Shape,
        *,
        servers: Collection[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Toolset:
        """Return all tools in a provider's format. `Toolset` documents the options."""
        return self._portal.run(
            self._servers.toolset(shape, servers=servers, timeout=timeout, **options)
        )

    def finder(self, shape: Shape, **options: Any) -> Toolset:
        """Return two tools that stand for all: one searches, one calls what was found."""
        return self._portal.do(lambda: self._servers.finder(shape, **options))

    def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it.

        Args:
            toolset: The toolset whose definitions the model was given.
            call: The call in the provider's format, as an object or a dictionary.

        Returns:
            The answer. A failure is part of its message, for the model to read.

        Raises:
            ValidationError: ``call`` is not a call, so there is nothing to answer.
        """
        return self._portal.run(self._servers.perform(toolset, call))

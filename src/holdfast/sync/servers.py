"""Many servers, for code without a loop.

Written by tools/sync_face.py from servers/group.py: change those instead.
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
from holdfast.sync.client import Client, bound
from holdfast.sync.portal import Blocking, portal
from holdfast.types.skills import Skill, SkillFile
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast.agents.providers import ModelAnswer, Shape
    from holdfast.agents.search import Hit
    from holdfast.agents.toolset import Toolset
    from holdfast.sync.client import ModelTool


class Servers(Blocking[AsyncServers], of=AsyncServers):
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
        with holdfast.sync.Servers({"time": "uvx mcp-server-time"}) as servers:
            print([tool.dotted for tool in servers.list_tools()])
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
        loop = portal()
        super().__init__(
            loop.do(
                lambda: AsyncServers(config, concurrency=concurrency, timeout=timeout, **overrides)
            ),
            loop,
        )
        loop.keep(self._inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __contains__(self, name: object) -> bool:
        return name in self._inner

    def __getitem__(self, name: str) -> Client:
        """The client of a server."""
        return Client(self._portal.do(lambda: self._inner[name]), self._portal)

    def open(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> list[Status]:
        """Start all servers, or some, side by side, and return the status of each."""
        return self._portal.run(self._inner.open(servers, timeout=timeout))

    def close(self) -> bool:
        """Close all clients, those that were passed in as well. May be called repeatedly."""
        return self._portal.end(self._inner, self._inner.close())

    @property
    def statuses(self) -> list[Status]:
        """The status of every server. Starts nothing."""
        return self._inner.statuses

    def status(self, name: str) -> Status:
        """Return the status of one server. Starts nothing."""
        return self._portal.do(lambda: self._inner.status(name))

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._inner.model_names

    def resolve(self, name: str) -> tuple[str, str]:
        """Split ``"server.tool"``. Both may contain dots: the longest matching server wins."""
        return self._portal.do(lambda: self._inner.resolve(name))

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Call ``"server.tool"``. Options, result and errors are those of `Client.call_tool`."""
        return self._portal.run(self._inner.call_tool(name, arguments, **options))

    def list_tools(
        self,
        servers: Collection[str] | None = None,
        *,
        timeout: float | None = None,
        cache: CacheMode | None = None,
    ) -> Partial[ServerTool]:
        """List the tools of all servers, or of some. Starts what has to be started."""
        return self._portal.run(self._inner.list_tools(servers, timeout=timeout, cache=cache))

    def list_skills(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[Skill]:
        """List the skills of all servers, or of some; reads no file of any of them."""
        return self._portal.run(self._inner.list_skills(servers, timeout=timeout))

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
            self._inner.read_skill(skill, file, dynamic=dynamic, timeout=timeout)
        )

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        servers: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> Partial[Hit]:
        """Return the tools for language models that match some words best, best first."""
        return self._portal.run(
            self._inner.search(query, limit=limit, servers=servers, timeout=timeout)
        )

    def model_tools(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called."""
        return bound(
            self._portal.run(self._inner.model_tools(servers, timeout=timeout)), self._portal
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
            self._inner.toolset(shape, servers=servers, timeout=timeout, **options)
        )

    def finder(self, shape: Shape, **options: Any) -> Toolset:
        """Return two tools that stand for all: one searches, one calls what was found."""
        return self._portal.do(lambda: self._inner.finder(shape, **options))

    def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it."""
        return self._portal.run(self._inner.perform(toolset, call))

"""Many servers, for code without a loop.

Written by tools/sync_face.py from servers/group.py: change that, and run it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast._core.calls.handlers import ProgressHandler
from holdfast.agents.listing import Partial, ServerTool
from holdfast.agents.naming import LIMIT, Names
from holdfast.policies import CacheMode
from holdfast.servers.group import Servers as AsyncServers
from holdfast.servers.member import Config
from holdfast.servers.status import Status
from holdfast.sync.client import Client
from holdfast.sync.handlers import in_threads
from holdfast.sync.portal import portal
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast.agents.providers import Shape
    from holdfast.agents.results import Answer
    from holdfast.agents.search import Hit
    from holdfast.agents.toolset import ModelCall, Toolset


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
        if "handlers" in overrides:
            overrides["handlers"] = in_threads(overrides["handlers"])
        self._portal = portal()
        self._servers = self._portal.do(
            lambda: AsyncServers(
                config, concurrency=concurrency, timeout=timeout, name_limit=name_limit, **overrides
            )
        )
        self._portal.keep(self._servers)

    def __repr__(self) -> str:
        return repr(self._servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        """Start all servers, or some, at once; how each is doing afterwards. Raises for none.

        Without ``timeout`` a server has as long as its own handshake timeout.
        """
        return self._portal.run(self._servers.open(servers, timeout=timeout))

    def close(self) -> bool:
        """End all servers, at once. Any number of times; True for the call that closed one.

        A client that was given is closed as well.
        """
        return self._portal.end(self._servers, self._servers.close())

    @property
    def statuses(self) -> list[Status]:
        """How every server is doing. Starts nothing."""
        return self._servers.statuses

    def status(self, name: str) -> Status:
        """How one server is doing. Starts nothing."""
        return self._portal.do(lambda: self._servers.status(name))

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._servers.model_names

    def resolve(self, name: str) -> tuple[str, str]:
        """Server and tool of ``"server.tool"``. Both may have dots in them: of the servers
        that the name may begin with, the longest is meant."""
        return self._portal.do(lambda: self._servers.resolve(name))

    def call(
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
        return self._portal.run(
            self._servers.call(
                name,
                arguments,
                timeout=timeout,
                total_timeout=total_timeout,
                on_progress=on_progress,
                meta=meta,
            )
        )

    def list_tools(
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
        return self._portal.run(self._servers.list_tools(servers, timeout=timeout, cache=cache))

    def search(
        self, query: str, *, limit: int = 5, servers: Collection[str] | None = None
    ) -> Partial[Hit]:
        """The tools that fit some words best, best first."""
        return self._portal.run(self._servers.search(query, limit=limit, servers=servers))

    def toolset(
        self, shape: Shape, *, servers: Collection[str] | None = None, **options: Any
    ) -> Toolset:
        """All tools in the shape that a provider wants; `Toolset` has the options."""
        return self._portal.run(self._servers.toolset(shape, servers=servers, **options))

    def finder(self, shape: Shape, **options: Any) -> Toolset:
        """Two tools instead of all: one that searches, and one that calls what was found."""
        return self._portal.do(lambda: self._servers.finder(shape, **options))

    def perform(self, toolset: Toolset, call: Any) -> Answer:
        """Do what a model asked for, in the provider's own words, and answer in them.

        Whatever goes wrong is told to the model. Only what is no call at all, and so has no
        answer, is raised.
        """
        return self._portal.run(self._servers.perform(toolset, call))

    def run(self, call: ModelCall, *, timeout: float | None = None) -> ToolResult:
        """Do what a model asked for. What goes wrong is told in the result, for it to read."""
        return self._portal.run(self._servers.run(call, timeout=timeout))

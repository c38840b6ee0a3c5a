"""Many servers, for code without a loop.

Written by tools/sync_face.py from servers/group.py: change those instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from holdfast._core.calls.options import CallOptions
from holdfast.agents.listing import Partial
from holdfast.agents.naming import Names
from holdfast.servers.group import Servers as AsyncServers
from holdfast.servers.member import Config, Status
from holdfast.sync.client import Client, bound
from holdfast.sync.iteration import Outcomes, in_batches
from holdfast.sync.portal import SyncWrapper, blocking, closing, on_loop, portal, with_threads

if TYPE_CHECKING:
    from holdfast._core.bulk.engine import Rows
    from holdfast.agents.listing import SyncModelTool as ModelTool


class Servers(SyncWrapper[AsyncServers]):
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
        overrides = with_threads(overrides)
        if isinstance(config, Mapping):
            config = {name: with_threads(server) for name, server in config.items()}
        loop = portal()
        super().__init__(
            loop.do(
                lambda: AsyncServers(config, concurrency=concurrency, timeout=timeout, **overrides)
            ),
            loop,
        )
        loop.closables.add(self._inner)

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

    open: Final = blocking(AsyncServers.open)
    close: Final = closing(AsyncServers.close)

    @property
    def statuses(self) -> list[Status]:
        """The status of every server. Starts nothing."""
        return self._inner.statuses

    status: Final = on_loop(AsyncServers.status)

    @property
    def model_names(self) -> Names:
        """The names that language models know the listed tools by."""
        return self._inner.model_names

    resolve: Final = on_loop(AsyncServers.resolve)
    call_tool: Final = blocking(AsyncServers.call_tool)

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
        return in_batches(
            self._portal,
            lambda rows: self._inner.map(
                tool, rows, concurrency=concurrency, ordered=ordered, retry=retry, **options
            ),
            rows,
        )

    list_tools: Final = blocking(AsyncServers.list_tools)
    list_skills: Final = blocking(AsyncServers.list_skills)
    read_skill: Final = blocking(AsyncServers.read_skill)
    search: Final = blocking(AsyncServers.search)

    def model_tools(
        self, servers: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Takes what `list_tools` takes.
        """
        return bound(
            self._portal.run(self._inner.model_tools(servers, timeout=timeout)), self._portal
        )

    toolset: Final = blocking(AsyncServers.toolset)
    finder: Final = on_loop(AsyncServers.finder)
    perform: Final = blocking(AsyncServers.perform)

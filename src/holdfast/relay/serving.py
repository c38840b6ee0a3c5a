"""Some servers, ready to be served: to one host on stdio, or to many by the paths of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from holdfast._core.server.server import Server
from holdfast.relay.merging import MergedRelay
from holdfast.relay.sharing import SharedRelay

if TYPE_CHECKING:
    from holdfast._core.serve.http import Endpoint


class ServedHost(Protocol):
    """What one host is served, by one server or by many."""

    @property
    def server(self) -> Server: ...

    async def leave(self) -> None: ...


class ServedRelays:
    """One or more servers, and the ways to them.

    Args:
        servers: The shared relays, by the names that servers are known by.
        finder: Offer three tools that stand for all.
    """

    def __init__(self, servers: Mapping[str, SharedRelay], *, finder: bool = False) -> None:
        self._servers = dict(servers)
        self._finder = finder

    def __repr__(self) -> str:
        return f"<ServedRelays {', '.join(self._servers)}>"

    def join(self, name: str | None = None, *, is_lasting: bool = False) -> ServedHost:
        """Return what a new host is served: one server under its own names, or all, merged.

        Args:
            name: The server; None: all of them.
            is_lasting: As for `SharedRelay.join`.
        """
        names = [*self._servers] if name is None else [name]
        host: ServedHost
        if len(names) == 1:
            host = self._servers[names[0]].join(is_lasting=is_lasting)
        else:
            host = MergedRelay(self._servers, is_lasting=is_lasting)
        if self._finder:
            from holdfast.relay.finding import Finder

            Finder(host.server)
        return host

    def endpoints(self) -> dict[str, Endpoint]:
        """Return what is at each path: ``/`` is all, ``/NAME`` one server."""
        paths: dict[str, str | None] = {f"/{quote(name)}": name for name in self._servers}
        return {
            path: _RelayEndpoint(lambda name=name, **options: self.join(name, **options))
            for path, name in {"/": None, **paths}.items()
        }

    async def close(self) -> None:
        """Have every host leave. The clients are not closed."""
        await asyncio.gather(*(shared.close() for shared in self._servers.values()))


class _RelayEndpoint:
    """One path: each session has its host, all stateless requests share one."""

    def __init__(self, join: Callable[..., ServedHost]) -> None:
        self._join: Any = join
        self._lasting: ServedHost | None = None

    def __repr__(self) -> str:
        return f"<RelayEndpoint {self._lasting!r}>"

    def session(self) -> Server:
        host: ServedHost = self._join()
        return host.server

    def stateless(self) -> Server:
        if self._lasting is None:
            self._lasting = self._join(is_lasting=True)
        return self._lasting.server

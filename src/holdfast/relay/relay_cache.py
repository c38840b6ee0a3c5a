"""Lists and resources that a host is given without asking the server again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from holdfast._core.calls.cache import EVERYTHING, CacheEntry, ResponseCache
from holdfast._core.eras.base import COMPLETE
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.relay.envelope import fields_of

if TYPE_CHECKING:
    from holdfast.relay.passing import Relay

_ROUNDS = frozenset({"requestState", "inputResponses"})
"""Parameters of a request that answers questions: its result is of these answers."""


class RelayCache:
    """The answers of one server that hosts may share, for as long as the client's policy says.

    Args:
        cache: The client's own; the server's notifications of changes end what they are about.
    """

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache

    def __repr__(self) -> str:
        return f"<RelayCache {self._cache.policy!r}>"

    def holds(self, request: ServerRequest) -> bool:
        """Return whether the answer to a request may be one that is there."""
        return request.method in EVERYTHING and _ROUNDS.isdisjoint(request.fields)

    async def answer(
        self, relay: Relay, request: ServerRequest, ask: Callable[[], Awaitable[Raw]]
    ) -> Raw:
        """Return the answer to a request of a host: one that is there, or that of ``ask``."""
        if not self.holds(request):
            return await ask()
        cache, method = self._cache, request.method
        params = {name: value for name, value in request.params.items() if name != "_meta"}
        # A server that is told what each host can do may show each something else.
        params["_meta"] = relay.hop(request)
        entry = await cache.find(method, params)
        if entry is not None and cache.is_fresh(method, params, entry):
            return self._aged(entry)
        version, owners = await cache.version(method, params), cache.owners
        result = await ask()
        is_final = relay.requester.driver.read(method, result) is COMPLETE
        if is_final and owners == cache.owners:
            await cache.put(method, params, result, version)
        return result

    def _aged(self, entry: CacheEntry) -> Raw:
        """Return a result with what is left of the time for which the server said it holds."""
        try:
            fields: dict[str, Any] = dict(fields_of.decode(entry.raw))
        except MALFORMED:
            return Raw(entry.raw)
        if "ttlMs" not in fields:
            return Raw(entry.raw)
        rest = entry.received + entry.ttl - self._cache.clock()
        return Raw(encode({**fields, "ttlMs": max(0, int(rest * 1000))}))

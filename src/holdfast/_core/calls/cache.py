"""The cache of answers: freshness, scope and invalidation.

An entry is fresh for its TTL from when it was received, unless it was invalidated since it
was asked for. That the time of asking counts settles the race between an answer on its way
and the news that it is out of date: the news wins.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import ends_task
from holdfast._core.calls.store import CacheEntry, MemoryStore, Store
from holdfast._core.wire import jsonrpc
from holdfast.policies import Cache, Policy

log: logging.Logger = logging.getLogger("holdfast")

PUBLIC: Final = "public"
READ: Final = "resources/read"
RESOURCES: Final = ("resources/list", "resources/templates/list", "skills/list")
LISTS: Final = ("tools/list", "prompts/list", *RESOURCES)
EVERYTHING: Final = (*LISTS, READ)
UPDATED: Final = "notifications/resources/updated"

CHANGES: Final[dict[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": RESOURCES,
}
"""The methods whose cached results each notification invalidates."""

NEVER: Final = float("-inf")
PATIENCE: Final = 1.0
"""Seconds for a store to answer: a slow one must not cost a call."""
MOST_URIS: Final = 10_000
"""Resources whose invalidation is remembered one by one."""
LONGEST_URI: Final = 2_000
DEEPEST: Final = 20
"""Slashes of a URI: each is a resource that may contain it."""


class AnswerCache:
    """The cached answers of one client."""

    def __init__(
        self,
        policy: Cache,
        server: str,
        context: Callable[[], str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.policy = policy
        self.clock = clock
        self._server = server
        self._context = context
        self._own = MemoryStore(policy.entries, policy.bytes)
        self._store: Store = self._own if policy.store is None else policy.store
        self._invalidated: dict[str, float] = {}
        """The time of the last invalidation of each method."""
        self._updated: dict[str, float] = {}
        """The same for single resources."""
        self._may_hold = policy.store is not None
        """False until the first entry: then looking is not worth it."""

    # Looking

    async def find(
        self, method: str, params: dict[str, Any] | None, until: float = math.inf
    ) -> CacheEntry | None:
        """Return the entry for a request, fresh or not: of this context, else a public one.

        ``until`` is the end of the call's time, on the loop's clock.
        """
        if not self._may_hold:
            return None
        detail = _detail(params)
        found = await self._ask(self._store.get, self._key(self._context(), method, detail), until)
        if found is None:
            found = await self._ask(self._store.get, self._key(PUBLIC, method, detail), until)
        return found

    async def _ask(self, get: Callable[[str], Any], key: str, until: float) -> CacheEntry | None:
        """Return what the store has; whatever it does instead counts as nothing."""
        try:
            if self._store is self._own:
                return await get(key)  # type: ignore[no-any-return]
            async with asyncio.timeout_at(min(until, asyncio.get_running_loop().time() + PATIENCE)):
                found = await get(key)
            if found is not None:
                _entry(found)
        except BaseException as error:
            if ends_task(error):
                raise
            log.exception("the cache's store failed: %r", self._store)
            return None
        return found  # type: ignore[no-any-return]

    def is_fresh(self, method: str, params: dict[str, Any] | None, entry: CacheEntry) -> bool:
        now = self.clock()
        # A clock that was set back would make entries live longer.
        current = entry.received <= now < entry.received + entry.ttl
        return current and self.is_current(method, params, entry.asked)

    def is_current(self, method: str, params: dict[str, Any] | None, asked: float) -> bool:
        """Return True if nothing has been invalidated since it was asked for."""
        return asked > self.invalidated(method, params)

    def invalidated(self, method: str, params: dict[str, Any] | None) -> float:
        """Return when answers to this request were invalidated last."""
        since = self._invalidated.get(method, NEVER)
        if method == READ and self._updated and params is not None:
            since = max(since, self._updated.get(str(params.get("uri")), NEVER))
        return since

    # Storing

    async def put(
        self, method: str, params: dict[str, Any] | None, raw: Raw, asked: float
    ) -> CacheEntry | None:
        """Store an answer, if it may be stored at all."""
        hints = _read_hints(raw)
        ttl = self._ttl(method, hints)
        if ttl <= 0 and not self.policy.serve_stale:
            return None
        entry = CacheEntry(bytes(raw), asked, self.clock(), ttl)
        partition = PUBLIC if hints.scope == PUBLIC else self._context()
        self._may_hold = True
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.put(self._key(partition, method, _detail(params)), entry)
        except BaseException as error:
            if ends_task(error):
                raise
            log.exception("the cache's store failed: %r", self._store)
            return None
        return entry

    def _ttl(self, method: str, hints: Hints) -> float:
        if hints.ttl is None:
            return self.policy.ttl_for(method)
        return min(hints.ttl, self.policy.max_ttl)

    def _key(self, partition: str, method: str, detail: str) -> str:
        return f"{self._server}\n{partition}\n{method}\n{detail}"

    # Invalidating

    def invalidate(self, methods: Iterable[str] = EVERYTHING) -> None:
        """Invalidate the results of ``methods`` that were requested before now."""
        now = self.clock()
        for method in methods:
            self._invalidated[method] = max(now, self._invalidated.get(method, NEVER))

    def noticed(self, method: str, params: Raw | None) -> None:
        """A notification of the server: it may make something out of date."""
        if method == UPDATED:
            self._update(params)
        elif method in CHANGES:
            self.invalidate(CHANGES[method])

    def _update(self, params: Raw | None) -> None:
        """Invalidate a resource, and those that contain it."""
        try:
            uri: str | None = _updated.decode(params).uri  # type: ignore[arg-type]
        except (*jsonrpc.MALFORMED, TypeError):
            uri = None
        if uri is None or len(uri) > LONGEST_URI or uri.count("/") > DEEPEST:
            self.invalidate((READ,))
            return
        now = self.clock()
        for part in _with_parents(uri):
            self._updated[part] = max(now, self._updated.get(part, NEVER))
        if len(self._updated) > MOST_URIS:
            self.invalidate((READ,))
            self._updated.clear()


def _entry(found: object) -> None:
    """Raise if a store gave something that it cannot have been given."""
    if not isinstance(found, CacheEntry):
        raise TypeError(f"{found!r:.80} is not a CacheEntry")
    _hints.decode(found.raw)


def partition(transport: Any, policy: Policy) -> tuple[str, Callable[[], str]]:
    """Return the keys that tell this client's entries in a store from others': server, context.

    Public entries belong to the server; private ones to the context that the application
    names, and to the credentials of the moment. Where those may change with each request
    (``traits.credentials`` is None) and no context is named, nobody can tell whose an entry is,
    and it is not found again.
    """
    if policy.cache.store is None and transport.traits.credentials == "":
        return "", lambda: "own"
    from hashlib import sha256
    from secrets import token_hex

    def digest(*parts: object) -> str:
        return sha256(repr(parts).encode()).hexdigest()[:32]

    server = token_hex(16) if transport.key is None else digest(transport.key)
    whose = token_hex(16) if policy.cache.context is None else policy.cache.context

    def context() -> str:
        found = transport.traits.credentials
        if found is None and policy.cache.context is None:
            return token_hex(16)
        return digest(whose, found)

    return server, context


class Hints(Struct, frozen=True):
    """The caching hints of a response; None: not given."""

    ttl: float | None = None
    """Seconds."""
    scope: str = "private"


_LONGEST_MS: Final = 10**15
"""A number of 400 digits is none that a float can hold."""


def _read_hints(raw: Raw) -> Hints:
    try:
        found = _hints.decode(raw)
    except jsonrpc.MALFORMED:
        return Hints()
    ttl = found.ttlMs
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        return Hints(None if ttl is None else 0.0)
    scope = PUBLIC if found.cacheScope == PUBLIC else "private"
    # Negative counts as 0; so does what is no number at all.
    return Hints(min(ttl, _LONGEST_MS) / 1000 if ttl > 0 else 0.0, scope)


def _with_parents(uri: str) -> list[str]:
    """A URI, and each that it continues at a slash."""
    parts = [uri, uri.rstrip("/")]
    while "/" in parts[-1].partition("://")[2]:
        parent = parts[-1].rpartition("/")[0]
        parts += [parent + "/", parent]
    return parts


def _detail(params: dict[str, Any] | None) -> str:
    return jsonrpc.encode(params or {}).decode()


class _RawHints(Struct):
    ttlMs: Any = None  # noqa: N815
    cacheScope: Any = None  # noqa: N815


class _Updated(Struct):
    uri: str


_hints = msgspec.json.Decoder(_RawHints)
_updated = msgspec.json.Decoder(_Updated)

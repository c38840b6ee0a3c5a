"""The cache of answers: its store, freshness, scope and invalidation.

An entry is fresh for its TTL from when it was received, unless it was invalidated since it
was asked for. That the time of asking counts settles the race between an answer on its way
and the news that it is out of date: the news wins.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import ends_task
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
_LONGEST_MS: Final = 10**15
"""A number of 400 digits is none that a float can hold."""
OVERHEAD: Final = 500
"""Bytes that an entry takes besides its text and its key."""


class CacheEntry(Struct):
    """One answer as it came. Times are seconds since the epoch."""

    raw: bytes
    asked: float
    """The time the request was sent; an invalidation after it makes the entry stale."""
    received: float
    ttl: float
    """Seconds for which it is fresh, from when it was received."""
    memo: Any = None
    """The decoded result, so that it is decoded only once. Never persisted."""


class Store(Protocol):
    """Keeps entries by key. It may forget any of them at any time.

    Keys tell servers and authorization contexts apart, so one store may serve many clients.
    What a store raises is logged and costs a request, never a call.
    """

    async def get(self, key: str) -> CacheEntry | None: ...

    async def put(self, key: str, entry: CacheEntry) -> None: ...


class MemoryStore:
    """Entries in memory, bounded in number and bytes; the least recently used go first."""

    def __init__(self, entries: int = 1000, bytes: int = 64 * 1024 * 1024) -> None:  # noqa: A002
        self._most = entries
        self._room = bytes
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()
        self.used: int = 0
        """Bytes taken."""

    def __repr__(self) -> str:
        return f"<MemoryStore {len(self)} entries, {self.used} bytes>"

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: str) -> CacheEntry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    async def put(self, key: str, entry: CacheEntry) -> None:
        self._drop(key)
        if _size(key, entry) > self._room:
            return
        self._entries[key] = entry
        self.used += _size(key, entry)
        while len(self._entries) > self._most or self.used > self._room:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.used -= _size(key, entry)


def _size(key: str, entry: CacheEntry) -> int:
    """The text, and as much again for what is read from it."""
    return 2 * len(entry.raw) + len(key) + OVERHEAD


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
        found = await self._get(self._key(self._context(), method, detail), until)
        return found or await self._get(self._key(PUBLIC, method, detail), until)

    async def _get(self, key: str, until: float) -> CacheEntry | None:
        """Return what the store has; whatever it does instead counts as nothing."""
        found: CacheEntry | None
        try:
            if self._store is self._own:
                return await self._own.get(key)
            async with asyncio.timeout_at(min(until, asyncio.get_running_loop().time() + PATIENCE)):
                found = await self._store.get(key)
            if found is not None:
                # Whatever a store gives back must be what it was given.
                if not isinstance(found, CacheEntry):
                    raise TypeError(f"{found!r:.80} is not a CacheEntry")
                _hints.decode(found.raw)
        except BaseException as error:
            if ends_task(error):
                raise
            log.exception("the cache's store failed: %r", self._store)
            return None
        return found

    def is_fresh(self, method: str, params: dict[str, Any] | None, entry: CacheEntry) -> bool:
        now = self.clock()
        # A clock that was set back would make entries live longer.
        current = entry.received <= now < entry.received + entry.ttl
        return current and entry.asked > self.invalidated(method, params)

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
        said, public = _read_hints(raw)
        ttl = self.policy.ttl_for(method) if said is None else min(said, self.policy.max_ttl)
        if ttl <= 0 and not self.policy.serve_stale:
            return None
        entry = CacheEntry(bytes(raw), asked, self.clock(), ttl)
        partition = PUBLIC if public else self._context()
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
        if method in CHANGES:
            self.invalidate(CHANGES[method])
        if method != UPDATED:
            return
        uri = updated_uri(params)
        if uri is None or len(uri) > LONGEST_URI or uri.count("/") > DEEPEST:
            self.invalidate((READ,))
            return
        now = self.clock()
        # The resource, and those that contain it.
        for part in _with_parents(uri):
            self._updated[part] = max(now, self._updated.get(part, NEVER))
        if len(self._updated) > MOST_URIS:
            self.invalidate((READ,))
            self._updated.clear()


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


def _read_hints(raw: Raw) -> tuple[float | None, bool]:
    """Return the seconds that a response may be kept, if it says, and whether for everybody."""
    try:
        found = _hints.decode(raw)
    except jsonrpc.MALFORMED:
        return None, False
    ttl = found.ttlMs
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        return None if ttl is None else 0.0, False
    # Negative counts as 0; so does what is no number at all.
    return min(ttl, _LONGEST_MS) / 1000 if ttl > 0 else 0.0, found.cacheScope == PUBLIC


def updated_uri(params: Raw | None) -> str | None:
    """Return the resource that a notification is about; None if that cannot be read."""
    try:
        return None if params is None else _updated.decode(params).uri
    except jsonrpc.MALFORMED:
        return None


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

"""The cache of answers: its store, freshness, scope and invalidation.

An entry is fresh for its TTL from when it was received, unless it was invalidated after it
was requested. The time of the request counts because of a race: a notification that arrives
while the answer is on its way makes that answer stale.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import ends_task
from holdfast._core.wire import jsonrpc
from holdfast.policies import Cache, Policy

log: logging.Logger = logging.getLogger("holdfast")
T = TypeVar("T")

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
"""Seconds for a store to answer: a slow one must not fail a call."""
MOST_URIS: Final = 10_000
"""Resources whose invalidation is remembered one by one."""
LONGEST_URI: Final = 2_000
DEEPEST: Final = 20
"""Slashes of a URI whose parents are invalidated one by one."""
_LONGEST_MS: Final = 10**15
"""A number of 400 digits does not fit into a float."""
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
    An exception of a store is logged, and the request is sent instead; the call does not fail.
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
    """Return the bytes of the text, as many again for the decoded result, and the overhead."""
    return 2 * len(entry.raw) + len(key) + OVERHEAD


class AnswerCache(Struct, eq=False):
    """The cached answers of one client, in its own store or in that of its policy."""

    policy: Cache
    _server: str
    _context: Callable[[], str]
    clock: Callable[[], float] = time.time
    _own: MemoryStore | None = None
    """The client's own store; None until there is a first entry."""
    _invalidated: dict[str, float] = {}
    """The time of the last invalidation of each method."""
    _updated: dict[str, float] = {}
    """The same for single resources."""
    owners: int = 0
    """Changes of the person who is logged in."""

    # Looking

    async def find(
        self, method: str, params: dict[str, Any] | None, until: float = math.inf
    ) -> CacheEntry | None:
        """Return the entry for a request, fresh or not: of this context, else a public one.

        ``until`` is the end of the call's time, on the loop's clock.
        """
        if self._own is None and self.policy.store is None:
            return None
        for partition in (self._context(), PUBLIC):
            key = self._key(partition, method, params)
            if self._own is not None:
                found = await self._own.get(key)
            else:
                found = await self._ask_store(self._checked, key, until=until)
            if found is not None:
                return found
        return None

    async def _checked(self, key: str) -> CacheEntry | None:
        """Return the entry that the policy's store has, if it is one."""
        found: CacheEntry | None = await self.policy.store.get(key)
        if found is not None:
            if not isinstance(found, CacheEntry):
                raise TypeError(f"{found!r:.80} is not a CacheEntry")
            _hints.decode(found.raw)
        return found

    async def _ask_store(
        self, ask: Callable[..., Awaitable[T]], *arguments: Any, until: float = math.inf
    ) -> T | None:
        """Call the policy's store. A failure is logged and counts as no answer."""
        try:
            soon = asyncio.get_running_loop().time() + PATIENCE
            async with asyncio.timeout_at(min(until, soon)):
                return await ask(*arguments)
        except BaseException as error:
            if ends_task(error):
                raise
            log.exception("the cache's store failed: %r", self.policy.store)
            return None

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
        text = bytes(raw)
        said, public = _read_hints(text)
        ttl = self.policy.ttl_for(method) if said is None else min(said, self.policy.max_ttl)
        if ttl <= 0 and not self.policy.serve_stale:
            return None
        entry = CacheEntry(text, asked, self.clock(), ttl)
        key = self._key(PUBLIC if public else self._context(), method, params)
        if self.policy.store is not None:
            return await self._ask_store(self._stored, key, entry)
        if self._own is None:
            self._own = MemoryStore(self.policy.entries, self.policy.bytes)
        await self._own.put(key, entry)
        return entry

    async def _stored(self, key: str, entry: CacheEntry) -> CacheEntry:
        await self.policy.store.put(key, entry)
        return entry

    def _key(self, partition: str, method: str, params: dict[str, Any] | None) -> str:
        detail = jsonrpc.encode(params or {}).decode()
        return f"{self._server}\n{partition}\n{method}\n{detail}"

    # Invalidating

    def invalidate(self, methods: Iterable[str] = EVERYTHING) -> None:
        """Invalidate the results of ``methods`` that were requested before now."""
        now = self.clock()
        for method in methods:
            self._invalidated[method] = max(now, self._invalidated.get(method, NEVER))

    def change_owner(self) -> None:
        """Use no answer to a request that was sent before now: another person has logged in."""
        self.owners += 1
        self.invalidate()

    def noticed(self, method: str, params: Raw | None) -> None:
        """Invalidate what a notification of the server says has changed."""
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
    names, and to the current credentials. If those may change with each request
    (``traits.credentials`` is None) and no context is named, the owner of an entry is unknown,
    and it is never found again.
    """
    if policy.cache.store is None and transport.traits.credentials == "":
        return "", _only_user
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


def _only_user() -> str:
    """Return the context of a client that has one user and a store of its own."""
    return "own"


def _read_hints(text: bytes) -> tuple[float | None, bool]:
    """Return the TTL of a response in seconds, if it has one, and whether it is public."""
    if b"ttlMs" not in text:  # Searching is many times faster than decoding.
        return None, False
    try:
        found = _hints.decode(text)
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
    """Return a URI and those of the directories that it is in."""
    parts = [uri, uri.rstrip("/")]
    while "/" in parts[-1].partition("://")[2]:
        parent = parts[-1].rpartition("/")[0]
        parts += [parent + "/", parent]
    return parts


class _RawHints(Struct):
    ttlMs: Any = None  # noqa: N815
    cacheScope: Any = None  # noqa: N815


class _Updated(Struct):
    uri: str


_hints = msgspec.json.Decoder(_RawHints)
_updated = msgspec.json.Decoder(_Updated)

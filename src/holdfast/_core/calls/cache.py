"""The cache of responses: freshness, scope and invalidation.

An entry is fresh for its TTL from when it was received, unless what it is about changed after it
was requested.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import ends_task
from holdfast._core.wire import jsonrpc
from holdfast.policies import Cache, Policy

if TYPE_CHECKING:
    from holdfast.stores.memory import RecentlyUsed

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

_NO_VERSION: Final = -1
"""The version of an entry that is stale for everybody."""
PATIENCE: Final = 0.25
"""Seconds for a store to answer: a slow one must not fail a call, nor slow every one."""
DOWN_TIME: Final = 5.0
"""Seconds for which a store that failed, or did not answer, is left alone."""
MOST_URIS: Final = 10_000
"""Resources whose invalidation is remembered one by one."""
LONGEST_URI: Final = 2_000
DEEPEST: Final = 20
"""Slashes of a URI whose parents are invalidated one by one."""
_LONGEST_MS: Final = 10**15
"""A number of 400 digits does not fit into a float."""


class CacheEntry(Struct):
    """One response as it came. Times are seconds since the epoch."""

    raw: bytes
    version: int
    """The client's `ResponseVersion.number` when the request was sent: an invalidation after that
    makes the entry stale."""
    received: float
    ttl: float
    """Seconds for which it is fresh, from when it was received."""
    memo: Any = None
    """The decoded result, so that it is decoded only once. Never persisted."""


class ResponseVersion(Struct, frozen=True):
    """What a response is of, taken before its request is sent."""

    number: int
    """Invalidations that this client had seen."""
    tokens: list[str] = []
    """The tokens of its subjects in the policy's store; none without a store."""


class _Stored(Struct, array_like=True):
    """The first line of an entry in the policy's store; the response follows it."""

    tokens: list[str]
    received: float
    ttl: float


# Invalidation, in one process and in many.
#
# A response is stale if what it is about changed after it was *requested*: the notification of a
# change may arrive while the old response is on its way. So each response carries the version of
# its subjects from before its request, and is fresh only as long as that is the version. Its
# subjects are its method (all pages of a list change together), and for a read the URI as well.
#
# Within a client the version is a number that grows with every invalidation. Time would not do:
# two events within one tick of the clock have no order.
#
# Clients that share a store cannot compare numbers, and not their clocks either: those of two
# machines differ by more than a response takes. There the version of a subject is a random token
# in the store. To invalidate is to write a new one; nothing is compared but equality, so two
# clients that invalidate at once need no lock, and a token that the store has lost makes entries
# stale, never fresh. A client whose token could not be written yet uses no entry.
#
#   client A          store             client B
#   reads token 7f
#   requests list ──────────────────►  (server)
#                                      list_changed: writes token c2
#   puts the response with 7f
#                                      reads token c2; finds 7f: stale, asks anew
#
# A reconnect invalidates for everybody, too: whoever missed notifications cannot tell which.


class ResponseCache(Struct, eq=False):
    """The cached responses of one client, in its own memory or in the store of its policy."""

    policy: Cache
    _server: str
    _context: Callable[[], str]
    clock: Callable[[], float] = time.time
    _recent: RecentlyUsed[CacheEntry] | None = None
    """The client's own entries; with a store of the policy, those of it that were decoded."""
    _number: int = 0
    """Invalidations so far."""
    _invalidated: dict[str, int] = {}
    """The number of the last invalidation of each method."""
    _updated: dict[str, int] = {}
    """The same for single resources."""
    owners: int = 0
    """Changes of the person who is logged in."""
    _unpublished: dict[str, int] = {}
    """Subjects whose new tokens have yet to be written to the policy's store, with the number of
    the invalidation. They stay until that is done: whoever looks meanwhile writes them, too."""
    _publishing: asyncio.Task[None] | None = None
    _down_until: float = 0.0
    """The time on the loop's clock until which a store that failed is left alone."""

    # Looking

    async def find(
        self, method: str, params: dict[str, Any] | None, until: float = math.inf
    ) -> CacheEntry | None:
        """Return the entry for a request, fresh or not: of this context, else a public one.

        ``until`` is the end of the call's time, on the loop's clock.
        """
        if self.policy.store is not None:
            return await self._ask_store(self._find_stored, method, params, until=until)
        if self._recent is None:
            return None
        entry = self._recent.get(self._key(self._context(), method, params))
        return entry or self._recent.get(self._key(PUBLIC, method, params))

    async def _find_stored(self, method: str, params: dict[str, Any] | None) -> CacheEntry | None:
        await self._publish()
        number, tokens = self._number, await self._tokens(method, params)
        for partition in (self._context(), PUBLIC):
            key = self._key(partition, method, params)
            data = await self.policy.store.get(key)
            if data is not None:
                return self._decode(key, data, number, tokens)
        return None

    def _decode(self, key: str, data: bytes, number: int, tokens: list[str]) -> CacheEntry:
        """Return the entry that a store has; raise if it is none of ours."""
        line, _, raw = data.partition(b"\n")
        stored = msgspec.json.decode(line, type=_Stored)
        version = number if stored.tokens == tokens else _NO_VERSION
        entry = self._recent.get(key) if self._recent is not None else None
        if entry is None or entry.raw != raw:
            msgspec.json.decode(raw, type=_RawHints)
            entry = CacheEntry(raw, version, stored.received, stored.ttl)
            self._remember(key, entry)
        entry.version, entry.received, entry.ttl = version, stored.received, stored.ttl
        return entry

    async def _ask_store(
        self, ask: Callable[..., Awaitable[T]], *arguments: Any, until: float = math.inf
    ) -> T | None:
        """Use the policy's store. A failure counts as no answer, and is logged once an outage."""
        now = asyncio.get_running_loop().time()
        if now < self._down_until:
            return None
        try:
            async with asyncio.timeout_at(min(until, now + PATIENCE)):
                return await ask(*arguments)
        except BaseException as error:
            if ends_task(error):
                raise
            self._down_until = now + DOWN_TIME
            self._log_failure(error)
            return None

    def _log_failure(self, error: BaseException) -> None:
        """Log why the store is not used; what is no failure of a store has a traceback."""
        from holdfast.stores.base import StoreError, StoreUnreachable

        if isinstance(error, StoreUnreachable):  # which the store has told
            return
        text = "the cache's store failed, and is not used for %g s: %r"
        if isinstance(error, TimeoutError | StoreError):
            reason = str(error) or f"no answer within {PATIENCE:g} s"
            log.warning(f"{text}: %s", DOWN_TIME, self.policy.store, reason)
        else:
            log.error(text, DOWN_TIME, self.policy.store, exc_info=error)

    def is_fresh(self, method: str, params: dict[str, Any] | None, entry: CacheEntry) -> bool:
        now = self.clock()
        # A clock that was set back would make entries live longer.
        current = entry.received <= now < entry.received + entry.ttl
        return current and entry.version >= self.invalidated(method, params)

    def invalidated(self, method: str, params: dict[str, Any] | None) -> int:
        """Return the number of the last invalidation of responses to this request."""
        number = self._invalidated.get(method, 0)
        if method == READ and self._updated and params is not None:
            number = max(number, self._updated.get(str(params.get("uri")), 0))
        return number

    # Storing

    async def version(self, method: str, params: dict[str, Any] | None) -> ResponseVersion | None:
        """Return the version of a response whose request is sent next; None: it is not stored."""
        if self.policy.store is None:
            return ResponseVersion(self._number)
        return await self._ask_store(self._read_version, method, params)

    async def _read_version(
        self, method: str, params: dict[str, Any] | None
    ) -> ResponseVersion | None:
        await self._publish()
        number, tokens = self._number, await self._tokens(method, params)
        for subject, token in zip(_subjects(method, params), tokens, strict=True):
            if not token:
                self._unpublished[subject] = number
        if self._unpublished:
            await self._publish()
            tokens = await self._tokens(method, params)
        return ResponseVersion(number, tokens)

    async def put(
        self,
        method: str,
        params: dict[str, Any] | None,
        raw: Raw,
        version: ResponseVersion | None,
    ) -> CacheEntry | None:
        """Store a response, if it may be stored at all."""
        if version is None:
            return None
        text = bytes(raw)
        stated, public = _read_hints(text)
        ttl = self.policy.ttl_for(method) if stated is None else min(stated, self.policy.max_ttl)
        if ttl <= 0 and not self.policy.serve_stale:
            return None
        entry = CacheEntry(text, version.number, self.clock(), ttl)
        key = self._key(PUBLIC if public else self._context(), method, params)
        if self.policy.store is not None:
            return await self._ask_store(self._put_stored, key, entry, version.tokens)
        self._remember(key, entry)
        return entry

    async def _put_stored(self, key: str, entry: CacheEntry, tokens: list[str]) -> CacheEntry:
        line = msgspec.json.encode(_Stored(tokens, entry.received, entry.ttl))
        # What is stale is served when the server is down, for as long as the longest life.
        ttl = self.policy.max_ttl if self.policy.serve_stale else entry.ttl
        await self.policy.store.put(key, line + b"\n" + entry.raw, max(ttl, entry.ttl))
        self._remember(key, entry)
        return entry

    def _remember(self, key: str, entry: CacheEntry) -> None:
        if self._recent is None:
            from holdfast.stores.memory import RecentlyUsed

            self._recent = RecentlyUsed(self.policy.entries, self.policy.bytes)
        # As many bytes again for the decoded result.
        self._recent.put(key, entry, 2 * len(entry.raw))

    def _key(self, partition: str, method: str, params: dict[str, Any] | None) -> str:
        detail = jsonrpc.encode(params or {}).decode()
        return f"{self._server}\n{partition}\n{method}\n{detail}"

    # Invalidating

    def invalidate(self, methods: Iterable[str] = EVERYTHING) -> None:
        """Invalidate the responses of ``methods`` that were requested before now."""
        self._number += 1
        for method in methods:
            self._invalidated[method] = self._number
            self._announce(method)

    def change_owner(self) -> None:
        """Use no response to a request that was sent before now: another person has logged in."""
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
        self._number += 1
        # The resource, and those that contain it.
        for part in _with_parents(uri):
            self._updated[part] = self._number
            self._announce(_uri_subject(part))
        if len(self._updated) > MOST_URIS:
            self.invalidate((READ,))
            self._updated.clear()

    # Telling others who use the same store

    def _announce(self, subject: str) -> None:
        """Have a new token written for a subject, soon, and before the store is used again."""
        if self.policy.store is None:
            return
        self._unpublished[subject] = self._number
        if len(self._unpublished) > MOST_URIS:
            self._unpublished = dict.fromkeys(EVERYTHING, self._number)
        if self._publishing is None or self._publishing.done():
            with suppress(RuntimeError):  # without a loop: before the store is used again
                loop = asyncio.get_running_loop()
                self._publishing = loop.create_task(self._publish_soon())

    async def _publish_soon(self) -> None:
        await self._ask_store(self._publish)

    async def _publish(self) -> None:
        # A token may be lost: then entries that have it are stale.
        ttl = max(self.policy.max_ttl, 1.0)
        while self._unpublished:
            subject, number = next(iter(self._unpublished.items()))
            token = os.urandom(8).hex().encode()
            await self.policy.store.put(self._token_key(subject), token, ttl)
            # If it was invalidated again meanwhile, it needs another one.
            if self._unpublished.get(subject) == number:
                del self._unpublished[subject]

    async def _tokens(self, method: str, params: dict[str, Any] | None) -> list[str]:
        tokens = [
            await self.policy.store.get(self._token_key(subject))
            for subject in _subjects(method, params)
        ]
        return [(token or b"").decode() for token in tokens]

    def _token_key(self, subject: str) -> str:
        return f"{self._server}\nversion\n{subject}"


def _subjects(method: str, params: dict[str, Any] | None) -> list[str]:
    """Return what a response is about: its method, and the resource that was read."""
    uri = (params or {}).get("uri")
    is_of_resource = method == READ and uri is not None
    return [method, _uri_subject(str(uri))] if is_of_resource else [method]


def _uri_subject(uri: str) -> str:
    return f"{READ}\n{uri}"


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
        credentials = transport.traits.credentials
        if credentials is None and policy.cache.context is None:
            return token_hex(16)
        return digest(whose, credentials)

    return server, context


def _only_user() -> str:
    """Return the context of a client that has one user and a store of its own."""
    return "own"


def _read_hints(text: bytes) -> tuple[float | None, bool]:
    """Return the TTL of a response in seconds, if it has one, and whether it is public."""
    if b"ttlMs" not in text:  # Searching is many times faster than decoding.
        return None, False
    try:
        hints = msgspec.json.decode(text, type=_RawHints)
    except jsonrpc.MALFORMED:
        return None, False
    ttl = hints.ttlMs
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        return None if ttl is None else 0.0, False
    # Negative counts as 0; so does what is no number at all.
    return min(ttl, _LONGEST_MS) / 1000 if ttl > 0 else 0.0, hints.cacheScope == PUBLIC


def updated_uri(params: Raw | None) -> str | None:
    """Return the resource that a notification is about; None if that cannot be read."""
    try:
        return None if params is None else msgspec.json.decode(params, type=_Updated).uri
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

"""Lists and resource reads through the cache, with single flight.

A caller waits for a request that another caller has already sent, unless a tool call has ended
since: it may have changed the answer.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast import types
from holdfast._core.boundary import Call
from holdfast._core.calls.cache import READ, CacheEntry, ResponseCache
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.options import require_type
from holdfast._core.calls.requester import ENDED, UNREADABLE, Requester
from holdfast._core.engine import messages
from holdfast._core.engine.state import State
from holdfast._core.mailbox import log
from holdfast._core.single_flight import SingleFlight
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
)
from holdfast.errors import (
    BackpressureError,
    Hint,
    RequestTimeout,
    ResourceNotFoundError,
    RpcError,
    StateError,
    TransportError,
)
from holdfast.policies import CACHE_MODES, CacheMode, one_of
from holdfast.types.base import Page, Wire, decode_page

if TYPE_CHECKING:
    from holdfast._core.calls.skills import Skills

W = TypeVar("W", bound=Wire)

_UNREACHABLE: Final = (TransportError, RequestTimeout, BackpressureError, StateError)
_PREDEFINED: Final = (PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR)
MOST_FAULTS: Final = 20
"""Malformed items of a page that are logged one by one."""
_NOT_FOUND: Final = (
    r"not ?(be )?found|no such|(not|n't) exist|(not|n't) find|unknown (resource|uri)"
)
"""Compiled when an error needs it, which is rare."""


class Listing(list[W], Generic[W]):
    """Every item of a list.

    Attributes:
        stale: True if this is an old answer, given because the server is down.
        pages: The pages that the items came in.
    """

    stale: bool = False
    pages: tuple[Page[W], ...] = ()


class CachedResponse(Struct):
    """A result, and where it came from."""

    raw: Raw | bytes
    entry: CacheEntry | None = None
    cached: bool = False
    """It came from the cache."""
    stale: bool = False
    memo: Any = None
    """The decoded result, shared by all callers that waited for it."""


class CachedReads(Struct, eq=False):
    """The cached requests of one client."""

    _requester: Requester
    cache: ResponseCache
    shared: bool = True
    """False if each request may have credentials of its own: then one caller's answer is never
    given to another who asks at the same time."""
    begun_calls: int = 0
    """Tool calls that have begun."""
    writes: int = 0
    """Tool calls that have ended."""
    _flights: SingleFlight | None = None
    _skills: Skills | None = None

    @property
    def skills(self) -> Skills:
        """The skills of the server, which few clients ask for."""
        if self._skills is None:
            from holdfast._core.calls.skills import Skills

            self._skills = Skills(self._requester, self)
        return self._skills

    async def fetch(
        self, call: Call, deadline: Deadline, mode: CacheMode | None = None
    ) -> CachedResponse:
        """Return the answer to a request, cached or new."""
        if mode is None:
            mode = self.cache.policy.mode
        elif mode not in CACHE_MODES:
            one_of("cache", mode, CACHE_MODES)
        if mode == "bypass" or self._requester.opener.state in ENDED:
            return CachedResponse((await self._requester.request(call, deadline))[0])
        until = deadline.since + min(deadline.idle, deadline.total)
        entry = await self.cache.find(call.method, call.params, until)
        fresh = entry is not None and self.cache.is_fresh(call.method, call.params, entry)
        if mode == "use" and entry is not None and fresh:
            return CachedResponse(entry.raw, entry, cached=True)
        try:
            return await self._fetch(call, deadline, join=mode == "use" and self.shared)
        except _UNREACHABLE as error:
            down = not isinstance(error, StateError) or error.state == State.BACKOFF
            if entry is None or not (self.cache.policy.serve_stale and down):
                raise
            return CachedResponse(entry.raw, entry, cached=True, stale=True)

    async def read(
        self, uri: str, deadline: Deadline, mode: CacheMode | None = None
    ) -> types.ReadResult:
        """Return the contents of a resource."""
        require_type("uri", uri)
        call = self._requester.call(READ, {"uri": uri}, deadline, about=uri, repeatable=True)
        try:
            answer = await self.fetch(call, deadline, mode)
        except RpcError as error:
            raise not_found(error) from None
        result = self._requester.decode(call, answer.raw, types.ReadResult)
        if answer.cached:
            from holdfast.types.resources import ReadNotes

            result._notes = ReadNotes(cached=True, stale=answer.stale)
        return result

    # Single flight

    async def _fetch(self, call: Call, deadline: Deadline, *, join: bool) -> CachedResponse:
        flights = self._flights = self._flights or SingleFlight(abandon=True)
        while True:
            # A tool call that has ended, or an invalidation, makes it another request.
            changed = self.cache.invalidated(call.method, call.params)
            key = (call.method, tuple((call.params or {}).items()), self.writes, changed)
            leads = not join or key not in flights
            until = None if leads else min(deadline.until, deadline.since + deadline.idle)
            ask = partial(self._ask, call, deadline)
            try:
                async with asyncio.timeout_at(until):
                    return await flights.join(key, ask, anew=leads)
            except RequestTimeout:
                if leads:
                    raise
                # The other caller's time was up; this one's is not.
            except TimeoutError:
                raise messages.timed_out(
                    self._requester.name, call, sent=True, total=False
                ) from None

    async def _ask(self, call: Call, deadline: Deadline) -> CachedResponse:
        version = await self.cache.version(call.method, call.params)
        owners = self.cache.owners
        raw, rounds = await self._requester.request(call, deadline)
        if rounds or owners != self.cache.owners:
            # The result depends on the answers to the server's questions, or is of a person who is
            # not logged in any more.
            return CachedResponse(raw)
        return CachedResponse(raw, await self.cache.put(call.method, call.params, raw, version))

    # Lists

    async def listing(
        self,
        method: str,
        key: str,
        kind: type[W],
        deadline: Deadline,
        mode: CacheMode | None = None,
        *,
        params: dict[str, Any] | None = None,
    ) -> Listing[W]:
        """Return every item of a list, within the limits on pages, items and bytes in all."""
        requester, limits = self._requester, self._requester.policy.limits
        first = call = requester.call(method, params, deadline, repeatable=True)
        listing: Listing[W] = Listing()
        seen: set[str] = set()
        cached, size = False, 0
        while len(listing.pages) < limits.pages:
            try:
                answer = await self.fetch(call, deadline, mode)
            except RpcError as error:
                if not cached or mode == "refresh" or error.code != INVALID_PARAMS:
                    raise
                # Specification, "Pagination": an invalid cursor discards all pages. This one is
                # from a cached page, so the list is read again.
                self.cache.invalidate((method,))
                mode, call, listing, seen, size = "refresh", first, Listing(), set(), 0
                continue
            size += len(answer.raw)
            if size > limits.list_bytes:
                text = f"more than {limits.list_bytes} bytes in all"
                raise requester.broken(call, text, Hint("limits.list_bytes", "sets this"))
            page = self._decode(call, answer, key, kind, limits.list_items)
            listing.extend(page.items)
            if len(listing) > limits.list_items:
                text = f"more than {limits.list_items} items in all"
                raise requester.broken(call, text, Hint("limits.list_items", "sets this"))
            listing.pages += (page,)
            listing.stale = listing.stale or answer.stale
            cached = cached or answer.cached
            cursor = page.next_cursor
            if cursor is None:
                return listing
            if cursor in seen:
                raise requester.broken(call, f"the cursor {cursor!r} came twice")
            seen.add(cursor)
            following = {**(params or {}), "cursor": cursor}
            call = requester.again(msgspec.structs.replace(call, params=following), deadline)
        raise requester.broken(call, f"more than {limits.pages} pages")

    def _decode(
        self, call: Call, answer: CachedResponse, key: str, kind: type[W], most: int
    ) -> Page[W]:
        """Return a page, decoded once for as long as it is cached or shared."""
        entry = answer.entry
        memo = answer.memo if entry is None else entry.memo
        if isinstance(memo, Page):
            return memo
        try:
            page = decode_page(answer.raw, kind, key, most)
        except UNREADABLE as error:
            raise self._requester.broken(call, str(error)) from error
        for fault in page.faults[:MOST_FAULTS]:
            text = "%s: %s: left out %s (number %d): %s"
            name = fault.name or "one without a name"
            log.warning(text, self._requester.name, call.method, name, fault.index, fault.reason)
        if (hidden := len(page.faults) - MOST_FAULTS) > 0:
            log.warning("%s: %s: left out %d more", self._requester.name, call.method, hidden)
        (answer if entry is None else entry).memo = page
        return page


def not_found(error: RpcError) -> RpcError:
    """Return the error for "no such resource", of which servers have many codes.

    Specification, "Resources", "Error Handling": -32002, since 2026-07-28 -32602; others use
    the general server error -32000, or a code of their own (0 is one), with those words. The
    predefined codes (JSON-RPC 2.0 section 5.1) mean something else.
    """
    if error.code not in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
        text = error.message.partition(f"error {error.code}: ")[2].lower().replace("_", " ")
        if error.code in _PREDEFINED or "session" in text or not re.search(_NOT_FOUND, text):
            return error
    return ResourceNotFoundError(error.message, code=error.code, data=error.data)

"""Lists and resources: asked for once by however many want them, kept, and read.

A caller that wants what another one is asking for already waits for that answer, unless a
tool call has ended in between: it may have changed what the answer says.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Call
from holdfast._core.calls.cache import READ, Kept
from holdfast._core.calls.pipeline import UNREADABLE, Pipeline
from holdfast._core.calls.store import CacheEntry
from holdfast._core.engine.state import State
from holdfast._core.mailbox import log
from holdfast._core.wire.codes import INVALID_PARAMS, RESOURCE_NOT_FOUND
from holdfast.errors import (
    BackpressureError,
    HoldfastError,
    RequestTimeout,
    ResourceNotFoundError,
    RpcError,
    StateError,
    TransportError,
)
from holdfast.policies import CacheMode, one_of
from holdfast.types.base import Wire
from holdfast.types.page import Page, decode_page
from holdfast.types.resources import ReadResult

W = TypeVar("W", bound=Wire)

_UNREACHABLE: Final = (TransportError, RequestTimeout, BackpressureError, StateError)
_ENDED: Final = (State.CLOSING, State.CLOSED)


class Listing(list[W], Generic[W]):
    """Every item of a list; ``stale`` if the server could not be asked."""

    stale: bool = False
    pages: tuple[Page[W], ...] = ()


def is_stale(found: Any) -> bool:
    """Whether a list, or a resource, is an old answer, given because the server is down."""
    if isinstance(found, Listing):
        return found.stale
    return bool(getattr(found, "__dict__", {}).get("_stale", False))


class Answer(Struct):
    """A result, and where it came from."""

    raw: Raw | bytes
    entry: CacheEntry | None = None
    kept: bool = False
    """It was not asked for now."""
    stale: bool = False


class _Flight(Struct):
    """A request that others may wait for. Its outcome is None if its owner was cancelled."""

    outcome: asyncio.Future[Answer | HoldfastError | None]
    asked: float
    writes: int


class Reader:
    """The cached requests of one client."""

    def __init__(self, pipeline: Pipeline, kept: Kept) -> None:
        self.kept = kept
        self.writes = 0
        """Tool calls that have ended."""
        self._pipeline = pipeline
        self._flights: dict[tuple[Any, ...], _Flight] = {}

    async def fetch(self, call: Call, mode: CacheMode | None = None) -> Answer:
        """The answer to a request, kept or new."""
        if mode is None:
            mode = self.kept.policy.mode
        else:
            one_of("cache", mode, ("use", "refresh", "bypass"))
        if mode == "bypass" or self._pipeline.state in _ENDED:
            return Answer(await self._pipeline.run(call))
        entry = await self.kept.find(call.method, call.params)
        fresh = entry is not None and self.kept.is_fresh(call.method, call.params, entry)
        if mode == "use" and entry is not None and fresh:
            return Answer(entry.raw, entry, kept=True)
        try:
            return await self._fetch(call, join=mode == "use")
        except _UNREACHABLE as error:
            if entry is None or not self._serves_stale(error):
                raise
            return Answer(entry.raw, entry, kept=True, stale=True)

    def _serves_stale(self, error: HoldfastError) -> bool:
        down = not isinstance(error, StateError) or error.state == State.BACKOFF
        return self.kept.policy.serve_stale and down

    async def read(
        self, uri: str, timeout: float | None = None, mode: CacheMode | None = None
    ) -> ReadResult:
        """The contents of a resource."""
        call = self._pipeline.prepare(READ, {"uri": uri}, about=uri, timeout=timeout)
        call.repeatable = True
        try:
            answer = await self.fetch(call, mode)
        except RpcError as error:
            raise _not_found(error) from None
        result = self._pipeline.decode(call, answer.raw, ReadResult)
        if answer.stale:
            result.__dict__["_stale"] = True
        return result

    # Once for all who want it

    async def _fetch(self, call: Call, *, join: bool) -> Answer:
        key = (call.method, tuple((call.params or {}).items()), call.idle, call.total)
        while True:
            flight = self._flights.get(key)
            if not join or flight is None or not self._may_join(flight, call):
                return await self._lead(key, call)
            outcome = await asyncio.shield(flight.outcome)
            if isinstance(outcome, HoldfastError):
                raise outcome.again()
            if outcome is not None:
                return outcome

    def _may_join(self, flight: _Flight, call: Call) -> bool:
        current = self.kept.is_current(call.method, call.params, flight.asked)
        return current and flight.writes == self.writes

    async def _lead(self, key: tuple[Any, ...], call: Call) -> Answer:
        loop = asyncio.get_running_loop()
        flight = _Flight(loop.create_future(), self.kept.clock(), self.writes)
        self._flights[key] = flight
        outcome: Answer | HoldfastError | None = None
        try:
            outcome = await self._ask(call, flight.asked)
            return outcome
        except HoldfastError as error:
            outcome = error
            raise
        finally:
            if self._flights.get(key) is flight:
                del self._flights[key]
            flight.outcome.set_result(outcome)

    async def _ask(self, call: Call, asked: float) -> Answer:
        params = call.params
        raw = await self._pipeline.run(call)
        if call.params is not params:
            # What came out of rounds of questions depends on the answers to them.
            return Answer(raw)
        return Answer(raw, await self.kept.keep(call.method, params, raw, asked))

    # Lists

    async def listing(
        self, method: str, key: str, kind: type[W], mode: CacheMode | None = None
    ) -> Listing[W]:
        """Every item of a list."""
        try:
            return await self._read(method, key, kind, mode)
        except _CursorGone:
            # The specification: discard all pages and begin again.
            self.kept.invalidate((method,))
            return await self._read(method, key, kind, "refresh")

    async def _read(
        self, method: str, key: str, kind: type[W], mode: CacheMode | None
    ) -> Listing[W]:
        """Page by page. A cursor that comes again, or too many, ends in an error."""
        call = self._pipeline.prepare(method)
        call.repeatable = True
        loop = asyncio.get_running_loop()
        until = loop.time() + call.total
        found: Listing[W] = Listing()
        seen: set[str] = set()
        kept = False
        for _ in range(self._pipeline.policy.limits.pages):
            answer = await self._page(call, mode, kept=kept)
            page = self._decode(call, answer, key, kind)
            found.extend(page.items)
            found.pages += (page,)
            found.stale = found.stale or answer.stale
            kept = kept or answer.kept
            cursor = page.next_cursor
            if cursor is None:
                return found
            if cursor in seen:
                raise self._pipeline.broken(call, f"the cursor {cursor!r} came twice")
            seen.add(cursor)
            total = max(0.001, until - loop.time())
            call = msgspec.structs.replace(call, params={"cursor": cursor}, total=total)
        raise self._pipeline.broken(call, f"more than {self._pipeline.policy.limits.pages} pages")

    async def _page(self, call: Call, mode: CacheMode | None, *, kept: bool) -> Answer:
        try:
            return await self.fetch(call, mode)
        except RpcError as error:
            if kept and call.params is not None and error.code == INVALID_PARAMS:
                raise _CursorGone from error
            raise

    def _decode(self, call: Call, answer: Answer, key: str, kind: type[W]) -> Page[W]:
        """A page, read once as long as it is kept."""
        entry = answer.entry
        if entry is not None and isinstance(entry.memo, Page):
            return entry.memo
        try:
            page = decode_page(answer.raw, kind, key)
        except UNREADABLE as error:
            raise self._pipeline.broken(call, str(error)) from error
        for fault in page.faults:
            text = "%s: %s: left out %s (number %d): %s"
            name = fault.name or "one without a name"
            log.warning(text, self._pipeline.name, call.method, name, fault.index, fault.reason)
        if entry is not None:
            entry.memo = page
        return page


def _not_found(error: RpcError) -> RpcError:
    """Servers say "no such resource" in two ways, by revision."""
    if error.code not in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
        return error
    return ResourceNotFoundError(error.message, code=error.code, data=error.data)


class _CursorGone(Exception):  # noqa: N818  (a signal)
    """A cursor out of a kept page means nothing to the server any more."""

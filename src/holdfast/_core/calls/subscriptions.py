"""Subscriptions: they outlive the link on which they were made.

In the handshake era updates come by themselves once asked for, resource by resource; in the
stateless era they come on one stream that names everything wanted. Either way they are
asked for again after a reconnect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sized
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct, field

from holdfast._core.boundary import Call, LinkChanged
from holdfast._core.calls.cache import updated_uri
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.options import require_type
from holdfast._core.calls.requester import ENDED, UNREADABLE, Requester
from holdfast._core.calls.tools import ToolTable
from holdfast._core.engine.state import State
from holdfast._core.eras.base import Era, OutgoingRequest
from holdfast.errors import (
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    ShutdownError,
    TransportError,
)

if TYPE_CHECKING:
    from holdfast._core.driver import Driver

log: logging.Logger = logging.getLogger("holdfast")

SUBSCRIBE: Final = "resources/subscribe"
LONGEST_PAUSE = 30.0
"""Seconds between attempts at a stream that the server keeps ending."""
MOST_ENDED: Final = 10_000
"""Ended subscriptions whose late updates are recognised."""


class Subscriptions(Struct, eq=False):
    """The subscriptions of one client."""

    _requester: Requester
    _tools: ToolTable
    _listeners: Sized
    """Handlers of notifications: list changes are for them."""
    _uris: set[str] = set()
    _ended: dict[str, None] = {}
    """Resources whose updates are no longer wanted, the latest last."""
    _tasks: set[asyncio.Task[None]] = set()
    _stream: asyncio.Task[None] | None = None
    _turns: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Streams are opened one by one: each names all that is wanted, and replaces another."""
    _request: OutgoingRequest | None = None
    """The request for the stream, as long as the stream is open."""
    _granted: frozenset[str] = frozenset()

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def note(self, uri: str) -> None:
        """Renew a subscription from now on, which the server of this link has confirmed."""
        self._ended.pop(uri, None)
        self._uris.add(uri)

    def forget(self, uri: str) -> None:
        """Do not renew a subscription any more, nor pass its late updates."""
        self._uris.discard(uri)
        self._ended[uri] = None
        if len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    async def subscribe(self, uri: str, deadline: Deadline) -> None:
        require_type("uri", uri)
        self._ended.pop(uri, None)

        async def watch(era: Era) -> None:
            if not era.listens:
                await self._requester.send(era.watch(uri), deadline, uri)
                self.note(uri)
                return
            was_subscribed = uri in self._uris
            self._uris.add(uri)
            try:
                if uri not in await self._open_stream(deadline):
                    self._request = None
                    raise ProtocolError(
                        f"{self._requester.name}: no updates are offered for {uri!r}"
                    )
            except BaseException:
                if not was_subscribed:
                    self._uris.discard(uri)
                raise

        await self._requester.opener.in_era(deadline, watch)

    async def unsubscribe(self, uri: str, deadline: Deadline) -> None:
        require_type("uri", uri)
        was_subscribed = uri in self._uris
        self.forget(uri)

        async def unwatch(era: Era) -> None:
            if not era.listens:
                await self._requester.send(era.unwatch(uri), deadline, uri)
            elif was_subscribed:
                await self._open_stream(deadline)

        await self._requester.opener.in_era(deadline, unwatch)

    def is_unwanted(self, params: Raw | None) -> bool:
        """Return True for the update of a resource whose subscription has been ended."""
        return bool(self._ended) and updated_uri(params) in self._ended

    def changes_wanted(self) -> None:
        """Ask for list changes if the server sends them only to subscribers."""
        if self._requester.opener.state is State.READY:
            self.restore()

    def restore(self) -> None:
        """Subscribe again, on a new link, to everything that was subscribed to before."""
        era = self._requester.opener.era()
        if era is not None and (self._uris or (era.listens and self._changes())):
            self._spawn(self._restore(era))

    async def _restore(self, era: Era) -> None:
        """Subscribe again. A resource that is no longer offered does not affect the others."""
        requester = self._requester
        epoch = requester.driver.epoch
        for uri in [""] if era.listens else sorted(self._uris):
            if requester.driver.epoch != epoch:
                return
            try:
                deadline = requester.deadline(SUBSCRIBE)
                if era.listens:
                    await self._open_stream(deadline)
                elif uri in self._uris:
                    await requester.send(era.watch(uri), deadline, uri)
            except LinkChanged:
                return  # The next connection restores them all.
            except HoldfastError as error:
                log.warning("%s: a subscription was not restored: %s", requester.name, error)

    # The stream of the stateless era

    async def _open_stream(self, deadline: Deadline) -> frozenset[str]:
        """Open a stream for all that is wanted now, then end the one before it.

        When this returns, the server has been told to end the former stream.
        """
        span = min(deadline.idle, deadline.total)
        try:
            async with asyncio.timeout_at(deadline.since + span), self._turns:
                return await self._replace_stream()
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            text = f"{self._requester.name}: the subscription was not acknowledged in {span:g} s"
            raise RequestTimeout(text) from None

    async def _replace_stream(self) -> frozenset[str]:
        driver = self._requester.driver
        era = driver.era
        assert era is not None
        if not era.listens:
            raise LinkChanged(f"{self._requester.name}: the server was replaced by an older one")
        changes = self._changes()
        request = era.listen(self._uris, changes) if self._uris or changes else None
        former, self._stream = self._stream, None
        stands = former is not None and not former.done() and self._request is not None
        if stands and request == self._request:
            self._stream = former
            return self._granted
        granted: frozenset[str] = frozenset()
        if request is not None:
            acknowledged: asyncio.Future[frozenset[str]] = driver.loop.create_future()

            def ended(_: asyncio.Task[None]) -> None:
                if acknowledged.done():
                    return
                what = "the client was closed"
                kind: type[HoldfastError] = ShutdownError
                if driver.state not in ENDED:
                    what, kind = "the connection was lost", TransportError
                text = f"{what} before the subscription was acknowledged"
                acknowledged.set_exception(kind(f"{self._requester.name}: {text}"))

            self._stream = stream = self._spawn(self._listen(driver, request, acknowledged))
            stream.add_done_callback(ended)
            try:
                granted = await acknowledged
            except BaseException:
                # The former stream, if any, stays.
                stream.cancel()
                self._stream = former
                raise
        self._request, self._granted = request, granted
        if former is not None:
            former.cancel()
            await asyncio.wait([former])
        return granted

    async def _listen(
        self,
        driver: Driver,
        request: OutgoingRequest,
        acknowledged: asyncio.Future[frozenset[str]],
    ) -> None:
        """Keep the stream open; reopen it when the server ends it, with growing pauses.

        It ends with the connection: the next one may be in another era.
        """
        name, epoch, pause = self._requester.name, driver.epoch, 1.0

        def on_related(params: Raw) -> None:
            nonlocal pause
            pause = 1.0
            if not acknowledged.done():
                acknowledged.set_result(_granted(params))

        while driver.state is State.READY and driver.epoch == epoch:
            try:
                call = Call(request.method, request.params, lasting=True, epoch=epoch)
                await driver.request(call, on_related=on_related)
                ending: Exception = ProtocolError(f"{name}: the server ended the subscription")
            except (HoldfastError, LinkChanged) as error:
                ending = error
            if not acknowledged.done():
                acknowledged.set_exception(ending)
                return
            log.debug("%s: the subscription ended: %s", name, ending)
            if self._stream is asyncio.current_task():
                self._request = None
            # Over HTTP this may be the only sign that the server was replaced.
            self._tools.disconnected()
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _changes(self) -> list[str]:
        """Return the list changes to subscribe to: those offered, if anything here uses them."""
        facts = self._requester.driver.facts
        is_used = self._listeners or self._tools.guarded or self._requester.policy.cache.watch
        if not is_used or facts is None:
            return []
        return [f"{name}ListChanged" for name in facts.changing]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("%s: a subscription failed", self._requester.name, exc_info=error)

        task: asyncio.Task[None] = self._requester.driver.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended)
        return task


def _granted(params: Raw) -> frozenset[str]:
    """Return the resources that an acknowledgement covers."""
    try:
        return frozenset(msgspec.json.decode(params)["notifications"]["resourceSubscriptions"])
    except (*UNREADABLE, KeyError, TypeError):
        return frozenset()

"""What stands between calls and outlives a link: subscriptions.

In the handshake era updates come by themselves once asked for, resource by resource; in the
stateless era they come on one stream that names everything wanted. Either way they are
asked for again after a reconnect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Call
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.driver import Driver
from holdfast._core.engine.state import State
from holdfast._core.eras.base import OutgoingRequest
from holdfast.errors import HoldfastError, ProtocolError, RequestTimeout

log: logging.Logger = logging.getLogger("holdfast")

LONGEST_PAUSE = 30.0
"""Seconds between attempts at a stream that the server keeps ending."""


class Standing:
    """The subscriptions of one client."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._uris: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stream: asyncio.Task[None] | None = None
        pipeline.reception.on_ready = self.restore

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def subscribe(self, uri: str) -> None:
        era = await self._pipeline.connected()
        if era.listens:
            await self._add_to_stream(self._pipeline.driver, uri)
        else:
            await self._ask(era.watch(uri), uri)
            self._uris.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        known = uri in self._uris
        self._uris.discard(uri)
        era = await self._pipeline.connected()
        if not era.listens:
            await self._ask(era.unwatch(uri), uri)
        elif known:
            await self._open_stream(self._pipeline.driver)

    def changes_wanted(self) -> None:
        """Somebody listens for changes now: where they must be asked for, do so."""
        driver = self._pipeline.started
        if driver is not None and driver.engine.state is State.READY:
            self.restore()

    def restore(self) -> None:
        """A new link is ready: ask again for all that was asked for before."""
        driver = self._pipeline.driver
        era = driver.engine.era
        if era is None or not (self._uris or (era.listens and self._changes(driver))):
            return
        self._spawn(self._restore(driver))

    async def _restore(self, driver: Driver) -> None:
        era = driver.engine.era
        assert era is not None
        try:
            if era.listens:
                await self._open_stream(driver)
                return
            for uri in sorted(self._uris):
                await self._ask(era.watch(uri), uri)
        except HoldfastError as error:
            log.warning("%s: a subscription was not restored: %s", driver.engine.name, error)

    async def _ask(self, request: OutgoingRequest, uri: str) -> None:
        await self._pipeline.run(self._call(request, about=uri))

    # The stream of the stateless era

    async def _add_to_stream(self, driver: Driver, uri: str) -> None:
        known = uri in self._uris
        self._uris.add(uri)
        try:
            granted = await self._open_stream(driver)
            if uri not in granted:
                raise ProtocolError(f"{driver.engine.name}: no updates are offered for {uri!r}")
        except BaseException:
            if not known:
                self._uris.discard(uri)
            raise

    async def _open_stream(self, driver: Driver) -> frozenset[str]:
        """Open a stream for all that is wanted now; the one before ends when this one stands."""
        era = driver.engine.era
        assert era is not None
        former, self._stream = self._stream, None
        changes = self._changes(driver)
        granted: frozenset[str] = frozenset()
        if self._uris or changes:
            acknowledged: asyncio.Future[frozenset[str]] = driver.loop.create_future()
            request = era.listen(self._uris, changes)
            self._stream = self._spawn(self._listen(driver, request, acknowledged))
            granted = await self._acknowledgement(driver, acknowledged)
        if former is not None:
            former.cancel()
        return granted

    async def _acknowledgement(
        self, driver: Driver, acknowledged: asyncio.Future[frozenset[str]]
    ) -> frozenset[str]:
        span = self._pipeline.policy.timeouts.for_method("resources/subscribe")
        try:
            async with asyncio.timeout(span):
                return await acknowledged
        except TimeoutError:
            if self._stream is not None:
                self._stream.cancel()
            text = f"{driver.engine.name}: the subscription was not acknowledged in {span:g} s"
            raise RequestTimeout(text) from None

    async def _listen(
        self, driver: Driver, request: OutgoingRequest, acknowledged: asyncio.Future[frozenset[str]]
    ) -> None:
        """Hold the stream; open it again when the server ends it, with growing pauses."""
        pauses = _pauses()

        def on_related(params: Raw) -> None:
            nonlocal pauses
            pauses = _pauses()
            if not acknowledged.done():
                acknowledged.set_result(_granted(params))

        while driver.engine.state is State.READY:
            try:
                call = self._call(request, lasting=True)
                await driver.request(call, on_related=on_related)
                if not acknowledged.done():
                    text = f"{driver.engine.name}: the subscription ended unacknowledged"
                    acknowledged.set_exception(ProtocolError(text))
                    return
            except HoldfastError as error:
                if not acknowledged.done():
                    acknowledged.set_exception(error)
                    return
                log.debug("%s: the subscription ended: %s", driver.engine.name, error)
            await asyncio.sleep(next(pauses))

    def _changes(self, driver: Driver) -> list[str]:
        """The list changes to ask for: what the server offers, if anybody listens."""
        wanted = self._pipeline.reception.listening or self._pipeline.policy.cache.watch
        if not wanted or driver.engine.facts is None:
            return []
        try:
            offered = _capabilities.decode(driver.engine.facts.capabilities)
        except msgspec.DecodeError:
            return []
        return [
            f"{kind}ListChanged"
            for kind in ("tools", "prompts", "resources")
            if getattr(offered, kind).listChanged
        ]

    def _call(self, request: OutgoingRequest, *, about: str = "", lasting: bool = False) -> Call:
        times = self._pipeline.policy.timeouts
        return Call(
            request.method,
            request.params,
            idle=times.for_method(request.method),
            total=times.total,
            about=about,
            lasting=lasting,
        )

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._pipeline.driver.loop.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _pauses() -> Iterator[float]:
    pause = 1.0
    while True:
        yield pause
        pause = min(LONGEST_PAUSE, pause * 2)


def _granted(params: Raw) -> frozenset[str]:
    try:
        return frozenset(_acknowledged.decode(params).notifications.resourceSubscriptions)
    except msgspec.DecodeError:
        return frozenset()


class _Filter(Struct):
    resourceSubscriptions: list[str] = []  # noqa: N815


class _Acknowledged(Struct):
    notifications: _Filter = msgspec.field(default_factory=_Filter)


class _Capability(Struct):
    listChanged: bool = False  # noqa: N815


class _Capabilities(Struct):
    tools: _Capability = msgspec.field(default_factory=_Capability)
    prompts: _Capability = msgspec.field(default_factory=_Capability)
    resources: _Capability = msgspec.field(default_factory=_Capability)


_acknowledged = msgspec.json.Decoder(_Acknowledged)
_capabilities = msgspec.json.Decoder(_Capabilities)

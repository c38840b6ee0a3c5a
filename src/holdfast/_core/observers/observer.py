"""One request as observers see it: events, and a span where there is tracing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, Protocol

from msgspec import Raw

from holdfast._core.boundary import Call, Moved
from holdfast.errors import HoldfastError
from holdfast.events import Events, RequestException, RequestStart, RequestStop


class Span(Protocol):
    """One request, being traced."""

    def end(self, raw: Raw) -> None: ...
    def fail(self, error: BaseException) -> None: ...


class Tracer(Protocol):
    """Makes spans; ``begin`` may add to what the request carries."""

    def begin(self, call: Call, correlation: str) -> Span: ...
    def moved(self, moved: Moved) -> None: ...


class Observation:
    """Who watches the requests of one client. Nothing is done while nobody does."""

    def __init__(self, name: str) -> None:
        self.events: Events = Events()
        self.tracer: Tracer | None = None
        self._name = name
        self._count = 0

    async def watch(self, call: Call, correlation: str, work: Awaitable[Raw]) -> Raw:
        """Run a request, and tell of its beginning and its end."""
        self._count += 1
        facts: dict[str, Any] = {
            "client": self._name,
            "method": call.method,
            "about": call.about,
            "id": self._count,
            "correlation_id": correlation,
        }
        span = None if self.tracer is None else self.tracer.begin(call, correlation)
        if self.events.requests:
            self.events.emit(RequestStart(**facts, time=time.time()))
        begun = time.perf_counter()
        try:
            raw = await work
        except BaseException as error:
            duration = time.perf_counter() - begun
            if span is not None:
                span.fail(error)
            if self.events.requests:
                why = reason(error)
                event = RequestException(**facts, duration=duration, reason=why, error=error)
                self.events.emit(event)
            raise
        duration = time.perf_counter() - begun
        if span is not None:
            span.end(raw)
        if self.events.requests:
            self.events.emit(RequestStop(**facts, duration=duration))
        return raw


def correlation_id() -> str:
    """A new name for one call."""
    from secrets import token_hex

    return token_hex(8)


def reason(error: BaseException) -> str:
    """How a call ended that did not end well, in one word."""
    if isinstance(error, HoldfastError):
        return error.kind
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__

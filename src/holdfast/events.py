"""What happens, told to whoever listens: a stable set of events.

    request.start           a request is about to go out
    request.stop            its answer came
    request.exception       it ended without one, or with an error
    connection.transition   the connection's state changed
    server.starting         the server is still being downloaded, built or started
    notification.received   the server told us something
    protocol.violation      the server did what it must not; it was dropped

Nothing of this is made while nobody listens.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

log: logging.Logger = logging.getLogger("holdfast")


class Event(Struct, frozen=True, kw_only=True):
    """What all events have: a ``name`` that stays, and the client's name."""

    name: ClassVar[str] = ""

    client: str


class RequestStart(Event, frozen=True, kw_only=True):
    """``id`` numbers the client's requests; ``time`` is seconds since the epoch.

    All events of one call, its audit record included, have the same ``correlation_id``.
    """

    name: ClassVar[str] = "request.start"

    method: str
    about: str
    id: int
    correlation_id: str
    time: float


class RequestStop(Event, frozen=True, kw_only=True):
    name: ClassVar[str] = "request.stop"

    method: str
    about: str
    id: int
    correlation_id: str
    duration: float


class RequestException(Event, frozen=True, kw_only=True):
    """``reason`` is the error's kind, or ``"cancelled"``; ``error`` the exception itself."""

    name: ClassVar[str] = "request.exception"

    method: str
    about: str
    id: int
    correlation_id: str
    duration: float
    reason: str
    error: BaseException


class Transition(Event, frozen=True, kw_only=True):
    name: ClassVar[str] = "connection.transition"

    old: str
    new: str
    reason: BaseException | None = None


class ServerStarting(Event, frozen=True, kw_only=True):
    """Sent every second while a command is at work and the server has said nothing yet.

    ``elapsed`` is in seconds, from the start of the command.
    """

    name: ClassVar[str] = "server.starting"

    elapsed: float


class NotificationReceived(Event, frozen=True, kw_only=True):
    name: ClassVar[str] = "notification.received"

    method: str


class ProtocolViolation(Event, frozen=True, kw_only=True):
    """``count`` is how many of this kind there have been."""

    name: ClassVar[str] = "protocol.violation"

    reason: str
    detail: str
    count: int


KINDS = (
    RequestStart,
    RequestStop,
    RequestException,
    Transition,
    ServerStarting,
    NotificationReceived,
    ProtocolViolation,
)

_OF_REQUESTS = frozenset((RequestStart.name, RequestStop.name, RequestException.name))

Subscriber: TypeAlias = Callable[[Any], Any]
Post: TypeAlias = Callable[[Subscriber, Any], None]


class Events:
    """The subscribers of one client."""

    def __init__(self) -> None:
        self.active: bool = False
        """Whether anybody listens: asked before an event is even made."""
        self.requests: bool = False
        """Whether anybody listens to requests, which there are many of."""
        self.post: Post | None = None
        """How an async subscriber is reached, once there is a loop."""
        self._subscribers: tuple[tuple[frozenset[str], Subscriber], ...] = ()

    def __repr__(self) -> str:
        return f"<Events {len(self._subscribers)} subscribers>"

    def subscribe(self, subscriber: Subscriber, *names: str) -> Callable[[], None]:
        """Hear all events, or those of some names; the result ends it again.

        A plain function is called at once and should be quick; an async one later, in order.
        """
        known = {kind.name for kind in KINDS}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no such event: {unknown[0]!r} (there are: {', '.join(known)})")
        entry = (frozenset(names or known), subscriber)
        self._set((*self._subscribers, entry))

        def remove() -> None:
            self._set(tuple(one for one in self._subscribers if one is not entry))

        return remove

    def emit(self, event: Event) -> None:
        for names, subscriber in self._subscribers:
            if event.name in names:
                self._tell(subscriber, event)

    def _set(self, subscribers: tuple[tuple[frozenset[str], Subscriber], ...]) -> None:
        self._subscribers = subscribers
        self.active = bool(subscribers)
        self.requests = any(not names.isdisjoint(_OF_REQUESTS) for names, _ in subscribers)

    def _tell(self, subscriber: Subscriber, event: Event) -> None:
        """What a subscriber raises is logged and goes no further."""
        if inspect.iscoroutinefunction(subscriber):
            if self.post is not None:
                self.post(subscriber, event)
            return
        try:
            subscriber(event)
        except Exception:
            log.exception("%s: a subscriber failed: %r", event.client, subscriber)

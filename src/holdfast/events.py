"""A stable set of events for subscribers.

    request.start           a call is about to be sent
    request.stop            its answer came
    request.exception       it ended without an answer, or with an error
    connection.transition   the connection's state changed
    server.starting         the server is still being downloaded, built or started
    notification.received   the server sent a notification
    request.waiting         a call waits for a place under a limit, or until the server takes calls
    limits.unshared         the store of shared limits is down: this process goes on with its part
    store.down              the store of cache, logins or ledger does not answer; once an outage
    protocol.violation      the server broke the protocol; the message was dropped
    question.refused        the server asked something that could not be passed on
    auth.required           the server wants a login
    auth.login              a person is sent to log in
    auth.granted            a token was granted
    auth.refreshed          a token was renewed
    auth.failed             a login or a renewal failed

No event is created without a subscriber.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from holdfast._core.boundary import Moved, Starting, Violated, Waiting
from holdfast._core.callbacks import call_plain
from holdfast._core.observers.observer import ObservedCall, Observer, Post, reason, report
from holdfast._core.redact.known import KNOWN
from holdfast.errors import ValidationError


class Event(Struct, frozen=True):
    """The base of all events: a stable ``name``, and the name of the client."""

    name: ClassVar[str] = ""
    client: str


class RequestEvent(Event, frozen=True):
    """``id`` numbers the client's requests, ``about`` is the tool, resource or prompt meant.

    All events of one call, its audit record included, have the same ``correlation_id``.
    """

    method: str
    about: str
    id: int
    correlation_id: str


class RequestStart(RequestEvent, frozen=True):
    """A request begins; ``time`` is seconds since the epoch."""

    name: ClassVar[str] = "request.start"
    time: float


class RequestStop(RequestEvent, frozen=True):
    """A request was answered, after ``duration`` seconds."""

    name: ClassVar[str] = "request.stop"
    duration: float


class RequestException(RequestEvent, frozen=True):
    """``reason`` is the error's kind, or ``"cancelled"``; ``error`` the exception itself."""

    name: ClassVar[str] = "request.exception"
    duration: float
    reason: str
    error: BaseException


class RequestWaiting(Event, frozen=True, kw_only=True):
    """A call cannot be sent yet; sent once for each call that waits, when it begins to.

    ``reason`` is ``"concurrent"`` (no place is free), ``"rate"`` (too many in this time) or
    ``"later"`` (the server said so); ``limit`` the limit as it was written, such as
    ``"concurrent=8"``; ``seconds`` how long, where the server said.
    """

    name: ClassVar[str] = "request.waiting"
    method: str
    about: str
    reason: str
    limit: str = ""
    seconds: float | None = None


class LimitsUnshared(Event, frozen=True, kw_only=True):
    """The store of shared limits cannot be reached; sent once until it can.

    Until then this process keeps to its part of the limits.
    """

    name: ClassVar[str] = "limits.unshared"
    error: BaseException


class Transition(Event, frozen=True, kw_only=True):
    """The connection changed its state."""

    name: ClassVar[str] = "connection.transition"
    old: str
    new: str
    reason: BaseException | None = None


class ServerStarting(Event, frozen=True, kw_only=True):
    """Sent every second while a command runs and the server has not answered yet.

    ``elapsed`` is in seconds, from the start of the command.
    """

    name: ClassVar[str] = "server.starting"
    elapsed: float


class NotificationReceived(Event, frozen=True, kw_only=True):
    """The server sent a notification."""

    name: ClassVar[str] = "notification.received"
    method: str


class ProtocolViolation(Event, frozen=True, kw_only=True):
    """``count`` is how many of this kind there have been; ``frame_size`` in bytes, where known."""

    name: ClassVar[str] = "protocol.violation"
    reason: str
    detail: str
    count: int
    frame_size: int | None = None


class QuestionRefused(Event, frozen=True, kw_only=True):
    """Several hosts share the server, and which of them it asks is not known."""

    name: ClassVar[str] = "question.refused"
    method: str
    reason: str


class StoreDown(Event, frozen=True, kw_only=True):
    """A store does not answer, and is not asked for a while; told once until it answers again."""

    name: ClassVar[str] = "store.down"
    store: str
    reason: str


class AuthRequired(Event, frozen=True, kw_only=True):
    """All events of authorization have these fields, and no secret among them.

    ``expires_at`` is in seconds since the epoch; None: not known. ``reason`` is the error's code,
    where something failed.
    """

    name: ClassVar[str] = "auth.required"
    server: str
    account: str
    issuer: str | None = None
    resource: str | None = None
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    reason: str | None = None


class AuthLogin(AuthRequired, frozen=True, kw_only=True):
    """A login began."""

    name: ClassVar[str] = "auth.login"


class AuthGranted(AuthRequired, frozen=True, kw_only=True):
    """A login succeeded."""

    name: ClassVar[str] = "auth.granted"


class AuthRefreshed(AuthRequired, frozen=True, kw_only=True):
    """The access token was refreshed."""

    name: ClassVar[str] = "auth.refreshed"


class AuthFailed(AuthRequired, frozen=True, kw_only=True):
    """A login or a refresh failed."""

    name: ClassVar[str] = "auth.failed"


_REQUESTS: Final = (RequestStart, RequestStop, RequestException)
KINDS: Final = (
    *_REQUESTS,
    *(RequestWaiting, LimitsUnshared, StoreDown),
    *(Transition, ServerStarting, NotificationReceived, ProtocolViolation, QuestionRefused),
    *(AuthRequired, AuthLogin, AuthGranted, AuthRefreshed, AuthFailed),
)
_BY_NAME: Final[dict[str, type[Event]]] = {kind.name: kind for kind in KINDS}

Subscriber: TypeAlias = Callable[[Any], Any]


class Events(Observer):
    """The subscribers of one client.

    Attributes:
        active: Whether there are subscribers; check it before creating an event.
        requests: Whether there are subscribers to events of requests.
    """

    def __init__(
        self, client: str = "", observers: list[Observer] | None = None, post: Post | None = None
    ) -> None:
        self.active: bool = False
        self.requests: bool = False
        self._client = client
        self._observers = [] if observers is None else observers
        self._post = post
        self._subscribers: list[tuple[frozenset[str], Subscriber]] = []
        self._wanted: dict[str, list[Subscriber]] = {}
        """The subscribers by the names of the events that they want; replaced, never changed."""

    def __repr__(self) -> str:
        return f"<Events {len(self._subscribers)} subscribers>"

    def subscribe(self, subscriber: Subscriber, *names: str) -> Callable[[], None]:
        """Call ``subscriber`` with each event.

        Args:
            subscriber: A plain function is called at once, on the client's event loop, and
                should be quick; an async one runs later, in order.
            names: The events wanted, such as ``"request.stop"``; none: all of them.

        Returns:
            A function that ends the subscription.

        Raises:
            ValidationError: There is no event of that name.
        """
        for name in names:
            if name not in _BY_NAME:
                raise ValidationError(f"no such event: {name!r} (there are: {', '.join(_BY_NAME)})")
        if inspect.iscoroutinefunction(subscriber):
            post = self._post
            subscriber = (lambda _: None) if post is None else partial(post, subscriber)
        entry = (frozenset(names or _BY_NAME), subscriber)
        self._set([*self._subscribers, entry])

        def remove() -> None:
            self._set([item for item in self._subscribers if item is not entry])

        return remove

    def emit(self, event: Event) -> None:
        """Call every subscriber to events of this name."""
        for subscriber in self._wanted.get(event.name, ()):
            try:
                call_plain(subscriber, event)
            except BaseException as error:
                report(subscriber, error)

    def watch(self, policy: Any, authorizer: Any) -> Events:
        """Be told when a store of the client is down, by those that tell it."""
        options = None if authorizer is None else authorizer.options
        ledger = None if policy.ledger is None else policy.ledger.store
        stores: tuple[Any, ...] = (policy.cache.store, ledger, getattr(options, "store", None))
        for store in stores:
            if hasattr(store, "watch"):
                store.watch(self)
        return self

    def store_down(self, store: str, reason: str) -> None:
        """Emit that a store is down; it calls this."""
        if self.active:
            self.emit(StoreDown(client=self._client, store=store, reason=reason))

    def authorization(self, name: str, facts: dict[str, Any]) -> None:
        """Emit an event of authorization."""
        if self.active:
            self.emit(_BY_NAME[name](client=self._client, **facts))

    # As an observer: in the client's list only while there are subscribers

    def begin(self, call: ObservedCall) -> tuple[str, str, str, int, str] | None:
        """Emit the start of a request; return what all of its events say."""
        if not self.requests or call.refused:
            return None
        about = KNOWN.hide(call.about)
        common = call.client, call.method, about, call.id, call.correlation_id
        if self._wanted[RequestStart.name]:
            self.emit(RequestStart(*common, call.time))
        return common

    def end(self, call: ObservedCall, state: tuple[str, str, str, int, str]) -> None:
        """Emit the end of a request."""
        if call.error is None:
            self.emit(RequestStop(*state, call.duration))
        else:
            self.emit(RequestException(*state, call.duration, reason(call.error), call.error))

    def moved(self, moved: Moved) -> None:
        """Emit a change of the connection's state."""
        old, new = moved.old, moved.new
        self.emit(Transition(client=self._client, old=old, new=new, reason=moved.reason))

    def noticed(self, method: str) -> None:
        """Emit a notification of the server."""
        self.emit(NotificationReceived(client=self._client, method=KNOWN.hide(method)))

    def starting(self, starting: Starting) -> None:
        """Emit that the server is still starting."""
        self.emit(ServerStarting(client=self._client, elapsed=starting.elapsed))

    def waiting(self, waiting: Waiting) -> None:
        """Emit that a call waits for a place."""
        event = RequestWaiting(
            client=self._client,
            method=waiting.method,
            about=KNOWN.hide(waiting.about),
            reason=waiting.reason,
            limit=waiting.limit,
            seconds=waiting.seconds,
        )
        self.emit(event)

    def limits_unshared(self, error: BaseException) -> None:
        """Emit that the store of shared limits is down."""
        self.emit(LimitsUnshared(client=self._client, error=error))

    def violated(self, violated: Violated) -> None:
        """Emit a protocol violation of the server."""
        from holdfast._core.redact.redactor import redact_text

        event = ProtocolViolation(
            client=self._client,
            reason=violated.reason,
            # It quotes what the server sent.
            detail=redact_text(violated.detail),
            count=violated.count,
            frame_size=violated.frame_size,
        )
        self.emit(event)

    def _set(self, subscribers: list[tuple[frozenset[str], Subscriber]]) -> None:
        if self.active and not subscribers:
            self._observers.remove(self)
        elif subscribers and not self.active:
            self._observers.append(self)
        self._subscribers = subscribers
        self._wanted = {
            name: [subscriber for names, subscriber in subscribers if name in names]
            for name in _BY_NAME
        }
        self.active = bool(subscribers)
        self.requests = any(self._wanted[kind.name] for kind in _REQUESTS)

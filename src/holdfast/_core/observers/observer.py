"""The observer protocol: audit, call log, events and OpenTelemetry watch calls through it.

A client holds a plain list of observers. While the list is empty nothing is made for it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from time import perf_counter, time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import UNSET, Raw, Struct

from holdfast._core.boundary import Moved, Transport, WireId
from holdfast._core.callbacks import EXITS, call_plain
from holdfast.errors import HoldfastError
from holdfast.policies import Policy
from holdfast.schema.faults import SchemaFault
from holdfast.types.lifecycle import Task
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.eras.base import Era

log: logging.Logger = logging.getLogger("holdfast")

TOOL_CALL: Final = "tools/call"

Post: TypeAlias = Callable[[Callable[[Any], Any], Any], None]
"""Schedules ``callback(value)`` on the event loop, in order; for async callbacks."""


class ObservedCall(Struct, weakref=True):
    """One call, as observers see it. ``result`` and ``error`` are filled in when it ends."""

    client: str
    method: str
    about: str
    """The tool, resource or prompt meant."""
    params: dict[str, Any] | None
    tool: Tool | None
    """The definition of the called tool, where it is known."""
    refused: bool
    """Refused by a check of our own: nothing is sent."""
    id: int
    """Numbers the calls of one client."""
    time: float
    """The beginning, in seconds since the epoch."""
    began: float
    """The beginning, by `time.perf_counter`."""
    begun: list[tuple[Observer, Any]]
    """The observers that want to see the end, each with what its ``begin`` returned."""
    meta: Mapping[str, Any] = MappingProxyType({})
    """Entries for the request's ``_meta``; an observer that has some replaces it in ``begin``."""
    sent: Callable[[WireId], None] | None = None
    """Called with the id of each request that is sent; set by an observer that wants it."""
    duration: float = 0.0
    raw: Raw | None = None
    result: ToolResult | None = None
    error: BaseException | None = None
    view: Any = None
    """Has the task of the call, once there is one."""
    task: Task | None = None
    """The task that the call became, as it was seen last."""
    may_hold_secrets: bool = True
    """Some of its arguments may be secrets, which are known while it lives."""
    _correlation_id: str | None = None

    @property
    def correlation_id(self) -> str:
        """The same id in every record of the call; generated on first use."""
        if self._correlation_id is None:
            self._correlation_id = f"{_bits()(64):016x}"
        return self._correlation_id

    def secret_names(self) -> frozenset[str] | None:
        """Return the arguments that the tool's schema declares secret; None: maybe all of them."""
        return secret_names_of(self.tool)

    def end(
        self,
        raw: Raw | None = None,
        result: ToolResult | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Tell the observers that the call has ended, and how."""
        self.duration = perf_counter() - self.began
        self.raw, self.result, self.error = raw, result, error
        if self.view is not None:
            self.task = self.view.task
        for observer, state in self.begun:
            try:
                observer.end(self, state)
            except BaseException as failure:
                report(observer.end, failure)


# The secrets of one call
#
# A value is secret for a call because its tool's schema says so (``writeOnly``,
# ``format: password``) or because of its name. What the server sends back may repeat it: in an
# error, in a result that the call log writes down, in a notification that a trace shows. So it is
# announced with the call, or with the error that ended it, and known as long as one of them lives.
# Which of the arguments are secret is found out when the first text is searched. Most calls have
# none, and to announce them would take longer than to look at the names of a few arguments: so that
# is done first, if the tool's schema declares no secrets.
#
# Even that takes a tenth of a call's time. So the arguments of a call that nobody observes are
# announced before it is sent only if the server's stderr or messages are shown, and otherwise by
# whoever shows something of the server's while calls are under way (`Requester.hold_under_way`).


def hold_arguments(
    owner: HoldfastError | ObservedCall | None,
    params: Mapping[str, Any] | None,
    tool: Tool | None,
) -> bool:
    """Hide the secret arguments of a call while ``owner`` lives; None: for a while.

    Returns:
        False if it is certain that there are none.
    """
    if not params:
        return False
    arguments = params.get("arguments", params)
    if _are_plain(arguments) and secret_names_of(tool) == _NO_NAMES:
        return False
    from holdfast._core.redact.known import KNOWN, Holder

    KNOWN.hold(owner or Holder(), partial(_secret_arguments, arguments, tool))
    return True


_NO_NAMES: Final[frozenset[str]] = frozenset()
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _are_plain(arguments: Any) -> bool:
    """Return True for a few values, none of which is inside of another or has a secret's name."""
    if type(arguments) is not dict or len(arguments) > _FEW:
        return False
    if not _SCALARS.issuperset(map(type, arguments.values())):
        return False
    if _plain_names.issuperset(arguments):
        return True
    is_secret = _is_secret_name()
    for name in arguments:
        if type(name) is not str or len(name) > _SHORT_NAME or is_secret(name):
            return False
    if len(_plain_names) > _MOST_NAMES:
        _plain_names.clear()
    _plain_names.update(arguments)
    return True


_plain_names: set[str] = set()
"""Names of arguments that are no secret's: the same come again and again."""
_MOST_NAMES: Final = 1024


_FEW: Final = 32
"""Names of arguments that are looked at; of more, the values are read when they are needed."""
_SHORT_NAME: Final = 64
"""Characters of a name that is looked at."""


@cache
def _is_secret_name() -> Callable[[str], bool]:
    from holdfast._core.redact.names import default_names

    return default_names().judge


def _secret_arguments(arguments: Any, tool: Tool | None) -> Iterable[str]:
    from holdfast._core.redact.known import secrets_of

    return secrets_of("arguments", arguments, secret_names_of(tool))()


def secret_names_of(tool: Tool | None) -> frozenset[str] | None:
    """Return the arguments that a tool's schema declares secret; None: maybe all of them."""
    if tool is None:
        return _NO_NAMES
    names = tool.settings.secret_names
    if names is UNSET:
        from holdfast.schema.annotations import secret_names

        names = tool.settings.secret_names = secret_names(tool.input_schema_json)
    return names


@cache
def _bits() -> Callable[[int], int]:
    """Return a source of random numbers, which a forked process does not share."""
    import random

    source = random.Random()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=source.seed)
    return source.getrandbits


class Observer(Protocol):
    """Watches the calls of one client. What it raises is logged and goes no further.

    A subclass overrides what it is interested in.
    """

    def begin(self, call: ObservedCall) -> Any:
        """See a call begin; return what `end` needs, or None not to see its end."""
        return None

    def end(self, call: ObservedCall, state: Any) -> None:
        """See a call end; ``state`` is what `begin` returned."""
        return None

    def moved(self, moved: Moved) -> None:
        """See the connection change its state."""
        return None

    def close(self) -> None:
        """Release what the observer holds: the client is closed."""
        return None


def wanted_observers(
    name: str, policy: Policy, transport: Transport, post: Post, era: Callable[[], Era | None]
) -> Iterator[Observer]:
    """Yield the observers that a policy asks for.

    A level of its own for the logger ``holdfast.audit`` asks for an audit as well; that the root
    logger shows INFO does not.
    """
    observability, audit = policy.observability, logging.getLogger("holdfast.audit")
    if observability.audit or (audit.level != logging.NOTSET and audit.isEnabledFor(logging.INFO)):
        from holdfast._core.observers.audit import Audit

        # A client for many users has one for each of them.
        user = None if transport.authorizer is None else transport.authorizer.user
        yield Audit(name, policy, post, user or policy.identity.name)
    if observability.opentelemetry:
        from holdfast._core.observers.otel import OpenTelemetry, network

        yield OpenTelemetry(observability, network(transport.key), era)


class Observers:
    """The observers of one client."""

    __slots__ = ("_ids", "all", "client")

    def __init__(self, client: str, observers: Sequence[Observer] = ()) -> None:
        self.client: str = client
        self.all: list[Observer] = list(observers)
        self._ids = itertools.count(1)

    def begin(
        self,
        method: str,
        about: str,
        params: dict[str, Any] | None,
        tool: Tool | None = None,
        *,
        refused: bool = False,
    ) -> ObservedCall:
        """Tell every observer that a call begins."""
        begun: list[tuple[Observer, Any]] = []
        number, now, began = next(self._ids), time(), perf_counter()
        call = ObservedCall(
            self.client, method, about, params, tool, refused, number, now, began, begun
        )
        call.may_hold_secrets = hold_arguments(call, params, tool)
        for observer in tuple(self.all):
            try:
                state = observer.begin(call)
                if state is not None:
                    begun.append((observer, state))
            except BaseException as failure:
                report(observer.begin, failure)
        return call

    def moved(self, moved: Moved) -> None:
        for observer in tuple(self.all):
            safely(observer.moved, moved)

    def close(self) -> None:
        for observer in tuple(self.all):
            safely(observer.close)


def safely(action: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; log what it raises, unless that ends the program."""
    try:
        return call_plain(action, *arguments)
    except BaseException as error:
        report(action, error)


def report(action: Callable[..., Any], error: BaseException) -> None:
    """Log what an observer raised; raise it again if it ends the program."""
    if isinstance(error, EXITS):
        raise error
    # Without what a partial holds: that may be the call, with its arguments as they are.
    log.error("an observer failed: %r", getattr(action, "func", action), exc_info=error)


def reason(error: BaseException) -> str:
    """Return in one word how a call failed."""
    if isinstance(error, HoldfastError):
        return error.kind
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__


def faults_of(error: HoldfastError) -> str:
    """Return the places of arguments that do not fit, without their values; "" for other errors."""
    faults = error.data if isinstance(error.data, tuple) else ()
    if not all(isinstance(fault, SchemaFault) for fault in faults):
        return ""
    return "; ".join(f"{fault.path or '/'}: {fault.keyword}" for fault in faults)

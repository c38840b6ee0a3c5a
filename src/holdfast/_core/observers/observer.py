"""The observer protocol: audit, call log, events and OpenTelemetry watch calls through it.

A client holds a plain list of observers. While the list is empty nothing is made for it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import Raw, Struct

from holdfast._core.boundary import Moved, WireId
from holdfast._core.callbacks import EXITS
from holdfast.errors import HoldfastError
from holdfast.policies import Policy
from holdfast.types.lifecycle import Task
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.eras.base import Era

log: logging.Logger = logging.getLogger("holdfast")

TOOL_CALL: Final = "tools/call"

End: TypeAlias = Callable[[], None]
Post: TypeAlias = Callable[[Callable[[Any], Any], Any], None]
"""Has ``callback(value)`` run later, in order: how an async callback is reached."""


class ObservedCall(Struct, kw_only=True):
    """One call, as observers see it. Its end is filled in before they hear of it."""

    client: str
    method: str
    about: str = ""
    """The tool, resource or prompt meant."""
    params: dict[str, Any] | None = None
    tool: Tool | None = None
    """The definition of the called tool, where it is known."""
    id: int
    """Numbers the calls of one client."""
    correlation_id: str
    time: float
    """The beginning, in seconds since the epoch."""
    refused: bool = False
    """Refused by a check of our own: nothing is sent."""
    meta: dict[str, Any]
    """Entries that observers add to the request's ``_meta``."""
    wire_id: WireId | None = None
    duration: float = 0.0
    raw: Raw | None = None
    result: ToolResult | None = None
    error: BaseException | None = None
    task: Task | None = None
    """The task that the call became, as it was seen last."""

    def secret_names(self) -> frozenset[str] | None:
        """Return the arguments that the tool's schema declares secret; None: maybe all of them."""
        return frozenset() if self.tool is None else _secrets()(self.tool.input_schema_json)


@cache
def _secrets() -> Callable[[Raw], frozenset[str] | None]:
    from holdfast.schema.annotations import secret_names

    return secret_names


class Observer(Protocol):
    """Watches the calls of one client. What it raises is logged and goes no further."""

    def begin(self, call: ObservedCall) -> End | None:
        """See a call begin; return what to run when it has ended, if anything."""

    def moved(self, moved: Moved) -> None:
        """See the connection change its state."""

    def close(self) -> None:
        """Release what the observer holds: the client is closed."""


class TaskSeen(Protocol):
    """Has the task of a call, once there is one."""

    task: Task | None


def wanted_observers(
    name: str, policy: Policy, key: str, post: Post, era: Callable[[], Era | None]
) -> Iterator[Observer]:
    """Yield the observers that a policy asks for.

    A level of its own for the logger ``holdfast.audit`` asks for an audit as well; that the root
    logger shows INFO does not.
    """
    wanted, audit = policy.observability, logging.getLogger("holdfast.audit")
    if wanted.audit or (audit.level != logging.NOTSET and audit.isEnabledFor(logging.INFO)):
        from holdfast._core.observers.audit import Audit

        yield Audit(name, policy, post)
    if wanted.opentelemetry:
        from holdfast._core.observers.otel import OpenTelemetry, network

        yield OpenTelemetry(wanted, network(key), era)


class Observers:
    """The observers of one client."""

    def __init__(self, client: str, observers: Sequence[Observer] = ()) -> None:
        self.client = client
        self.all: list[Observer] = list(observers)
        self._ids = itertools.count(1)

    def __bool__(self) -> bool:
        return bool(self.all)

    def begin(
        self,
        method: str,
        about: str,
        params: dict[str, Any] | None,
        tool: Tool | None = None,
        *,
        refused: bool = False,
    ) -> Watch:
        """Tell every observer that a call begins."""
        call = ObservedCall(
            client=self.client,
            method=method,
            about=about,
            params=params,
            tool=tool,
            id=next(self._ids),
            correlation_id=correlation_id(),
            time=time.time(),
            refused=refused,
            meta={},
        )
        return Watch(call, self.all)

    def moved(self, moved: Moved) -> None:
        for observer in tuple(self.all):
            safely(observer.moved, moved)

    def close(self) -> None:
        for observer in tuple(self.all):
            safely(observer.close)


class Watch:
    """The observation of one call, from ``Observers.begin`` to ``end``."""

    def __init__(self, call: ObservedCall, observers: Sequence[Observer]) -> None:
        self.call = call
        self.view: TaskSeen | None = None
        self._began = time.perf_counter()
        self._ends: list[End] = []
        for observer in tuple(observers):
            end = safely(observer.begin, call)
            if end is not None:
                self._ends.append(end)

    def sent(self, wire_id: WireId) -> None:
        self.call.wire_id = wire_id

    def end(
        self,
        raw: Raw | None = None,
        result: ToolResult | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Tell every observer that the call has ended, and how."""
        call = self.call
        call.duration = time.perf_counter() - self._began
        call.raw, call.result, call.error = raw, result, error
        call.task = None if self.view is None else self.view.task
        for end in self._ends:
            safely(end)


def safely(action: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; log what it raises, unless that ends the program."""
    try:
        return action(*arguments)
    except EXITS:
        raise
    except BaseException:
        log.exception("an observer failed: %r", action)
        return None


def correlation_id() -> str:
    """Return a new name for one call."""
    return os.urandom(8).hex()


def reason(error: BaseException) -> str:
    """Return in one word how a call failed."""
    if isinstance(error, HoldfastError):
        return error.kind
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__

"""Where what the server does of its own accord arrives: notifications, requests, violations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from holdfast._core.boundary import Asked, Dismissed, Generation, Moved, Starting, Violated
from holdfast._core.calls.handlers import Notification, NotificationHandler
from holdfast._core.calls.inputs import Inputs
from holdfast._core.driver import Driver
from holdfast._core.engine.state import State
from holdfast._core.observers.observer import Observation
from holdfast._core.wire.codes import INTERNAL_ERROR
from holdfast._core.wire.jsonrpc import Id
from holdfast.errors import RpcError
from holdfast.events import NotificationReceived, ProtocolViolation, ServerStarting, Transition

log: logging.Logger = logging.getLogger("holdfast")


class Reception:
    """Passes on what the driver hears; never makes it wait."""

    def __init__(self, name: str, inputs: Inputs, asks: int, observation: Observation) -> None:
        self.driver: Driver | None = None
        self.on_ready: Callable[[], None] = _nothing
        self.on_again: Callable[[], None] = _nothing
        self.on_down: Callable[[], None] = _nothing
        self.guards = 0
        """Who is to see each new list of tools, and so must hear that there is one."""
        """The server is there again: whatever it said before may have changed meanwhile."""
        self.on_change: Callable[[str, Raw | None], None] = _nothing
        """Hears every notification before the handlers do."""
        self._observation = observation
        self._ready_before = False
        self._name = name
        self._inputs = inputs
        self._limit = asks
        self._handlers: list[tuple[str | None, NotificationHandler]] = []
        self._asks: dict[tuple[Generation, Id], asyncio.Task[None]] = {}

    @property
    def listening(self) -> bool:
        return bool(self._handlers or self.guards)

    def add(self, handler: NotificationHandler, method: str | None) -> Callable[[], None]:
        """Register a handler; the function given back removes it again."""
        entry = (method, handler)
        self._handlers.append(entry)

        def remove() -> None:
            if entry in self._handlers:
                self._handlers.remove(entry)

        return remove

    def close(self) -> None:
        for task in list(self._asks.values()):
            task.cancel()

    # Heard from the driver

    def noticed(self, method: str, params: Raw | None) -> None:
        self.on_change(method, params)
        events = self._observation.events
        if events.active:
            events.emit(NotificationReceived(client=self._name, method=method))
        if not self._handlers or self.driver is None:
            return
        notification = Notification(method, params)
        for wanted, handler in self._handlers:
            if wanted is None or wanted == method:
                self.driver.mailbox.post(handler, notification)

    def asked(self, asked: Asked) -> None:
        assert self.driver is not None
        if len(self._asks) >= self._limit:
            text = f"too many requests at once (more than {self._limit})"
            self.driver.send(self.driver.engine.refuse(asked, INTERNAL_ERROR, text))
            return
        key = (asked.generation, asked.id)
        task = self.driver.loop.create_task(self._answer(asked), name=f"holdfast-{asked.method}")
        self._asks[key] = task
        task.add_done_callback(lambda _: self._asks.pop(key, None))

    def dismissed(self, dismissed: Dismissed) -> None:
        task = self._asks.get((dismissed.generation, dismissed.id))
        if task is not None:
            task.cancel()

    def moved(self, moved: Moved) -> None:
        log.debug("%s: %s → %s %s", self._name, moved.old, moved.new, moved.reason or "")
        self._tell(moved)
        if moved.old == State.READY:
            self.on_down()
        if moved.new == State.READY:
            if self._ready_before:
                self.on_again()
            self._ready_before = True
            self.on_ready()

    def _tell(self, moved: Moved) -> None:
        if self._observation.tracer is not None:
            self._observation.tracer.moved(moved)
        events = self._observation.events
        if events.active:
            old, new, reason = moved.old, moved.new, moved.reason
            events.emit(Transition(client=self._name, old=old, new=new, reason=reason))

    def starting(self, starting: Starting) -> None:
        events = self._observation.events
        if events.active:
            events.emit(ServerStarting(client=self._name, elapsed=starting.elapsed))

    def violated(self, violated: Violated) -> None:
        level = logging.WARNING if violated.count == 1 else logging.DEBUG
        text = "%s: dropped: %s: %s"
        log.log(level, text, self._name, violated.reason, violated.detail)
        events = self._observation.events
        if events.active:
            reason, detail, count = violated.reason, violated.detail, violated.count
            event = ProtocolViolation(client=self._name, reason=reason, detail=detail, count=count)
            events.emit(event)

    async def _answer(self, asked: Asked) -> None:
        assert self.driver is not None
        engine = self.driver.engine
        try:
            result: Any = await self._inputs.answer(asked.method, asked.params)
        except RpcError as error:
            self.driver.send(engine.refuse(asked, error.code or INTERNAL_ERROR, error.message))
            if error.__cause__ is not None:
                log.warning("%s: %s: %s", self._name, asked.method, error)
        else:
            self.driver.send(engine.answer(asked, result))


def _nothing(*_: object) -> None:
    pass

"""Who waits for the outcome of a request: a caller with its future, or a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from holdfast._core.boundary import LinkChanged, WireId
from holdfast.errors import HoldfastError
from holdfast.types.lifecycle import Progress

Failure: TypeAlias = HoldfastError | LinkChanged


class Waiter(Struct, gc=False):
    """A caller: what its outcome is given to, and its callbacks for what comes before it."""

    future: asyncio.Future[Raw] | Receiver
    on_progress: Callable[[list[Progress]], None] | None = None
    on_related: Callable[[Raw], None] | None = None
    on_sent: Callable[[WireId], None] | None = None
    context: Context | None = None
    """The context of the caller, if credentials or handlers may depend on it."""

    def resume(self, result: Raw, loop: asyncio.AbstractEventLoop, is_late: bool) -> None:
        """Give the only answer of a read to its caller, if it still waits; it goes on at once.

        A future's own callbacks run in the next turn of the loop, which first asks for events:
        that would be a tenth of a call. They do so here as well if this is inside of a task (a
        loop runs one at a time), or if it is late: a handler waits to be told what came before.
        """
        future = self.future
        if isinstance(future, Receiver):
            if is_late:
                future.set_result(result)
            else:
                future.take(result)
            return
        if future.done():
            return
        callbacks: Any = getattr(future, "_callbacks", None)
        if is_late or not callbacks or asyncio.current_task(loop) is not None:
            future.set_result(result)
            return
        wakeup, context = callbacks[0]
        future.remove_done_callback(wakeup)
        future.set_result(result)
        context.run(wakeup, future)


class Receiver:
    """Is given an outcome, once, as a future would be settled with it, and needs no task.

    For those who pass on what they get, and have nothing to wait for.
    """

    __slots__ = ("_is_done", "_is_over", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_done = False
        """There is an outcome, or nobody wants it any more."""
        self._is_over = False
        """It was given, or nobody wants it any more."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'done' if self._is_done else 'waiting'}>"

    def ended(self, result: Raw | None, error: Failure | None) -> None:
        """Take the result of the request, or its error."""
        raise NotImplementedError

    def done(self) -> bool:
        return self._is_done

    def set_result(self, result: Raw) -> None:
        """Give it the result in the next turn of the loop."""
        self._is_done = True
        self._loop.call_soon(self.take, result)

    def set_exception(self, error: Failure) -> None:
        self._is_done = True
        self._loop.call_soon(self.take, None, error)

    def take(self, result: Raw | None, error: Failure | None = None) -> None:
        """Give it the outcome now, unless it was cancelled meanwhile."""
        if not self._is_over:
            self._is_done = self._is_over = True
            self.ended(result, error)

    def cancel(self) -> None:
        """Never give it an outcome."""
        self._is_done = self._is_over = True

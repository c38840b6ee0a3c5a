"""The loop behind the synchronous face: one per process, in a thread of its own.

Callers wait in their own thread, so they may have a running loop of their own (in a notebook), and
Ctrl-C reaches them: the call is cancelled on the loop, which notifies the server, and the interrupt
is raised at once.
"""

# Two threads, and what may happen between them.
#
# The caller's thread makes a coroutine, hands it over and waits. The loop's thread runs it. Four
# things can come between any two of their steps:
#
# - Ctrl-C. Python raises KeyboardInterrupt in the main thread only, at any bytecode: before the
#   work was handed over, while it stands in the loop's queue, while it runs, or when its result
#   is there and not yet read. In each case the work must end: a tool that runs on after its caller
#   has gone may do what nobody asked for any more. So giving up is a message to the loop as well,
#   and comes after the handing over, since both use the same queue. Whichever of them finds the
#   work not begun closes the coroutine; otherwise the task is cancelled, and the client tells the
#   server.
# - A fork. The child has a copy of every object and none of the threads: whoever waited there for
#   the loop would wait for ever. So every use compares process ids. A connection stays its
#   parent's, which goes on using it; closing it in the child is no error and does nothing, since
#   a child may leave its parent's ``with`` block on its way out.
# - The end of the program. ``atexit`` runs in the main thread, after the last line and before the
#   daemon threads are stopped. Everything is closed there, within a time; afterwards calls are
#   refused. The guard of orphaned servers is registered earlier, so that it is called later:
#   what we could not close in time it kills.
# - A callback. Handlers of the application run in threads of their own and may call back into the
#   synchronous face. On the loop's own thread that would wait for itself, so it is refused.
#
# Why one loop for all clients, and not one each: a client may be passed between threads, and two
# clients may be used by one handler. Why not a loop in the caller's thread: it would stand still
# between two calls, and with it keep-alives, reconnects and notifications.

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

from holdfast._core.calls.handlers import Handlers, in_thread, run_in_threads
from holdfast._core.transports.orphans import guard
from holdfast.errors import ShutdownError, StateError

log: logging.Logger = logging.getLogger("holdfast")
T = TypeVar("T")

LAST_MOMENTS: Final = 10.0
"""Seconds that closing everything may take when the program ends."""


class Portal:
    """A running loop that any other thread may hand work to."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self.closables: WeakSet[Any] = WeakSet()
        """Objects with an asynchronous ``close``, which is called when the program ends, unless
        they are gone by then."""
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="holdfast-sync", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def end(self, closable: object, work: Coroutine[Any, Any, Any]) -> Any:
        """Close an object with ``work``. In a fork's child, do nothing and return False.

        That is no error: the child may leave its parent's ``with`` block when it exits.
        """
        if self._pid != os.getpid():
            work.close()
            return False
        try:
            return self.run(work)
        finally:
            self.closables.discard(closable)

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result; cancel it if the wait ends first."""
        try:
            self._check()
        except BaseException:
            work.close()
            raise
        job = _Job(work, self._loop)
        try:
            job.begin()
            return job.outcome.result(timeout)
        except CancelledError:
            raise ShutdownError("the program is ending: nothing is called any more") from None
        except BaseException:
            job.give_up()
            raise

    def do(self, action: Callable[[], T]) -> T:
        """Call a plain function on the loop, and wait for what it returns."""

        async def act() -> T:
            return action()

        return self.run(act())

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise StateError(
                "this client was made before the process forked, and its connection belongs to "
                "the parent: make a new one in the child with holdfast.sync.connect()"
            )
        if threading.current_thread() is self._thread:
            raise StateError(
                "a callback on Holdfast's own thread cannot wait for another call, which runs on "
                "that thread: hand the work to a thread of your own"
            )
        if self._stopped:
            raise ShutdownError("the program is ending: nothing is called any more")

    def stop(self) -> None:
        """Close what is open, within bounds, and end the thread. In a fork: nothing."""
        if self._pid != os.getpid() or self._stopped:
            return
        ending = asyncio.run_coroutine_threadsafe(self._close_all(), self._loop)
        self._stopped = True
        try:
            ending.result(LAST_MOMENTS)
        except Exception:
            pass  # Whatever it was, it must not keep the program from ending.
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    async def _close_all(self) -> None:
        closing = [closable.close() for closable in tuple(self.closables)]
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, BaseException):
                log.warning("closing failed at the end of the program: %r", result)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class _Job(Generic[T]):
    """A coroutine that another thread hands to the loop.

    Ctrl-C may come between any two steps of the thread that waits. So it can be cancelled at each
    of them: before it is handed over, while it waits for its turn, and when it runs.
    """

    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self.outcome: Future[T] = Future()
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._given_up = False

    def begin(self) -> None:
        """Hand the coroutine to the loop."""
        self._loop.call_soon_threadsafe(self._start)

    def give_up(self) -> None:
        """Cancel it, at any stage."""
        self._given_up = True
        with suppress(RuntimeError):  # the loop is closed, and all that was on it
            self._loop.call_soon_threadsafe(self._cancel)

    # On the loop

    def _start(self) -> None:
        if not self._given_up:
            self._task = self._loop.create_task(self._work)
            self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.outcome.cancel()
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())


_portal: Portal | None = None
_lock = threading.Lock()


def portal() -> Portal:
    """Return the portal of the process; started at the first use, and again in a fork's child."""
    global _portal  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _portal is None:
            _portal = Portal()
            # Before us, to be called after us: it kills the servers that we close.
            guard.register()
            atexit.register(_portal.stop)
        return _portal


def _forget() -> None:
    """Drop the portal in a fork's child, which has neither its thread nor the owner of the lock."""
    global _portal, _lock
    _portal, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# Synchronous classes

W = TypeVar("W")
P = ParamSpec("P")


class SyncWrapper(Generic[W]):
    """The base of the synchronous classes: an asynchronous object, and the loop it lives on."""

    def __init__(self, inner: W, portal: Portal) -> None:
        self._inner = inner
        self._portal = portal

    def __repr__(self) -> str:
        return repr(self._inner)


Method: TypeAlias = Callable[Concatenate[Any, P], T]
"""A method, with any object as ``self``. Those made below have the signature and the docstring of
the asynchronous one, for type checkers and editors too."""


def _wrapped(wrapper: SyncWrapper[Any], method: Callable[..., T]) -> Callable[..., T]:
    """Return the method of the object that is wrapped: its class may have one of its own."""
    bound: Callable[..., T] = getattr(wrapper._inner, method.__name__)
    return bound


def blocking(method: Method[P, Coroutine[Any, Any, T]]) -> Method[P, T]:
    """Return a method that waits for the asynchronous one."""

    @wraps(method)
    def wait(self: SyncWrapper[Any], /, *args: P.args, **options: P.kwargs) -> T:
        return self._portal.run(_wrapped(self, method)(*args, **options))

    return wait


def closing(method: Method[P, Coroutine[Any, Any, bool]]) -> Method[P, bool]:
    """Return a method that closes the object, by the asynchronous one."""

    @wraps(method)
    def close(self: SyncWrapper[Any], /, *args: P.args, **options: P.kwargs) -> bool:
        return bool(self._portal.end(self._inner, _wrapped(self, method)(*args, **options)))

    return close


def on_loop(method: Method[P, T], *, handler: bool = False) -> Method[P, T]:
    """Return a method that calls a plain one on the loop.

    With ``handler``, its first argument is a function that runs in a thread.
    """

    @wraps(method)
    def call(self: SyncWrapper[Any], /, *args: Any, **options: Any) -> T:
        if handler and args and callable(args[0]):
            args = (in_thread(args[0]), *args[1:])
        elif handler and callable(options.get("handler")):
            options["handler"] = in_thread(options["handler"])
        return self._portal.do(lambda: _wrapped(self, method)(*args, **options))

    return call


def with_threads(options: Any) -> Any:
    """Return options of `connect` whose handlers run where they may block; else what was given."""
    handlers = options.get("handlers") if isinstance(options, Mapping) else None
    return (
        {**options, "handlers": run_in_threads(handlers)}
        if isinstance(handlers, Handlers)
        else options
    )

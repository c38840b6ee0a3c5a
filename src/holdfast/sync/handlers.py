"""Handlers of a synchronous application: each runs in a worker thread, so it may block,
ask a person, or call the client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, overload

import msgspec

from holdfast._core.calls.handlers import Handlers


def in_threads(handlers: Handlers | None) -> Handlers | None:
    """The same handlers, off the loop. ``progress`` stays on it: it must come before the result."""
    if handlers is None:
        return None
    roots = handlers.roots
    return msgspec.structs.replace(
        handlers,
        sampling=in_thread(handlers.sampling),
        elicitation=in_thread(handlers.elicitation),
        notification=in_thread(handlers.notification),
        roots=in_thread(roots) if callable(roots) else roots,
    )


@overload
def in_thread(handler: None) -> None: ...
@overload
def in_thread(handler: Callable[..., Any]) -> Callable[..., Any]: ...
def in_thread(handler: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A plain function as one that runs in a worker thread; an async one as it is."""
    if handler is None or inspect.iscoroutinefunction(handler):
        return handler
    plain = handler

    @wraps(plain)
    async def threaded(*arguments: Any) -> Any:
        return await asyncio.to_thread(plain, *arguments)

    return threaded

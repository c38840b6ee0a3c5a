"""What a server means by "later", as HTTP and as JSON-RPC say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast._core.boundary import Effect, Generation, RefusalReason, Refused, Throttled
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import Pending
from holdfast._core.wire.codes import RATE_LIMITED
from holdfast._core.wire.jsonrpc import DEFAULT_WAIT, ErrorObject, retry_after

LONGEST: Final = 300.0
"""Seconds that are believed. Attack: a server that says ten years is asked again after this."""
SPREAD: Final = 0.1
"""The share that is added by chance, so that not all processes come back in the same moment."""


def bounded(seconds: float, jitter: Iterator[float]) -> float:
    """Return the time to wait: not less than the server says, nor much more."""
    return min(max(0.0, seconds), LONGEST) * (1.0 + SPREAD * next(jitter))


def note(refusal: Refused, jitter: Iterator[float], out: list[Effect]) -> None:
    """Tell that the server takes no calls for a while, if that is what a refusal says."""
    if refusal.retry_after is not None:
        refusal.retry_after = bounded(refusal.retry_after, jitter)
        out.append(Throttled(refusal.retry_after))


def rate_limited(
    name: str, pending: Pending | None, fault: ErrorObject, generation: Generation
) -> Refused | None:
    """Return an error as a refusal for now; None if it is another error.

    Draft SEP-3304: the server has not run the request. Over HTTP it is the body of a 429; over
    stdio it is all there is.
    """
    if pending is None or pending.wire_id is None or fault.code != RATE_LIMITED:
        return None
    wait = retry_after(fault)
    error = messages.refused_by_server(name, pending.call, fault)
    wait = DEFAULT_WAIT if wait is None else wait
    later = Refused(error, RefusalReason.BUSY, fault=fault, processed=False, retry_after=wait)
    return later.of(generation, pending.wire_id)

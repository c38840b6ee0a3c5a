"""The two clients of a worker, which all of its requests share.

While a server is down, calls fail at once and say when the next attempt is: the service passes
that on (503, Retry-After) rather than let requests pile up.
"""

from __future__ import annotations

import holdfast
from examples.service.settings import LOCK, ROOT, RUN, Settings


def inventory(settings: Settings, observability: holdfast.Observability) -> holdfast.Client:
    """Reads only, so what was lost with a server is asked for again.

    Items are kept for a while, and shown as they were if the server cannot be reached.
    """
    return holdfast.connect(
        list(settings.inventory),
        name="inventory",
        replay="safe",
        timeouts=_timeouts(settings),
        backoff=_backoff(settings),
        cache=holdfast.Cache(ttl=60, reads=settings.keep, serve_stale=True),
        observability=observability,
        lock=LOCK,
        cwd=ROOT,
        inherit_env=[RUN],
    )


def ledger(settings: Settings, observability: holdfast.Observability) -> holdfast.Client:
    """Writes, and so repeats nothing that may have run.

    ``replay="safe"`` is for ``find_order``, which calls itself read-only. ``record_order`` does
    not, so it is never sent twice.
    """
    return holdfast.connect(
        settings.ledger,
        name="ledger",
        replay="safe",
        timeouts=_timeouts(settings),
        backoff=_backoff(settings),
        cache=holdfast.Cache(ttl=60),
        observability=observability,
        lock=LOCK,
        trust_env=False,
    )


def _timeouts(settings: Settings) -> holdfast.Timeouts:
    seconds = settings.timeout
    return holdfast.Timeouts(request=seconds, handshake=seconds, total=seconds)


def _backoff(settings: Settings) -> holdfast.Backoff:
    return holdfast.Backoff(first=settings.longest_pause / 8, max=settings.longest_pause)

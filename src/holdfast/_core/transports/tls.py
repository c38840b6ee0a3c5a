"""TLS contexts: one for all connections with the same settings, made outside of the event loop."""

# A context is expensive: OpenSSL parses all certificates of the system, which takes tens of
# milliseconds and about a megabyte. A program with a client for each of a thousand users would
# stand still for half a minute, and hold a gigabyte, for a thousand copies of the same thing.
# So contexts are shared by their settings, for as long as a client uses them (the values are
# held weakly), and made in a thread. Files count with the time of their last change: a client that
# is made after a certificate was replaced gets the new one, and those before it keep theirs.
#
# A context is safe to share between threads and loops once nobody changes it any more. One that
# the application made is used as it is, and never shared by us: it may be changed.

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

_CONTEXTS: Final[WeakValueDictionary[Hashable, ssl.SSLContext]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()
_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""By these OpenSSL finds the certificates of the system."""


class TlsSettings:
    """The certificates to trust and to show; their context is made when it is first needed."""

    __slots__ = ("_ca", "_cert", "ready")

    def __init__(
        self, context: ssl.SSLContext | None, ca: str | None, cert: tuple[str, ...] | None
    ) -> None:
        self._ca = ca
        self._cert = cert
        self.ready: ssl.SSLContext | None = context
        """The context, if there is one already."""

    async def context(self) -> ssl.SSLContext:
        """Return the context.

        Raises:
            OSError: A file cannot be read, or holds no certificate.
        """
        if self.ready is None:
            self.ready = await asyncio.to_thread(_shared_context, self._ca, self._cert)
        return self.ready


def _shared_context(ca: str | None, cert: tuple[str, ...] | None) -> ssl.SSLContext:
    files = (*(() if ca is None else (ca,)), *(cert or ()))
    changed = tuple(os.stat(path).st_mtime_ns for path in files)
    key = (ca, cert, changed, *(os.environ.get(name) for name in _VARIABLES))
    with _LOCK:
        context = _CONTEXTS.get(key)
        if context is None:
            context = ssl.create_default_context()
            if ca is not None:
                context.load_verify_locations(ca)
            if cert is not None:
                context.load_cert_chain(*cert)
            _CONTEXTS[key] = context
    return context

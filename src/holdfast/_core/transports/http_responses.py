"""Responses: bodies read within bounds, and failures in the words of the boundary.

A body is an attack surface: a few bytes may expand to gigabytes (zip bomb), and many bytes may
expand to nothing. Output is handed out in pieces of at most ``PIECE`` bytes, so the reader can
stop at its own limit; input that produces no output is refused after ``IDLE_INPUT`` bytes.

No status leaves the HTTP client: everything above it reads a `RefusalReason`.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import RefusalReason, Refused
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.framing import FrameTooLarge, join
from holdfast._core.wire.http_dates import retry_after, timestamp
from holdfast._core.wire.jsonrpc import (
    DEFAULT_WAIT,
    ErrorObject,
    decode_error_object,
    snippet,
)
from holdfast._core.wire.jsonrpc import (
    retry_after as retry_after_of,
)
from holdfast.errors import AuthError, Hint, HoldfastError, ProtocolError, TransportError

CODINGS: Final = ("gzip", "x-gzip", "deflate")
PIECE: Final = 256 * 1024
SLICE: Final = 4 * 1024
"""Input per call of zlib: it copies what follows the end of a gzip member, once per member."""
IDLE_INPUT: Final = 64 * 1024
"""Compressed bytes in a row that may expand to nothing (empty members, blocks, long headers)."""
FREE_MEMBERS: Final = 4096
"""Gzip members in one body before they must carry at least ``MEMBER_BYTES`` each on average."""
MEMBER_BYTES: Final = 64
TURN: Final = 16 * 1024
"""Bytes of a flood of tiny lines, or of tiny gzip members, that are read before other tasks run."""
LINGER: Final = 2.0
"""Seconds for a response to end after its use, so that its connection can be used again."""
START: Final = 64 * 1024
"""Bytes of the body of an error that are worth reading."""


class BadBody(Exception):  # noqa: N818  (a finding, reported by the link)
    """The body is not valid in its content coding, or is built to waste work."""

    def __init__(self, coding: str, why: str) -> None:
        super().__init__(f"in {coding!r}: {why}")


class Inflater:
    """Decompress one body in one of ``CODINGS``."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflate: Any = None
        self._idle = 0
        self._members = 0
        self._produced = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what ``chunk`` expands to; raise `BadBody` where it breaks the coding."""
        for start in range(0, len(chunk), SLICE):
            piece = chunk[start : start + SLICE]
            self._idle += len(piece)
            unfinished = True
            while unfinished:
                if self._inflate is None or self._inflate.eof:
                    self._inflate = self._begin(piece)
                inflate = self._inflate
                try:
                    data = inflate.decompress(piece, PIECE)
                except zlib.error as error:
                    raise BadBody(self._coding, str(error)) from None
                if data:
                    self._idle = 0
                    self._produced += len(data)
                    yield data
                # ``unconsumed_tail`` may be that of an earlier call, once the end is reached.
                piece = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                unfinished = bool(piece) or (len(data) == PIECE and not inflate.eof)
            if self._idle > IDLE_INPUT:
                raise BadBody(self._coding, f"{self._idle} bytes of it expand to nothing")

    def close(self) -> None:
        """Raise `BadBody` if the body ended before its compressed data did."""
        if self._inflate is not None and not self._inflate.eof:
            raise BadBody(self._coding, "it ends too early")

    def _begin(self, start: bytes) -> Any:
        self._members += 1
        if self._coding != "deflate":
            # RFC 1952 §2.2: a gzip file is a series of members, one after the other.
            if self._members > FREE_MEMBERS + self._produced // MEMBER_BYTES:
                raise BadBody(
                    self._coding, f"it has {self._members} members in {self._produced} bytes"
                )
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        if self._members > 1:
            # zlib would keep all of it in ``unused_data``, without a bound.
            raise BadBody(self._coding, "data follows its end")
        # RFC 9110 §8.4.1.2: "deflate" is the zlib format, but some servers send it bare.
        bare = start[0] & 0x0F != zlib.DEFLATED
        return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read a whole body; raise `FrameTooLarge` beyond the limit."""
    read = body_reader(response)
    pieces = [await read()]
    size = len(pieces[0])
    while size <= limit and (piece := await read()):
        join(pieces, piece)
        size += len(piece)
    if size > limit:
        raise FrameTooLarge(size, limit)
    return b"".join(pieces)


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """Read as much of a body as there is soon, and as is worth reading of an error.

    A body that ends by then leaves its connection to be used again.
    """
    start = b""
    with suppress(aiohttp.ClientError, OSError, TimeoutError, BadBody):
        async with asyncio.timeout(LINGER):
            read = body_reader(response)
            while len(start) <= START and (chunk := await read()):
                start += chunk
    return start


def body_reader(response: aiohttp.ClientResponse) -> Callable[[], Awaitable[bytes]]:
    """Return a function that reads a body as it comes, decompressed; empty at its end.

    RFC 9110 §8.4: the header may be repeated and may list several codings. One that we did not
    offer, or one inside another, is not taken apart: nesting multiplies what a body expands to.
    """
    if "Content-Encoding" not in response.headers:
        return response.content.readany
    listed = ",".join(response.headers.getall("Content-Encoding")).lower().split(",")
    coding = ", ".join(name for part in listed if (name := part.strip()) not in ("", "identity"))
    if not coding:
        return response.content.readany
    if coding not in CODINGS:
        raise BadBody(coding, "it was not asked for")
    return partial(anext, _inflated(response, coding), b"")


async def _inflated(response: aiohttp.ClientResponse, coding: str) -> AsyncIterator[bytes]:
    inflater = Inflater(coding)
    while chunk := await response.content.readany():
        for start in range(0, len(chunk), TURN):
            for data in inflater.feed(chunk[start : start + TURN]):
                yield data
            await asyncio.sleep(0)
    inflater.close()


def content_type(response: aiohttp.ClientResponse) -> str:
    """Return the media type of a response, without its parameters."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


# Responses outside 2xx

SESSION: Final = "Mcp-Session-Id"
BROKEN: Final = (aiohttp.ClientError, OSError, TimeoutError)
"""The exceptions that may end a connection at any moment."""
UNREADABLE: Final = (BadBody, FrameTooLarge)
"""The exceptions that reading a body may raise beside those."""
CLIENT_CERTIFICATE: Final = Hint("cert", "sets a client certificate")
_REASONS: Final = {
    401: RefusalReason.UNAUTHORIZED,
    **dict.fromkeys((403, 407, 421), RefusalReason.FORBIDDEN),
    **dict.fromkeys((400, 404, 405, 410, 501), RefusalReason.NOT_UNDERSTOOD),
    **dict.fromkeys((408, 425, 429, 503), RefusalReason.BUSY),
}
_ENDPOINT: Final = re.compile(r"/(mcp|sse|messages?)\b", re.IGNORECASE)
_REBINDING: Final = re.compile(
    r"(?<![a-z])(origin|host)(s|names?)?(?![a-z])|disallowedhost|rebinding|\bcors\b", re.IGNORECASE
)
_PERMISSION: Final = re.compile(r"token|scope|credential|permission|login|api.?key", re.IGNORECASE)


def refusal(
    origin: str, response: aiohttp.ClientResponse, body: bytes, *, in_session: bool, path: str
) -> Refused:
    """Return the refusal in a response outside 2xx to a request that may have named a session."""
    status, headers = response.status, response.headers
    fault = fault_in(body)
    message = _message_of(response, fault, body)
    text = f"{origin} answered with HTTP status {status}: {message}"
    kind: type[HoldfastError] = TransportError
    hints: tuple[Hint, ...] = ()
    if status == 401:
        kind, fault = AuthError, None
        hints = (Hint("headers", "gives other credentials"),)
    elif status in (403, 421):
        kind, hint = _forbidden(status, message, headers)
        hints, fault = (hint,), None
    elif status in (404, 405) and fault is None and not in_session and not _ENDPOINT.search(path):
        text += f" (its MCP endpoint may be at another path, such as {path.rstrip('/')}/mcp)"
    no_session = in_session and _no_such_session(status, fault)
    wait = _wait_before_retry(status, headers, fault)
    return Refused(
        kind(text, code=status, hints=hints),
        RefusalReason.NO_SUCH_SESSION if no_session else _reason_of(status),
        fault=fault,
        processed=_may_be_processed(status),
        retry_after=wait,
    )


def _message_of(response: aiohttp.ClientResponse, fault: ErrorObject | None, body: bytes) -> str:
    """Return the server's words: those of a JSON-RPC error, of the body, or of the status."""
    status = response.status
    message = (fault.message if fault else None) or snippet(body.strip()) or response.reason or ""
    return message.removeprefix(f"{status}: ").removeprefix(f"{status} ")


def _reason_of(status: int) -> RefusalReason:
    if status in _REASONS:
        return _REASONS[status]
    if status >= 500:
        return RefusalReason.CRASHED
    return RefusalReason.REJECTED if status >= 400 else RefusalReason.UNREADABLE


def _may_be_processed(status: int) -> bool:
    return status in (303, 408) or (status >= 500 and status != 503)


def _wait_before_retry(
    status: int, headers: Mapping[str, str], fault: ErrorObject | None
) -> float | None:
    """Return the seconds for which the server turned the request away; None if it did not.

    RFC 9110 §15.6.4 and RFC 6585 §4: nothing was done.
    """
    if status not in (429, 503):
        return None
    there = timestamp(headers.get("Date", ""))
    header = retry_after(headers.get("Retry-After", ""), time.time() if there is None else there)
    waits = [wait for wait in (header, retry_after_of(fault)) if wait is not None]
    return max(waits, default=DEFAULT_WAIT)


def _forbidden(
    status: int, message: str, headers: Mapping[str, str]
) -> tuple[type[HoldfastError], Hint]:
    """Tell a check of the Origin or Host header from one of the credentials.

    2026-07-28 basic/transports/streamable-http, Security & Endpoint: a server answers an invalid
    Origin with 403; many check the Host header in the same way (DNS rebinding), some with 421
    (RFC 9110 §15.5.20).
    """
    is_rebinding = _REBINDING.search(message) and not _PERMISSION.search(message)
    if status == 421 or (is_rebinding and "WWW-Authenticate" not in headers):
        text = "it does not accept the Host or Origin header: use the host name it was set up for"
        return TransportError, Hint("", text)
    text = "gives other credentials, if these do not allow this; or it admits only certain hosts"
    return AuthError, Hint("headers", text)


def _no_such_session(status: int, fault: ErrorObject | None) -> bool:
    if status == 400:
        # The specification says 404 (2025-11-25 basic/transports, Session Management), but many
        # servers answer with 400 and a message.
        return fault is not None and "session" in (fault.message or "").lower()
    return status == 404 and (fault is None or fault.code != METHOD_NOT_FOUND)


class _ErrorBody(Struct):
    error: Raw


_error_body = msgspec.json.Decoder(_ErrorBody)


def fault_in(body: bytes) -> ErrorObject | None:
    """Return the JSON-RPC error in a body, if there is one."""
    try:
        fault = decode_error_object(_error_body.decode(body).error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fault if fault is not None and fault.code is not None else None


# Requests that failed


def failure(
    origin: str, error: BaseException, proxy: str | None, *, sent: bool, fresh: bool
) -> Refused:
    """Return the refusal for an exception that ended a request.

    ``sent``: a byte of the request had left; ``fresh``: no byte of a response had come.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, FrameTooLarge | BadBody):
        return _unreadable(origin, error)
    if not isinstance(error, BROKEN):
        text = f"the request to {origin} failed: {error!r}"
        return Refused(TransportError(text), RefusalReason.BROKEN, processed=sent)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        text = f"cannot connect to {origin}: TLS: {error}"
        return not_sent(TransportError(text, hints=(Hint("ca", "adds a trusted CA"),)))
    alert = _tls_alert(error) if fresh else None
    if alert is not None:
        text = f"{origin} ended the TLS handshake: {alert}"
        return not_sent(TransportError(text, hints=(CLIENT_CERTIFICATE,)))
    return _broken(origin, error, proxy)


def _unreadable(origin: str, error: FrameTooLarge | BadBody) -> Refused:
    if isinstance(error, BadBody):
        return Refused(ProtocolError(f"{origin} answered {error}"), RefusalReason.UNREADABLE)
    hint = Hint("limits.frame_bytes", "sets this")
    too_large = ProtocolError(f"{origin} sent {error}", hints=(hint,))
    return Refused(too_large, RefusalReason.UNREADABLE, frame_size=error.size)


def _broken(origin: str, error: BaseException, proxy: str | None) -> Refused:
    """Return the refusal for a connection that could not be made, or that broke."""
    through = ""
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error, aiohttp.ClientProxyConnectionError) and proxy:
            through = f" through the proxy {proxy}"
        number = error.os_error.errno
        words = os.strerror(number) if number and number > 0 else str(error.os_error)
    elif isinstance(error, aiohttp.ConnectionTimeoutError):
        words = "timeout"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        words = f"the proxy answered {error.status}: {error.message}"
    else:
        # Some have the head of the response, as far as it came, in place of a message.
        message = getattr(error, "message", "")
        words = str(error) if isinstance(message, str) else "the head of its response is cut off"
        text = f"the connection to {origin} broke: {words or type(error).__name__}"
        return Refused(TransportError(text), RefusalReason.BROKEN)
    text = f"cannot connect to {origin}{through}: {words}"
    return Refused(TransportError(text), RefusalReason.UNREACHABLE, processed=False)


def not_sent(error: HoldfastError) -> Refused:
    return Refused(error, RefusalReason.NOT_SENT, processed=False)


def _tls_alert(error: BaseException) -> str | None:
    """Return the alert with which the server ended the TLS handshake, if it did.

    RFC 8446 §4.4.2.4: in TLS 1.3 the server checks the client's certificate after the client
    considers the handshake done, but before it reads the request: the request was not run.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and "ALERT" in (cause.reason or ""):
            return (cause.reason or "").lower().replace("_", " ")
        cause = cause.__cause__ or cause.__context__
    return None

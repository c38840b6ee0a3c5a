"""HTTP errors in the words of the boundary: the meaning of a status, a body, a broken connection.

No status leaves the HTTP client: everything above it reads a `Meaning`.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Meaning, Refused
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.http_dates import retry_after
from holdfast._core.wire.jsonrpc import ErrorObject, decode_error_object, snippet
from holdfast.errors import AuthError, HoldfastError, TransportError

SESSION: Final = "Mcp-Session-Id"
UNAUTHORIZED: Final = 401
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _PROXY_LOGIN, _MISDIRECTED = 400, 403, 404, 407, 421
_BUSY: Final = frozenset({408, 425, 429, 503})
_RETRY_AFTER: Final = frozenset({429, 503})
"""RFC 9110 §15.6.4 and RFC 6585 §4: turned away, and nothing was done."""
_WRONG_ADDRESS: Final = frozenset({400, 404, 405, 410, 501})
_NO_ENDPOINT: Final = frozenset({404, 405})
_ENDPOINT: Final = re.compile(r"/(mcp|sse|messages?)\b", re.IGNORECASE)
_MAY_HAVE_RUN: Final = frozenset({303, 408})
_SERVER_ERROR: Final = 500
_REBINDING: Final = re.compile(
    r"(?<![a-z])(origin|host)(s|names?)?(?![a-z])|disallowedhost|rebinding|\bcors\b", re.IGNORECASE
)
_PERMISSION: Final = re.compile(r"token|scope|credential|permission|login|api.?key", re.IGNORECASE)


def refusal(
    origin: str, response: aiohttp.ClientResponse, body: bytes, *, named: bool, path: str
) -> Refused:
    """Return the meaning of a response outside 2xx.

    Args:
        origin: The server, for messages.
        response: The response.
        body: The beginning of its body.
        named: True if the request named a session.
        path: The path that was asked.
    """
    status, headers = response.status, response.headers
    fault = fault_in(body)
    said = (fault.message if fault else None) or snippet(body.strip()) or response.reason or ""
    said = said.removeprefix(f"{status}: ").removeprefix(f"{status} ")
    text = f"{origin} answered with HTTP status {status}: {said}"
    if status in _NO_ENDPOINT and fault is None and not named and not _ENDPOINT.search(path):
        text += f" (its MCP endpoint may be at another path, such as {path.rstrip('/')}/mcp)"
    if status == UNAUTHORIZED:
        error: HoldfastError = AuthError(f"{text}; check the credentials (headers=…)", code=status)
        return Refused(error, Meaning.UNAUTHORIZED, processed=False)
    if status in (_FORBIDDEN, _MISDIRECTED):
        error = _forbidden(status, text, said, headers)
        return Refused(error, Meaning.FORBIDDEN, processed=False)
    wait: float | None = None
    if status in _RETRY_AFTER:
        wait = retry_after(headers.get("Retry-After", ""), time.time())
        wait = 1.0 if wait is None else wait
    return Refused(
        TransportError(text, code=status),
        _meaning(status, fault, named=named),
        fault=fault,
        processed=status in _MAY_HAVE_RUN or (status >= _SERVER_ERROR and wait is None),
        retry_after=wait,
    )


def _forbidden(status: int, text: str, said: str, headers: Mapping[str, str]) -> HoldfastError:
    """Tell a check of the Origin or Host header from one of the credentials.

    2026-07-28 basic/transports/streamable-http, Security & Endpoint: a server answers an invalid
    Origin with 403; many check the Host header in the same way (DNS rebinding), some with 421
    (RFC 9110 §15.5.20).
    """
    named = _REBINDING.search(said) and not _PERMISSION.search(said)
    if status == _MISDIRECTED or (named and "WWW-Authenticate" not in headers):
        hint = "it does not accept the Host or Origin header: use the host name it was set up for"
        return TransportError(f"{text}; {hint}", code=status)
    hint = "the credentials (headers=…) do not allow this, or it admits only certain hosts"
    return AuthError(f"{text}; {hint}", code=status)


def _meaning(status: int, fault: ErrorObject | None, *, named: bool) -> Meaning:
    if status < _BAD_REQUEST:
        return Meaning.UNREADABLE
    if named and _no_such_session(status, fault):
        return Meaning.NO_SUCH_SESSION
    if status in _WRONG_ADDRESS:
        return Meaning.NOT_UNDERSTOOD
    if status in _BUSY:
        return Meaning.BUSY
    if status == _PROXY_LOGIN:
        return Meaning.FORBIDDEN
    return Meaning.REJECTED if status < _SERVER_ERROR else Meaning.CRASHED


def _no_such_session(status: int, fault: ErrorObject | None) -> bool:
    if status == _BAD_REQUEST:
        # The specification says 404 (2025-11-25 basic/transports, Session Management), but many
        # servers answer with 400 and a message.
        return fault is not None and "session" in (fault.message or "").lower()
    return status == _NOT_FOUND and (fault is None or fault.code != METHOD_NOT_FOUND)


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


# Connections that failed


def broken(origin: str, error: BaseException, proxy: str | None, *, fresh: bool) -> Refused:
    """Return the meaning of a connection that failed.

    Args:
        origin: The server, for messages.
        error: What the connection ended in.
        proxy: The host of the proxy, if one is used.
        fresh: True if no byte of a response had come.
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        text = f"cannot connect to {origin}: TLS: {error}; ca=… adds a trusted CA"
        return Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
    alert = _tls_alert(error) if fresh else None
    if alert is not None:
        text = f"{origin} ended the TLS handshake: {alert}; cert=… sets a client certificate"
        return Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        proxied = isinstance(error, aiohttp.ClientProxyConnectionError)
        number = error.os_error.errno
        words = os.strerror(number) if number and number > 0 else str(error.os_error)
        return _unreachable(origin, words, proxy if proxied else None)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return _unreachable(origin, "timeout")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _unreachable(origin, f"the proxy answered {error.status}: {error.message}")
    words = str(error) or type(error).__name__
    text = f"the connection to {origin} broke: {words}"
    return Refused(TransportError(text), Meaning.BROKEN)


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


def _unreachable(origin: str, words: str, proxy: str | None = None) -> Refused:
    through = f" through the proxy {proxy}" if proxy else ""
    text = f"cannot connect to {origin}{through}: {words}"
    return Refused(TransportError(text), Meaning.UNREACHABLE, processed=False)

"""Parse ``WWW-Authenticate`` (RFC 9110 §11.6.1) and take what OAuth servers send in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from msgspec import Struct

from holdfast._core.auth.credentials import Secretive

MAX_HEADER: Final = 16 * 1024
"""Characters of a response's challenges that are read; they are far shorter."""
MAX_SCOPES: Final = 200

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
_BARE = re.compile(r"[^\s,]*")
_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"[ \t,]*")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class Challenge(Struct, frozen=True):
    """The credentials that a server wants, as a refusal names them."""

    schemes: frozenset[str] = frozenset()
    """Those of ``bearer`` and ``dpop`` that were offered."""
    resource_metadata: str | None = None
    scope: tuple[str, ...] | None = None
    error: str | None = None
    error_description: str | None = None


class Refusal(Secretive, frozen=True, kw_only=True):
    """A 401 or 403, as the HTTP client saw it."""

    status: int = 401
    challenge: Challenge = Challenge()
    token: str | None = None
    """The access token that was used."""
    operation: str = ""
    nonce: str | None = None
    network: str | None = None
    """The kind of network that the server is in."""
    version_header: Mapping[str, str] = {}

    shown: ClassVar[tuple[str, ...]] = ("status", "challenge")


class Tries(Struct):
    """The attempts already made for one request."""

    count: int = 0
    nonce: bool = False
    renewed: bool = False


def read_challenge(headers: Iterable[str]) -> Challenge:
    """Merge the Bearer and DPoP challenges of a response.

    A parameter comes from the first of them that has it (RFC 6750 §3, RFC 9449 §7.1,
    RFC 9728 §5.1).
    """
    found: dict[str, str] = {}
    schemes = set()
    for scheme, params in parse(headers):
        if scheme in ("bearer", "dpop"):
            schemes.add(scheme)
            for name, value in params.items():
                found.setdefault(name, value)
    scope = found.get("scope")
    return Challenge(
        frozenset(schemes),
        found.get("resource_metadata"),
        None if scope is None else split_scope(scope),
        found.get("error"),
        found.get("error_description"),
    )


def split_scope(text: str) -> tuple[str, ...]:
    """Return the scopes in a space-separated list (RFC 6749 §3.3), each once, in order."""
    found = dict.fromkeys(part for part in text.split() if _SCOPE.fullmatch(part))
    return tuple(found)[:MAX_SCOPES]


def parse(headers: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Return every challenge as its lower-case scheme and its parameters, in order.

    What cannot be read is skipped up to the next comma; nothing raises.
    """
    found: list[tuple[str, dict[str, str]]] = []
    left = MAX_HEADER
    for header in headers:
        _parse(header[:left], found)
        left = max(0, left - len(header))
    return found


def _parse(text: str, found: list[tuple[str, dict[str, str]]]) -> None:
    params: dict[str, str] | None = None
    at = 0
    while (at := _GAP.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        word = _TOKEN.match(text, at)
        if word is None:
            at = _skip(text, at)
            continue
        after = _SPACE.match(text, word.end()).end()  # type: ignore[union-attr]
        if text[after : after + 1] != "=":
            params = {}
            found.append((word[0].lower(), params))
            at = word.end()
        elif params is None:
            at = _skip(text, at)
        else:
            at = _parameter(text, word[0].lower(), after + 1, params)


def _parameter(text: str, name: str, at: int, params: dict[str, str]) -> int:
    """Read one value and return where it ends. ``name=`` may also be the end of a token68."""
    at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        params.setdefault(name, re.sub(r"\\(.)", r"\1", quoted[1], flags=re.S))
        return quoted.end()
    bare = _BARE.match(text, at)
    assert bare is not None
    if bare[0] and bare[0][0] not in '="':
        params.setdefault(name, bare[0])
        return bare.end()
    return _skip(text, at)


def _skip(text: str, at: int) -> int:
    """Return the place of the next comma outside quotes; an open quote hides all that follows."""
    while at < len(text) and text[at] != ",":
        if text[at] == '"':
            quoted = _QUOTED.match(text, at)
            at = len(text) if quoted is None else quoted.end()
        else:
            at += 1
    return at

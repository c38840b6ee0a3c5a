"""Parse ``WWW-Authenticate`` (RFC 9110 §11.6.1) and take what OAuth servers send in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from holdfast._core.auth.credentials import Secretive

MAX_HEADER: Final = 16 * 1024
"""Characters of a response's challenges that are read; they are far shorter."""
MAX_SCOPES: Final = 200

_TOKEN = r"([!#$%&'*+\-.^_`|~0-9A-Za-z]++)"
_QUOTED = r'"((?:[^"\\]|\\.)*+)"'
_GAP = re.compile(r"[ \t,]*")
_SCHEME = re.compile(rf"{_TOKEN}(?![ \t]*=)")
_PARAMETER = re.compile(rf'{_TOKEN}[ \t]*=[ \t]*(?:{_QUOTED}|([^\s,="][^\s,]*))', re.S)
_JUNK = re.compile(rf'(?:[^",]++|{_QUOTED})*+(?:".*)?', re.S)
"""Up to the next comma outside quotes; an open quote hides all that follows."""
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
        text, left = header[:left], max(0, left - len(header))
        params: dict[str, str] | None = None
        at = 0
        while (at := _end(_GAP, text, at)) < len(text):
            if scheme := _SCHEME.match(text, at):
                params = {}
                found.append((scheme[1].lower(), params))
                at = scheme.end()
            elif params is not None and (pair := _PARAMETER.match(text, at)):
                name, quoted, bare = pair.groups()
                value = bare or re.sub(r"\\(.)", r"\1", quoted, flags=re.S)
                params.setdefault(name.lower(), value)
                at = pair.end()
            else:
                at = _end(_JUNK, text, at)
    return found


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match that may be empty ends."""
    found = pattern.match(text, at)
    assert found is not None
    return found.end()

"""Blacking out secrets, for everything that is written down: audit records and call logs.

A field is secret by its name, or because the tool's schema says so; inside texts, whatever
looks like a credential is. What is written down never has more in it than what came in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from holdfast.policies import Redaction

HIDDEN: Final = "[redacted]"
DEEPEST: Final = 64
"""Levels that are looked into; what lies deeper is blacked out whole."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LOOKS_SECRET: Final = (
    (("bearer", "basic"), r"(?i)\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,}"),
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
        r"\b(?:sk|pk|rk)[-_](?:live|test|ant|proj)?[-_]?[A-Za-z0-9_-]{16,}",
    ),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox"),
        r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-)[A-Za-z0-9_-]{10,}",
    ),
    (("akia", "asia"), r"\bA(?:KIA|SIA)[A-Z0-9]{16}\b"),
    (("://",), r"(?<=://)[^/\s:@]{1,256}:[^/\s@]{1,256}(?=@)"),
    (
        ("private key-----",),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    ),
)
"""What credentials look like. Each pattern is tried only where one of its words stands, in small
letters: looking for words is many times faster, and most texts have none of them."""


class Redactor:
    """One policy, ready to use."""

    def __init__(self, policy: Redaction) -> None:
        self._on = policy.on
        self._schema = policy.schema
        self._words = frozenset("".join(_words(key)) for key in policy.keys)
        self._patterns: list[tuple[tuple[str, ...], re.Pattern[str]]] = [
            (needles, re.compile(one)) for needles, one in _LOOKS_SECRET
        ]
        self._patterns += [((), re.compile(one)) for one in policy.patterns]

    def is_secret(self, name: str) -> bool:
        """Whether a field of this name holds a secret: by one of its words, or two in a row."""
        words = _words(name)
        pairs = (first + second for first, second in pairwise(words))
        return self._on and not self._words.isdisjoint((*words, *pairs, "".join(words)))

    def text(self, text: str) -> str:
        """A text without what looks like a credential."""
        if not self._on:
            return text
        small = text.lower()
        for needles, pattern in self._patterns:
            if not needles or any(needle in small for needle in needles):
                text = pattern.sub(HIDDEN, text)
        return text

    def value(self, value: Any, schema: Any = None) -> Any:
        """A copy of a JSON value, made of plain types, without its secrets."""
        if not self._on:
            return value
        try:
            plain = msgspec.to_builtins(value)
        except (TypeError, ValueError, RecursionError):
            return HIDDEN
        return self._copy(plain, schema if self._schema else None, DEEPEST)

    def _copy(self, value: Any, schema: Any, levels: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, dict | list):
            return value
        if levels == 0:
            return HIDDEN
        if isinstance(value, list):
            return [self._copy(item, _items(schema), levels - 1) for item in value]
        return {
            self.text(str(name)): HIDDEN
            if self.is_secret(str(name)) or any(_hinted(part) for part in _named(schema, name))
            else self._copy(item, _first(_named(schema, name)), levels - 1)
            for name, item in value.items()
        }


def _words(name: str) -> list[str]:
    """``apiKey``, ``API_KEY`` and ``api-key`` are all ``api`` and ``key``."""
    return [word.lower() for word in _WORDS.findall(name)]


def _parts(schema: Any, levels: int = 4) -> Iterator[Mapping[str, Any]]:
    """A schema and what it is put together from, so far as it can be read without references."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    if levels:
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            for branch in branches if isinstance(branches, list) else ():
                yield from _parts(branch, levels - 1)


def _named(schema: Any, name: Any) -> list[Any]:
    """What a schema says about one property."""
    found = []
    for part in _parts(schema):
        properties = part.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            found.append(properties[name])
    return found


def _items(schema: Any) -> Any:
    return _first(part["items"] for part in _parts(schema) if "items" in part)


def _first(found: Iterable[Any]) -> Any:
    return next(iter(found), None)


def _hinted(schema: Any) -> bool:
    return any(
        part.get("writeOnly") is True or part.get("format") == "password" for part in _parts(schema)
    )

"""Redact secrets in whatever is logged, recorded, exported or shown.

A value is hidden because of its name (``password``, ``apiKey``), because the tool's schema says so
(``writeOnly``, ``format: password``), or because it looks like a credential (`_core.credentials`).
Hidden values are replaced by `HIDDEN`, which ``replay`` recognizes to ask for them.

Work is linear in the length of the text: every pattern either has a bounded part that may fail, or
consumes what it looked at. Values above a bound, of characters or of names, are hidden whole.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from holdfast._core.credential_forms import is_path, is_plain_name
from holdfast._core.credentials import IsSecret, PlainWords, hide_credentials, stems_of
from holdfast._core.secret_flags import secret_words
from holdfast._core.text import HIDDEN, truncate
from holdfast.policies import Redaction

__all__ = ["HIDDEN", "Redactor", "default_redactor", "redact_beginning", "redact_text"]

DEEPEST: Final = 64
"""Levels of nesting that are searched; what is deeper is hidden whole."""
MOST_CHARACTERS: Final = 16 * 1024 * 1024
"""Characters of one value that are searched; the rest is hidden whole."""
MOST_NAMES: Final = 400_000
"""Names in one text or value that are judged, which takes seconds; the rest is hidden whole."""
_NODE: Final = 16
"""A part of a value costs as much as so many characters."""
_FURTHER: Final = 8 * 1024
"""Characters behind a beginning that are searched with it: a secret in it may end there."""
_SHORT: Final = 512
"""A shorter text is searched once for anything suspicious before it is searched for each form."""
_MOST_WORDS: Final = 200
"""Words of a list that are searched for a command's flags."""
_EMBEDDED: Final = 8
"""Levels of JSON inside strings of JSON that are decoded; deeper ones are searched as text."""

# Names

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME: Final = 128
_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "sessionid"),
    *("apikey", "accesskey", "privatekey", "secretkey", "signingkey", "encryptionkey"),
    *("accountkey", "sharedkey", "masterkey", "sessid"),
)
"""Run-together names are secret if they end like this: ``accesstoken``, ``dbpassword``."""
_COUNTED_WORDS: Final = """
    page next previous prev max min total prompt completion input output count limit budget used
    usage remaining cached cache reasoning num number per context estimated stop start starting eos
    bos pad unk sep cls mask special continuation continue cursor sync progress idempotency resume
    resumption delta change changes watch skip pagination list first last
"""
_COUNTED: Final = frozenset(_COUNTED_WORDS.split())
"""A token beside one of these words is a count, a cursor or a marker: ``max_tokens``."""
_ABOUT_WORDS: Final = """
    type types endpoint endpoints url urls uri uris count counts limit limits length len size
    name names expiry expires expiration expired ttl policy required optional method methods mode
    scheme schemes server servers supported provider providers enabled disabled field fields label
    hint format usage budget strategy status rotation age at in index idx path file filename column
    valid invalid version description title class ref refs arn ids consent
"""
_ABOUT: Final = frozenset(_ABOUT_WORDS.split())
"""A name that ends in one of these is about a secret: ``token_type``, ``password_policy``."""
_NAME_KEYS: Final = frozenset(
    {"name", "key", "k", "header", "field", "variable", "param", "parameter", "id", "label"}
    | {"property"}
)
_SAMPLES: Final = frozenset({"default", "const", "examples", "enum", "pattern"})
_TYPES: Final = ("string", "number", "integer", "boolean", ["string", "null"])
_SCHEMA_KEYS: Final = (
    _SAMPLES
    | {"type", "description", "title", "format", "writeOnly"}
    | {"minLength", "maxLength", "minimum", "maximum", "deprecated"}
)
_VALUE_KEYS: Final = frozenset(
    {"value", "values", "val", "v", "content", "default", "text", "data"}
    | {"new_value", "old_value", "newvalue", "oldvalue"}
)


class _TooManyNames(Exception):  # noqa: N818  (an end of the search)
    """The names of one text or value take too long to judge."""


class Redactor:
    """Applies one `Redaction` policy.

    Args:
        policy: Names, patterns and schema hints to go by.
    """

    def __init__(self, policy: Redaction) -> None:
        self._on = policy.on
        self._schema = policy.schema
        self._keys = frozenset("".join(_words(key)) for key in policy.keys)
        self._endings = tuple(one for one in _ENDINGS if one in self._keys)
        self._stems = stems_of(max(words, key=len) for key in policy.keys if (words := _words(key)))
        self._plain = PlainWords(self._stems)
        self._patterns = [re.compile(one) for one in policy.patterns]
        self._longest_plain = _SHORT if policy.on and not policy.patterns else 0
        self._is_secret = lru_cache(2048)(self._judge)
        self._shown_name = lru_cache(2048)(self._text)

    def is_secret(self, name: str) -> bool:
        """Return True if a field of this name holds a secret."""
        return self._on and self._is_secret(name[-_LONGEST_NAME:])

    def _judge(self, name: str) -> bool:
        words = _words(name)
        if not words:
            return False
        whole = "".join(words)
        if whole in self._keys or _singular(whole) in self._keys:
            return True
        if words[-1] in _ABOUT:
            return False
        if words[-1] == "pass":
            return "password" in self._keys and _COUNTED.isdisjoint(words)
        pairs = (first + second for first, second in pairwise(words))
        if any(_singular(pair) in self._keys for pair in pairs):
            return True
        return any(self._is_secret_word(word, words) for word in words)

    def _is_secret_word(self, word: str, words: list[str]) -> bool:
        word = _singular(word)
        if word == "token":
            return word in self._keys and _COUNTED.isdisjoint(words)
        if word in self._keys:
            return True
        if not word.endswith(self._endings):
            return False
        return not (word.endswith("token") and word[:-5].endswith(tuple(_COUNTED)))

    # Text

    def name(self, name: str) -> str:
        """Return the name of a field without what looks like a credential."""
        return self._shown_name(name, 0) if len(name) <= 64 else self._text(name, 0)

    def text(self, text: str) -> str:
        """Return the text without what looks like a credential."""
        return self._text(text, _EMBEDDED)

    def beginning(self, text: str, most: int) -> str:
        """Return at most so many characters of a redacted text; little more of it is searched."""
        return truncate(self.text(text[: most + _FURTHER]), most)

    def _text(self, text: str, embedded: int, is_secret: IsSecret | None = None) -> str:
        if not self._on or len(text) < 4:
            return text
        if len(text) > MOST_CHARACTERS:
            return HIDDEN
        if len(text) < self._longest_plain and text.isascii() and self._plain.has(text.encode()):
            return text
        if embedded and text.lstrip()[:1] in ("{", "["):
            is_secret = is_secret or self._counted()
            found = self._embedded_json(text, embedded - 1, is_secret)
            if found is not None and embedded < _EMBEDDED:
                # The text around it is searched too: once is enough, however deep this is.
                return self._without_patterns(found)
            text = found or text
        try:
            found = hide_credentials(text, is_secret or self._counted(), self._stems)
        except _TooManyNames:
            return HIDDEN
        return self._without_patterns(found)

    def _counted(self) -> IsSecret:
        """Return `is_secret` for one text or value: all along a search it is asked."""
        left = MOST_NAMES

        def is_secret(name: str) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooManyNames
            return self.is_secret(name)

        return is_secret

    def _without_patterns(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text

    def _embedded_json(self, text: str, embedded: int, is_secret: IsSecret) -> str | None:
        """Redact a string that is JSON itself by its structure; return None if it is not."""
        try:
            value = msgspec.json.decode(text)
            found = _Copy(self, embedded, is_secret).value(value, DEEPEST)
            if found == value:
                return text
            return msgspec.json.encode(found).decode()
        except (ValueError, RecursionError, OverflowError):
            return None

    # Values

    def value(self, value: Any, secret: frozenset[str] | None = frozenset()) -> Any:
        """Return a copy of a JSON value, made of plain types, without its secrets.

        Args:
            value: Anything that JSON can hold, and msgspec structs.
            secret: The properties that a schema declares secret; None: all of them.
        """
        if not self._on:
            return value
        try:
            plain = msgspec.to_builtins(value)
        except (TypeError, ValueError, RecursionError):
            return HIDDEN
        if secret is None and self._schema:
            return (
                {name: _hide(item) for name, item in plain.items()}
                if isinstance(plain, dict)
                else HIDDEN
            )
        names = secret if secret and self._schema else frozenset()
        if not names and self._is_plain(plain):
            return plain
        return _Copy(self, _EMBEDDED, self._counted(), names).value(plain, DEEPEST)

    def _is_plain(self, value: Any) -> bool:
        try:
            return self.is_plain(_encode(value))
        except (ValueError, TypeError, RecursionError, OverflowError):
            return False

    def is_plain(self, data: bytes) -> bool:
        """Return True if JSON is short and has nothing in it that could be hidden."""
        if len(data) >= self._longest_plain:
            return not self._on
        if len(data) > DEEPEST and data.count(b"{") + data.count(b"[") >= DEEPEST:
            return False
        return self._plain.has(data)


_encode: Final = msgspec.json.Encoder().encode


class _Copy:
    """One value being copied; counts what was searched."""

    def __init__(
        self,
        redactor: Redactor,
        embedded: int,
        is_secret: IsSecret,
        secret: frozenset[str] = frozenset(),
    ) -> None:
        self._redactor = redactor
        self._secret = secret
        self._embedded = embedded
        self._is_secret = is_secret
        self._left = MOST_CHARACTERS

    def value(self, value: Any, levels: int) -> Any:
        self._left -= len(value) if isinstance(value, str) else _NODE
        if self._left < 0:
            return HIDDEN
        if isinstance(value, str):
            return self._redactor._text(value, self._embedded, self._is_secret)
        if not isinstance(value, dict | list):
            return value
        if levels == 0:
            return HIDDEN
        if isinstance(value, list):
            return self._list(value, levels)
        pair = self._is_secret_pair(value)
        found = {
            self._redactor.name(str(name)): self._item(str(name), item, levels, pair)
            for name, item in value.items()
        }
        if "args" in value and isinstance(found["args"], list):
            self._hide_arguments(value, found["args"])
        return found

    def _hide_arguments(self, value: dict[str, Any], found: list[Any]) -> None:
        """Hide the passwords of a command whose program stands beside its arguments."""
        program, words = value.get("command") or value.get("cmd"), value["args"]
        if isinstance(program, str) and len(words) <= _MOST_WORDS and _all_text(words):
            for index, at in secret_words([program, *words]):
                if index:
                    found[index - 1] = f"{words[index - 1][:at]}{HIDDEN}"

    def _list(self, value: list[Any], levels: int) -> list[Any]:
        found = [self.value(item, levels - 1) for item in value]
        if value and all(_is_pair(item) for item in value):
            # Headers as pairs: [["Authorization", "Bearer …"], …].
            for index, (name, _) in enumerate(value):
                if self._redactor.is_secret(name) and found[index] != HIDDEN:
                    found[index][1] = HIDDEN
        elif value and len(value) <= _MOST_WORDS and _all_text(value):
            for index, at in secret_words(value):
                found[index] = f"{value[index][:at]}{HIDDEN}"
            for index, (name, item) in enumerate(pairwise(value), 1):
                if self._is_named(name, item, alone=len(value) == 2):
                    found[index] = HIDDEN
        return found

    def _is_named(self, name: str, item: str, *, alone: bool) -> bool:
        """Return True for a flag and its value, or a name and its value, not for two names."""
        if len(name) > 64 or not item or not self._redactor.is_secret(name):
            return False
        if name.startswith("-"):
            return not item.startswith("-")
        return alone and not is_plain_name(item)

    def _item(self, name: str, item: Any, levels: int, pair: bool) -> Any:
        if pair and name.lower() in _VALUE_KEYS:
            return _hide(item)
        if self._redactor.is_secret(name):
            if _is_schema(item):
                return {key: _hide(one) if key in _SAMPLES else one for key, one in item.items()}
            return item if _is_other(name, item) else _hide(item)
        return _hide(item) if name in self._secret else self.value(item, levels - 1)

    def _is_secret_pair(self, value: dict[str, Any]) -> bool:
        """Return True for ``{"name": "Authorization", "value": …}``."""
        if len(value) > 12:
            return False
        names = [item for key, item in value.items() if str(key).lower() in _NAME_KEYS]
        return any(isinstance(name, str) and self._redactor.is_secret(name) for name in names)


def _hide(item: Any) -> Any:
    """Hide what can be a secret: not ``null``, a boolean or an empty string."""
    return item if item is None or isinstance(item, bool) or item == "" else HIDDEN


def _all_text(value: list[Any]) -> bool:
    return all(isinstance(one, str) for one in value)


def _is_schema(value: Any) -> bool:
    """Return True for the JSON Schema of a field: ``{"type": "string", …}``."""
    return isinstance(value, dict) and value.get("type") in _TYPES and value.keys() <= _SCHEMA_KEYS


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(one) for one in value] == [str, str]


def _is_other(name: str, item: Any) -> bool:
    """Return True for a count of tokens, or the path that ``pwd`` may be."""
    if isinstance(item, str):
        return name.lower() == "pwd" and is_path(item)
    counts = item if isinstance(item, list) else [item]
    counted = _words(name)[-1:] in (["token"], ["tokens"], ["pass"])
    return counted and all(isinstance(one, int | float) for one in counts)


def _words(name: str) -> list[str]:
    """Split a name: ``apiKey``, ``API_KEY`` and ``api-key`` are all ``api`` and ``key``."""
    return [word.lower() for word in _WORDS.findall(name)]


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@cache
def default_redactor() -> Redactor:
    """Return the redactor of the default policy, for what has none of its own."""
    return Redactor(Redaction())


def redact_text(text: str) -> str:
    """Return a text without what looks like a credential, by the default policy."""
    return default_redactor().text(text)


def redact_beginning(text: str, most: int) -> str:
    """Return at most so many characters of a redacted text, by the default policy."""
    return default_redactor().beginning(text, most)

"""Redact secrets in whatever is logged, recorded, exported or shown.

A value is hidden because of its name (``password``, ``apiKey``), because the tool's schema says so
(``writeOnly``, ``format: password``), or because it looks like a credential (`_core.redact_text`).
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

from holdfast._core.redact_forms import is_flag, is_path, is_plain_name, secret_words
from holdfast._core.redact_text import PlainWords, hide_credentials, stems_of
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


class Redactor:
    """Applies one `Redaction` policy."""

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
        self._shown_name = lru_cache(2048)(lambda name: _Search(self).text(name, 0))

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
        return any(self._is_secret_word(_singular(word), words) for word in words)

    def _is_secret_word(self, word: str, words: list[str]) -> bool:
        if word == "token":
            return word in self._keys and _COUNTED.isdisjoint(words)
        if word in self._keys:
            return True
        counted = word.endswith("token") and word[:-5].endswith(tuple(_COUNTED))
        return word.endswith(self._endings) and not counted

    def name(self, name: str) -> str:
        """Return the name of a field without what looks like a credential."""
        return self._shown_name(name) if len(name) <= 64 else _Search(self).text(name, 0)

    def text(self, text: str) -> str:
        """Return the text without what looks like a credential."""
        return _Search(self).text(text)

    def beginning(self, text: str, most: int) -> str:
        """Return at most so many characters of a redacted text; little more of it is searched."""
        return truncate(self.text(text[: most + _FURTHER]), most)

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
            whole = not isinstance(plain, dict)
            return HIDDEN if whole else {name: _hide(item) for name, item in plain.items()}
        names = secret if secret and self._schema else frozenset()
        try:
            if not names and self.is_plain(_encode(plain)):
                return plain
        except (TypeError, ValueError, RecursionError, OverflowError):
            pass  # not JSON, such as half a surrogate pair: search it
        return _Search(self, names).value(plain)

    def is_plain(self, data: bytes) -> bool:
        """Return True if JSON is short and has nothing in it that could be hidden."""
        if len(data) >= self._longest_plain:
            return not self._on
        if len(data) > DEEPEST and data.count(b"{") + data.count(b"[") >= DEEPEST:
            return False
        return self._plain.has(data)


_encode: Final = msgspec.json.Encoder().encode


class _TooManyNames(Exception):  # noqa: N818  (an end of the search)
    """The names of one text or value take too long to judge."""


class _Search:
    """One text or value being redacted, ``secret`` by a schema too; counts what was searched."""

    def __init__(self, redactor: Redactor, secret: frozenset[str] = frozenset()) -> None:
        self._redactor = redactor
        self._secret = secret
        self._names_left = MOST_NAMES
        self._left = MOST_CHARACTERS

    def _is_secret(self, name: str) -> bool:
        """Return True for the name of a secret; count the names that were judged."""
        self._names_left -= 1
        if self._names_left < 0:
            raise _TooManyNames
        return self._redactor.is_secret(name)

    def text(self, text: str, embedded: int = _EMBEDDED) -> str:
        """Return the text without its secrets; ``embedded`` levels of JSON in it are decoded."""
        redactor, size = self._redactor, len(text)
        if not redactor._on or size < 4:
            return text
        if size > MOST_CHARACTERS:
            return HIDDEN
        if size < redactor._longest_plain and text.isascii() and redactor._plain.has(text.encode()):
            return text
        found = None
        if embedded and text.lstrip()[:1] in ("{", "["):
            found = self._embedded_json(text, embedded - 1)
        # Embedded JSON is searched again as part of the outermost text: do not search each level.
        if found is None or embedded == _EMBEDDED:
            try:
                found = hide_credentials(found or text, self._is_secret, redactor._stems)
            except _TooManyNames:
                return HIDDEN
        for pattern in redactor._patterns:
            found = pattern.sub(HIDDEN, found)
        return found

    def _embedded_json(self, text: str, embedded: int) -> str | None:
        """Redact a string that is JSON itself by its structure; return None if it is not."""
        left, self._left = self._left, MOST_CHARACTERS
        try:
            value = msgspec.json.decode(text)
            found = self.value(value, DEEPEST, embedded)
            return text if found == value else msgspec.json.encode(found).decode()
        except (ValueError, RecursionError, OverflowError):
            return None
        finally:
            self._left = left

    def value(self, value: Any, levels: int = DEEPEST, embedded: int = _EMBEDDED) -> Any:
        """Return a copy of a value without its secrets."""
        self._left -= len(value) if isinstance(value, str) else _NODE
        if self._left < 0 or (levels == 0 and isinstance(value, dict | list)):
            return HIDDEN
        if isinstance(value, str):
            return self.text(value, embedded)
        if isinstance(value, list):
            items = [self.value(item, levels - 1, embedded) for item in value]
            self._hide_in_list(value, items)
            return items
        if not isinstance(value, dict):
            return value
        # {"name": "Authorization", "value": …}
        names = [item for key, item in value.items() if str(key).lower() in _NAME_KEYS]
        pair = len(value) <= 12 and any(
            isinstance(name, str) and self._redactor.is_secret(name) for name in names
        )
        found = {}
        for key, item in value.items():
            name = str(key)
            if pair and name.lower() in _VALUE_KEYS:
                shown = _hide(item)
            elif self._redactor.is_secret(name):
                shown = _hide_named(name, item)
            elif name in self._secret:
                shown = _hide(item)
            else:
                shown = self.value(item, levels - 1, embedded)
            found[self._redactor.name(name)] = shown
        arguments, program = found.get("args"), value.get("command") or value.get("cmd")
        if isinstance(arguments, list) and isinstance(program, str):
            _hide_arguments([program, *value["args"]], arguments, 1)
        return found

    def _hide_in_list(self, value: list[Any], found: list[Any]) -> None:
        """Hide the values of headers as pairs (``[["Authorization", "…"], …]``), and of flags."""
        if value and all(_is_pair(item) for item in value):
            for index, (name, _) in enumerate(value):
                if self._redactor.is_secret(name) and found[index] != HIDDEN:
                    found[index][1] = HIDDEN
        elif _hide_arguments(value, found, 0):
            for index, (name, item) in enumerate(pairwise(value), 1):
                if len(name) > 64 or not item or not self._redactor.is_secret(name):
                    continue
                # A flag and its value, or a name and its value, not two names.
                if name.startswith("-"):
                    is_value = not is_flag(item)
                else:
                    is_value = len(value) == 2 and not is_plain_name(item)
                found[index] = HIDDEN if is_value else found[index]


def _hide_arguments(words: list[Any], found: list[Any], skip: int) -> bool:
    """Hide the passwords of a command, whose first words are not in ``found``, if it is one."""
    if len(words) > _MOST_WORDS or not all(isinstance(one, str) for one in words):
        return False
    for index, at in secret_words(words):
        if index >= skip:
            found[index - skip] = f"{words[index][:at]}{HIDDEN}"
    return True


def _hide(item: Any) -> Any:
    """Hide what can be a secret: not ``null``, a boolean or an empty string."""
    return item if item is None or isinstance(item, bool) or item == "" else HIDDEN


def _hide_named(name: str, item: Any) -> Any:
    """Hide the value of a secret name; of the JSON Schema of such a field, its samples."""
    is_schema = isinstance(item, dict) and item.get("type") in _TYPES
    if is_schema and item.keys() <= _SCHEMA_KEYS:
        return {key: _hide(one) if key in _SAMPLES else one for key, one in item.items()}
    if isinstance(item, str):
        return item if name.lower() == "pwd" and is_path(item) else _hide(item)
    # A number of tokens is not a token.
    counts = item if isinstance(item, list) else [item]
    counted = _words(name)[-1:] in (["token"], ["tokens"], ["pass"])
    is_count = counted and all(isinstance(one, int | float) for one in counts)
    return item if is_count else _hide(item)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(one) for one in value] == [str, str]


def _words(name: str) -> list[str]:
    """Split a name: ``apiKey``, ``API_KEY`` and ``api-key`` are all ``api`` and ``key``."""
    return [word.lower() for word in _WORDS.findall(name)]


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@cache
def default_redactor() -> Redactor:
    """Return the redactor of the default policy."""
    return Redactor(Redaction())


def redact_text(text: str) -> str:
    """Return a text without what looks like a credential, by the default policy."""
    return default_redactor().text(text)


def redact_beginning(text: str, most: int) -> str:
    """Return at most so many characters of a redacted text, by the default policy."""
    return default_redactor().beginning(text, most)

"""One policy of redaction, applied to texts and to JSON values.

A value is hidden because it is a secret that this process holds (`known`), because of its name
(``password``, ``apiKey``), because the tool's schema says so (``writeOnly``, ``format: password``),
or because it has the form of a credential. Beyond these, best effort. Hidden values are replaced by
`HIDDEN`, which ``replay`` recognizes to ask for them.

Work is linear in the length of the text: every pattern either has a bounded part that may fail, or
consumes what it looked at. Values above a bound, of characters or of names, are hidden whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from holdfast._core.redact.forms import is_flag, is_plain_name
from holdfast._core.redact.known import KNOWN, KnownSecrets
from holdfast._core.redact.names import SecretNames, hide_named, hide_value
from holdfast._core.redact.text import PROTOCOL_NAMES, PlainWords, hide_credentials, stems_of
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
_TOGETHER: Final = 64
"""Messages that are searched together: more often than not, there is nothing in them."""
_MOST_WORDS: Final = 200
"""Words of a list that are searched for a command's flags."""
_EMBEDDED: Final = 8
"""Levels of JSON inside strings of JSON that are decoded; deeper ones are searched as text."""
_NAME_KEYS: Final = frozenset(
    {"name", "key", "k", "header", "field", "variable", "param", "parameter", "id", "label"}
    | {"property"}
)
_VALUE_KEYS: Final = frozenset(
    {"value", "values", "val", "v", "content", "default", "text", "data"}
    | {"new_value", "old_value", "newvalue", "oldvalue"}
)


class Redactor:
    """Applies one `Redaction` policy; hides the known secrets first.

    Args:
        policy: Which names, forms and patterns are hidden.
        known: The secrets that are hidden wherever they appear; by default, all that this process
            holds.
    """

    def __init__(self, policy: Redaction, known: KnownSecrets = KNOWN) -> None:
        self._on = policy.on
        self._schema = policy.schema
        self._known = known
        self._names = SecretNames(policy.keys)
        self._stems = stems_of(self._names.longest_words)
        harmless = [name for name in PROTOCOL_NAMES if not self._names.has(name)]
        self._plain = PlainWords(self._stems, harmless)
        self._patterns = [re.compile(pattern) for pattern in policy.patterns]
        self._longest_plain = _SHORT if policy.on and not policy.patterns else 0
        self._name_by_form = lru_cache(2048)(lambda name: _Search(self).text(name, 0))

    def is_secret(self, name: str) -> bool:
        """Return True if a field of this name holds a secret."""
        return self._on and self._names.has(name)

    def name(self, name: str) -> str:
        """Return the name of a field without known secrets and what looks like a credential."""
        return self._name(self._known.hide(name) if self._on else name)

    def _name(self, name: str) -> str:
        return self._name_by_form(name) if len(name) <= 64 else _Search(self).text(name, 0)

    def text(self, text: str) -> str:
        """Return the text without known secrets and without what looks like a credential."""
        is_searched = self._on and len(text) <= MOST_CHARACTERS
        return _Search(self).text(self._known.hide(text) if is_searched else text)

    def beginning(self, text: str, most: int) -> str:
        """Return at most so many characters of a redacted text; little more of it is searched.

        The text is searched before it is cut: the beginning of a secret has not its form.
        """
        further = max(_FURTHER, self._known.longest)
        return truncate(self.text(text[: most + further]), most)

    def value(self, value: Any, secret: frozenset[str] | None = frozenset()) -> Any:
        """Return a copy of a JSON value, made of plain types, without its secrets.

        Args:
            value: Anything that JSON can hold, and msgspec structs.
            secret: The properties that a schema declares secret; None: all of them.
        """
        if not self._on:
            return value
        try:
            plain = self._known.hide_in(msgspec.to_builtins(value))
        except (TypeError, ValueError, RecursionError):
            return HIDDEN
        if secret is None and self._schema:
            return _hide_all(plain)
        names = secret if secret and self._schema else frozenset()
        try:
            if not names and self._has_no_form(_encode(plain)):
                return plain
        except (TypeError, ValueError, RecursionError, OverflowError):
            pass  # not JSON, such as half a surrogate pair: search it
        return _Search(self, names).value(plain)

    def is_plain(self, data: bytes) -> bool:
        """Return True if JSON is short and has nothing in it that could be hidden."""
        return not self._on or (self._has_no_form(data) and self._has_no_known([data]))

    def are_plain(self, messages: Sequence[bytes]) -> list[bool]:
        """Return for each of them whether this holds; to search them together is faster."""
        if not self._on:
            return [True] * len(messages)
        longest = self._longest_plain
        if max(map(len, messages), default=0) < longest:
            return self._each_plain(messages)
        are_plain = iter(self._each_plain([data for data in messages if len(data) < longest]))
        return [len(data) < longest and next(are_plain) for data in messages]

    def _each_plain(self, messages: Sequence[bytes]) -> list[bool]:
        if not messages or (len(messages) <= _TOGETHER and self._all_plain(messages)):
            return [True] * len(messages)
        if len(messages) == 1:
            return [False]
        half = len(messages) // 2
        return self._each_plain(messages[:half]) + self._each_plain(messages[half:])

    def _all_plain(self, messages: Sequence[bytes]) -> bool:
        most_brackets = self._plain.most_brackets(messages)
        if most_brackets is None or (most_brackets >= DEEPEST and any(map(_is_deep, messages))):
            return False
        # What is found across two messages is no harm.
        return self._has_no_known(messages)

    def _has_no_form(self, data: bytes) -> bool:
        """Return True if JSON is short, and no search but that for known secrets is worth it."""
        is_small = len(data) < self._longest_plain and not _is_deep(data)
        return is_small and self._plain.has(data)

    def _has_no_known(self, messages: Sequence[bytes]) -> bool:
        index = self._known.settle()
        return index is None or not index.may_have_part(b" ".join(messages).decode())


_encode: Final = msgspec.json.Encoder().encode


def _is_deep(data: bytes) -> bool:
    return len(data) > DEEPEST and data.count(b"{") + data.count(b"[") >= DEEPEST


class _TooManyNames(Exception):  # noqa: N818  (an end of the search)
    """The names of one text or value take too long to judge."""


class _Search:
    """One text or value being redacted, ``secret`` by a schema too; counts what was searched."""

    def __init__(self, redactor: Redactor, secret: frozenset[str] = frozenset()) -> None:
        self._redactor = redactor
        self._secret = secret
        self._names_left = MOST_NAMES
        self._characters_left = MOST_CHARACTERS

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
        redacted = None
        if embedded and text.lstrip()[:1] in ("{", "["):
            redacted = self._embedded_json(text, embedded - 1)
        # Embedded JSON is searched again as part of the outermost text: do not search each level.
        if redacted is None or embedded == _EMBEDDED:
            try:
                redacted = hide_credentials(redacted or text, self._is_secret, redactor._stems)
            except _TooManyNames:
                return HIDDEN
        for pattern in redactor._patterns:
            redacted = pattern.sub(HIDDEN, redacted)
        return redacted

    def _embedded_json(self, text: str, embedded: int) -> str | None:
        """Redact a string that is JSON itself by its structure; return None if it is not."""
        characters_left, self._characters_left = self._characters_left, MOST_CHARACTERS
        try:
            value = msgspec.json.decode(text)
            redacted = self.value(value, DEEPEST, embedded)
            return text if redacted == value else msgspec.json.encode(redacted).decode()
        except (ValueError, RecursionError, OverflowError):
            return None
        finally:
            self._characters_left = characters_left

    def value(self, value: Any, levels: int = DEEPEST, embedded: int = _EMBEDDED) -> Any:
        """Return a copy of a value without its secrets."""
        self._characters_left -= len(value) if isinstance(value, str) else _NODE
        if self._characters_left < 0 or (levels == 0 and isinstance(value, dict | list)):
            return HIDDEN
        if isinstance(value, str):
            return self.text(value, embedded)
        if isinstance(value, list):
            items = [self.value(item, levels - 1, embedded) for item in value]
            self._hide_in_list(value, items)
            return items
        if isinstance(value, dict):
            return self._object(value, levels - 1, embedded)
        return value

    def _object(self, value: dict[Any, Any], levels: int, embedded: int) -> dict[str, Any]:
        """Return a copy of an object, with the values of secret names hidden."""
        redactor = self._redactor
        # {"name": "Authorization", "value": …}
        labels = [item for key, item in value.items() if str(key).lower() in _NAME_KEYS]
        is_pair = len(value) <= 12 and any(
            isinstance(label, str) and redactor.is_secret(label) for label in labels
        )
        members = {}
        for key, item in value.items():
            name = str(key)
            if is_pair and name.lower() in _VALUE_KEYS:
                redacted = hide_value(item)
            elif redactor.is_secret(name):
                redacted = hide_named(name, item)
            elif name in self._secret:
                redacted = hide_value(item)
            else:
                redacted = self.value(item, levels, embedded)
            members[redactor._name(name)] = redacted
        return members

    def _hide_in_list(self, value: list[Any], items: list[Any]) -> None:
        """Hide the values of headers as pairs (``[["Authorization", "…"], …]``), and of flags."""
        if value and all(_is_pair(item) for item in value):
            self._hide_in_pairs(value, items)
        elif len(value) <= _MOST_WORDS and all(isinstance(word, str) for word in value):
            self._hide_in_words(value, items)

    def _hide_in_pairs(self, pairs: list[Any], items: list[Any]) -> None:
        for index, (name, _) in enumerate(pairs):
            if self._redactor.is_secret(name) and items[index] != HIDDEN:
                items[index][1] = HIDDEN

    def _hide_in_words(self, words: list[str], items: list[Any]) -> None:
        for index, (name, word) in enumerate(pairwise(words), 1):
            if len(name) > 64 or not word or not self._redactor.is_secret(name):
                continue
            # A flag and its value, or a name and its value, not two names.
            if name.startswith("-"):
                is_value = not is_flag(word)
            else:
                is_value = len(words) == 2 and not is_plain_name(word)
            items[index] = HIDDEN if is_value else items[index]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [str, str]


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


def _hide_all(plain: Any) -> Any:
    """Hide every value of an object, but not their names; anything else as a whole."""
    if not isinstance(plain, dict):
        return HIDDEN
    return {name: hide_value(item) for name, item in plain.items()}

"""Which names are those of secrets: ``password``, ``apiKey``, ``X-Auth-Token``, ``DB_PASS``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

from holdfast._core.text import HIDDEN
from holdfast.policies import SECRETS

# A name is split into its words (``dbPassword`` → ``db password``), and the words are judged, for
# a part of a name says nothing: ``keyboard`` has ``key`` in it, ``compass`` has ``pass``, and
# ``author`` has ``auth``. Two words count together (``api key``, ``connection string``), because
# many secrets are called by two words neither of which is secret alone.
#
# Two kinds of names look like those of secrets and are not. Something *about* a secret ends in what
# it is: ``token_type``, ``password_policy``, ``secret_name``. And the tokens of language models and
# of pages are counted or moved, not kept: ``max_tokens``, ``next_page_token``. To hide those would
# make logs useless for the two most frequent fields in this trade.

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME: Final = 128
_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "sessionid"),
    *("apikey", "accesskey", "privatekey", "secretkey", "signingkey", "encryptionkey"),
    *("accountkey", "sharedkey", "masterkey", "sessid", "connectionstring"),
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
_SAMPLES: Final = frozenset({"default", "const", "examples", "enum", "pattern"})
_TYPES: Final = ("string", "number", "integer", "boolean", ["string", "null"])
_SCHEMA_KEYS: Final = (
    _SAMPLES
    | {"type", "description", "title", "format", "writeOnly"}
    | {"minLength", "maxLength", "minimum", "maximum", "deprecated"}
)


class SecretNames:
    """Judges names by the words of a policy."""

    def __init__(self, keys: Iterable[str]) -> None:
        keys = tuple(keys)
        self._keys = frozenset("".join(words_of(key)) for key in keys)
        self._endings = tuple(ending for ending in _ENDINGS if ending in self._keys)
        self.longest_words: tuple[str, ...] = tuple(
            max(words, key=len) for key in keys if (words := words_of(key))
        )
        """One word of each key: a text without any of them has no name of a secret in it."""
        self.judge = lru_cache(2048)(self._judge)
        """Returns True if a field of this name holds a secret; for names that are not long."""

    def has(self, name: str) -> bool:
        """Return True if a field of this name holds a secret."""
        return self.judge(name[-_LONGEST_NAME:])

    def _judge(self, name: str) -> bool:
        words = words_of(name)
        if not words:
            return False
        whole = "".join(words)
        if whole in self._keys or _singular(whole) in self._keys:
            return True
        if words[-1] in _ABOUT:
            return False
        if words[-1] == "pass":
            return "password" in self._keys and _COUNTED.isdisjoint(words)
        if self._has_secret_pair(words):
            return True
        return any(self._is_secret_word(_singular(word), words) for word in words)

    def _has_secret_pair(self, words: list[str]) -> bool:
        pairs = (first + second for first, second in pairwise(words))
        return any(_singular(pair) in self._keys for pair in pairs)

    def _is_secret_word(self, word: str, words: list[str]) -> bool:
        if word == "token":
            return word in self._keys and _COUNTED.isdisjoint(words)
        if word in self._keys:
            # ``session`` and ``user_session``, not ``session_name`` or ``session_count``.
            return word != "session" or _singular(words[-1]) == word
        counted = word.endswith("token") and word[:-5].endswith(tuple(_COUNTED))
        return word.endswith(self._endings) and not counted


@cache
def default_names() -> SecretNames:
    """Return the names of the default policy."""
    return SecretNames(SECRETS)


def words_of(name: str) -> list[str]:
    """Split a name: ``apiKey``, ``API_KEY`` and ``api-key`` are all ``api`` and ``key``."""
    return [word.lower() for word in _WORDS.findall(name)]


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def hide_value(item: Any) -> Any:
    """Hide what can be a secret: not ``null``, a boolean or an empty string."""
    return item if item is None or isinstance(item, bool) or item == "" else HIDDEN


def hide_named(name: str, item: Any) -> Any:
    """Hide the value of a secret name; of the JSON Schema of such a field, its samples."""
    is_schema = isinstance(item, dict) and item.get("type") in _TYPES
    if is_schema and item.keys() <= _SCHEMA_KEYS:
        return {key: hide_value(part) if key in _SAMPLES else part for key, part in item.items()}
    if isinstance(item, str):
        return item if is_current_folder(name, item) else hide_value(item)
    return item if _is_count(name, item) else hide_value(item)


def _is_count(name: str, item: Any) -> bool:
    """Return True for numbers of what a name counts: a number of tokens is not a token."""
    counts = item if isinstance(item, list) else [item]
    counted = words_of(name)[-1:] in (["token"], ["tokens"], ["pass"])
    return counted and all(isinstance(count, int | float) for count in counts)


def is_current_folder(name: str, value: str) -> bool:
    """Return True for a ``pwd`` that is no password."""
    return name.lower() == "pwd" and is_path(value)


def is_path(text: str) -> bool:
    """Return True for an absolute path."""
    return re.match(r"~?/|[A-Za-z]:\\", text) is not None

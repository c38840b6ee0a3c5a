"""A glance at a text: most texts are what they look like, and are searched as they stand."""

from __future__ import annotations

import re
from typing import Final

from holdfast._core.redact.coded import may_be_coded

# To undo escapes and to decode words takes ten times as long as to look for a value in a text as it
# stands, and nearly every message of a trace or a call log has nothing to undo. A glance proves it:
# where it says "bare", each further layer of the text is the text again but for signs, which are no
# part of a skeleton, and no word or list in it stands for another text. What it does not know, it
# calls wrapped; the search then does as if there had been no glance.

_LONG: Final = 11
"""Characters of the shortest word that `coded.decoded` takes for base64."""
_MOST_WORDS: Final = 4096

_WRAPS: Final = bytes(
    {*range(9), *range(10, 32), *range(127, 256), *b"%\\&`^<="}  # \t is left
)
"""What begins an escape, a tag or quoted-printable, ends a line, or has no width."""
_OMISSION: Final = re.compile(  # begins with a class: see `escapes`
    rb"[.*\[(](?:(?<=\.)\.\.|(?<=\*)\*\*|(?<=[\[(])(?:[TtCcSsOo]|\+?[\d;]{1,16} ?[MmCcBb]))"
)
"""Where something may have been cut out, the escape of a colour too: wider than what `needles` and
`escapes` take for it."""
_WORDS: Final = bytes(
    code if chr(code) in "+/_-" or (code < 128 and chr(code).isalnum()) else 32
    for code in range(256)
)
"""Spaces in place of everything that is not in words of base64."""
_NUMBERS: Final = bytes(
    48 if code in b"0123456789abcdefABCDEFxXoO" else 44 if code in b",;: -\t" else 120
    for code in range(256)
)
"""Digits, separators, and all else: as ``0``, ``,`` and ``x``."""
_LIST: Final = re.compile(rb",0{1,5},+0{1,5},+0{1,5},")
"""The inner part of a list of six numbers."""
_ARRAY: Final = b'"0":'
"""The beginning of a typed array of JavaScript."""

_ordinary: set[bytes] = set()
"""Long words that stand for no text: names and vocabulary come again."""


def is_bare(text: str) -> bool:
    """Return True if nothing in a text is escaped, encoded, folded or cut, except at its ends."""
    if not text.isascii():
        return False
    data = text.encode()
    if len(data.translate(None, _WRAPS)) < len(data) or _ARRAY in data:
        return False
    if _OMISSION.search(data) is not None:
        return False
    return _LIST.search(data.translate(_NUMBERS)) is None and _has_ordinary_words(data)


def _has_ordinary_words(data: bytes) -> bool:
    words = {word for word in set(data.translate(_WORDS).split()) if len(word) >= _LONG}
    for word in words - _ordinary:
        if may_be_coded(word.decode()):
            return False
        if len(_ordinary) >= _MOST_WORDS:
            _ordinary.clear()
        if len(word) <= 128:
            _ordinary.add(word)
    return True

"""Letters and digits alone, in lower case: what is left of a value however it is broken or spaced.

``S3CR-ET/9``, ``s 3 c r e t 9`` and ``["s3c" + "ret9"]`` have one skeleton.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import compress
from typing import Final, NamedTuple
from unicodedata import normalize

SHORTEST: Final = 6
"""Characters of a skeleton that is searched for: a shorter one is part of too many words."""
_SHORTEST_NUMBER: Final = 8
"""Digits of a skeleton without letters: a shorter one may be two numbers."""
_DROPPED: Final = re.compile(r"[\W_]+")
_LOWER: Final = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_MARKS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


def skeleton_of(text: str) -> str:
    """Return the letters and digits of a text, without accents, in lower case."""
    if text.isascii():
        return text.encode().translate(_LOWER, _MARKS).decode()
    skeleton = _DROPPED.sub("", normalize("NFKD", text).casefold())
    for filler in "\u115f\u1160":  # letters of Hangul that nobody sees
        skeleton = skeleton.replace(filler, "")
    return skeleton


_NARROW: Final = {code + 0xFEE0: code for code in range(0x21, 0x7F)} | {0x3000: 0x20}


def narrow(text: str) -> str:
    """Return a text with ASCII in place of the wide forms of its characters."""
    return text.translate(_NARROW)


def is_telling(skeleton: str) -> bool:
    """Return True for a skeleton that is not part of ordinary text by chance."""
    return len(skeleton) >= (_SHORTEST_NUMBER if skeleton.isdigit() else SHORTEST)


def places_of(text: str) -> list[int]:
    """Return where each character of a text's skeleton comes from."""
    if text.isascii():
        return list(compress(range(len(text)), map(str.isalnum, text)))
    sizes = {char: _size_of(char) for char in set(text)}
    if max(sizes.values()) <= 1:
        return list(compress(range(len(text)), map(sizes.__getitem__, text)))
    return [place for place, char in enumerate(text) for _ in range(sizes[char])]


class _Listing(NamedTuple):
    """All needles of a table, as searches read them."""

    version: int
    needles: tuple[str, ...]
    joined: str
    lengths: dict[str, frozenset[int]]
    """How long the needles are that have the same head: tokens of one issuer begin alike."""
    ends: frozenset[str]
    """How needles begin and end."""


@lru_cache(4096)
def _size_of(char: str) -> int:
    """Return how many characters of a skeleton come from one of a text."""
    return len(skeleton_of(char))


class NeedleTable:
    """Texts to find, each counted; for many of them a text is read once."""

    FEW: Final = 256
    """So many needles are searched for one after another."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.heads: dict[str, tuple[str, ...]] = {}
        self.tails: dict[str, tuple[str, ...]] = {}
        self._version = 0
        self._listing = _Listing(0, (), "", {}, frozenset())

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, needle: str) -> bool:
        return needle in self._counts

    def add(self, needle: str) -> bool:
        """Count a needle; return True for a new one."""
        count = self._counts.get(needle, 0)
        self._counts[needle] = count + 1
        if count:
            return False
        for table, part in self._ends(needle):
            table[part] = (*table.get(part, ()), needle)
        self._version += 1
        return True

    def discard(self, needle: str) -> bool:
        """Count a needle less; return True if it is gone."""
        count = self._counts.pop(needle, 1) - 1
        if count:
            self._counts[needle] = count
            return False
        for table, part in self._ends(needle):
            others = tuple(text for text in table.get(part, ()) if text != needle)
            if others:
                table[part] = others
            else:
                table.pop(part, None)
        self._version += 1
        return True

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where the needles are in a text."""
        listing = self._current()
        if len(listing.needles) <= self.FEW:
            yield from find_few(text, listing.needles)
            return
        lengths, counts = listing.lengths, self._counts
        for start in range(len(text) - SHORTEST + 1):
            for length in lengths.get(text[start : start + SHORTEST], ()):
                if (part := text[start : start + length]) in counts:
                    yield start, part

    def is_in(self, text: str) -> bool:
        """Return True if a needle is in a text."""
        needles = self._current().needles
        if len(needles) > self.FEW:
            return next(self.find(text), None) is not None
        for needle in needles:  # noqa: SIM110  (a generator takes longer)
            if needle in text:
                return True
        return False

    def has_part(self, text: str) -> bool:
        """Return True if a text may be part of a needle: a quick look, where needles are few."""
        listing = self._current()
        return len(listing.needles) > self.FEW or text in listing.joined

    def has_end_in(self, text: str) -> bool:
        """Return True if the beginning or the end of a needle is anywhere in a text."""
        ends = self._current().ends
        if len(ends) > 2 * self.FEW:
            parts = (text[start : start + SHORTEST] for start in range(len(text) - SHORTEST + 1))
            return not ends.isdisjoint(parts)
        return any(end in text for end in ends)

    def _current(self) -> _Listing:
        if self._listing.version != self._version:
            # While a thread that searches makes the list, another one may add a needle: the list
            # is then one of the version before, and made again.
            version, needles = self._version, tuple(self._counts)
            heads = self.heads.copy().items() if len(needles) > self.FEW else ()
            lengths = {head: frozenset(map(len, texts)) for head, texts in heads}
            ends = frozenset(needle[:SHORTEST] for needle in needles)
            ends |= {needle[-SHORTEST:] for needle in needles}
            self._listing = _Listing(version, needles, "\0".join(needles), lengths, ends)
        return self._listing

    def _ends(self, needle: str) -> tuple[tuple[dict[str, tuple[str, ...]], str], ...]:
        return (self.heads, needle[:SHORTEST]), (self.tails, needle[-SHORTEST:])


def find_few(text: str, needles: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield where needles are in a text, one after the other."""
    for needle in needles:
        start = text.find(needle)
        while start >= 0:
            yield start, needle
            start = text.find(needle, start + len(needle))

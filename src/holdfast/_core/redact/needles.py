"""The search for known values in a text, whatever the text was wrapped in.

`NeedleIndex` has the values; `escapes` undoes what they are wrapped in, `coded` what encodes them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple
from unicodedata import normalize

import msgspec

from holdfast._core.redact.coded import decoded, middles
from holdfast._core.redact.escapes import (
    Budget,
    Origins,
    Span,
    TooMuchWork,
    guessed,
    unescaped,
    unfolded,
)
from holdfast._core.text import HIDDEN

# How a value is found that came back in other clothes
#
# A server that repeats a secret rarely repeats it as it is. It puts it into JSON (``\"``, ``\/``,
# ``\u00e4``), into a URL (``%2F`` or ``%2f``; every character or only some), into HTML (``&quot;``,
# ``&#39;``, ``&#x27;``), quotes it for a shell (``'"'"'``, ``\$``), shows its ``repr``, and then
# puts the result into JSON once more. To list all spellings of a value is hopeless: each character
# has a dozen, and they mix. So the value stays as it is and the *text* is undone: one pass
# replaces every escape by what it stands for and remembers where it stood, and the plain value is
# searched in the outcome; then the outcome is undone again, `LAYERS` times at most or until
# nothing changes. Each layer is searched, the first one included: a value may itself contain
# ``%41`` or ``\n``, which undoing would destroy. (Where only other characters of such a value were
# escaped, its own ``\n`` is undone along with them: so the value undone is searched for, too.) What
# is found is mapped back through the layers and hidden in the text as it was.
#
# Two things are undone for a search of their own, beside each layer, for they would spoil the next
# one: ends of lines (base64 has them, and programs that print break what is long) and guesses, such
# as quoted-printable, in which ``token=ab%2Fc`` would lose its beginning.
#
# Base64 has no escapes to undo, for a text does not say where base64 begins. But bytes show
# through it: three bytes become four characters, so a value inside of a longer base64 text stands
# in one of three alignments, and in each of them all characters but the first and last are those of
# the value alone. These three middles are searched like values of their own ("needles"), in both
# alphabets, and hexadecimal digits in both cases. At its ends a middle shares characters with its
# neighbours, six bits of which may belong to the value; so the whole run of base64 is hidden.
#
# A value that was escaped before it was encoded, as in base64 of JSON of a password with a quote,
# shows no middle. So words that are base64 or hexadecimal digits of a text, and lists of bytes
# (``<Buffer 73 33 …>``), are decoded, and searched like a text: `NESTED` times, one in another.
#
# A text may have been cut before it came here: by the server, by a bound on stderr or on the body
# of a response. The rest of a value at the end of a text, before an ellipsis, or (of a tail) at its
# beginning, is hidden as well, if it is as long as the shortest value that is searched for.
#
# The work is linear and bounded: of a text, or of a value with all its texts, `MOST_ESCAPES` are
# undone and `MOST_SEARCHED` characters searched, all layers counted; a text with more of them,
# which no honest server sends, is hidden whole. Each layer is read a bounded number of times. For a
# few needles `str.find` is fastest, by far; for many (a service that holds the tokens of a thousand
# users) the text is read once, and each six characters of it are looked up in a table of heads.
#
# Why not one compiled alternation? It would be compiled anew whenever a token is renewed, which
# for a thousand users takes longer than all searches, and `re` tries its branches one by one.
#
# What changes the characters themselves is not undone: other cases, letters in reverse, ciphers,
# compression. A server that wants to give a secret away can; this is for those that do not.

SHORTEST: Final = 6
"""Characters of a value that is searched for: a shorter one is part of too many words."""
LAYERS: Final = 8
"""Layers of escapes that are undone."""
NESTED: Final = 2
"""Encodings, one in another, that are decoded."""
_FEW: Final = 64
"""So many needles are searched for one after another."""
_MOST_CUTS: Final = 16
"""Ellipses of a text before and after which the rest of a value is searched for."""
_LONGEST_CUT: Final = 4096
"""Characters of such a rest."""
_DECODING: Final = 4
"""A word that is decoded and searched costs as much as so many escapes."""
_LONGEST_ESCAPE: Final = 6
"""Characters that one may become: ``\\u002f``."""
DEEPEST: Final = 64


class NeedleIndex:
    """Values to find, each counted: several owners may hold the same one."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._coded: set[str] = set()
        """The needles that are part of base64."""
        self._heads: dict[str, tuple[str, ...]] = {}
        self._tails: dict[str, tuple[str, ...]] = {}
        self._listed: tuple[str, ...] | None = ()
        """All needles, as searches read them; None: they have changed."""
        self.longest: int = 0
        """The characters that the longest needle may take in a text, with escapes."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    @property
    def _needles(self) -> tuple[str, ...]:
        needles = self._listed
        if needles is None:
            # At once, as far as other threads can see.
            needles = self._listed = tuple(self._counts)
        return needles

    def add(self, value: str) -> None:
        for needle in needles_of(value):
            count = self._counts.get(needle.text, 0)
            self._counts[needle.text] = count + 1
            if count:
                continue
            if needle.coded:
                self._coded.add(needle.text)
            for table, part in _ends(self, needle.text):
                table[part] = (*table.get(part, ()), needle.text)
            self._listed = None
            self.longest = max(self.longest, len(needle.text) * _LONGEST_ESCAPE)

    def discard(self, value: str) -> None:
        for needle in needles_of(value):
            count = self._counts.pop(needle.text, 1) - 1
            if count:
                self._counts[needle.text] = count
                continue
            self._coded.discard(needle.text)
            for table, part in _ends(self, needle.text):
                others = tuple(text for text in table.get(part, ()) if text != needle.text)
                if others:
                    table[part] = others
                else:
                    table.pop(part, None)
            self._listed = None

    def hide(self, text: str, budget: Budget | None = None) -> str:
        """Return the text with `HIDDEN` in place of the values."""
        spans = self.spans(text, budget)
        if not spans:
            return text
        parts, position = [], 0
        for start, end in spans:
            parts += [text[position:start], HIDDEN]
            position = end
        return "".join([*parts, text[position:]])

    def hide_in(self, value: Any, levels: int = DEEPEST, budget: Budget | None = None) -> Any:
        """Return a value of plain types, or of structs, without the values that are searched for.

        What has none of them in it is returned as it is, not as a copy.
        """
        budget = budget or Budget()
        if isinstance(value, str):
            return self.hide(value, budget)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return HIDDEN if str(value) in self._counts else value
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            hidden = self.hide(text, budget)
            return value if hidden == text else hidden.encode("utf-8", "surrogateescape")
        if not isinstance(value, dict | list | tuple | msgspec.Struct):
            return value
        if isinstance(value, list) and self._is_value_in_bytes(value, budget):
            return HIDDEN
        return HIDDEN if levels == 0 else self._hide_in_parts(value, levels, budget)

    def _is_value_in_bytes(self, items: list[Any], budget: Budget) -> bool:
        """Return True for a list of bytes, such as JSON of a buffer of Node, with a value in it."""
        if len(items) < SHORTEST or not all(type(item) is int for item in items):
            return False
        try:
            return bool(self.spans(bytes(items).decode("utf-8", "replace"), budget))
        except ValueError:
            return False

    def _hide_in_parts(self, value: Any, levels: int, budget: Budget) -> Any:
        if isinstance(value, dict):
            items = {
                self.hide_in(name, 0, budget): self.hide_in(item, levels - 1, budget)
                for name, item in value.items()
            }
            return value if _same(items.items(), value.items()) else items
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            hidden = self._hide_in_parts(fields, levels, budget)
            return value if hidden is fields else msgspec.structs.replace(value, **hidden)
        parts = [self.hide_in(item, levels - 1, budget) for item in value]
        if _same(enumerate(parts), enumerate(value)):
            return value
        make = getattr(type(value), "_make", type(value))  # of a named tuple
        return make(parts)

    def spans(self, text: str, budget: Budget | None = None, nested: int = NESTED) -> list[Span]:
        """Return where the values are, in order and apart from each other."""
        if len(text) < SHORTEST:
            return []
        spans: list[Span] = []
        budget = budget or Budget()
        try:
            for layer, undone in _layers(text, budget):
                spans = _merged([*spans, *self._plain(layer, undone, spans)])
                if nested:
                    spans = _merged([*spans, *self._coded_in(layer, undone, spans, budget, nested)])
        except TooMuchWork:
            return [(0, len(text))]
        return spans

    def _plain(self, layer: str, undone: list[Origins], before: list[Span]) -> Iterator[Span]:
        """Yield what to hide for values that a layer shows."""
        for value, span in self._in_layer(layer):
            # Lines that were joined make runs longer: what was found before stays as it was.
            if not _has(before, _traced(value, undone)):
                yield _traced(span, undone)

    def _coded_in(
        self, layer: str, undone: list[Origins], before: list[Span], budget: Budget, nested: int
    ) -> Iterator[Span]:
        """Yield the words of a layer in which a value is encoded."""
        for word, inner in decoded(layer):
            span = _traced(word, undone)
            if not _touches(before, span) and self._is_inside(inner, budget, nested - 1):
                yield span

    def _is_inside(self, text: str, budget: Budget, nested: int) -> bool:
        """Return whether a value is in a decoded text; what comes again is searched once."""
        has_value = budget.decoded.get((text, nested))
        if has_value is None:
            budget.take(escapes=_DECODING)
            has_value = budget.decoded[text, nested] = bool(self.spans(text, budget, nested))
        return has_value

    def _in_layer(self, text: str) -> Iterator[tuple[Span, Span]]:
        """Yield where a value is, and what to hide for it."""
        needles = self._needles
        for start, needle in _few(text, needles) if len(needles) <= _FEW else self._many(text):
            value = start, start + len(needle)
            yield value, _run_around(text, *value) if needle in self._coded else value
        longest = min(self.longest // _LONGEST_ESCAPE, _LONGEST_CUT)
        for stop in _cuts(text, -1):
            for rest in self._beginning_of_value(text, max(0, stop - longest), stop):
                yield rest, rest
        for start in _cuts(text, 1):
            for rest in self._end_of_value(text, start, min(len(text), start + longest)):
                yield rest, rest

    def _many(self, text: str) -> Iterator[tuple[int, str]]:
        heads = self._heads
        for start in range(len(text) - SHORTEST + 1):
            for needle in heads.get(text[start : start + SHORTEST], ()):
                if text.startswith(needle, start):
                    yield start, needle

    def _beginning_of_value(self, text: str, floor: int, stop: int) -> Iterator[Span]:
        """Yield where the beginning of a value is that ends where the text was cut."""
        for start, head in sorted(_places(text, self._heads, floor, stop)):
            rest, needles = text[start:stop], self._heads.get(head, ())
            if any(needle.startswith(rest) and _tells(rest, needle) for needle in needles):
                yield start, stop
                return

    def _end_of_value(self, text: str, start: int, ceiling: int) -> Iterator[Span]:
        """Yield where the end of a value is that begins where the text was cut."""
        for place, tail in sorted(_places(text, self._tails, start, ceiling), reverse=True):
            rest, needles = text[start : place + SHORTEST], self._tails.get(tail, ())
            if any(needle.endswith(rest) and _tells(rest, needle) for needle in needles):
                yield start, place + SHORTEST
                return


def _layers(text: str, budget: Budget) -> Iterator[tuple[str, list[Origins]]]:
    """Yield a text, and what is inside of it, each with how it was undone."""
    undone: list[Origins] = []
    for _ in range(LAYERS + 1):
        budget.take(characters=len(text))
        yield text, undone
        for view in (unfolded(text, budget), guessed(text, budget)):
            if view is not None:
                budget.take(characters=len(view[0]))
                yield view[0], [*undone, view[1]]
        inner = unescaped(text, budget)
        if inner is None:
            return
        text = inner[0]
        undone = [*undone, inner[1]]


def _few(text: str, needles: Iterable[str]) -> Iterator[tuple[int, str]]:
    for needle in needles:
        start = text.find(needle)
        while start >= 0:
            yield start, needle
            start = text.find(needle, start + len(needle))


def _places(
    text: str, table: dict[str, tuple[str, ...]], start: int, stop: int
) -> Iterator[tuple[int, str]]:
    """Yield where a part of a text has one of a table's keys."""
    if len(table) <= _FEW:
        for place, part in _few(text[start:stop], tuple(table)):
            yield start + place, part
    else:
        for place in range(start, stop - SHORTEST + 1):
            if (part := text[place : place + SHORTEST]) in table:
                yield place, part


def _tells(rest: str, needle: str) -> bool:
    """Return True for a rest that is no ordinary word: half of a value, or letters and digits."""
    return len(rest) * 2 >= len(needle) or (rest.isalnum() and not rest.isalpha())


def _ends(index: NeedleIndex, needle: str) -> tuple[tuple[dict[str, tuple[str, ...]], str], ...]:
    return (index._heads, needle[:SHORTEST]), (index._tails, needle[-SHORTEST:])


def _same(parts: Iterable[tuple[Any, Any]], others: Iterable[tuple[Any, Any]]) -> bool:
    """Return True if the parts of a copy are those of the original."""
    return all(
        name == name_before and item is item_before
        for (name, item), (name_before, item_before) in zip(parts, others, strict=False)
    )


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _has(spans: list[Span], part: Span) -> bool:
    """Return True if one of the spans, which are in order, has a part in it."""
    index = bisect_right(spans, part[0], key=lambda span: span[0]) - 1
    return index >= 0 and part[1] <= spans[index][1]


def _touches(spans: list[Span], part: Span) -> bool:
    """Return True if one of the spans, which are in order, has something in common with a part."""
    index = bisect_right(spans, part[1] - 1, key=lambda span: span[0]) - 1
    return index >= 0 and part[0] < spans[index][1]


def _traced(span: Span, undone: list[Origins]) -> Span:
    """Return where in the text something stands that was found in its last layer."""
    for origins in reversed(undone):
        span = origins.span(span)
    return span


_ELLIPSIS: Final = re.compile(r"…|\.{3}")


def _cuts(text: str, direction: int) -> list[int]:
    """Return where a text may have been cut: before (-1) or after (1) what is missing."""
    cuts = [len(text) if direction < 0 else 0]
    for match in _ELLIPSIS.finditer(text):
        cuts.append(match.start() if direction < 0 else match.end())
        if len(cuts) > _MOST_CUTS:
            break
    return cuts


_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*+={0,2}")


def _run_around(text: str, start: int, end: int) -> Span:
    """Return where the run of base64 around a part of it begins and ends."""
    after = _BASE64.match(text, end)
    before = _BASE64.match(text[max(0, start - _LONGEST_CUT) : start][::-1])
    # The pattern fits the empty text, too.
    assert after is not None
    assert before is not None
    return start - len(before[0].rstrip("=")), after.end()


# Needles


class Needle(NamedTuple):
    """A text to search for; ``coded``: a part of base64, whose run is hidden whole."""

    text: str
    coded: bool = False


@lru_cache(4096)
def needles_of(value: str) -> tuple[Needle, ...]:
    """Return what to search for, for one value: itself, its lines, its base64, its hex digits.

    Empty for a value that is too short.
    """
    if len(value) < SHORTEST:
        return ()
    needles = {Needle(value)}
    undone = unescaped(value)
    while undone is not None and len(undone[0]) >= SHORTEST:
        needles.add(Needle(undone[0]))
        undone = unescaped(undone[0])
    if not value.isascii():
        # The same letters, spelled with or without combining marks.
        needles |= {Needle(normalize(form, value)) for form in ("NFC", "NFD")}
    if " " in value:
        needles.add(Needle(value.replace(" ", "+")))  # application/x-www-form-urlencoded
    # A log puts something before each line: a key in PEM would not be found as a whole.
    lines = value.split("\n") if "\n" in value else []
    needles |= {Needle(line) for line in map(str.strip, lines) if _is_line_of_secret(line)}
    data = value[:_LONGEST_CUT].encode("utf-8", "surrogatepass")
    needles |= {Needle(data.hex()), Needle(data.hex().upper())}
    needles |= {Needle(middle, coded=True) for middle in middles(data)}
    return tuple(sorted(needles))


def _is_line_of_secret(line: str) -> bool:
    return len(line.strip()) >= 16 and not line.startswith("-----")

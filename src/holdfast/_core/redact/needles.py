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
    Origins,
    SearchBudget,
    Span,
    TooMuchWork,
    guessed,
    uncolored,
    unescaped,
    unfolded,
    unprinted,
)
from holdfast._core.redact.given import is_ordinary_word
from holdfast._core.redact.glance import is_bare
from holdfast._core.redact.skeletons import (
    SHORTEST,
    NeedleTable,
    find_few,
    is_telling,
    narrow,
    places_of,
    skeleton_of,
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
# Other programs put something between the characters, or change their case: a list of letters,
# ``"s3c" + "ret"``, lines that begin with ``#`` or ``│``, marks without a width, ``S3CRET``. So
# what is searched first is the *skeleton* of a layer, its letters and digits in lower case and
# without accents, for those of the needles; one of the value in reverse is among them. It takes a
# nanosecond for each character, and what is not in the skeleton is not in the layer: only where one
# was found, or for a value with too few letters and digits, the layer itself is searched, for the
# exact place with all its signs.
#
# A text may have been cut before it came here: by the server, by a bound on stderr or on the body
# of a response. The rest of a value at the end of a text, before an ellipsis or ``[truncated``, or
# (of a tail) at its beginning, is hidden too, if it is as long as the shortest value.
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
# What changes the characters themselves is not undone: ciphers, compression, rare alphabets such as
# base32. A server that wants to give a secret away can; this is for those that do not.

LAYERS: Final = 8
"""Layers of escapes that are undone."""
NESTED: Final = 3
"""Encodings, one in another, that are decoded."""
_MOST_CUTS: Final = 64
"""Ellipses of a text before and after which the rest of a value is searched for."""
_LONGEST_CUT: Final = 4096
"""Characters of such a rest."""
_LONG_REST: Final = 8
"""Characters of a rest that is hidden though it may be a word, unless it is an ordinary one."""
_DECODING: Final = 4
"""A word that is decoded and searched costs as much as so many escapes."""
_LONGEST_ESCAPE: Final = 6
"""Characters that one may become: ``\\u002f``."""
DEEPEST: Final = 64


class NeedleIndex:
    """Values to find, each counted: several owners may hold the same one."""

    def __init__(self) -> None:
        self._needles = NeedleTable()
        self._skeletons = NeedleTable()
        self._bare = NeedleTable()
        """The needles that have no skeleton of their own: too few letters and digits."""
        self._coded: set[str] = set()
        """The needles that are part of base64, and their skeletons."""
        self.longest: int = 0
        """The characters that the longest needle may take in a text, with escapes."""

    def __bool__(self) -> bool:
        return bool(self._needles)

    def add(self, value: str) -> None:
        for needle in needles_of(value):
            if not self._needles.add(needle.text):
                continue
            (self._skeletons if needle.skeleton else self._bare).add(needle.skeleton or needle.text)
            if needle.coded:
                self._coded |= {needle.text, needle.skeleton}
            self.longest = max(self.longest, len(needle.text) * _LONGEST_ESCAPE)
        for skeleton in reversed_skeletons(value):
            self._skeletons.add(skeleton)

    def discard(self, value: str) -> None:
        for needle in needles_of(value):
            if not self._needles.discard(needle.text):
                continue
            self._coded.discard(needle.text)
            table = self._skeletons if needle.skeleton else self._bare
            if table.discard(needle.skeleton or needle.text):
                self._coded.discard(needle.skeleton)
        for skeleton in reversed_skeletons(value):
            self._skeletons.discard(skeleton)

    def hide(self, text: str, budget: SearchBudget | None = None) -> str:
        """Return the text with `HIDDEN` in place of the values."""
        spans = self.spans(text, budget)
        if not spans:
            return text
        parts, position = [], 0
        for start, end in spans:
            parts += [text[position:start], HIDDEN]
            position = end
        return "".join([*parts, text[position:]])

    def hide_in(self, value: Any, levels: int = DEEPEST, budget: SearchBudget | None = None) -> Any:
        """Return a value of plain types, or of structs, without the values that are searched for.

        What has none of them in it is returned as it is, not as a copy.
        """
        budget = budget or SearchBudget()
        if isinstance(value, str):
            return self.hide(value, budget)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return HIDDEN if str(value) in self._needles else value
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            hidden = self.hide(text, budget)
            return value if hidden == text else hidden.encode("utf-8", "surrogateescape")
        if not isinstance(value, dict | list | tuple | msgspec.Struct):
            return value
        if self._is_value_in_pieces(value, budget):
            return HIDDEN
        return HIDDEN if levels == 0 else self._hide_in_parts(value, levels, budget)

    def _is_value_in_pieces(self, value: Any, budget: SearchBudget) -> bool:
        """Return True for bytes or letters with a value in them: a list, an array of JavaScript.

        JSON of a buffer of Node is the one, that of a typed array ``{"0": 115, "1": 51, …}``.
        """
        items = [*value.values()] if isinstance(value, dict) and "0" in value else value
        if not isinstance(items, list) or len(items) < SHORTEST:
            return False
        try:
            if type(items[0]) is int:
                return bool(self.spans(bytes(items).decode("utf-8", "replace"), budget))
            is_spelled = type(items[0]) is str and all(len(item) == 1 for item in items)
            return is_spelled and bool(self.spans("".join(items), budget))
        except (TypeError, ValueError):
            return False

    def _hide_in_parts(self, value: Any, levels: int, budget: SearchBudget) -> Any:
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

    def spans(
        self, text: str, budget: SearchBudget | None = None, nested: int = NESTED
    ) -> list[Span]:
        """Return where the values are, in order and apart from each other."""
        if len(text) < SHORTEST or (is_bare(text) and not self._may_show(text)):
            return []
        return self.spans_in_layers(text, budget or SearchBudget(), nested)

    def may_have_part(self, text: str) -> bool:
        """Return False if no value begins or ends anywhere in a text.

        Each text inside of JSON may be one that was cut, not the whole alone.
        """
        if not is_bare(text):
            return True
        return self._skeletons.has_end_in(skeleton_of(text)) or self._bare.has_end_in(text)

    def spans_in_layers(self, text: str, budget: SearchBudget, nested: int = NESTED) -> list[Span]:
        """Return the same without a glance at the text before."""
        spans: list[Span] = []
        try:
            for layer, undone in _layers(text, budget):
                spans = _merged([*spans, *self._plain(layer, undone, spans)])
                if nested:
                    spans = _merged([*spans, *self._coded_in(layer, undone, spans, budget, nested)])
        except TooMuchWork:
            return [(0, len(text))]
        return spans

    def _may_show(self, text: str) -> bool:
        """Return False if a bare text has no value in it, nor half of one at its ends."""
        skeleton = skeleton_of(text)
        return (
            bool(self._bare)
            or self._skeletons.is_in(skeleton)
            or self._skeletons.has_part(skeleton[-SHORTEST:])
            or self._needles.has_part(text[-SHORTEST:])
            or self._needles.has_part(text[:SHORTEST])
        )

    def _plain(self, layer: str, undone: list[Origins], before: list[Span]) -> Iterator[Span]:
        """Yield what to hide for values that a layer shows."""
        for value, span in self._in_layer(layer):
            # Lines that were joined make runs longer: what was found before stays as it was.
            if not _has(before, _traced(value, undone)):
                yield _traced(span, undone)

    def _coded_in(
        self,
        layer: str,
        undone: list[Origins],
        before: list[Span],
        budget: SearchBudget,
        nested: int,
    ) -> Iterator[Span]:
        """Yield the words of a layer in which a value is encoded."""
        for coded in decoded(layer):
            span = _traced(coded.span, undone)
            if not _touches(before, span):
                if self._is_inside(coded.text, budget, nested - 1):
                    yield span
            elif not _has(before, span):
                # Lines that were joined, of which one is hidden: the value may begin in another,
                # and the last one may be a word that is no base64.
                for part in self.spans(coded.text, budget, nested - 1):
                    start, end = _traced(coded.place_of(part), undone)
                    if not _has(before, (start, end - 1)):
                        yield start, end

    def _is_inside(self, text: str, budget: SearchBudget, nested: int) -> bool:
        """Return whether a value is in a decoded text; what comes again is searched once."""
        has_value = budget.decoded.get((text, nested))
        if has_value is None:
            budget.take(escapes=_DECODING)
            has_value = budget.decoded[text, nested] = bool(self.spans(text, budget, nested))
        return has_value

    def _in_layer(self, text: str) -> Iterator[tuple[Span, Span]]:
        """Yield where a value is, and what to hide for it."""
        spread = list(self._spread(text))
        runs = _Runs(text)
        for layer in (text,) if text.isascii() or not _WIDE.search(text) else (text, narrow(text)):
            for start, needle in (self._needles if spread else self._bare).find(layer):
                value = start, start + len(needle)
                yield value, runs.around(value) if needle in self._coded else value
        yield from spread
        for rest in self._cut_off(text):
            yield rest, rest

    def _cut_off(self, text: str) -> Iterator[Span]:
        """Yield where the rest of a value is, before or after a cut."""
        longest = min(self.longest // _LONGEST_ESCAPE, _LONGEST_CUT)
        stops, starts = _cuts(text)
        for stop in stops:
            yield from _beginning_of_value(self._needles, text, max(0, stop - longest), stop)
            floor = max(0, stop - longest * _LONGEST_ESCAPE)
            yield from self._spread_beginning(text, floor, stop)
        for start in starts:
            yield from self._end_of_value(text, start, min(len(text), start + longest))

    def _spread(self, text: str) -> Iterator[tuple[Span, Span]]:
        """Yield where the letters and digits of a value are, whatever is between them."""
        places: list[int] | None = None
        runs = _Runs(text)
        for start, skeleton in self._skeletons.find(skeleton_of(text)):
            places = places or places_of(text)
            value = places[start], places[start + len(skeleton) - 1] + 1
            yield value, runs.around(value) if skeleton in self._coded else value

    def _spread_beginning(self, text: str, floor: int, stop: int) -> Iterator[Span]:
        """Yield where the beginning of a value is, with something between its characters."""
        window = text[floor:stop]
        skeleton = skeleton_of(window)
        for start, _ in _beginning_of_value(self._skeletons, skeleton, 0, len(skeleton)):
            places = places_of(window)
            yield floor + places[start], floor + places[-1] + 1

    def _end_of_value(self, text: str, start: int, ceiling: int) -> Iterator[Span]:
        """Yield where the end of a value is that begins where the text was cut."""
        if not self._needles.has_part(text[start : min(ceiling, start + SHORTEST)]):
            return
        for place, tail in sorted(_places(text, self._needles.tails, start, ceiling), reverse=True):
            rest, needles = text[start : place + SHORTEST], self._needles.tails.get(tail, ())
            if any(needle.endswith(rest) and _tells(rest, needle) for needle in needles):
                yield start, place + SHORTEST
                return


def _layers(text: str, budget: SearchBudget) -> Iterator[tuple[str, list[Origins]]]:
    """Yield a text, and what is inside of it, each with how it was undone."""
    undone: list[Origins] = []
    for _ in range(LAYERS + 1):
        budget.take(characters=len(text))
        yield text, undone
        for undo in (unfolded, guessed, uncolored, unprinted):
            view = undo(text, budget)
            if view is not None:
                budget.take(characters=len(view[0]))
                yield view[0], [*undone, view[1]]
        inner = unescaped(text, budget)
        if inner is None:
            return
        text = inner[0]
        undone = [*undone, inner[1]]


def _beginning_of_value(table: NeedleTable, text: str, floor: int, stop: int) -> Iterator[Span]:
    """Yield where the beginning of a value is that ends where the text was cut."""
    if not table.has_part(text[max(floor, stop - SHORTEST) : stop]):
        return
    for start, head in sorted(_places(text, table.heads, floor, stop)):
        rest, needles = text[start:stop], table.heads.get(head, ())
        if any(needle.startswith(rest) and _tells(rest, needle) for needle in needles):
            yield start, stop
            return


def _places(
    text: str, table: dict[str, tuple[str, ...]], start: int, stop: int
) -> Iterator[tuple[int, str]]:
    """Yield where a part of a text has one of a table's keys."""
    if len(table) <= NeedleTable.FEW:
        for place, part in find_few(text[start:stop], tuple(table)):
            yield start + place, part
    else:
        for place in range(start, stop - SHORTEST + 1):
            if (part := text[place : place + SHORTEST]) in table:
                yield place, part


def _tells(rest: str, needle: str) -> bool:
    """Return True for a rest that is no ordinary word: half of a value, long, or with digits."""
    if len(rest) * 2 >= len(needle) or (rest.isalnum() and not rest.isalpha()):
        return True
    return len(rest) >= _LONG_REST and not is_ordinary_word(rest)


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


_MISSING: Final = r"(?i:…|\.{3}|truncated|cut\b|snip|omitted|\+?\d{1,9} ?(?:more|char|byte))"
_ELLIPSIS: Final = re.compile(
    rf"[….*\[(<](?:(?<=…)|(?<=\.)\.\.|(?<=\*)\*\*|(?<=[\[(<])(?={_MISSING}))[.*]*+"
)
_HALF_ESCAPE: Final = re.compile(r"(?:%[0-9A-Fa-f]?|\\[ux]?[0-9A-Fa-f]{0,4}|&\#?\w{0,20})\Z")
_LONGEST_HALF: Final = 24


def _cuts(text: str) -> tuple[list[int], list[int]]:
    """Return where a text may have been cut: before what is missing, and after it."""
    before, after = [len(text)], [0]
    for match in _ELLIPSIS.finditer(text):
        start = match.start()
        is_apart = start > 0 and text[start - 1] in " \"'`"
        before.append(start - is_apart)
        after.append(match.end())
        if len(after) > _MOST_CUTS:
            break
    halves = (_HALF_ESCAPE.search(text, max(0, stop - _LONGEST_HALF), stop) for stop in before)
    return before + [half.start() for half in halves if half is not None], after


_WIDE: Final = re.compile("[\uff01-\uff5e]{6}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*+={0,2}")


class _Runs:
    """The runs of base64 in a text. The one that was seen last is not read again.

    Else a run with n values in it would be read n times, to its end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._run: Span = (0, 0)

    def around(self, part: Span) -> Span:
        """Return where the run around a part of it begins and ends."""
        if not _has([self._run], part):
            start, end = part
            after = _BASE64.match(self._text, end)
            before = _BASE64.match(self._text[max(0, start - _LONGEST_CUT) : start][::-1])
            # The pattern fits the empty text, too.
            assert after is not None
            assert before is not None
            self._run = start - len(before[0].rstrip("=")), after.end()
        return self._run


# Needles


class Needle(NamedTuple):
    """A text to search for; ``coded``: a part of base64, whose run is hidden whole."""

    text: str
    skeleton: str = ""
    """Empty: too short to tell."""
    coded: bool = False


@lru_cache(4096)
def needles_of(value: str) -> tuple[Needle, ...]:
    """Return what to search for, for one value: itself, its lines, its base64, its hex digits.

    Empty for a value that is too short.
    """
    if len(value) < SHORTEST or value.isspace():
        return ()
    stripped = value.strip()  # of a file's last line feed
    value = stripped if len(stripped) >= SHORTEST else value
    needles = {_needle(text) for text in _texts_of(value) if len(text) >= SHORTEST}
    for data in _bytes_of(value[:_LONGEST_CUT]):
        needles |= {_needle(data.hex()), _needle(data.hex().upper())}
        needles |= {_needle(middle, coded=True) for middle in middles(data)}
    if not value.isascii():
        needles |= {Needle(text) for text in _misread(value)}
    return tuple(sorted(needles))


def _texts_of(value: str) -> set[str]:
    """Return a value, and what is left of it where the text around it is undone; its lines."""
    texts = {value}
    undone = unescaped(value)
    while undone is not None and len(undone[0]) >= SHORTEST:
        texts.add(undone[0])
        undone = unescaped(undone[0])
    # What looks like a guess in the value itself is undone in the text around it, too.
    if (view := guessed(value)) is not None:
        texts.add(view[0])
    if not value.isascii():
        texts |= _other_spellings(value)
    if " " in value:
        texts.add(value.replace(" ", "+"))  # application/x-www-form-urlencoded
    # A log puts something before each line: a key in PEM would not be found as a whole.
    lines = value.split("\n") if "\n" in value else []
    return texts | {line for line in map(str.strip, lines) if _is_line_of_secret(line)}


def _needle(text: str, *, coded: bool = False) -> Needle:
    skeleton = skeleton_of(text)
    return Needle(text, skeleton if is_telling(skeleton) else "", coded)


def _other_spellings(value: str) -> set[str]:
    """Return what becomes of letters that are not ASCII: other forms, wrong decoding, marks."""
    texts = {normalize(form, value) for form in ("NFC", "NFD")}
    data = value.encode("utf-8", "surrogatepass")
    texts |= {data.decode("latin-1"), data.decode("cp1252", "replace")}
    texts |= {value.encode("ascii", "replace").decode(), data.decode("ascii", "replace")}
    texts.add(data.decode("ascii", "surrogateescape"))
    if value.isprintable():
        texts.add(value.lower().encode("punycode").decode())  # of a name of a host
    return texts


def _bytes_of(value: str) -> set[bytes]:
    """Return the bytes that a value may become before they are encoded."""
    if value.isascii():
        return {value.encode()}
    forms = {value, *(normalize(form, value) for form in ("NFC", "NFD"))}
    encoded = {form.encode("utf-8", "surrogatepass") for form in forms}
    encoded.add(value.encode("utf-16-le", "surrogatepass"))
    if max(value) <= "\xff":
        encoded.add(value.encode("latin-1"))
    return encoded


def _misread(value: str) -> Iterator[str]:
    """Yield UTF-16 and UTF-32 that was read as bytes. Most of it are signs: not by its letters."""
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        data = value.encode(encoding, "surrogatepass")
        yield data.decode("latin-1")
        yield data.decode("utf-8", "replace")


def reversed_skeletons(value: str) -> Iterator[str]:
    """Yield the skeleton of a value that a server read from its end."""
    skeleton = skeleton_of(value)[::-1]
    if is_telling(skeleton):
        yield skeleton


def _is_line_of_secret(line: str) -> bool:
    return len(line.strip()) >= 16 and not line.startswith("-----")

"""Undo what texts are wrapped in, one layer at a time, and remember where everything stood."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

Span = tuple[int, int]

MOST_ESCAPES: Final = 300_000
"""Escapes of a text or value that are undone, which takes half a second."""
MOST_SEARCHED: Final = 96 * 1024 * 1024
"""Characters of all layers of a text or value that are searched."""


class Origins(NamedTuple):
    """Where the characters of a layer come from: after each position, another distance."""

    positions: list[int]
    """Where in the layer an escape was undone, and where it ended."""
    sources: list[int]
    """The same places in the text before."""

    def span(self, span: Span) -> Span:
        """Return the part of the text before from which a part of the layer comes."""
        start, end = span
        # What begins within an escape begins with the escape, and ends with its end.
        return self.source_of(start), self.source_of(end - 1, after=True)

    def source_of(self, position: int, *, after: bool = False) -> int:
        index = bisect_right(self.positions, position) - 1
        if index < 0:
            return position + after
        begin, source = self.positions[index], self.sources[index]
        if index % 2:  # behind an escape
            return source + position - begin + after
        return self.sources[index + 1] if after else source


Undone = tuple[str, Origins]


class Budget:
    """The work that may still be done for a value: escapes to undo, characters to search."""

    __slots__ = ("characters", "decoded", "escapes")

    def __init__(self) -> None:
        self.escapes: int = MOST_ESCAPES
        self.characters: int = MOST_SEARCHED
        self.decoded: dict[tuple[str, int], bool] = {}
        """Texts that were encoded in it, and whether a value is in them; how deep they stand."""

    def take(self, *, escapes: int = 0, characters: int = 0) -> None:
        """Count work that is to be done.

        Raises:
            TooMuchWork: There is more of it than any honest server makes.
        """
        self.escapes -= escapes
        self.characters -= characters
        if self.escapes < 0 or self.characters < 0:
            raise TooMuchWork


class TooMuchWork(Exception):  # noqa: N818  (an end of the search)
    """To search a text or value to its end would take too long."""


# Each pattern begins with a class of characters, by which `re` skips what is no escape: ten times
# as fast as to try the branches at every place. So a branch looks back at how it began.

_HEX: Final = "[0-9A-Fa-f]"
_UNIT: Final = rf"u(?:{_HEX}{{4}}|\{{0{{0,4}}{_HEX}{{4}}\}})"
_OCTAL: Final = r"(?:0[01][0-7]{2}|[0-7]{3})"
_ESCAPE: Final = re.compile(
    r"[%\\'&](?:"
    rf"(?<=%)(?P<percent>{_HEX}{{2}}(?:%{_HEX}{{2}})*+)"
    rf"|(?<=[%\\])(?P<utf16>{_UNIT}(?:[%\\]{_UNIT})*+)"
    rf"|(?<=\\)(?:(?P<point>[ux]\{{{_HEX}{{1,8}}\}})"
    rf"|(?P<bytes>x{_HEX}{{2}}(?:\\x{_HEX}{{2}})*+|{_OCTAL}(?:\\{_OCTAL})*+)"
    rf"|(?P<long>U{_HEX}{{8}})|(?P<char>\r?\n|[^ux0-7\n]))"
    r"|(?<=')(?P<quote>\"'\"'|\\'')"  # of a shell: shlex.quote, bash
    rf"|(?<=&)(?P<entity>\#[0-9]{{1,7}};?+|\#[xX]{_HEX}{{1,6}};?+|[A-Za-z][A-Za-z0-9]{{1,31}};)"
    ")"
)
_CHARS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\n": "", "\r\n": ""}
# Where a text was made fit to be shown, U+FFFD stands for a control character.
_FOLD: Final = re.compile(
    "[ \r\n\ufffd](?:(?<= )[│┃|]\r?\n|(?<=\r)\n|(?<=[\n\ufffd]))"
    "[ \t]{0,40}+(?:[|│┃>][ \t]{0,4}+)?+(?=\\S)"
)
_UNSEEN: Final = "\x00\xad\u200b-\u200d\u2060\ufeff\ufffd"
_GUESS: Final = re.compile(
    f"[='\"`^\x1b{_UNSEEN}](?:"
    rf"(?<==)(?:(?P<code>{_HEX}{{2}}(?:={_HEX}{{2}})*+)|(?P<soft>\r?\n))"  # quoted-printable
    "|(?<=')(?P<single>')|(?<=\")(?P<double>\")"  # of SQL and CSV
    r"|(?<=[`^])(?P<shell>(?=[^\w\s`^]))"  # of PowerShell and cmd.exe
    r"|(?<=[\x1b\ufffd])(?P<style>\[[0-9;:]{0,32}+[A-Za-z])"  # of a terminal
    f"|(?<=[{_UNSEEN}])(?P<unseen>)"  # UTF-16 read as bytes; characters without a width
    ")"
)


def unescaped(text: str, budget: Budget | None = None) -> Undone | None:
    """Undo one layer of escapes; None: there is none."""
    if not any(mark in text for mark in "%\\&'"):
        return None
    return _undone(text, _ESCAPE, _meaning, budget)


def unfolded(text: str, budget: Budget | None = None) -> Undone | None:
    """Join lines: base64 has ends of lines in it, and logs break what is long; None: one line."""
    if "\n" not in text and "\ufffd" not in text:
        return None
    return _undone(text, _FOLD, lambda match: [("", len(match[0]))], budget)


def guessed(text: str, budget: Budget | None = None) -> Undone | None:
    """Undo what may be an escape and mostly is none; None: there is none.

    Quoted-printable (RFC 2045, section 6.7), doubled quotes, and what has no width.
    """
    return _undone(text, _GUESS, _guess, budget)


_Meaning = Callable[[re.Match[str]], Iterable[tuple[str, int]]]


def _undone(
    text: str, pattern: re.Pattern[str], meaning: _Meaning, budget: Budget | None
) -> Undone | None:
    budget = budget or Budget()
    parts: list[str] = []
    positions: list[int] = []
    sources: list[int] = []
    size = end = 0
    for match in pattern.finditer(text):
        between = text[end : match.start()]
        size += len(between)
        parts.append(between)
        start = match.start()
        for char, width in meaning(match):
            budget.take(escapes=1)
            positions += [size, size + len(char)]
            sources += [start, start + width]
            parts.append(char)
            size += len(char)
            start += width
        end = match.end()
    if not parts:
        return None
    return "".join([*parts, text[end:]]), Origins(positions, sources)


def _meaning(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield the characters that an escape stands for, each with how much of it that took."""
    whole, kind = match[0], match.lastgroup
    if kind == "percent":
        yield from _of_bytes(bytes.fromhex(whole.replace("%", "")), [3] * (len(whole) // 3))
    elif kind == "bytes":
        digits = whole.split("\\")[1:]
        base = [int(part[1:], 16) if part[0] == "x" else int(part, 8) & 255 for part in digits]
        yield from _of_bytes(bytes(base), [len(part) + 1 for part in digits])
    elif kind == "utf16":
        units = re.findall(r"u(?:\{0{0,4})?([0-9A-Fa-f]{4})", whole)
        width = len(whole) // len(units)
        data = b"".join(bytes.fromhex(unit) for unit in units)
        for char in data.decode("utf-16-be", "surrogatepass"):
            yield char, width * (1 if ord(char) < 0x10000 else 2)
    else:
        yield _character(whole, kind), len(whole)


def _character(whole: str, kind: str | None) -> str:
    """Return the one character that an escape stands for."""
    match kind:
        case "entity":
            return _entity(whole)
        case "quote":
            return "'"
        case "char":
            return _CHARS.get(whole[1:], whole[1:])
        case _:  # \U0001f600 \x{41}
            code = int(whole[2:].strip("{}"), 16)
            return chr(code) if code <= 0x10FFFF else whole


def _entity(text: str) -> str:
    """Return the character of ``&#39;``, ``&#x27`` or ``&quot;``; itself if it is none."""
    if text[1] == "#":
        digits = text[2:].rstrip(";")
        code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
        return chr(code) if code <= 0x10FFFF else text
    from html import unescape

    return unescape(text)


def _guess(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    whole = match[0]
    if match.lastgroup == "code":
        data = bytes.fromhex(whole.replace("=", ""))
        yield from _of_bytes(data, [3] * len(data))
    else:
        yield whole[0] if match.lastgroup in ("single", "double") else "", len(whole)


def _of_bytes(data: bytes, widths: list[int]) -> Iterator[tuple[str, int]]:
    """Yield the characters of UTF-8; bytes that are none are characters of Latin-1."""
    try:
        chars = data.decode()
    except UnicodeDecodeError:
        yield from zip(data.decode("latin-1"), widths, strict=True)
        return
    position = 0
    for char in chars:
        size = len(char.encode())
        yield char, sum(widths[position : position + size])
        position += size

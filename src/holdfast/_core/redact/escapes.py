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


class SearchBudget:
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
_OCTAL: Final = r"(?:0[01][0-7]{2}|[0-7]{1,3})"
_OPEN_ENTITY: Final = (  # HTML, section 13.5: old names, that need no semicolon
    r"(?:amp|AMP|lt|LT|gt|GT|quot|QUOT|nbsp|shy|szlig|[AaEeIiOoUuYy](?:acute|uml)"
    r"|[AaEeIiOoUu](?:grave|circ)|[AaNnOo]tilde|[Cc]cedil|[Oo]slash|[Aa]ring|(?:AE|ae)lig)"
)
_ESCAPE: Final = re.compile(
    r"[%\\'&](?:"
    rf"(?<=%)(?P<percent>{_HEX}{{2}}(?:%{_HEX}{{2}})*+)"
    rf"|(?<=[%\\])(?P<utf16>{_UNIT}(?:[%\\]{_UNIT})*+)"
    rf"|(?<=\\)(?:(?P<point>[ux]\{{{_HEX}{{1,8}}\}})"
    rf"|(?P<bytes>x{_HEX}{{2}}(?:\\x{_HEX}{{2}})*+|{_OCTAL}(?:\\{_OCTAL})*+)"
    rf"|(?P<long>U{_HEX}{{8}})|(?P<named>N\{{[A-Z0-9 -]{{2,88}}\}})|(?P<char>\r?\n|[^ux0-7\n]))"
    r"|(?<=')(?P<quote>\"'\"'|\\'')"  # of a shell: shlex.quote, bash
    rf"|(?<=&)(?P<entity>\#0{{0,16}}[0-9]{{1,7}};?+|\#[xX]0{{0,16}}{_HEX}{{1,6}};?+|[A-Za-z][A-Za-z0-9]{{1,31}};|{_OPEN_ENTITY})"
    ")"
)
_CHARS: Final = {
    "e": "\x1b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    "\n": "",
    "\r\n": "",
}
# Where a text was made fit to be shown, U+FFFD stands for a control character.
_FOLD: Final = re.compile(
    "[ \r\n\ufffd](?:(?<= )[│┃|]\r?\n|(?<=\r)\n|(?<=[\n\ufffd]))"
    "[ \t]{0,40}+(?:[|│┃>][ \t]{0,4}+)?+(?=\\S)"
)
# Without a width, or without a picture: controls, joiners, marks of direction, fillers, selectors.
_UNSEEN: Final = (
    "\x00-\x07\x0e-\x1a\x7f\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufffd"
)
_STYLE: Final = (  # ECMA-48, section 5.4, and what xterm adds: links, sets of characters
    r"\[[0-9;:?]{0,32}+[A-Za-z]|[]P^_X][^\x07\x1b\ufffd]{0,256}+(?:\x07|[\x1b\ufffd]\\?)"
    r"|[()][A-Z0-9]"
)
_PRINTABLE: Final = re.compile(
    rf"=(?:(?P<code>{_HEX}{{2}}(?:=(?:\r?\n=)?+{_HEX}{{2}})*+)|(?P<soft>\r?\n))"
)
_COLOR: Final = re.compile(r"\[[0-9;]{1,16}+m")
_PRINTED: Final = re.compile(rf"=(?:\r?\n=)?{_HEX}{{2}}")
_GUESS: Final = re.compile(
    f"['\"`^<\\\\\b\x1b\x9b{_UNSEEN}](?:"
    "(?<=')(?P<single>')|(?<=\")(?P<double>\")"  # of SQL and CSV
    rf"|(?<=`)(?P<point>u\{{{_HEX}{{1,6}}\}})"  # of PowerShell
    rf"|(?<=\^)(?P<caret>\[(?:{_STYLE}))"  # of a terminal, as `cat -v` shows it
    r"|(?<=[`^])(?P<shell>(?=[^\w\s`^]))"  # of PowerShell and cmd.exe
    rf"|(?<=\\)(?P<digits>(?:0000)?+{_HEX}{{2}} ?+(?:\\(?:0000)?+{_HEX}{{2}} ?+)*+)"  # CSS, LDAP
    r"|(?<=<)(?P<tag>!\[CDATA\[|!--[^<>]{0,128}+>|/?[A-Za-z][^<>]{0,128}+>)"  # of HTML and XML
    r"|(?P<again>(?<=(?P<bold>.)[\x08\ufffd])(?P=bold))"  # a printer makes it bold
    rf"|(?<=[\x1b\ufffd])(?P<style>{_STYLE})|(?<=\x9b)(?P<control>[0-9;:?]{{0,32}}+[A-Za-z])"
    f"|(?<=[{_UNSEEN}])(?P<unseen>)"  # UTF-16 read as bytes; characters without a width
    ")"
)


def unescaped(text: str, budget: SearchBudget | None = None) -> Undone | None:
    """Undo one layer of escapes; None: there is none."""
    if not any(mark in text for mark in "%\\&'"):
        return None
    return _undone(text, _ESCAPE, _meaning, budget)


def unfolded(text: str, budget: SearchBudget | None = None) -> Undone | None:
    """Join lines: base64 has ends of lines in it, and logs break what is long; None: one line."""
    if "\n" not in text and "\ufffd" not in text:
        return None
    return _undone(text, _FOLD, lambda match: [("", len(match[0]))], budget)


def guessed(text: str, budget: SearchBudget | None = None) -> Undone | None:
    """Undo what may be an escape and mostly is none; None: there is none.

    Doubled quotes, markup, colours, and what has no width.
    """
    return _undone(text, _GUESS, _guess, budget)


def uncolored(text: str, budget: SearchBudget | None = None) -> Undone | None:
    """Take out colours of a terminal whose escape somebody took out; None: there is none."""
    return _undone(text, _COLOR, lambda match: [("", len(match[0]))], budget)


def unprinted(text: str, budget: SearchBudget | None = None) -> Undone | None:
    """Undo quoted-printable (RFC 2045, section 6.7); None: there is none."""
    return _undone(text, _PRINTABLE, _guess, budget) if "=" in text else None


_Meaning = Callable[[re.Match[str]], Iterable[tuple[str, int]]]


def _undone(
    text: str, pattern: re.Pattern[str], meaning: _Meaning, budget: SearchBudget | None
) -> Undone | None:
    budget = budget or SearchBudget()
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
        units = re.findall(r"[%\\]u[^%\\]+", whole)
        data = b"".join(bytes.fromhex(unit.rstrip("}")[-4:]) for unit in units)
        place = 0
        for char in data.decode("utf-16-be", "surrogatepass"):
            count = 1 if ord(char) < 0x10000 else 2
            yield char, sum(map(len, units[place : place + count]))
            place += count
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
        case "named":
            return _of_name(whole[3:-1]) or whole
        case _:  # \U0001f600 \x{41}
            code = int(whole[2:].strip("{}"), 16)
            return chr(code) if code <= 0x10FFFF else whole


def _of_name(name: str) -> str:
    """Return the character of ``\\N{EURO SIGN}``; nothing if it is that of none."""
    from unicodedata import lookup

    try:
        return lookup(name)
    except KeyError:
        return ""


def _entity(text: str) -> str:
    """Return the character of ``&#39;``, ``&#x27`` or ``&quot;``; itself if it is none."""
    if text[1] == "#":
        digits = text[2:].rstrip(";")
        code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
        return chr(code) if code <= 0x10FFFF else text
    from html import unescape

    return unescape(text)


def _guess(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    whole, kind = match[0], match.lastgroup
    if kind == "code":
        data = bytes.fromhex(whole.replace("=", ""))  # which passes over ends of lines
        is_broken = len(data) * 3 < len(whole)
        widths = [len(code) for code in _PRINTED.findall(whole)] if is_broken else [3] * len(data)
        yield from _of_bytes(data, widths)
    elif kind == "digits":
        codes = whole.split("\\")[1:]
        data = bytes(int(code, 16) for code in codes)
        yield from _of_bytes(data, [len(code) + 1 for code in codes])
    elif kind == "point":
        yield _character(whole, kind), len(whole)
    else:
        yield whole[0] if kind in ("single", "double") else "", len(whole)


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

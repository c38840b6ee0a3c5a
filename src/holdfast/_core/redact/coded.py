"""Values that were encoded as a whole: base64, hexadecimal digits, lists of bytes."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_URL_SAFE: Final = str.maketrans("+/", "-_")
_STANDARD: Final = str.maketrans("-_", "+/")


def middles(data: bytes) -> Iterator[str]:
    """Yield the characters that data becomes in base64, wherever it begins, in both alphabets."""
    for skipped in range(3):
        middle = _middle(data, skipped)
        yield middle
        yield middle.translate(_URL_SAFE)


def _middle(data: bytes, skipped: int) -> str:
    """Return the characters of base64 that depend on nothing but the data, after so many bytes.

    RFC 4648, section 4: each character stands for six bits; those of a character that begins in
    what is before the data, or ends in what is after it, are left out.
    """
    coded = b64encode(bytes(skipped) + data).decode()
    first = -(-8 * skipped // 6)
    return coded[first : 8 * (skipped + len(data)) // 6]


def _class(mask: int) -> str:
    """Return the characters of base64 whose six bits have none of the mask's."""
    values = [*_ALPHABET, "+", "/"]
    chars = "".join(char for value, char in enumerate(values) if not value & mask)
    return "[" + chars.replace("+", "+-").replace("/", "/_").replace("-", "\\-") + "]"


# Of four characters, each of these bits is the highest of a byte, and zero in ASCII: twice
# that, and a word may be base64 of a text. So ordinary words are passed over by `re` alone.
_ASCII: Final = f"{_class(0b100000)}{_class(0b001000)}{_class(0b000010)}[A-Za-z0-9+/_\\-]"
_BYTE: Final = "(?:0[xXoO])?[0-9A-Fa-f]{1,3}"
_NEXT: Final = r"(?:[,;]\s{0,40}+(?:\"\d{1,5}\":\s?+)?+|[:-]| {1,2}+)"
"""Between two bytes: ``115, 51``, ``73:33``, ``{"0": 115, "1": 51}``."""
_CODED: Final = re.compile(
    # Each begins with a character, by which `re` skips others; then it looks back.
    rf"[0-9A-Fa-f](?<!\w\w)(?P<list>(?:(?<=0)[xXoO][0-9A-Fa-f])?+[0-9A-Fa-f]{{0,2}}+"
    rf"(?:{_NEXT}{_BYTE}\b){{5,}}+)"
    r"|[0-7Ff](?:(?<![0-9A-Za-z]{2})|(?<=0[xX].))(?P<hex>(?:(?<=[0-7])[0-9A-Fa-f][0-7][0-9A-Fa-f]|(?i:ffe|eff))"
    r"(?:[0-9A-Fa-f]{2}){6,}+(?![0-9A-Za-z]))"
    # A text, or one that begins with the mark of UTF-16: FF FE or FE FF.
    rf"|[A-Za-f/_](?<![A-Za-z0-9+/_\-]{{2}})(?P<base64>(?:(?<=[/_])(?:[/_][4-7]|v[89+/_\-])"
    rf"|(?<={_class(0b100000)})(?={_ASCII[_ASCII.index(']') + 1 :]}{_ASCII}))"
    r"[A-Za-z0-9+/_\-]{10,}+)"
)
_PREFIXED: Final = re.compile(rf"[+/_\-](?=(?:{_ASCII}){{6}})[A-Za-z0-9+/_\-]++")
"""Base64 behind something that could be base64 as well, as in a path: so much of it is a text that
other data, such as a picture, hardly ever looks like it."""
_FEWEST: Final = 6
"""Bytes of a list that is decoded."""
_CONTROLS: Final = bytes(range(32))
_SEPARATOR: Final = re.compile(r"[,;\s:-]+")
_SEPARATOR_WITH_INDEX: Final = re.compile(r",\s*\"\d+\":\s*")


class CodedText(NamedTuple):
    """A text that is encoded in another one."""

    span: tuple[int, int]
    """Where it stands."""
    text: str

    def place_of(self, part: tuple[int, int]) -> tuple[int, int]:
        """Return where a part of it stands, to a character: of base64, bytes share characters."""
        start, end = self.span
        before, until, size = (
            len(self.text[:length].encode("utf-8", "surrogateescape"))
            for length in (*part, len(self.text))
        )
        return start + (end - start) * before // size, end - (end - start) * (size - until) // size


def decoded(text: str) -> Iterator[CodedText]:
    """Yield the texts that are encoded in a text."""
    for match in _CODED.finditer(text):
        for data in _data(match):
            yield CodedText(match.span(), _text_of(data))
    for match in _PREFIXED.finditer(text):
        yield CodedText((match.start() + 1, match.end()), _text_of(_of_base64(match[0][1:])))


def may_be_coded(text: str) -> bool:
    """Return True if something in a text may stand for another text."""
    return _CODED.search(text) is not None or _PREFIXED.search(text) is not None


def _text_of(data: bytes) -> str:
    """Decode a text: UTF-16 has a zero beside each character of ASCII."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if data.count(0) * 3 <= len(data):
        return data.decode("utf-8", "surrogateescape")
    return data.decode("utf-16-be" if data[0] == 0 else "utf-16-le", "replace")


def _data(match: re.Match[str]) -> Iterator[bytes]:
    if match.lastgroup == "hex":
        yield bytes.fromhex(match[0])
    elif match.lastgroup == "base64":
        yield _of_base64(match[0])
    else:
        separator = _SEPARATOR_WITH_INDEX if '"' in match[0] else _SEPARATOR
        yield from _of_list(separator.split(match[0]))


def _of_base64(word: str) -> bytes:
    word = word.translate(_STANDARD)
    word = word[:-1] if len(word) % 4 == 1 else word
    return b64decode(word + "=" * (-len(word) % 4))


def _of_list(items: list[str]) -> Iterator[bytes]:
    """Yield the bytes of ``115, 51, 99``, which are other ones if the digits are hexadecimal.

    A word beside them may look like one of them: ``73 33 63 bad``.
    """
    has_octal = len(items[0]) == 3 or items[0][1:2] in ("o", "O")  # `od`, Python
    for base in (10, 16, 8) if has_octal else (10, 16):
        for is_byte, run in groupby((_byte(item, base) for item in items), lambda code: code >= 0):
            codes = bytes(run) if is_byte else b""
            # Times and dates look like lists of bytes: those of a text are not controls.
            if len(codes.translate(None, _CONTROLS)) >= _FEWEST:
                yield codes


def _byte(digits: str, base: int) -> int:
    """Return the byte that digits stand for; -1 if they stand for none."""
    try:
        code = int(digits, base)
    except ValueError:
        return -1
    return code if code < 256 else -1

"""Values that were encoded as a whole: base64, hexadecimal digits, lists of bytes."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Final

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
_BYTE: Final = "(?:0[xX])?[0-9A-Fa-f]{1,3}"
_CODED: Final = re.compile(
    # Each begins with a character, by which `re` skips others; then it looks back.
    rf"[0-9A-Fa-f](?<!\w\w)(?P<list>(?:(?<=0)[xX][0-9A-Fa-f])?+[0-9A-Fa-f]{{0,2}}+"
    rf"(?:(?:,\s{{0,8}}+|[:-]| {{1,2}}+){_BYTE}\b){{5,}}+)"
    r"|[0-7](?<![0-9A-Za-z]{2})(?P<hex>[0-9A-Fa-f][0-7][0-9A-Fa-f](?:[0-9A-Fa-f]{2}){6,}+"
    r"(?![0-9A-Za-z]))"
    rf"|{_class(0b100000)}(?<![A-Za-z0-9+/_\-]{{2}})(?P<base64>(?={_ASCII[_ASCII.index(']') + 1 :]}"
    rf"{_ASCII})[A-Za-z0-9+/_\-]{{10,}}+)"
)
_SEPARATOR: Final = re.compile(r"[,\s:-]+")


def decoded(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the texts that are encoded in a text, each with the place where it stands."""
    for match in _CODED.finditer(text):
        for data in _data(match):
            is_utf16 = data.count(0) * 3 > len(data)
            yield match.span(), data.decode("utf-16-le" if is_utf16 else "utf-8", "replace")


def _data(match: re.Match[str]) -> Iterator[bytes]:
    if match.lastgroup == "hex":
        yield bytes.fromhex(match[0])
    elif match.lastgroup == "base64":
        word = match[0].translate(_STANDARD)
        word = word[:-1] if len(word) % 4 == 1 else word
        yield b64decode(word + "=" * (-len(word) % 4))
    else:
        yield from _of_list(_SEPARATOR.split(match[0]))


def _of_list(items: list[str]) -> Iterator[bytes]:
    """Yield the bytes of ``115, 51, 99``, which are other ones if the digits are hexadecimal."""
    for base in (10, 16):
        try:
            yield bytes(int(item, base) for item in items)
        except ValueError:
            continue

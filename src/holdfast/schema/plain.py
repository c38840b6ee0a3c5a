"""Text from servers, made fit to show: nothing unseen, nothing that moves a cursor, nothing long.

What a server writes ends up in terminals, logs and reviews. There it could colour or erase lines
(escape sequences), turn them around (bidirectional marks) or carry words that no reader sees
(zero-width characters, tags, variation selectors). All of these are shown by their numbers.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

LONGEST: Final = 120
"""Characters of one text that are shown."""
CONTEXT: Final = 24
"""Characters that are shown on either side of a difference."""

UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffc\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
"""Fixed ranges and not `str.isprintable`, which differs between versions of Python: what is
written with these must be the same bytes everywhere."""

_BARE: Final = re.compile(r"[A-Za-z0-9_.$/:@-]{1,80}")


def visible(text: str, longest: int = LONGEST) -> str:
    """The text in one line, cut, with every character that would not be seen as its number."""
    return UNSEEN.sub(_number, _cut(text, longest))


def quoted(text: str, longest: int = LONGEST) -> str:
    """The text in quotes, which it cannot end itself."""
    return f'"{_inside(_cut(text, longest))}"'


def label(name: str) -> str:
    """A name: as it is if it is a plain one, else in quotes."""
    return name if _BARE.fullmatch(name) else quoted(name)


def json(value: Any, longest: int = LONGEST) -> str:
    """A value as JSON text."""
    if isinstance(value, str):
        return quoted(value, longest)
    try:
        text = msgspec.json.encode(value, order="sorted").decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "a value too deep to show"
    return visible(text, longest)


def listing(words: list[str], most: int = 5) -> str:
    """``a, b, c and 4 more``"""
    shown = words[:most]
    if len(words) > most:
        return f"{', '.join(shown)} and {len(words) - most} more"
    return " and ".join(shown) if len(shown) < 3 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def difference(before: str, after: str) -> str:
    """Where two texts part, with a little around it: ``"…a cat…" → "…a dog…"``."""
    start = _common(before, after)
    tail = _common_end(before[start:], after[start:])
    old = _excerpt(before, start, len(before) - tail)
    new = _excerpt(after, start, len(after) - tail)
    return f"{old} → {new}{_lookalike(before[start:], after[start:])}"


def _common(one: str, other: str) -> int:
    """How many characters both begin with, by halving: comparing slices is fast, loops are not."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str) -> int:
    return _common(one[::-1], other[::-1])


def _excerpt(text: str, start: int, end: int) -> str:
    """The part from start to end with its surroundings, the middle cut out if it is long."""
    first, last = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    body = text[first:last]
    if len(body) > 2 * LONGEST:
        left_out = len(body) - 2 * LONGEST
        head, foot = _inside(body[:LONGEST]), _inside(body[-LONGEST:])
        shown = f"{head} …({left_out} more characters)… {foot}"
    else:
        shown = _inside(body)
    return f'"{"…" if first else ""}{shown}{"…" if last < len(text) else ""}"'


def _lookalike(one: str, other: str) -> str:
    """A letter that was changed for one of another alphabet may look just the same."""
    old, new = one[:1], other[:1]
    if not (old.isalnum() and new.isalnum()) or old.isascii() == new.isascii():
        return ""
    return f" (U+{ord(old):04X} became U+{ord(new):04X})"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _inside(text: str) -> str:
    """As it may stand between quotes."""
    return UNSEEN.sub(_number, text.replace("\\", "\\\\").replace('"', '\\"'))


_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _number(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"

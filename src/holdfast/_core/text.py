"""Untrusted text made safe to show: escape, truncate, quote, suggest.

Servers, files and programs decide what ends up in terminals, logs and reviews. There it could
colour or erase lines (escape sequences), reorder them (bidirectional controls) or carry words that
no reader sees (zero-width characters, tags, variation selectors). Every place that shows such text
uses this module, so all of them agree on what is unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

LIMIT: Final = 120
"""Default number of characters shown of one text."""
HIDDEN: Final = "[redacted]"
MIN_SECRET: Final = 4
"""A shorter secret is not searched for: it would match parts of ordinary words."""

_SPACES: Final = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE: Final = (
    "\x00-\x1f\x7f-\x9f"  # C0 and C1 controls, DEL
    "\xad\u034f\u061c\u070f"  # soft hyphen, grapheme joiner, Arabic and Syriac marks
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # Hangul and Khmer fillers, Mongolian selectors
    "\u200b-\u200f\u2028-\u202e"  # zero width, line and paragraph separators, bidi embeddings
    "\u2060-\u206f\u2800\u3164"  # invisible operators, bidi isolates, blank Braille, filler
    "\ud800-\uf8ff"  # lone surrogates, private use
    "\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0"  # noncharacters, variation selectors, BOM, filler
    "\ufff0-\ufffc\ufffe\uffff"  # interlinear annotation, object replacement, noncharacters
    "\U0001107f\U00013430-\U0001345f\U00016fe4"  # joiners and fillers of historic scripts
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"  # shorthand and musical controls
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff"  # noncharacters
    "\U00040000-\U0010ffff"  # unassigned planes, tags, selectors, private use
)
UNSEEN: Final = f"[{_SPACES}{_INVISIBLE}]"
"""Every character that is not seen as itself. Fixed ranges instead of `str.isprintable` and
`unicodedata`, whose tables differ between versions of Python: escaped text is written to files
that must have the same bytes everywhere. Compiled when it is used: that takes milliseconds."""

_UNSEEN_BUT_LINES: Final = f"[{_INVISIBLE}]".replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")
_ODD_SPACE: Final = f"[{_SPACES}]"
_LINE_BREAK: Final = "\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_PLAIN_NAME: Final = r"[A-Za-z0-9_.$/:@-]{1,80}"
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def has_unseen(text: str) -> bool:
    """Return True if the text has a character that a reader would not see as itself."""
    return re.search(UNSEEN, text) is not None


def escape(char: str) -> str:
    r"""Return the escape of one character: ``\n``, ``\x1b``, ``\u200b``, ``\U000e0041``."""
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str, limit: int | None = None) -> str:
    """Return the text on one line, truncated, with unseen characters escaped."""
    if limit is not None:
        text = truncate(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return re.sub(UNSEEN, lambda match: escape(match[0]), text)


def visible_lines(text: str) -> str:
    """Return text of several lines with unseen characters escaped; odd spaces become plain."""
    if text.isascii() and text.isprintable():
        return text
    text = re.sub(_ODD_SPACE, " ", text.replace("\r\n", "\n"))
    return re.sub(_UNSEEN_BUT_LINES, lambda match: escape(match[0]), text)


def visible_json(text: str) -> str:
    """Return JSON text with unseen characters escaped as JSON does: the value is the same.

    Line feeds outside strings stay, so that indented JSON keeps its form.
    """
    return "\n".join(re.sub(UNSEEN, _escape_json, line) for line in text.split("\n"))


def one_line(text: str, limit: int = 200) -> str:
    """Return prose on one line: white space collapsed, unseen characters escaped, truncated."""
    text = re.sub(f"{_LINE_BREAK}|{_ODD_SPACE}", " ", truncate(text, 4 * limit))
    return visible(" ".join(text.split()), limit)


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return text without the given secrets, for a peer that repeats what it was sent.

    Before the text is truncated: the beginning of a secret would not be recognised.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN) if len(secret) >= MIN_SECRET else text
    return text


def split_lines(text: str) -> list[str]:
    """Split at line breaks of every kind; tabs and odd spaces become plain, the rest is escaped."""
    lines = re.split(_LINE_BREAK, text)
    return [visible(re.sub(_ODD_SPACE, " ", line.expandtabs(4))) for line in lines]


def truncate(text: str, limit: int = LIMIT) -> str:
    """Return at most ``limit`` characters, the last an ellipsis if some are missing."""
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


def quote(text: str, limit: int = LIMIT) -> str:
    """Return the text in double quotes, which it cannot close itself."""
    return f'"{_inside_quotes(truncate(text, limit))}"'


def label(name: str) -> str:
    """Return a plain name as it is, any other in quotes."""
    return name if re.fullmatch(_PLAIN_NAME, name) else quote(name)


def show_json(value: Any, limit: int = LIMIT) -> str:
    """Return a value as JSON on one line, truncated, with unseen characters escaped."""
    if isinstance(value, str):
        return quote(value, limit)
    import msgspec

    try:
        text = msgspec.json.encode(value, order="sorted").decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "a value that JSON cannot hold"
    return visible_json(truncate(text, limit))


def join_words(words: Sequence[str], most: int = 5) -> str:
    """Return ``a, b and c``, or ``a, b, c, d, e and 4 more``."""
    listed = list(words[:most])
    if len(words) > most:
        return f"{', '.join(listed)} and {len(words) - most} more"
    return " and ".join(listed) if len(listed) < 3 else f"{', '.join(listed[:-1])} and {listed[-1]}"


# Suggestions

_LONGEST_NAME: Final = 100
_MOST_NAMES: Final = 1000


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 tool``, ``2 tools``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def close_matches(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names nearest to a misspelt one; work is bounded whatever the names are."""
    from difflib import get_close_matches
    from itertools import islice

    short_names = (
        candidate for candidate in islice(names, _MOST_NAMES) if len(candidate) <= _LONGEST_NAME
    )
    return get_close_matches(name[:_LONGEST_NAME], list(short_names), most, cutoff)


def did_you_mean(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> str:
    """Return ``did you mean 'a' or 'b'?``, or an empty string if nothing is near."""
    near = close_matches(name, names, most, cutoff)
    return f"did you mean {' or '.join(repr(visible(match)) for match in near)}?" if near else ""


# Differences

_CONTEXT: Final = 24


def difference(before: str, after: str) -> str:
    """Return where two texts differ, with some context: ``"…a cat…" → "…a dog…"``."""
    start = _common_prefix(before, after)
    tail = _common_prefix(before[start:][::-1], after[start:][::-1])
    old = _excerpt(before, start, len(before) - tail)
    new = _excerpt(after, start, len(after) - tail)
    return f"{old} → {new}{_lookalike(before[start:], after[start:])}"


def _common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix, by bisection: comparing slices is fast."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _excerpt(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _CONTEXT), min(len(text), end + _CONTEXT)
    body = text[first:last]
    if len(body) > 2 * LIMIT:
        head, foot = _inside_quotes(body[:LIMIT]), _inside_quotes(body[-LIMIT:])
        excerpt = f"{head} …({len(body) - 2 * LIMIT} more characters)… {foot}"
    else:
        excerpt = _inside_quotes(body)
    return f'"{"…" if first else ""}{excerpt}{"…" if last < len(text) else ""}"'


def _lookalike(first: str, second: str) -> str:
    """Name the code points where a letter was exchanged for one of another alphabet."""
    old, new = first[:1], second[:1]
    if not (old.isalnum() and new.isalnum()) or old.isascii() == new.isascii():
        return ""
    return f" (U+{ord(old):04X} became U+{ord(new):04X})"


def _inside_quotes(text: str) -> str:
    return visible(text.replace("\\", "\\\\").replace('"', '\\"'))


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"

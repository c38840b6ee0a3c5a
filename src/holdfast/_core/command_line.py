"""A command line as a person writes it, split into words as the system's programs would."""

from __future__ import annotations

import re
import sys

_TOKENS = r"""(?P<quotes>\\*"+)|(?P<space>[ \t\r\n])|\\+|[^\\" \t\r\n]+"""


def split_words(line: str, platform: str = sys.platform) -> list[str]:
    """Return the words of a command line.

    Elsewhere than on Windows as a shell splits it. On Windows a backslash is a separator of
    folders, not an escape, so the rules of its C runtime hold: ``C:\\tools\\x.exe "a b"``.

    Raises:
        ValueError: A quotation is not closed.
    """
    if platform == "win32":
        return split_windows(line)
    from shlex import split

    return split(line)


def split_windows(line: str) -> list[str]:
    r"""Split a command line by the rules of Microsoft's C runtime (since 2008).

    Spaces separate, quotes hold together, ``\"`` is a quote and so are two quotes in a quotation;
    2n backslashes before a quote are n, others are themselves.

    Raises:
        ValueError: A quotation is not closed.
    """
    words: list[str] = []
    word: str | None = None
    inside = False
    for token in re.finditer(_TOKENS, line):
        text = token[0]
        if token["space"] and not inside:
            words += [] if word is None else [word]
            word = None
            continue
        if token["quotes"]:
            text, inside = _read_quotes(text, inside)
        word = (word or "") + text
    if inside:
        raise ValueError("No closing quotation")
    return words if word is None else [*words, word]


def _read_quotes(text: str, inside: bool) -> tuple[str, bool]:
    """Return what backslashes and the quotes after them mean, and whether a quotation is open."""
    quotes = text.lstrip("\\")
    backslashes, left = len(text) - len(quotes), len(quotes)
    meaning = "\\" * (backslashes // 2)
    if backslashes % 2:
        meaning, left = meaning + '"', left - 1
    while left:
        if inside and left > 1:
            meaning, left = meaning + '"', left - 2
        else:
            inside, left = not inside, left - 1
    return meaning, inside

"""Text that strangers wrote, as it may stand in a Python file.

What a server says of its tools is untrusted: it must end up inside a string, whatever is in
it, and show what it is. Line breaks of every kind become plain ones, and characters that
cannot be seen (controls, marks that turn the reading direction, halves of characters) are
written as escapes.
"""

from __future__ import annotations

import textwrap
from typing import Final

from holdfast._core.text import escape, split_lines, truncate, visible

MOST_CHARACTERS: Final = 4000
"""Of one description; the rest is cut."""

QUOTES: Final = '"""'


def literal(text: str) -> str:
    """Return a string literal, in the quotes that ``ruff format`` would choose."""
    return _quoted(text, visible(text.replace("\\", "\\\\")))


def ascii_literal(text: str) -> str:
    """Return a string literal in ASCII, whose width on the screen is known."""
    body = text.replace("\\", "\\\\")
    return _quoted(text, "".join(one if " " <= one <= "~" else escape(one) for one in body))


def _quoted(text: str, body: str) -> str:
    quote = "'" if text.count('"') > text.count("'") else '"'
    return f"{quote}{body.replace(quote, chr(92) + quote)}{quote}"


def width(text: str) -> int:
    """Columns, at the most: what is not ASCII may be wide."""
    return len(text) if text.isascii() else sum(1 if char.isascii() else 4 for char in text)


def quoted(name: str, limit: int = 200) -> str:
    """Return a name as a literal in a message: two names that differ look different."""
    return literal(truncate(name, limit))


def paragraphs(text: str, room: int) -> list[str]:
    """The lines of a description, without the indentation it came in, none wider than need be."""
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + " …"
    lines = [line.rstrip() for line in split_lines(text.strip())]
    if lines == [""]:
        return []
    rest = textwrap.dedent("\n".join(lines[1:])).split("\n") if lines[1:] else []
    return _without_gaps(
        [piece for line in (lines[0].lstrip(), *rest) for piece in wrap(line, room)]
    )


def wrap(line: str, room: int) -> list[str]:
    """A long line in several, each as far in as the first."""
    if len(line) <= room:
        return [line]
    inset = line[: len(line) - len(line.lstrip())]
    if len(inset) > room // 2:
        inset, line = "", line.lstrip()
    return textwrap.wrap(
        line,
        room,
        subsequent_indent=inset,
        break_long_words=False,
        break_on_hyphens=False,
    )


def docstring(lines: list[str], indent: str) -> list[str]:
    """Lines of text as the lines of a docstring; none if there is nothing to say."""
    shown = [_escaped(line) for line in lines]
    while shown and not shown[-1].strip():
        shown.pop()
    if not shown:
        return []
    if shown[0].startswith('"'):
        shown[0] = "\\" + shown[0]
    if len(shown) > 1:
        body = [f"{indent}{line}".rstrip() for line in shown[1:]]
        return [f"{indent}{QUOTES}{shown[0]}", *body, f"{indent}{QUOTES}"]
    text = shown[0]
    if text.endswith('"') and not text.endswith('\\"'):
        text = text[:-1] + '\\"'
    return [f"{indent}{QUOTES}{text}{QUOTES}"]


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace(QUOTES, '\\"\\"\\"')


def _without_gaps(lines: list[str]) -> list[str]:
    """At most one empty line in a row."""
    return [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]

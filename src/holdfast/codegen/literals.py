"""Text that strangers wrote, as it may stand in a Python file.

What a server says of its tools is untrusted: it must end up inside a string, whatever is in
it, and show what it is. Line breaks of every kind become plain ones, and characters that
cannot be seen (controls, marks that turn the reading direction, halves of characters) are
written as escapes.
"""

from __future__ import annotations

import textwrap
from typing import Final

MOST_CHARACTERS: Final = 4000
"""Of one description; the rest is cut."""

QUOTES: Final = '"""'
SHORTCUTS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def literal(text: str) -> str:
    """A string literal, in the quotes that `ruff format` would choose."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    if text.isprintable():
        body = text.replace("\\", "\\\\")
    else:
        body = "".join(SHORTCUTS.get(char) or visible(char) for char in text)
    return f"{quote}{body.replace(quote, chr(92) + quote)}{quote}"


def ascii_literal(text: str) -> str:
    """The same in ASCII, where the width on the screen has to be known."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    body = "".join(SHORTCUTS.get(char) or _ascii(char) for char in text)
    return f"{quote}{body.replace(quote, chr(92) + quote)}{quote}"


def visible(char: str) -> str:
    """The character, or its escape if it would not be seen."""
    return char if char.isprintable() else escape(char)


def _ascii(char: str) -> str:
    return char if char.isascii() and char.isprintable() else escape(char)


def escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns, at the most: what is not ASCII may be wide."""
    return len(text) if text.isascii() else sum(1 if char.isascii() else 4 for char in text)


def one_line(text: str, limit: int = 200) -> str:
    """Text for a sentence of ours, or for a terminal."""
    short = text if len(text) <= limit else text[:limit] + "…"
    return " ".join(" ".join(_readable(line) for line in short.splitlines()).split())


def quoted(name: str, limit: int = 200) -> str:
    """A name in a sentence of ours, to the letter: two that differ look different."""
    return literal(name if len(name) <= limit else name[:limit] + "…")


def paragraphs(text: str, room: int) -> list[str]:
    """The lines of a description, without the indentation it came in, none wider than need be."""
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + " …"
    lines = [_readable(line).rstrip() for line in text.strip().splitlines()]
    if not lines:
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


def _readable(line: str) -> str:
    """Tabs and odd spaces as spaces; what cannot be seen as an escape."""
    line = line.expandtabs(4)
    if line.isprintable():
        return line
    return "".join(" " if char.isspace() else visible(char) for char in line)


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace(QUOTES, '\\"\\"\\"')


def _without_gaps(lines: list[str]) -> list[str]:
    """At most one empty line in a row."""
    return [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]

"""Text of servers as literals and docstrings of a Python file.

Descriptions are untrusted: they must stay inside a string and be visible. Line breaks of every kind
become plain ones, and unseen characters are escaped.
"""

from __future__ import annotations

import textwrap
from typing import Any, Final

from holdfast._core.text import escape, one_line, split_lines, truncate, visible
from holdfast.schema.types import canonical

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
    """Return the most columns that a text may take: what is not ASCII may be wide."""
    return len(text) if text.isascii() else sum(1 if char.isascii() else 4 for char in text)


def quoted(name: str, limit: int = 200) -> str:
    """Return a name as a literal in a message: two names that differ look different."""
    return literal(truncate(name, limit))


def paragraphs(text: str, room: int) -> list[str]:
    """Return the lines of a description, dedented and wrapped."""
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
    """Wrap a line, with the indentation of its start."""
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
    """Return the lines of a docstring; none if there is no text."""
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
    """Return the lines with at most one empty line in a row."""
    return [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]


LIMITS: Final = (
    ("format", "format {}"),
    ("pattern", "pattern {}"),
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minProperties", "at least {} keys"),
    ("maxProperties", "at most {} keys"),
    ("contentMediaType", "content {}"),
    ("contentEncoding", "encoding {}"),
)
LONGEST: Final = 120


def description(schema: Any) -> str:
    """Return the description of a schema, stripped; empty if it has none."""
    found = schema.get("description") if isinstance(schema, dict) else None
    return found.strip() if isinstance(found, str) else ""


def note(schema: Any) -> str:
    """Return the description, then limits and default, as one text."""
    if not isinstance(schema, dict):
        return ""
    said = description(schema)
    if said and said[-1] not in ".!?:;…":
        said += "."
    limits = _limits(schema)
    extras = [f"{limits[0].upper()}{limits[1:]}."] if limits else []
    if "default" in schema:
        extras.append(f"Default: {_json(schema['default'])}.")
    if schema.get("deprecated") is True:
        extras.append("Deprecated.")
    gap = "\n" if "\n" in said else " "
    return gap.join(part for part in (said, " ".join(extras)) if part)


def _limits(schema: dict[str, Any]) -> str:
    """Return the limits in words, also those of the one alternative to null."""
    options = schema.get("anyOf")
    if isinstance(options, list):
        real = [one for one in options if isinstance(one, dict) and one.get("type") != "null"]
        if len(real) == 1:
            schema = {**real[0], **schema}
    found = [
        text.format(_short(schema[word]))
        for word, text in LIMITS
        if isinstance(schema.get(word), str | int | float) and not isinstance(schema[word], bool)
    ]
    if schema.get("uniqueItems") is True:
        found.append("no item twice")
    return ", ".join(found)


def _short(value: Any) -> str:
    return one_line(value, LONGEST) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        text = canonical(value).decode()
    except (UnicodeError, RecursionError, OverflowError):
        text = ascii(value)
    return one_line(text, LONGEST)

"""What is wrong with a configuration, and exactly where: file, server, field."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["error", "warning"]


class Problem(Struct, frozen=True, kw_only=True):
    """One thing to mend. An ``error`` keeps its server (or file) from being used."""

    file: str
    message: str
    server: str | None = None
    field: str | None = None
    level: Level = "error"

    def __str__(self) -> str:
        server = "" if self.server is None else f"server {visible(self.server)!r}: "
        field = "" if self.field is None else f"{visible(self.field)}: "
        return f"{visible(self.file)}: {server}{field}{self.message}"


def visible(text: str) -> str:
    """A text that shows what it has in it.

    A file's text ends up in terminals: an escape sequence, a newline or a character that turns
    the direction of writing could make a command look like another one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if _plain(letter) else _escaped(letter) for letter in text)


def _plain(letter: str) -> bool:
    return letter.isprintable() and letter not in _TURNS


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


_TURNS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

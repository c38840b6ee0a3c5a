"""Files of environment variables (``.env``), which an entry may name."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_LINE: Final = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(?P<value>.*)")


class EnvFile(Struct, frozen=True, kw_only=True):
    """Such a file as it was when it was read: its bytes, or why there are none."""

    path: str
    data: bytes | None = None
    fault: str | None = None

    def variables(self) -> dict[str, str]:
        """What it sets. Raises ValueError with what is wrong with it."""
        if self.data is None:
            raise ValueError(self.fault or "does not exist")
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("is not text in UTF-8") from None
        return parse(text)


def parse(text: str) -> dict[str, str]:
    """``NAME=value`` by the line; ``#`` begins a comment; quotes are taken off.

    Double quotes know ``\\n``, ``\\t``, ``\\"`` and ``\\\\``. Nothing is expanded. A line that
    is none of this is refused by its number: ValueError.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not NAME=value")
        found[match["name"]] = _value(match["value"])
    return found


def _value(text: str) -> str:
    if text[:1] in ("'", '"'):
        quote = text[0]
        pattern = r"'([^']*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"'
        match = re.match(pattern, text)
        if match is not None:
            return match[1] if quote == "'" else _unescaped(match[1])
    return re.split(r"\s#", text, maxsplit=1)[0].strip()


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text)


_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}

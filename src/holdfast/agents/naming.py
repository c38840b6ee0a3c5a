"""Names of tools for language models: valid everywhere, reversible, and always the same.

A tool of a server is ``server__tool``. That form is kept to what every provider takes: a
letter or an underscore first, then letters, digits, ``_`` and ``-``, 64 characters at most
(OpenAI and Anthropic would take a digit first, Gemini a dot within).

A name depends on its own server and tool and on nothing else, so it stays the same whichever
other servers are there. Two rules make names differ without looking at one another:

- *Plain* names are split at their first ``__``: a server whose name has ``__`` in it, or ends
  in ``_``, has no plain names.
- What is not plain (other characters, too long, ambiguous) is made readable and ends in ``_``
  and eight hexadecimal digits of a hash. A tool whose own name ends like that has no plain
  name either.

Only should two hashes meet does a name depend on another: the later gets sixteen digits.
Upper and lower case are different, as they are to every provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from holdfast._core.text import close_matches
from holdfast.errors import ValidationError

SEPARATOR: Final = "__"
LIMIT: Final = 64
DIGITS: Final = 8
MOST: Final = 200_000
"""Names that are remembered: twice the longest list."""

VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_TOOL: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_HASHED: Final = re.compile(r"_(?:[0-9a-f]{8}){1,8}\Z")
_ODD: Final = re.compile(r"[^A-Za-z0-9-]+", re.ASCII)


def name_of(server: str, tool: str, digits: int = DIGITS) -> str:
    """Return the name of a tool; `split` gives both parts of a plain one back."""
    plain = f"{server}{SEPARATOR}{tool}"
    if digits == DIGITS and len(plain) <= LIMIT and _is_plain(server, tool):
        return plain
    # The length goes in, so that ("ab", "c") and ("a", "bc") differ.
    text = f"{len(server)}:{server}{tool}".encode("utf-8", "surrogatepass")
    room = LIMIT - len(SEPARATOR) - 1 - digits
    first, second = _readable(server, "server"), _readable(tool, "tool")
    if not VALID.match(first):
        first = "_" + first
    share = min(len(first), max(room - len(second), room // 3))
    digest = sha256(text).hexdigest()[:digits]
    return f"{first[:share]}{SEPARATOR}{second[: room - share]}_{digest}"


def split(name: str) -> tuple[str, str] | None:
    """Return server and tool of a plain name; None for a hashed one."""
    server, separator, tool = name.partition(SEPARATOR)
    return (server, tool) if separator and _is_plain(server, tool) else None


def _is_plain(server: str, tool: str) -> bool:
    return (
        VALID.fullmatch(server) is not None
        and SEPARATOR not in server
        and not server.endswith("_")
        and _TOOL.fullmatch(tool) is not None
        and _HASHED.search(SEPARATOR + tool) is None
    )


def _readable(text: str, otherwise: str) -> str:
    return _ODD.sub("_", text).strip("_") or otherwise


class Names:
    """The names of some tools, and the tools by name."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._pairs: dict[str, tuple[str, str]] = {}
        for server, tool in sorted(set(pairs)):
            self.add(server, tool)

    def __repr__(self) -> str:
        return f"<Names {len(self._pairs)} tools>"

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def add(self, server: str, tool: str) -> str:
        """Return the name of a tool, and remember it."""
        pair = (server, tool)
        allotted = self._names.get(pair)
        if allotted is not None:
            return allotted
        name, digits = name_of(server, tool), DIGITS
        while name in self._pairs:
            # Two hashes met. A server could bring that about for tools of its own.
            digits += DIGITS
            name = name_of(server, tool, digits)
        self._names[pair] = name
        self._pairs[name] = pair
        if len(self._pairs) > MOST:
            # A server may rename its tools in every list. The oldest name is forgotten.
            del self._names[self._pairs.pop(next(iter(self._pairs)))]
        return name

    def resolve(self, name: str) -> tuple[str, str]:
        """Return server and tool of a name. Plain names need not have been added."""
        pair = self._pairs.get(name) or split(name)
        if pair is None:
            raise no_tool(name, self._pairs)
        return pair


def no_tool(name: str, names: Iterable[str]) -> ValidationError:
    """Return the error for a name that no tool has; only very near ones count: all begin alike."""
    return ValidationError(f"no tool is called {name!r}{hint(name, names, 0.8)}")


def hint(name: str, names: Iterable[str], nearness: float = 0.6) -> str:
    """Return a question about known names near a misspelt one; empty without any."""
    return question(close_matches(name, names, 3, nearness))


def question(near: list[str]) -> str:
    """Return a question about near names to end an error with; empty without any."""
    return f". Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""

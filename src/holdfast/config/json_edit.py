"""Edits of a JSON file that leave the rest as it is, comments and indentation included."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import visible
from holdfast.config.files import COMMENT, STRING, UnreadableFileError, parse
from holdfast.errors import ValidationError

_TOKENS: Final = re.compile(
    rf"(?P<skip>\s++|{COMMENT})|(?P<string>{STRING})|(?P<mark>[{{}}\[\],:])|[^\s\"{{}}\[\],:/]++|/",
    re.S,
)
_BOM: Final = b"\xef\xbb\xbf"
_NEW: Final = "{\n}\n"


class JsonMember(Struct, kw_only=True):
    """One member of an object, by offsets in the text."""

    key: str
    start: int
    value: int = -1
    end: int = -1
    comma: int = -1
    """Of the comma behind it; -1: none."""


def find_members(text: str, start: int) -> tuple[list[JsonMember], int]:
    """Return the members of the object that begins at an offset, and where it ends."""
    found: list[JsonMember] = []
    depth, in_value = 0, False
    for match in _TOKENS.finditer(text, start):
        if match["skip"] is not None:
            continue
        mark = match["mark"]
        if depth == 1 and mark == "}":
            return found, match.start()
        if depth == 1 and mark == ",":
            found[-1].comma, in_value = match.start(), False
        elif depth == 1 and mark == ":" and not in_value:
            in_value = True
        elif depth == 1 and not in_value and match["string"] is not None:
            found.append(JsonMember(key=json.loads(match[0], strict=False), start=match.start()))
        elif depth and in_value:
            member = found[-1]
            member.value = match.start() if member.value < 0 else member.value
            member.end = match.end()
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))
    raise UnreadableFileError("is not JSON: an object is never closed")


def set_member(text: str, start: int, key: str, value: Any) -> str:
    """Return the text with a member of the object at an offset added or replaced."""
    members, end = find_members(text, start)
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_of(text, end)
    if outer is None:
        line = text[text.rfind("\n", 0, start) + 1 : start]
        outer = line[: len(line) - len(line.lstrip(" \t"))]
    inner = _indent_of(text, members[0].start) if members else None
    one_line = bool(members) and "\n" not in text[start:end]
    unit = (inner or "")[len(outer) :] or outer or "  "
    inner = outer + unit if inner is None else inner
    shown = json.dumps(value, ensure_ascii=False, indent=None if one_line else unit)
    shown = shown.replace("\n", newline + inner)
    for member in members:
        if member.key == key:
            return text[: member.value] + shown + text[member.end :]
    name = json.dumps(key, ensure_ascii=False)
    if one_line:
        return f"{text[: members[-1].end]}, {name}: {shown}{text[members[-1].end :]}"
    line = f"{newline}{inner}{name}: {shown}"
    if members:
        return f"{text[: members[-1].end]},{line}{text[members[-1].end :]}"
    rest = text[start + 1 :]
    tail = "" if rest[: end - start - 1].strip(" \t").startswith(("\n", "\r")) else newline
    return f"{text[: start + 1]}{line}{tail}{outer if tail else ''}{rest}"


def drop_member(text: str, start: int, key: str) -> str:
    """Return the text without a member of the object at an offset."""
    members, _ = find_members(text, start)
    place = next(number for number, member in enumerate(members) if member.key == key)
    member = members[place]
    if member.comma < 0 and place:
        # The last one takes the comma before it along.
        comma = members[place - 1].comma
        text = _cut(text, member.start, member.end)
        return text[:comma] + text[comma + 1 :]
    return _cut(text, member.start, max(member.comma + 1, member.end))


def _cut(text: str, start: int, end: int) -> str:
    """Remove a span, and its line if nothing else is on it."""
    first, last = start, end
    while first and text[first - 1] in " \t":
        first -= 1
    while last < len(text) and text[last] in " \t\r":
        last += 1
    alone = (first == 0 or text[first - 1] == "\n") and text[last : last + 1] == "\n"
    return text[:first] + text[last + 1 :] if alone else text[:start] + text[end:]


def _indent_of(text: str, place: int) -> str | None:
    """Return the white space before an offset if it begins its line."""
    line = text.rfind("\n", 0, place) + 1
    before = text[line:place]
    return before if line and not before.strip(" \t") else None


class ServersFile:
    """A file with ``mcpServers``, to edit. Every edit is checked by reading it again."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._bom = _BOM if data is not None and data.startswith(_BOM) else b""
        self._before = data
        self.content: Mapping[str, Any] = {} if data is None else parse(path, data)
        """The whole document."""
        text = "" if data is None else data[len(self._bom) :].decode()
        self._text = text if text.strip() else _NEW

    @property
    def data(self) -> bytes | None:
        """The bytes to write; as before if nothing was edited."""
        if self._text == _NEW:
            return self._before
        return self._bom + self._text.encode()

    def servers(self) -> dict[str, Any]:
        """Return the servers as they stand there."""
        servers = self.content.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise UnreadableFileError("must hold an object under mcpServers")
        return servers

    def add(self, name: str, value: dict[str, Any], overwrite: bool) -> None:
        """Add a server, or replace it."""
        servers = self.servers()
        if name in servers and not overwrite:
            raise ValidationError(
                f"{visible(self._path)} has a server '{visible(name, 80)}' already"
            )
        if "mcpServers" in self.content:
            text = set_member(self._text, self._start("mcpServers"), name, value)
        else:
            text = set_member(self._text, self._start(), "mcpServers", {name: value})
        self._accept(text, "mcpServers", {**servers, name: value})

    def remove(self, name: str) -> None:
        """Remove a server that is there."""
        rest = {key: value for key, value in self.servers().items() if key != name}
        text = drop_member(self._text, self._start("mcpServers"), name)
        self._accept(text, "mcpServers", rest)

    def add_inputs(self, inputs: Iterable[dict[str, Any]]) -> None:
        """Add inputs whose ids are not there yet."""
        there = self.content.get("inputs")
        listed = list(there) if isinstance(there, list) else []
        known = {one.get("id") for one in listed if isinstance(one, dict)}
        more = [one for one in inputs if one["id"] not in known]
        if more:
            text = set_member(self._text, self._start(), "inputs", [*listed, *more])
            self._accept(text, "inputs", [*listed, *more])

    def _start(self, key: str | None = None) -> int:
        """Return where the document's object begins, or the value of a member of it."""
        tokens = _TOKENS.finditer(self._text)
        top = next(match.start() for match in tokens if match["mark"] == "{")
        if key is None:
            return top
        members, _ = find_members(self._text, top)
        return next(member.value for member in members if member.key == key)

    def _accept(self, text: str, key: str, value: Any) -> None:
        expected = {**self.content, key: value}
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise ValidationError("half a character cannot be written to a file") from None
        if parse("x.json", data) != expected:
            raise ValidationError(f"{visible(self._path)} cannot be edited safely; edit it by hand")
        self._text, self.content = text, expected

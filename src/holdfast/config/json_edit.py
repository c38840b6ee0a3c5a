"""Edits of a JSON file that leave the rest as it is, comments and indentation included."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from holdfast._core.text import visible
from holdfast.config.files import COMMENT, STRING, UnreadableFileError, parse
from holdfast.errors import ValidationError

_TOKENS: Final = re.compile(
    rf"(?P<skip>\s++|{COMMENT})|(?P<string>{STRING})|(?P<mark>[{{}}\[\],:])|[^\s\"{{}}\[\],:/]++|/",
    re.S,
)
_BOM: Final = b"\xef\xbb\xbf"


class JsonMember(NamedTuple):
    """One member of an object, by offsets in the text: its key, its value, a comma behind it."""

    key: str
    start: int
    value: int
    end: int
    comma: int | None


def find_members(text: str, start: int) -> tuple[list[JsonMember], int]:
    """Return the members of the object that begins at an offset, and where it ends."""
    found: list[JsonMember] = []
    tokens: list[re.Match[str]] = []
    depth = 0
    for match in _TOKENS.finditer(text, start):
        if match["skip"] is not None:
            continue
        mark = match["mark"]
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))
        if (depth == 1 and mark == ",") or depth == 0:
            if tokens:  # key, colon and all of the value
                key, end = json.loads(tokens[0][0], strict=False), tokens[-1].end()
                comma = match.start() if mark == "," else None
                found.append(JsonMember(key, tokens[0].start(), tokens[2].start(), end, comma))
            if depth == 0:
                return found, match.start()
            tokens = []
        elif match.start() > start:
            tokens.append(match)
    raise UnreadableFileError("is not JSON: an object is never closed")


def set_member(text: str, start: int, key: str, value: Any, depth: int = 1) -> str:
    """Return the text with a member of the object at an offset added or replaced."""
    members, end = find_members(text, start)
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = re.search(r"\n([ \t]+)\S", text)
    unit = "  " if indented is None else indented[1]
    flat = bool(members) and "\n" not in text.strip()
    line = " " if flat else newline + unit * depth
    shown = json.dumps(value, ensure_ascii=False, indent=None if flat else unit)
    shown = shown.replace("\n", line)
    for member in members:
        if member.key == key:
            return text[: member.value] + shown + text[member.end :]
    added = f"{line}{json.dumps(key, ensure_ascii=False)}: {shown}"
    if members:
        return f"{text[: members[-1].end]},{added}{text[members[-1].end :]}"
    rest = text[start + 1 : end]
    tail = "" if "\n" in rest else newline + unit * (depth - 1)
    return text[: start + 1] + added + rest + tail + text[end:]


def drop_member(text: str, start: int, key: str) -> str:
    """Return the text without a member of the object at an offset, and its line if it is alone."""
    members, _ = find_members(text, start)
    place = next(number for number, member in enumerate(members) if member.key == key)
    member, comma = members[place], members[place].comma
    end = member.end if comma is None else comma + 1
    alone = re.compile(r"[ \t]*\r?\n").match(text, end)
    line = text.rfind("\n", 0, member.start) + 1
    if alone is not None and line and not text[line : member.start].strip(" \t"):
        after = text[:line] + text[alone.end() :]
    else:
        after = text[: member.start] + text[end:]
    if comma is None and place:
        # The last one takes the comma before it along.
        before = members[place - 1].comma or 0
        after = after[:before] + after[before + 1 :]
    return after


class ServersFile:
    """A file with ``mcpServers``, to edit. Every edit is checked by reading it again."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._bom = _BOM if data is not None and data.startswith(_BOM) else b""
        self.content: Mapping[str, Any] = {} if data is None else parse(path, data)
        """The whole document."""
        text = "" if data is None else data[len(self._bom) :].decode()
        self._text = text if text.strip() else "{\n}\n"

    @property
    def data(self) -> bytes:
        """The bytes to write."""
        return self._bom + self._text.encode()

    def add(self, name: str, value: dict[str, Any], overwrite: bool) -> None:
        """Add a server, or replace it."""
        servers = self._servers()
        if name in servers and not overwrite:
            raise ValidationError(
                f"{visible(self._path)} has a server '{visible(name, 80)}' already"
            )
        if "mcpServers" in self.content:
            text = set_member(self._text, self._start("mcpServers"), name, value, 2)
        else:
            text = set_member(self._text, self._start(), "mcpServers", {name: value})
        self._accept(text, "mcpServers", {**servers, name: value})

    def remove(self, name: str) -> None:
        """Remove a server that is there."""
        rest = {key: value for key, value in self._servers().items() if key != name}
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

    def _servers(self) -> dict[str, Any]:
        servers = self.content.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise UnreadableFileError("must hold an object under mcpServers")
        return servers

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

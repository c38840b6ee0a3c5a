"""Edits of a JSON file that leave the rest as it is, comments and indentation included."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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


class JsonFile:
    """A file with a JSON object, to edit. Every edit is checked by reading it again."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._bom = _BOM if data is not None and data.startswith(_BOM) else b""
        self.content: Mapping[str, Any] = {} if data is None else parse(path, data)
        text = "" if data is None else data[len(self._bom) :].decode()
        self._text = text if text.strip() else "{\n}\n"

    @property
    def data(self) -> bytes:
        """The bytes to write."""
        return self._bom + self._text.encode()

    def change(self, parent: str, key: str, value: Any) -> None:
        """Set a member of an object in the document, or of itself (""); None: remove it."""
        inner = self.content.get(parent) if parent else self.content
        if inner is None:
            parent, key, value, inner = "", parent, {key: value}, self.content
        if not isinstance(inner, dict):
            raise UnreadableFileError(f"must hold an object under {parent}")
        tokens = _TOKENS.finditer(self._text)
        start = next(match.start() for match in tokens if match["mark"] == "{")
        if parent:
            members, _ = find_members(self._text, start)
            start = next(member.value for member in members if member.key == parent)
        after = {name: one for name, one in inner.items() if name != key}
        if value is None:
            text = drop_member(self._text, start, key)
        else:
            text = set_member(self._text, start, key, value, 2 if parent else 1)
            after[key] = value
        content = {**self.content, parent: after} if parent else after
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise ValidationError("half a character cannot be written to a file") from None
        if parse("x.json", data) != content:
            raise ValidationError(f"{visible(self._path)} cannot be edited safely; edit it by hand")
        self._text, self.content = text, content

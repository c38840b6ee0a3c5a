"""Stored sequences of calls: JSON lines without a session, run through a handle or a client."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from holdfast.calllog.entries import BadLine, decode_line, read_text
from holdfast.calllog.replay import Report, replay
from holdfast.errors import ValidationError

_SPACE: Final = " \t\r\n"
_decoder: Final = json.JSONDecoder()


async def run_sequence(
    caller: Any,
    path: str | os.PathLike[str],
    *,
    stop: bool = True,
    timeout: float | None = None,
    fill: Mapping[str, Any] | None = None,
) -> Report:
    """Run the calls of a file in order; ``results`` of the report are what they gave.

    A handle adds its session where a tool has one. ``${…}`` in arguments refers to earlier
    results (see `holdfast.calllog.references`). ``stop`` ends it at the first call that fails.
    """
    return await replay(caller, Path(path), stop=stop, timeout=timeout, fill=fill)


# Renaming


class Renamed(Struct, frozen=True):
    """Lines with other keys: ``keys`` of them were renamed, on ``changed`` lines."""

    lines: list[str]
    keys: int
    changed: int

    def __str__(self) -> str:
        keys = "1 key" if self.keys == 1 else f"{self.keys} keys"
        return f"{keys} renamed on {self.changed} of {len(self.lines)} lines"


def rename(lines: Iterable[str], keys: Mapping[str, str]) -> Renamed:
    """Rename arguments (``{"id": "sessionName"}``); everything else stays as it is written.

    Only the arguments' own keys are meant, not those of objects inside them. Raises
    `ValidationError` if a line is no call, or would have two arguments of one name.
    """
    _check_names(keys)
    found: list[str] = []
    total = changed = 0
    for number, line in enumerate(lines, 1):
        try:
            text, count = _rename_line(line, keys)
        except BadLine as error:
            raise ValidationError(f"line {number}: {error}; nothing was changed") from None
        found.append(text)
        total, changed = total + count, changed + bool(count)
    return Renamed(found, total, changed)


def rename_file(
    path: str | os.PathLike[str], keys: Mapping[str, str], *, write: bool = False
) -> Renamed:
    """`rename` for a file; ``write`` replaces it, in one step, if anything changed."""
    place = Path(path)
    text = read_text(place)
    try:
        renamed = rename(text.split("\n"), keys)
    except ValidationError as error:
        raise ValidationError(f"{place}: {error}") from None
    if text.endswith("\n") or not text:
        renamed = Renamed(renamed.lines[:-1], renamed.keys, renamed.changed)
    if write and renamed.keys:
        end = "\n" if text.endswith("\n") else ""
        _replace(Path(os.path.realpath(place)), "\n".join(renamed.lines) + end)
    return renamed


def _check_names(keys: Mapping[str, str]) -> None:
    if not keys or not all(old and new and old != new for old, new in keys.items()):
        raise ValidationError(
            f"rename={dict(keys)!r}: give old and new names, as in id=sessionName"
        )


def _replace(path: Path, text: str) -> None:
    """Nobody ever sees half of the file, and it keeps its permissions."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
            os.chmod(name, path.stat().st_mode & 0o7777)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ValidationError(f"{path} cannot be written: {error.strerror or error}") from None


class _Member(NamedTuple):
    """One member of an object in a text: its key, and where the key and the value stand."""

    key: str
    start: int
    end: int
    value: int


def _rename_line(line: str, keys: Mapping[str, str]) -> tuple[str, int]:
    if decode_line(line) is None:
        return line, 0
    outer = _members(line, _skip(line, 0))
    place = next((one.value for one in reversed(outer) if one.key == "arguments"), None)
    if place is None or line[place] != "{":
        return line, 0
    members = _members(line, place)
    _check_clashes(members, keys)
    count = 0
    for member in reversed(members):
        if member.key in keys:
            new = json.dumps(keys[member.key], ensure_ascii=False)
            line = line[: member.start] + new + line[member.end :]
            count += 1
    return line, count


def _check_clashes(members: list[_Member], keys: Mapping[str, str]) -> None:
    names = {member.key for member in members}
    stay = {name for name in names if name not in keys}
    for old, new in keys.items():
        if old in names and new in stay:
            raise BadLine(f"there is a {new!r} already, so {old!r} cannot become one")
    taken = [keys[name] for name in names if name in keys]
    if len(taken) != len(set(taken)):
        raise BadLine("two arguments would have the same name")


def _members(text: str, start: int) -> list[_Member]:
    """The members of the object at ``start``; the text is known to be JSON."""
    found: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        begin = at
        name, at = _decoder.raw_decode(text, at)
        end = at
        value = _skip(text, _skip(text, at) + 1)
        found.append(_Member(name, begin, end, value))
        at = _skip(text, _decoder.raw_decode(text, value)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at

"""The lock file: the tools of servers when they were locked, in JSON that can be reviewed.

    {"servers": {"demo": {"fingerprint": "sha256:…", "instructions": "…" or null,
                          "tools": {"add": {"definition": {…}, "fingerprint": "sha256:…"}},
                          "skills": {"skill://…": {"definition": {…}, "fingerprint": …}}}},
     "version": 1}

The same tools give the same bytes. Characters that a reviewer would not see are written by their
numbers. A definition that does not fit its fingerprint was not written by ``holdfast lock``; it is
refused: its server may never have offered it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from holdfast._core.files import (
    RefusedFileError,
    locked,
    read_bytes,
    reason,
    resolve_output,
    write_atomic,
)
from holdfast._core.text import label, quote, show_json, visible, visible_json
from holdfast.errors import ValidationError
from holdfast.lock.changes import ALL
from holdfast.lock.commands import quote as shell_quote
from holdfast.lock.fingerprint import definition, fingerprint, skill_definition
from holdfast.schema.types import canonical
from holdfast.types.skills import Skill
from holdfast.types.tools import Tool

VERSION: Final = 1
NAME: Final = "holdfast.lock"
MOST_BYTES: Final = 64 * 2**20

PathLike: TypeAlias = "str | os.PathLike[str]"


class Locked(Struct, frozen=True):
    """A tool or a skill as it was seen."""

    definition: dict[str, Any]
    fingerprint: str


class LockedServer(Struct, frozen=True):
    """A server as it was seen: its instructions, all of its tools and listed skills."""

    instructions: str | None = None
    tools: dict[str, Locked] = field(default_factory=dict)
    capabilities: dict[str, Any] | None = None
    """What the client had declared: servers list other tools to other clients."""
    skills: dict[str, Locked] = field(default_factory=dict)
    """By URI: the frontmatter, and every file with digest and size."""

    @classmethod
    def of(
        cls,
        tools: Iterable[Tool],
        instructions: str | None = None,
        capabilities: dict[str, Any] | None = None,
        skills: Iterable[Skill] = (),
    ) -> LockedServer:
        """Return the entry of a server that offers these tools and skills now."""
        locked = {name: Locked(one, fingerprint(one)) for name, one in definitions(tools).items()}
        found = {
            uri: Locked(one, fingerprint(one)) for uri, one in skill_definitions(skills).items()
        }
        return cls(instructions, locked, capabilities, found)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the instructions; the tools have their own."""
        return fingerprint(self.instructions)

    @property
    def definitions(self) -> dict[str, dict[str, Any]]:
        """The definitions of its tools, by name."""
        return {name: tool.definition for name, tool in self.tools.items()}


class LockFile(Struct):
    """Servers by name."""

    servers: dict[str, LockedServer] = field(default_factory=dict)


def lock_command(path: PathLike, server: str | None = None, reach: str | None = None) -> str:
    """Return the command that accepts the tools of a server as they are now.

    ``reach`` has the words that lead to the server (see `holdfast.lock.commands`); without it
    the server is a configured one.
    """
    return _command("holdfast lock", path, server, reach)


def check_command(path: PathLike, server: str | None = None, reach: str | None = None) -> str:
    """Return the command that shows how they differ."""
    return _command("holdfast check", path, server, reach)


def _command(verb: str, path: PathLike, server: str | None, reach: str | None) -> str:
    elsewhere = "" if os.fspath(path) == NAME else f" --lock {shell_quote(os.fspath(path))}"
    name = None if server is None else shell_quote(server)
    if reach is None:
        return f"{verb}{elsewhere} {name or 'TARGET'}"
    named = "" if name is None else f" --as {name}"
    return f"{verb}{elsewhere}{named} {reach}"


def definitions(
    tools: Iterable[Tool], known: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the definitions of tools by name; a name listed again for another tool is numbered.

    The order of the list is ignored, so a second tool of a known name cannot replace the first.
    A ``known`` definition keeps its name or number.
    """
    by_name: dict[str, dict[bytes, dict[str, Any]]] = {}
    for tool in tools:
        text, found = _defined(tool)
        by_name.setdefault(tool.name, {})[text] = found
    former = {canonical(one): key for key, one in (known or {}).items()}
    result: dict[str, dict[str, Any]] = {}
    for name, variants in by_name.items():
        # A tool that is really called "add (2)" must not be covered by a second "add".
        keys = {
            key: text
            for text in variants
            if (key := former.get(text)) is not None and (key == name or key not in by_name)
        }
        others = (key for key in _numbered(name) if key == name or key not in by_name)
        free = (key for key in others if key not in keys)
        keys |= {next(free): text for text in sorted(variants) if text not in keys.values()}
        result |= {key: variants[text] for key, text in keys.items()}
    return result


def skill_definitions(skills: Iterable[Skill]) -> dict[str, dict[str, Any]]:
    """The entries of some skills by URI; the order of the files does not count."""
    return {skill.uri: skill_definition(skill) for skill in skills}


def _defined(tool: Tool) -> tuple[bytes, dict[str, Any]]:
    try:
        found = definition(tool)
        return canonical(found), found
    except RecursionError:
        name = label(tool.name)
        raise ValidationError(f"tool {name}: its schema is nested too deep") from None


def _numbered(name: str) -> Iterator[str]:
    """``add``, ``add (2)``, ``add (3)`` and so on."""
    yield name
    for number in count(2):
        yield f"{name} ({number})"


# Reading


def read(path: PathLike) -> LockFile:
    """Read a lock file. Raises ValidationError with the place of a fault."""
    raw = _load(Path(path))
    servers = _servers(raw, path)
    return LockFile({name: _server(entry, path, name) for name, entry in servers.items()})


class _FaultError(Exception):
    """JSON that a lock file does not allow."""


def _load(path: Path) -> Any:
    try:
        text = read_bytes(path, MOST_BYTES).decode()
    except FileNotFoundError:
        advice = f"make it with: {lock_command(path)}"
        raise ValidationError(f"{_shown(path)}: there is no such lock file; {advice}") from None
    except UnicodeDecodeError:
        raise ValidationError(f"{_shown(path)}: is not UTF-8 text; {_mend(path)}") from None
    except (OSError, ValueError) as error:
        why = reason(error)
        failed = why if isinstance(error, RefusedFileError) else f"cannot be read: {why}"
        raise ValidationError(f"{_shown(path)}: {failed}") from error
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (_FaultError, ValueError, RecursionError) as error:
        why = "it has marks of a merge" if "\n<<<<<<<" in f"\n{text}" else _why(error)
        raise ValidationError(f"{_shown(path)}: is not sound JSON: {why}; {_mend(path)}") from None


def _mend(path: PathLike) -> str:
    return f"restore it, or delete it and lock its servers again: {lock_command(path)}"


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a name that stands twice: reviewers may have read the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _FaultError(f"{quote(twice)} stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise _FaultError(f"{name} is no JSON number")


def _servers(raw: Any, path: PathLike) -> dict[str, Any]:
    whole = _dict(raw, path, "the file")
    version = whole.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise _wrong(path, "version", f"must be the number {VERSION}")
    if version != VERSION:
        later = "a later Holdfast wrote it: update this one" if version > VERSION else _mend(path)
        raise _wrong(path, "version", f"is {version}, and only {VERSION} is understood; {later}")
    _keys(whole, {"servers", "version"}, path, "the file")
    return _dict(whole.get("servers"), path, "servers")


def _server(raw: Any, path: PathLike, name: str) -> LockedServer:
    place = f"servers.{label(name)}"
    entry = _dict(raw, path, place)
    known = {"capabilities", "fingerprint", "instructions", "skills", "tools"}
    _keys(entry, known, path, place)
    capabilities = entry.get("capabilities")
    if capabilities is not None:
        _dict(capabilities, path, f"{place}.capabilities")
    instructions = entry.get("instructions")
    if not (instructions is None or isinstance(instructions, str)):
        raise _wrong(path, f"{place}.instructions", "must be a text or null")
    if entry.get("fingerprint") != _print(instructions):
        raise _edited(path, f"{place}.instructions")
    tools = _dict(entry.get("tools"), path, f"{place}.tools")
    locked = {key: _tool(tools[key], path, place, key) for key in tools}
    skills = _dict(entry.get("skills", {}), path, f"{place}.skills")
    pinned = {uri: _locked(skills[uri], path, f"{place}.skills.{label(uri)}") for uri in skills}
    return LockedServer(instructions, locked, capabilities, pinned)


def _locked(raw: Any, path: PathLike, place: str) -> Locked:
    entry = _dict(raw, path, place)
    _keys(entry, {"definition", "fingerprint"}, path, place)
    found = _dict(entry.get("definition"), path, f"{place}.definition")
    printed = entry.get("fingerprint")
    if not isinstance(printed, str):
        raise _wrong(path, f"{place}.fingerprint", "must be a text")
    if printed != _print(found):
        raise _edited(path, f"{place}.definition")
    return Locked(found, printed)


def _tool(raw: Any, path: PathLike, server: str, name: str) -> Locked:
    place = f"{server}.tools.{label(name)}"
    locked = _locked(raw, path, place)
    found = locked.definition
    _keys(found, {"name", *ALL}, path, f"{place}.definition")
    if not _is_key_of(name, found.get("name")):
        raise _wrong(path, f"{place}.definition.name", "must be the name that it is listed under")
    for key in ("title", "description"):
        if not isinstance(found.get(key, ""), str):
            raise _wrong(path, f"{place}.definition.{key}", "must be a text")
    return locked


def _is_key_of(key: str, name: Any) -> bool:
    if not isinstance(name, str):
        return False
    return key == name or re.fullmatch(r" \([1-9]\d*\)", key[len(name) :]) is not None


def _print(value: Any) -> str | None:
    try:
        return fingerprint(value)
    except (ValueError, RecursionError, OverflowError):
        return None


def _dict(value: Any, path: PathLike, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, place, f"must be an object, not {show_json(value, 40)}")
    return value


def _keys(entry: Mapping[str, Any], allowed: set[str], path: PathLike, place: str) -> None:
    for key in entry:
        if key not in allowed:
            raise _wrong(path, place, f"has {quote(key, 40)}, which does not belong there")


def _wrong(path: PathLike, place: str, what: str) -> ValidationError:
    advice = f"undo the edit, or lock the server again: {lock_command(path)}"
    return ValidationError(f"{_shown(path)}: {place}: {what}; {advice}")


def _edited(path: PathLike, place: str) -> ValidationError:
    return _wrong(path, place, "does not fit its fingerprint: it was edited by hand")


def _shown(path: PathLike) -> str:
    return visible(os.fspath(path), 300)


# Writing


def write(path: PathLike, file: LockFile, *, keep_others: bool = True) -> bool:
    """Put the servers of ``file`` into the lock file, all at once; False if nothing changed.

    Entries of other servers stay as they are, word for word, unless ``keep_others`` is False.
    """
    target = Path(_output(path))
    entries = {name: _entry(server) for name, server in file.servers.items()}
    try:
        # Two that write at once take turns, so that each keeps the other's entry.
        with locked(target.parent, folder=True):
            exists = target.exists()
            if keep_others and exists:
                entries = {**_servers(_load(target), path), **entries}
            data = _render(entries)
            if exists and read_bytes(target, MOST_BYTES) == data:
                return False
            write_atomic(target, data)
    except OSError as error:
        raise ValidationError(f"{_shown(path)}: cannot be written: {reason(error)}") from error
    return True


def _output(path: PathLike) -> str:
    try:
        return resolve_output(path)
    except OSError as error:
        raise ValidationError(f"{_shown(path)}: cannot be written: {reason(error)}") from error


def render(file: LockFile) -> bytes:
    """Return the bytes of a lock file."""
    return _render({name: _entry(server) for name, server in file.servers.items()})


def _entry(server: LockedServer) -> dict[str, Any]:
    declared = server.capabilities
    return {
        **({} if declared is None else {"capabilities": declared}),
        "fingerprint": server.fingerprint,
        "instructions": server.instructions,
        **({"skills": _pinned(server.skills)} if server.skills else {}),
        "tools": _pinned(server.tools),
    }


def _pinned(entries: Mapping[str, Locked]) -> dict[str, Any]:
    return {
        name: {"definition": one.definition, "fingerprint": one.fingerprint}
        for name, one in entries.items()
    }


def _render(servers: dict[str, Any]) -> bytes:
    whole = {"version": VERSION, "servers": servers}
    try:
        text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValidationError("a schema is nested too deep for a lock file") from None
    return (visible_json(text) + "\n").encode()

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
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
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
from holdfast.lock.fingerprint import definition, fingerprint
from holdfast.schema.types import canonical
from holdfast.types.skills import Skill
from holdfast.types.tools import Tool

VERSION: Final = 1
NAME: Final = "holdfast.lock"
MOST_BYTES: Final = 64 * 2**20

PathLike: TypeAlias = "str | os.PathLike[str]"


class LockedServer(Struct, frozen=True):
    """A server as it was seen: its instructions, all of its tools and listed skills."""

    instructions: str | None = None
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The definitions of its tools, by name."""
    capabilities: dict[str, Any] | None = None
    """The capabilities that the client had declared: servers list tools by them."""
    skills: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        return cls(instructions, definitions(tools), capabilities, skill_definitions(skills))


class LockFile(Struct):
    """Servers by name."""

    servers: dict[str, LockedServer] = field(default_factory=dict)


def lock_command(
    path: PathLike, server: str | None = None, reach: str | None = None, *, verb: str = "lock"
) -> str:
    """Return the command that accepts the tools of a server as they are now, or compares them.

    ``reach`` leads to the server (see `holdfast.lock.commands`); without it, it is configured.
    """
    elsewhere = "" if os.fspath(path) == NAME else f" --lock {shell_quote(os.fspath(path))}"
    name = None if server is None else shell_quote(server)
    if reach is None:
        return f"holdfast {verb}{elsewhere} {name or 'TARGET'}"
    as_name = "" if name is None else f" --as {name}"
    return f"holdfast {verb}{elsewhere}{as_name} {reach}"


def definitions(
    tools: Iterable[Tool], locked: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the definitions of tools by name; a name listed again for another tool is numbered.

    The order of the list is ignored, and ``known`` definitions come first: a second tool of a
    known name cannot replace the first.
    """
    by_name: dict[str, dict[bytes, dict[str, Any]]] = {}
    for tool in tools:
        tool_definition = definition(tool)
        by_name.setdefault(tool.name, {})[canonical(tool_definition)] = tool_definition
    former = {canonical(former_definition) for former_definition in (locked or {}).values()}
    result: dict[str, dict[str, Any]] = {}
    for name, variants in by_name.items():
        # A tool that is really called "add (2)" must not be covered by a second "add".
        numbered = (key for number in count(2) if (key := f"{name} ({number})") not in by_name)
        texts = sorted(variants, key=lambda text: (text not in former, text))
        result |= {
            key: variants[text] for text, key in zip(texts, chain([name], numbered), strict=False)
        }
    return result


def skill_definitions(skills: Iterable[Skill]) -> dict[str, dict[str, Any]]:
    """Return all that an approval of skills is bound to, by URI: frontmatter, digests and sizes.

    The order of the files does not count.
    """
    by_uri: dict[str, dict[str, Any]] = {}
    for skill in skills:
        files: Any = "dynamic"
        if not isinstance(skill.resources, str):
            files = {
                file.uri: {"digest": file.digest, "size": file.size} for file in skill.resources
            }
        by_uri[skill.uri] = {"frontmatter": skill.frontmatter, "resources": files}
    return by_uri


# Reading


def read(path: PathLike) -> LockFile:
    """Read a lock file. Raises ValidationError with the place of a fault."""
    servers = _load(path)
    with _advising(path):
        return LockFile(
            {name: _server(entry, f"servers.{label(name)}") for name, entry in servers.items()}
        )


class _FaultError(Exception):
    """A fault in a lock file, with its place."""


@contextmanager
def _advising(path: PathLike) -> Iterator[None]:
    try:
        yield
    except _FaultError as error:
        advice = f"undo the edit, or lock the server again: {lock_command(path)}"
        raise ValidationError(f"{_shown(path)}: {error}; {advice}") from None


def _load(path: PathLike) -> dict[str, Any]:
    """Return the servers of a lock file, not checked yet."""
    mend = f"restore it, or delete it and lock its servers again: {lock_command(path)}"
    raw = _parse(path, _read_text(path, mend), mend)
    with _advising(path):
        version = _object(raw, "the file").get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise _FaultError(f"version: must be the number {VERSION}")
        if version != VERSION:
            later = "a later Holdfast wrote it: update this one" if version > VERSION else mend
            raise _FaultError(f"version: is {version}, and only {VERSION} is understood; {later}")
        whole = _object(raw, "the file", {"servers", "version"})
        return _object(whole.get("servers"), "servers")


def _read_text(path: PathLike, mend: str) -> str:
    try:
        return read_bytes(path, MOST_BYTES).decode()
    except FileNotFoundError:
        advice = f"make it with: {lock_command(path)}"
        raise ValidationError(f"{_shown(path)}: there is no such lock file; {advice}") from None
    except UnicodeDecodeError:
        raise ValidationError(f"{_shown(path)}: is not UTF-8 text; {mend}") from None
    except (OSError, ValueError) as error:
        why = reason(error)
        failed = why if isinstance(error, RefusedFileError) else f"cannot be read: {why}"
        raise ValidationError(f"{_shown(path)}: {failed}") from error


def _parse(path: PathLike, text: str, mend: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (_FaultError, ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"{error.msg} (line {error.lineno}, column {error.colno})"
        if "\n<<<<<<<" in f"\n{text}":
            why = "it has marks of a merge"
        raise ValidationError(f"{_shown(path)}: is not sound JSON: {why}; {mend}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a duplicate key: reviewers may have read the other one."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _FaultError(f"{quote(twice)} stands twice in one object")
    return members


def _no_constant(name: str) -> Any:
    raise _FaultError(f"{name} is no JSON number")


def _server(raw: Any, place: str) -> LockedServer:
    allowed = {"capabilities", "fingerprint", "instructions", "skills", "tools"}
    entry = _object(raw, place, allowed)
    instructions, capabilities = entry.get("instructions"), entry.get("capabilities")
    if not (instructions is None or isinstance(instructions, str)):
        raise _FaultError(f"{place}.instructions: must be a text or null")
    _require_fingerprint(entry.get("fingerprint"), instructions, f"{place}.instructions")
    if capabilities is not None:
        _object(capabilities, f"{place}.capabilities")
    tools = _locked(entry.get("tools"), f"{place}.tools", {"name", *ALL})
    for key, tool in tools.items():
        # A second tool of a name has a number.
        numbered = rf"{re.escape(str(tool.get('name')))}( \([1-9]\d*\))?"
        if not re.fullmatch(numbered, key):
            at = f"{place}.tools.{label(key)}.definition.name"
            raise _FaultError(f"{at}: must be the name that it is listed under")
    skills = _locked(entry.get("skills", {}), f"{place}.skills")
    return LockedServer(instructions, tools, capabilities, skills)


def _locked(
    raw: Any, place: str, fields: Collection[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the definitions of tools or skills, if each has the fingerprint that it should."""
    entries: dict[str, dict[str, Any]] = {}
    for key, item in _object(raw, place).items():
        at = f"{place}.{label(key)}"
        entry = _object(item, at, {"definition", "fingerprint"})
        entries[key] = _object(entry.get("definition"), f"{at}.definition", fields)
        _require_fingerprint(entry.get("fingerprint"), entries[key], f"{at}.definition")
    return entries


def _require_fingerprint(printed: Any, value: Any, place: str) -> None:
    try:
        if printed == fingerprint(value):
            return
    except (ValueError, RecursionError, OverflowError):
        pass  # no server could have offered it
    raise _FaultError(f"{place}: does not fit its fingerprint: it was edited by hand")


def _object(value: Any, place: str, allowed: Collection[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _FaultError(f"{place}: must be an object, not {show_json(value, 40)}")
    for key in value:
        if allowed is not None and key not in allowed:
            raise _FaultError(f"{place}: has {quote(key, 40)}, which does not belong there")
    return value


def _shown(path: PathLike) -> str:
    return visible(os.fspath(path), 300)


# Writing


def write(path: PathLike, file: LockFile, *, keep_others: bool = True) -> bool:
    """Put the servers of ``file`` into the lock file, all at once; False if nothing changed.

    Entries of other servers stay as they are, word for word, unless ``keep_others`` is False.
    """
    entries = {name: _entry(server) for name, server in file.servers.items()}
    try:
        target = Path(resolve_output(path))
        # Two that write at once take turns, so that each keeps the other's entry.
        with locked(target.parent, folder=True):
            exists = target.exists()
            if keep_others and exists:
                entries = {**_load(path), **entries}
            data = _render(entries)
            if exists and read_bytes(target, MOST_BYTES) == data:
                return False
            write_atomic(target, data)
    except OSError as error:
        raise ValidationError(f"{_shown(path)}: cannot be written: {reason(error)}") from error
    return True


def render(file: LockFile) -> bytes:
    """Return the bytes of a lock file."""
    return _render({name: _entry(server) for name, server in file.servers.items()})


def _entry(server: LockedServer) -> dict[str, Any]:
    skills, tools = (
        {
            name: {"definition": definition, "fingerprint": fingerprint(definition)}
            for name, definition in by_name.items()
        }
        for by_name in (server.skills, server.definitions)
    )
    return {
        **({} if server.capabilities is None else {"capabilities": server.capabilities}),
        "fingerprint": fingerprint(server.instructions),
        "instructions": server.instructions,
        **({"skills": skills} if skills else {}),
        "tools": tools,
    }


def _render(servers: dict[str, Any]) -> bytes:
    whole = {"version": VERSION, "servers": servers}
    try:
        text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValidationError("a schema is nested too deep for a lock file") from None
    return (visible_json(text) + "\n").encode()

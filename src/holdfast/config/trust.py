"""Approvals: a server of a project's own file is not used before its user has approved it.

An approval is bound to the file's path, the server's name and a hash over everything that decides
what runs, what is sent where and how results are treated: every setting whose row gives no reason
(`Setting.unbound`), the inputs, the content of the file of variables and of certificates in the
project, and the project's folder.

The hash is over the text before variables are expanded: authors of the file control the text, the
user controls the variables, and a new token needs no new approval. The program of a command is not
hashed: approving ``node server.js`` approves every later content of that file.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from holdfast._core.files import locked, make_private_folder, read_bytes, reason, write_atomic
from holdfast._core.text import visible
from holdfast.config import files
from holdfast.config.entry import ServerEntry, texts
from holdfast.config.environment import ConfigEnvironment
from holdfast.config.files import EnvFile, UnreadableFileError
from holdfast.config.resolution import project_contents, read_env_file
from holdfast.errors import StateError, TrustError

TrustVerdict = Literal["own", "trusted", "untrusted", "changed"]

_FORM: Final = "holdfast trust 2"
_MOST_SHOWN: Final = 5


class TrustStatus(Struct, frozen=True, kw_only=True):
    """The approval of an entry.

    ``own``: the user's own, or named by the user. ``trusted``: approved in this form.
    ``untrusted``: never approved. ``changed``: approved in another form.
    """

    verdict: TrustVerdict
    changes: tuple[str, ...] = ()
    """Differences from the approved entry, field by field."""
    problem: str | None = None
    """Why the approvals could not be read."""

    @property
    def ok(self) -> bool:
        """True if the entry may be used."""
        return self.verdict in ("own", "trusted")


# What an approval is bound to


def bound_parts(entry: ServerEntry, env_file: EnvFile | None) -> dict[str, str]:
    """Return everything that an approval is bound to, by its place."""
    found = {"kind": entry.kind, "folder": entry.source.workspace}
    found.update((field, text) for row, field, text in texts(entry) if not row.unbound)
    if entry.env_file is not None:
        found["envFile (content)"] = _digest(None if env_file is None else env_file.data)
    for name, content in project_contents(entry):
        found[f"{name} (content)"] = _digest(content)
    for name, asked in entry.inputs.items():
        fields = [getattr(asked, field) for field in asked.__struct_fields__]
        found[f"inputs.{name}"] = json.dumps(fields)
    return found


def fingerprint(found: Mapping[str, str]) -> str:
    """Return the hash that an approval keeps."""
    text = json.dumps([_FORM, found], sort_keys=True, separators=(",", ":"))
    return "sha256:" + _digest(text.encode())


def _digest(data: bytes | None) -> str:
    import hashlib

    return "none" if data is None else hashlib.sha256(data).hexdigest()


def _short(text: str) -> str:
    """Return enough to see that a field has changed, without keeping its content."""
    return _digest(text.encode("utf-8", "surrogatepass"))[:16]


# Judging


def require(entry: ServerEntry, env_file: EnvFile | None) -> None:
    """Raise TrustError unless the entry of a project's file may be used."""
    found = ApprovalStore(entry.source.environment).status(entry, env_file)
    if not found.ok:
        raise TrustError(refusal(entry, found), state="untrusted", data=found)


def refusal(entry: ServerEntry, found: TrustStatus) -> str:
    """Return why an entry is not used, and the command that approves it."""
    subject = f"server {visible(entry.name)!r} of the project's {visible(entry.source.file)}"
    if found.verdict == "changed":
        changes = ", ".join(found.changes[:_MOST_SHOWN])
        what = f"{subject} has changed since it was approved ({changes})"
    else:
        what = f"{subject} is not trusted: a project's file is not used before you approve it"
    trouble = "" if found.problem is None else f" ({found.problem})"
    own = next((source for source in entry.hides if source.scope == "user"), None)
    hidden = "" if own is None else f". It hides your own of {visible(str(own))}"
    look, approve_it = _command("explain", entry.name), approving(entry.name)
    return f"{what}{trouble}{hidden}. Look: {look}. Approve: {approve_it}"


def approving(*names: str) -> str:
    """Return the command that approves servers; safe to paste, whatever their names are."""
    return _command("trust", *names)


def _command(verb: str, *names: str) -> str:
    dashes = "-- " if any(name.startswith("-") for name in names) else ""
    return f"holdfast config {verb} {dashes}{shlex.join(names)}"


def _changes(before: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    after = {field: _short(text) for field, text in found.items()}
    for field in sorted({*before, *after}, key=_by_place):
        shown = visible(field, 120)
        if field not in before:
            yield f"{shown} is new"
        elif field not in after:
            yield f"{shown} is gone"
        elif before[field] != after[field]:
            yield f"{shown} is different"


def _by_place(field: str) -> tuple[str, int, str]:
    head, _, rest = field.partition("[")
    number = rest.rstrip("]")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    return head, int(number) if is_number else -1, field


# Keeping

Approvals = dict[str, dict[str, Any]]
"""By file and server: the hash, and a short hash of each part."""


def approvals_file(environment: ConfigEnvironment) -> Path:
    """Return the file that approvals are kept in: the user's, not the project's."""
    return environment.state_home / "holdfast" / "trust.json"


class ApprovalStore:
    """The approvals of one user. Read once; changes go to the file as it is then."""

    def __init__(self, environment: ConfigEnvironment) -> None:
        self._path = approvals_file(environment)

    @cached_property
    def _approvals(self) -> Approvals | UnreadableFileError:
        try:
            return _read(self._path)
        except UnreadableFileError as error:
            return error

    def status(self, entry: ServerEntry, env_file: EnvFile | None = None) -> TrustStatus:
        """Return how an entry stands with the approvals."""
        if entry.source.scope != "project":
            return TrustStatus(verdict="own")
        approvals = self._approvals
        if isinstance(approvals, UnreadableFileError):
            return TrustStatus(verdict="untrusted", problem=str(approvals))
        approved = approvals.get(_key(entry), {}).get(entry.name)
        if approved is None:
            return TrustStatus(verdict="untrusted")
        found = bound_parts(entry, env_file or read_env_file(entry))
        if approved["hash"] == fingerprint(found):
            return TrustStatus(verdict="trusted")
        return TrustStatus(verdict="changed", changes=tuple(_changes(approved["parts"], found)))

    def approve(self, entries: Mapping[str, ServerEntry], seen: Mapping[str, str]) -> None:
        """Approve entries of project files, all or none.

        Args:
            entries: By name.
            seen: The fingerprint of what a person was shown, by name. Nothing else is approved.
        """
        kept = {}
        for name, entry in entries.items():
            if entry.source.scope != "project":
                continue
            parts = bound_parts(entry, read_env_file(entry))
            if seen.get(name, fingerprint(parts)) != fingerprint(parts):
                raise StateError(f"server {visible(name)!r} has changed since it was shown")
            short = {field: _short(text) for field, text in parts.items()}
            kept[name] = {"hash": fingerprint(parts), "parts": short}
        if not kept:
            return
        with self._changing() as approvals:
            for name, approval in kept.items():
                approvals.setdefault(_key(entries[name]), {})[name] = approval

    def revoke(self, entry: ServerEntry) -> bool:
        """Take an approval back; False if there was none."""
        with self._changing() as approvals:
            servers = approvals.get(_key(entry), {})
            found = servers.pop(entry.name, None) is not None
            if not servers:
                approvals.pop(_key(entry), None)
        return found

    @contextmanager
    def _changing(self) -> Iterator[Approvals]:
        """Read, change and replace in one go; two at once take turns."""
        try:
            make_private_folder(self._path.parent)
            with locked(self._path.with_name("trust.lock")):
                approvals = _read(self._path)
                yield approvals
                document = {"form": _FORM, "approvals": approvals}
                text = json.dumps(document, indent=1, sort_keys=True) + "\n"
                write_atomic(self._path, text.encode(), private=True)
        except UnreadableFileError as error:
            raise StateError(f"cannot change the approvals: {error}") from None
        except OSError as error:
            where = visible(str(self._path))
            raise StateError(f"cannot change the approvals: {where}: {reason(error)}") from None
        self.__dict__.pop("_approvals", None)


def _key(entry: ServerEntry) -> str:
    return os.path.realpath(entry.source.file)


def _read(path: Path) -> Approvals:
    try:
        data = read_bytes(path, files.USER_BYTES, owned=True)
    except FileNotFoundError:
        return {}
    except OSError as error:
        # An approval that somebody else could have written is none.
        raise UnreadableFileError(f"{visible(str(path))} {reason(error)}") from None
    document = files.parse(str(path), data, files.own_budget())
    if document.get("form") != _FORM:
        raise UnreadableFileError(f"{visible(str(path))} is not a file of approvals")
    return _well_formed(document.get("approvals"))


def _well_formed(approvals: Any) -> Approvals:
    """Return what has the right shape; the rest was never approved."""
    found: Approvals = {}
    for file, servers in approvals.items() if isinstance(approvals, dict) else ():
        for name, kept in servers.items() if isinstance(servers, dict) else ():
            fields = (kept.get("hash"), kept.get("parts")) if isinstance(kept, dict) else ()
            if [type(field) for field in fields] == [str, dict]:
                found.setdefault(file, {})[name] = kept
    return found

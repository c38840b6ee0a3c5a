"""Approval: what a project's own file says is data until its user has said yes to it.

An approval is bound to the file's path, the server's name and a hash over everything that says
what runs, where it connects, what it is given and which files are touched: command, arguments,
environment (names and values), file of variables (its path and its content), inherited
variables, folder, URL, headers, transport, proxy and certificates, lock, log, allowed and denied
tools, and the defaults of inputs. Not bound: timeouts, backoff, limits, the protocol pin.

The hash is over the text as it stands in the file, before variables are expanded. Whoever
writes the file can change the text, so every change of it counts; what the variables hold is the
user's own, and a new token needs no new approval. The program that a command names is not
hashed: approving ``node server.js`` approves what that file will be.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from holdfast.config import files
from holdfast.config.entry import ServerEntry, texts
from holdfast.config.envfile import EnvFile
from holdfast.config.environment import Surroundings
from holdfast.config.files import UnreadableError
from holdfast.config.problems import visible
from holdfast.config.resolution import read_env_file
from holdfast.errors import StateError, TrustError

Verdict = Literal["own", "trusted", "untrusted", "changed"]

_FORM: Final = "holdfast trust 1"
_UNBOUND: Final = ("protocol",)


class Standing(Struct, frozen=True, kw_only=True):
    """Whether an entry may be used, and why.

    ``own``: it is the user's own, or was named by them. ``trusted``: approved as it is.
    ``untrusted``: never approved. ``changed``: approved, and different since.
    """

    verdict: Verdict
    changes: tuple[str, ...] = ()
    """What is different from what was approved, field by field."""
    problem: str | None = None
    """Why the approvals could not be read."""

    @property
    def ok(self) -> bool:
        return self.verdict in ("own", "trusted")


# What an approval is bound to


def parts(entry: ServerEntry, env_file: EnvFile | None) -> dict[str, str]:
    """Everything that counts, by field."""
    settings = entry.settings
    found = {field: text for field, text in texts(entry) if field not in _UNBOUND}
    found["kind"] = entry.kind
    found["transport"] = entry.transport
    if entry.env_file is not None:
        content = None if env_file is None else env_file.data
        found["envFile (content)"] = "none" if content is None else _digest(content)
    if settings.inherit_env is True:
        found["inherit_env"] = "all"
    if settings.allow is not None:
        found["allow"] = str(len(settings.allow))
    if settings.lock is not None:
        found["lock.mode"] = settings.lock.mode
    for name, asked in entry.inputs.items():
        found[f"inputs.{name}"] = json.dumps([asked.type, asked.default, list(asked.options)])
    return found


def fingerprint(found: Mapping[str, str]) -> str:
    text = json.dumps([_FORM, found], sort_keys=True, separators=(",", ":"))
    return "sha256:" + _digest(text.encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _short(text: str) -> str:
    """Enough to see that a field is another one, without keeping what it says."""
    return _digest(text.encode("utf-8", "surrogatepass"))[:16]


# Judging


def standing(entry: ServerEntry, env_file: EnvFile | None = None) -> Standing:
    """How an entry stands with the approvals as they are on disk now."""
    if entry.source.scope != "project":
        return Standing(verdict="own")
    try:
        approvals = _read(approvals_file(entry.source.around))
    except UnreadableError as error:
        return Standing(verdict="untrusted", problem=str(error))
    approved = approvals.get(_key(entry), {}).get(entry.name)
    if approved is None:
        return Standing(verdict="untrusted")
    found = parts(entry, env_file or read_env_file(entry))
    if approved["hash"] == fingerprint(found):
        return Standing(verdict="trusted")
    return Standing(verdict="changed", changes=tuple(_changes(approved["parts"], found)))


def _changes(before: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    after = {field: _short(text) for field, text in found.items()}
    for field in sorted({*before, *after}, key=_by_place):
        if field not in before:
            yield f"{visible(field)} is new"
        elif field not in after:
            yield f"{visible(field)} is gone"
        elif before[field] != after[field]:
            yield f"{visible(field)} is different"


def _by_place(field: str) -> tuple[str, int, str]:
    head, _, rest = field.partition("[")
    number = rest.rstrip("]")
    return head, int(number) if number.isdecimal() else -1, field


def require(entry: ServerEntry, env_file: EnvFile | None) -> None:
    """Raise TrustError unless the entry may be used."""
    found = standing(entry, env_file)
    if not found.ok:
        raise TrustError(refusal(entry, found), state="untrusted", data=found)


def refusal(entry: ServerEntry, found: Standing) -> str:
    """Why not, and the command that approves."""
    subject = f"server {visible(entry.name)!r} of the project's {visible(entry.source.file)}"
    if found.verdict == "changed":
        what = f"{subject} has changed since it was approved ({', '.join(found.changes[:5])})"
    else:
        what = f"{subject} is not trusted: a project's file is not used before you approve it"
    trouble = "" if found.problem is None else f" ({found.problem})"
    own = next((source for source in entry.hides if source.scope == "user"), None)
    hidden = "" if own is None else f". It hides your own of {visible(str(own))}"
    look, approve_it = _command("explain", entry), approving(entry)
    return f"{what}{trouble}{hidden}. Look: {look}. Approve: {approve_it}"


def approving(entry: ServerEntry) -> str:
    """The command that approves an entry; safe to paste, whatever its name is."""
    return _command("trust", entry)


def _command(verb: str, entry: ServerEntry) -> str:
    dashes = "-- " if entry.name.startswith("-") else ""
    return f"holdfast config {verb} {dashes}{shlex.quote(entry.name)}"


# Keeping


def approvals_file(around: Surroundings) -> Path:
    return around.state_home / "holdfast" / "trust.json"


def approve(entry: ServerEntry, seen: str | None = None) -> Standing:
    """Approve an entry as it is; returns how it stood before.

    With ``seen``, the fingerprint of what a person was shown, nothing else is approved.
    """
    before = standing(entry)
    if entry.source.scope != "project":
        return before
    found = parts(entry, read_env_file(entry))
    if seen is not None and seen != fingerprint(found):
        raise StateError(f"server {visible(entry.name)!r} has changed since it was shown")
    kept = {
        "hash": fingerprint(found),
        "parts": {field: _short(text) for field, text in found.items()},
    }
    with _changing(entry.source.around) as approvals:
        approvals.setdefault(_key(entry), {})[entry.name] = kept
    return before


def revoke(entry: ServerEntry) -> bool:
    """Take an approval back; False if there was none."""
    with _changing(entry.source.around) as approvals:
        servers = approvals.get(_key(entry), {})
        found = servers.pop(entry.name, None) is not None
        if not servers:
            approvals.pop(_key(entry), None)
    return found


def _key(entry: ServerEntry) -> str:
    return os.path.realpath(entry.source.file)


Approvals = dict[str, dict[str, Any]]


def _read(path: Path) -> Approvals:
    data = files.read(str(path), limit=files.MOST_BYTES_OWN)
    if data is None:
        return {}
    _check_owner(path)
    document = files.parse(str(path), data)
    if document.get("form") != _FORM:
        raise UnreadableError(f"{path} is not a file of approvals")
    return _sound(document.get("approvals"))


def _sound(approvals: Any) -> Approvals:
    """What has the right shape; the rest was never approved."""
    found: Approvals = {}
    for file, servers in approvals.items() if isinstance(approvals, dict) else ():
        for name, kept in servers.items() if isinstance(servers, dict) else ():
            fields = (kept.get("hash"), kept.get("parts")) if isinstance(kept, dict) else ()
            if [type(field) for field in fields] == [str, dict]:
                found.setdefault(file, {})[name] = kept
    return found


def _check_owner(path: Path) -> None:
    """An approval that somebody else could have written is none."""
    facts = os.stat(path)
    if os.name == "posix" and facts.st_uid not in (os.getuid(), 0):
        raise UnreadableError(f"{path} belongs to another user; it is not used")
    if os.name == "posix" and facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnreadableError(f"{path} can be written by others; it is not used (chmod 600)")


@contextmanager
def _changing(around: Surroundings) -> Iterator[Approvals]:
    """Read, change and replace in one go; two at once wait for one another."""
    path = approvals_file(around)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone(path.parent):
        try:
            approvals = _read(path)
        except UnreadableError as error:
            raise StateError(f"cannot change the approvals: {error}") from None
        yield approvals
        _replace(path, {"form": _FORM, "approvals": approvals})


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, value: Any) -> None:
    """Whole or not at all, and for nobody else to read."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".trust-")  # 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise

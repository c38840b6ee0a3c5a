"""Compare a server with its lock file: tools that were never reviewed are not called.

A server can pass every review and change afterwards: another description, one more parameter, a
new tool. A `Lock` compares each list of tools that a client gets with the lock file, before any
tool of it is called.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

from holdfast._core.text import LIMIT, join_words, label, quote, visible
from holdfast.errors import DriftError, HoldfastError, ValidationError
from holdfast.lock.changes import Changes, compare
from holdfast.lock.lockfile import (
    NAME,
    LockedServer,
    LockFile,
    PathLike,
    definitions,
    lock_command,
    read,
    render,
    skill_definitions,
    write,
)
from holdfast.policies import one_of
from holdfast.types.skills import Skill
from holdfast.types.tools import Tool

__all__ = [
    "Lock",
    "LockFile",
    "LockedServer",
    "compare_locked",
    "definitions",
    "read",
    "render",
    "write",
]

log: logging.Logger = logging.getLogger("holdfast")

Mode: TypeAlias = Literal["block", "warn", "off"]
Check: TypeAlias = Callable[[Sequence[Tool], "str | None"], None]
SkillCheck: TypeAlias = Callable[[Sequence[Skill]], None]

MOST_WARNINGS: Final = 1_000
"""Warnings that are remembered, so that each is logged once."""


class Lock:
    """The reaction to a server that differs from its lock file.

    Args:
        path: The lock file.
        mode: ``"block"`` refuses its tools with a `DriftError`, ``"warn"`` logs the difference
            once, ``"off"`` checks nothing.
        server: The entry of the file. Default: the one with the client's name, or the only one.
    """

    def __init__(
        self, path: PathLike = NAME, mode: Mode = "block", server: str | None = None
    ) -> None:
        one_of("Lock(mode=…)", mode, ("block", "warn", "off"))
        self.path: str = os.fspath(path)
        self.mode = mode
        self.server = server
        self._client: str | None = None
        self._reach: str | None = None
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        server = "" if self.server is None else f", server={self.server!r}"
        return f"Lock({self.path!r}, mode={self.mode!r}{server})"

    def guard(self, client: str, reach: str | None = None) -> Check:
        """Return `check` for the client of this name; for ``Client.guard_tools``.

        ``reach`` has the words of a command line that lead to the server.
        """
        return self._held(client, reach).check

    def skill_guard(self, client: str, reach: str | None = None) -> SkillCheck:
        """Return the check of skills for the client of this name; for ``Client.guard_skills``."""
        return self._held(client, reach)._check_skills

    def _held(self, client: str, reach: str | None) -> Lock:
        """Return the lock of one client, which has warned of nothing yet."""
        held = Lock(self.path, self.mode, self.server)
        held._client, held._reach = client, reach
        return held

    def capabilities(self, client: str | None) -> dict[str, Any]:
        """Return the capabilities to declare: servers list tools by them."""
        try:
            file = read(self.path)
            entry = file.servers[entry_name(file, self.server, client, self.path)]
        except ValidationError:
            return {}  # `check` reports it
        return entry.capabilities or {}

    def check(self, tools: Sequence[Tool], instructions: str | None = None) -> None:
        """Compare what a server offers now with the file; raise or warn, by the mode."""
        self._check("tools", lambda locked: compare_locked(locked, tools, instructions))

    def _check_skills(self, skills: Sequence[Skill]) -> None:
        for skill in skills if self.mode != "off" else ():
            if skill.dynamic:
                # Skills extension, Dynamic Skills: no persisted approval covers such content.
                self._object(
                    f"skill {quote(skill.uri)} has no digests, so no lock covers what it serves; "
                    "read it with a client that has no lock file"
                )
        now = skill_definitions(skills)

        def compared(locked: LockedServer) -> Changes:
            # Only those that are here: a skill is read by its name, without a list.
            pinned = {uri: skill for uri, skill in locked.skills.items() if uri in now}
            return compare({}, {}, skills=(pinned, now))

        self._check("skills", compared)

    def _check(self, what: str, compared: Callable[[LockedServer], Changes]) -> None:
        if self.mode == "off":
            return
        try:
            file = read(self.path)
            name = entry_name(file, self.server, self._client, self.path, self._reach)
            changes = compared(file.servers[name])
        except ValidationError as error:
            server = self.server or self._client
            command = lock_command(self.path, server, self._reach)
            text = with_command(error, self.path, command)
            self._object(f"drift: its {what} cannot be checked: {text}", cause=error)
            return
        if changes:
            path, listed = self.path, str(changes).replace("\n", "\n  ")
            look = lock_command(path, name, self._reach, verb="check")
            text = (
                f"drift: the server is not as {visible(path, 300)} says; {listed}\n"
                f"Look at it with: {look}\n"
                f"If it is as it should be, accept it with: {lock_command(path, name, self._reach)}"
            )
            self._object(text, changes)

    def _object(
        self, text: str, changes: Changes | None = None, cause: HoldfastError | None = None
    ) -> None:
        who = self._client or self.server
        text = f"{visible(who, LIMIT)}: {text}" if who else text
        if self.mode == "block":
            raise DriftError(text, data=changes) from cause
        if text not in self._warned:
            if len(self._warned) >= MOST_WARNINGS:
                self._warned.clear()
            self._warned.add(text)
            log.warning("%s", text)


def with_command(error: HoldfastError, path: PathLike, command: str) -> str:
    """Return an error of `read`, which does not know how the server is reached, with a command."""
    return str(error).replace(lock_command(path), command)


def compare_locked(
    locked: LockedServer,
    tools: Sequence[Tool],
    instructions: str | None,
    skills: Sequence[Skill] | None = None,
) -> Changes:
    """Return what changed since a server was locked; ``skills`` None: only tools are compared."""
    before = locked.definitions
    return compare(
        before,
        definitions(tools, locked=before),
        instructions=(locked.instructions, instructions),
        skills=({}, {}) if skills is None else (locked.skills, skill_definitions(skills)),
    )


def entry_name(
    file: LockFile,
    server: str | None,
    client: str | None,
    path: str = NAME,
    reach: str | None = None,
) -> str:
    """Return the name of the entry that a client is held to."""
    if server is not None:
        if server in file.servers:
            return server
        raise ValidationError(
            f"{path}: has no server {quote(server)}; it has {_names(file)}; "
            f"{lock_command(path, server, reach)} adds it"
        )
    if client is not None and client in file.servers:
        return client
    if len(file.servers) == 1:
        return next(iter(file.servers))
    nor_by_name = "" if client is None else f", and none named {quote(client)}"
    raise ValidationError(
        f"{path}: which server is meant? It has {_names(file)}{nor_by_name}; "
        f"name one with Lock(…, server=…), or add it with: {lock_command(path, client, reach)}"
    )


def _names(file: LockFile) -> str:
    return join_words([label(name) for name in sorted(file.servers)]) or "no servers"

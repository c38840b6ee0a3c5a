"""``holdfast lock`` and ``holdfast check``: a server's tools, written down and held to."""

from __future__ import annotations

import os
from typing import Any

import click

from holdfast._core.text import counted
from holdfast.cli.completers import SERVER
from holdfast.cli.output import Exit, exit_for
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.errors import HoldfastError, ValidationError

NAME = "holdfast.lock"
AS = click.option("--as", "label", metavar="NAME", help="The server's name in the lock file.")


@click.command(cls=ServerVerb)
@SERVER
@AS
async def lock(target: ServerTarget, server: tuple[str, ...], label: str | None) -> None:
    """Write down a server's tools in a lock file, to be reviewed and committed.

    The file is holdfast.lock, or what --lock names; other servers in it stay. Says what is
    different from what was written before.
    """
    from holdfast.lock import guard as locks
    from holdfast.lock.commands import capabilities
    from holdfast.policies import Identity
    from holdfast.servers.group import offered_skills

    path = target.options.pop("lock", NAME)
    name = target.only(server)
    declared = capabilities()
    target.options["identity"] = Identity(capabilities=declared)
    async with target.client(name) as client:
        tools, skills = await client.list_tools(), await offered_skills(client)
        found = locks.LockedServer.of(tools, client.instructions, declared, skills)
        label = label or name or client.name
    before = _read(target, path, name, label, or_none=True).servers.get(label)
    changed = locks.write(path, locks.LockFile({label: found}))
    if target.output.json:
        facts = {"file": path, "server": label, "tools": len(tools), "changed": changed}
        facts |= {"skills": len(skills)} if skills else {}
        target.output.value(facts)
        return
    if before is not None and changed:
        target.output.text(str(locks.compare_locked(before, tools, found.instructions, skills)))
    told = "Locked" if changed else "No changes:"
    more = f" and {counted(len(skills), 'skill')}" if skills else ""
    target.output.note(f"{told} {counted(len(tools), 'tool')}{more} of {label} in {path}.")


def _read(
    target: ServerTarget, path: str, name: str | None, label: str | None, *, or_none: bool = False
) -> Any:
    """Return the lock file; say of one that is broken how it is made again."""
    from holdfast.lock import guard as locks
    from holdfast.lock.lockfile import lock_command

    if or_none and not os.path.exists(path):
        return locks.LockFile({})
    try:
        return locks.read(path)
    except ValidationError as error:
        given = target.reach() if target.given else None
        if given is None and name is None:
            raise
        known = lock_command(path, label or name, given)
        raise ValidationError(locks.with_command(error, path, known)) from None


@click.command(cls=ServerVerb)
@SERVER
@AS
@click.option("--breaking", is_flag=True, help="Only changes that break callers count.")
async def check(
    target: ServerTarget, server: tuple[str, ...], label: str | None, breaking: bool
) -> int:
    """Compare servers with the lock file. Exits with 6 if one is not as it was written down.

    The file is holdfast.lock, or what --lock names. Without a server: every server in it
    that is configured.
    """
    path = target.options.pop("lock", NAME)
    locked = _read(target, path, server[0] if server else None, label)
    results = [
        await _checked(target, name, entry, locked.servers[entry], breaking)
        for name, entry in _wanted(target, server, label, locked)
    ]
    codes = {one["exit"] for one in results} - {Exit.OK}
    code = Exit.DRIFT if Exit.DRIFT in codes else Exit(min(codes, default=Exit.OK))
    if target.output.json:
        target.output.value({"ok": code == Exit.OK, "servers": results})
    if code == Exit.OK:
        return code
    told = [
        one.get("error") or f"{one['server']} is not as locked" for one in results if one["exit"]
    ]
    return target.output.verdict("\n".join(told), code, "drift" if code == Exit.DRIFT else "check")


async def _checked(
    target: ServerTarget, name: str | None, entry: str, locked: Any, breaking: bool
) -> dict[str, Any]:
    """Compare one server; one that cannot be reached is reported, and does not stop the others."""
    from holdfast.lock import guard as locks
    from holdfast.policies import Identity
    from holdfast.servers.group import offered_skills

    try:
        if locked.capabilities is not None:
            target.options["identity"] = Identity(capabilities=locked.capabilities)
        async with target.client(name) as client:
            tools, skills = await client.list_tools(), await offered_skills(client)
            changes = locks.compare_locked(locked, tools, client.instructions, skills)
    except HoldfastError as error:
        if not target.output.json:
            target.output.fail(error)
        return {"server": entry, "error": str(error), "exit": exit_for(error)}
    if not target.output.json:
        verdict = f"changed ({changes.impact})\n{changes}" if changes else "as locked"
        target.output.text(f"{entry}: {verdict}")
    drifted = changes.breaking if breaking else bool(changes)
    code = Exit.DRIFT if drifted else Exit.OK
    return {"server": entry, "impact": changes.impact, "changes": str(changes), "exit": code}


def _wanted(
    target: ServerTarget, words: tuple[str, ...], label: str | None, locked: Any
) -> list[tuple[str | None, str]]:
    """The servers to look at, each with its name in the lock file."""
    known = list(locked.servers)
    if not words and not target.given:
        found = [name for name in known if name in target.configuration.servers]
        if not found:
            names = ", ".join(known)
            raise ValidationError(f"none of the locked servers is configured ({names}): name one")
        return [(name, name) for name in found]
    name = target.only(words)
    entry = label or (name if name in known else None) or (known[0] if len(known) == 1 else None)
    if entry is None or entry not in known:
        raise ValidationError(f"which of the lock file's servers is it? --as {'|'.join(known)}")
    return [(name, entry)]

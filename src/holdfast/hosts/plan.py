"""What an installation changes in one file, decided from its bytes alone.

A plan is made from bytes and writes nothing, so it is made again when the file has changed, and the
same function serves to show, to write, and to check.

Uninstalling is exact where it can be. Taking the words out of the text restores it but for what the
text does not say: an ``args`` that was missing, a table that was empty, a file that was not there.
So each backup is tried, newest first: if installing the servers of today on it gives today's file
to the byte, then nothing else has changed since, and the answer is that backup with fewer servers
installed. Otherwise the words are taken out where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.config.files import UnreadableFileError
from holdfast.config.relayed import SERVE
from holdfast.hosts.document import HostDocument, HostFile, HostServer

Action = Literal["install", "update", "add", "restore", "remove"]


class ServerChange(Struct, frozen=True, kw_only=True):
    """What happens to one server."""

    name: str
    label: str
    action: Action
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class FilePlan(Struct, frozen=True, kw_only=True):
    """What happens to one file."""

    file: HostFile
    after: bytes | None
    """None: the file goes, as it was not there before."""
    changes: tuple[ServerChange, ...] = ()
    done: tuple[str, ...] = ()
    """Servers that are as they should be already."""
    skipped: dict[str, str] = {}
    """Servers that are left as they are, with the reason."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be written."""
        return self.file.data == self.after


HeadFor = Callable[[HostServer], Sequence[str]]
"""Returns the words to put before a server's command, ``--`` included."""


def plan_install(
    file: HostFile,
    names: Sequence[str],
    head_for: HeadFor,
    new: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    only_new: bool = False,
) -> FilePlan:
    """Return what puts Holdfast before these servers, or before all.

    Args:
        file: The file, as it was read.
        names: The servers; none: all that are started by a command.
        head_for: The words for each.
        new: Servers to add, with their words.
        only_new: Add these, and leave the others.
    """
    document = HostDocument(file)
    changes: list[ServerChange] = []
    done: list[str] = []
    skipped: dict[str, str] = {}
    for server in () if only_new else _chosen(document, names):
        change = _installed(document, server, tuple(head_for(server)))
        if isinstance(change, ServerChange):
            changes.append(change)
        elif change:
            skipped[server.label] = change
        else:
            done.append(server.label)
    for name, words in new:
        document.add(name, words)
        changes.append(ServerChange(name=name, label=name, action="add", after=tuple(words)))
    return FilePlan(
        file=file,
        after=document.data if changes else file.data,
        changes=tuple(changes),
        done=tuple(done),
        skipped=skipped,
    )


def _installed(
    document: HostDocument, server: HostServer, head: tuple[str, ...]
) -> ServerChange | str:
    """Put these words before a server; return the change, or why not: empty if they are there."""
    relay = server.relay
    if server.fault:
        return server.fault
    if relay is not None and (relay.server is None or relay.head == head):
        return ""
    if relay is not None and not relay.server:
        return "has no command after --"
    if relay is not None:
        document.take_off(server)
    bare = _again(document, server)
    document.put_before(bare, head)
    return ServerChange(
        name=server.name,
        label=server.label,
        action="install" if relay is None else "update",
        before=server.words,
        after=(*head, *bare.words),
    )


def plan_uninstall(
    file: HostFile,
    names: Sequence[str],
    backups: Iterable[bytes | None] = (),
) -> FilePlan:
    """Return what takes Holdfast out again, before these servers or all; ``backups`` newest first.

    A server that Holdfast has by its own name alone (``holdfast serve NAME``) is removed.
    """
    document = HostDocument(file)
    chosen = _chosen(document, names)
    leaving = [server for server in chosen if server.relay is not None]
    direct = [server.label for server in chosen if names and server.relay is None]
    plan = FilePlan(
        file=file,
        after=file.data,
        changes=tuple(map(_leaving, leaving)),
        skipped=dict.fromkeys(direct, "does not go through Holdfast"),
    )
    if not leaving:
        return plan
    for backup in backups:
        restored = _restored(file._replace(data=backup), document, leaving)
        if restored is not None:
            return replace(plan, after=restored.data if restored.is_changed else backup)
    for server in leaving:
        take_out(document, server)
    return replace(plan, after=document.data)


def take_out(document: HostDocument, server: HostServer) -> None:
    """Restore the command of a server, or remove it if Holdfast is all there is."""
    current = _again(document, server)
    relay = current.relay
    assert relay is not None
    if relay.server:
        document.take_off(current)
    else:
        document.drop(current)


def _leaving(server: HostServer) -> ServerChange:
    assert server.relay is not None
    command = server.relay.server or ()
    return ServerChange(
        name=server.name,
        label=server.label,
        action="restore" if command else "remove",
        before=server.words,
        after=command,
    )


def _restored(
    backup: HostFile, today: HostDocument, leaving: list[HostServer]
) -> HostDocument | None:
    """Return a backup with the servers that stay; None if it does not lead to today's text."""
    relayed = [server for server in today.servers() if server.relay is not None]
    try:
        if _replayed(backup, relayed).text != today.text:
            return None
        gone = {server.path for server in leaving}
        document = _replayed(backup, [entry for entry in relayed if entry.path not in gone])
    except UnreadableFileError:
        return None
    # A copy from after the installation says nothing of how it was before.
    later = any(server.path in gone and server.relay for server in document.servers())
    return None if later else document


def _replayed(backup: HostFile, servers: list[HostServer]) -> HostDocument:
    """Return a backup with these servers installed as they are today."""
    document = HostDocument(backup)
    there = {server.path: server for server in document.servers()}
    for server in servers:
        relay = server.relay
        before = there.get(server.path)
        if before is None:
            document.add(server.name, server.words)
        elif before.relay is None and not before.fault and relay is not None:
            document.put_before(before, relay.head)
    return document


def _again(document: HostDocument, server: HostServer) -> HostServer:
    """Return a server as the document has it after the edits so far."""
    return next(entry for entry in document.servers() if entry.path == server.path)


def _chosen(document: HostDocument, names: Sequence[str]) -> list[HostServer]:
    """Return the servers of these names, or all."""
    return [server for server in document.servers() if not names or server.name in names]


def added_words(program: Sequence[str], options: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the words for a server that Holdfast has in its own configuration."""
    return (*program, SERVE, *options, name)

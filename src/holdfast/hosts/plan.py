"""What an installation changes in one file, decided from its bytes alone.

A plan is made from bytes and writes nothing, so it is made again when the file has changed, and the
same function serves to show, to write, and to check.

Uninstalling is exact where it can be. Taking the words out of the text restores it but for what the
text does not say: an ``args`` that was missing, a table that was empty, a file that was not there.
So each backup is tried, newest first: if installing the servers of today on it gives today's file
to the byte, then nothing else has changed since, and the answer is that backup with fewer servers
installed. Otherwise the words are taken out where they stand, and an empty ``args`` with them where
a backup has the same command without one.

An entry that a person wrote with ``holdfast serve`` is theirs: it is left, unless it is named.
What an installation puts before a command has ``--inherit-env`` in it; what it adds is noted beside
the backups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.config.files import UnreadableFileError
from holdfast.config.relayed import INHERIT, SERVE, RelayCommand
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
    note: str = ""
    """What cannot be told of how it was before."""

    def words_of(self, action: Action) -> list[tuple[str, ...]]:
        """Return the commands that are added, or removed."""
        changes = [change for change in self.changes if change.action == action]
        return [change.after or change.before for change in changes]

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be written."""
        return self.file.data == self.after


THEIRS: Final = "goes through Holdfast, but not by an 'install' here; name it to change it"
"""Why an entry is left that a person wrote."""

UNTOLD: Final = (
    "there is no copy of the file from before, so an empty list of arguments is left where "
    "there may have been none"
)

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
    chosen = [] if only_new else _chosen(document, names)
    changes, reasons = _install(document, chosen, head_for, is_named=bool(names))
    for name, words in new:
        document.add(name, words)
        changes.append(ServerChange(name=name, label=name, action="add", after=tuple(words)))
    return FilePlan(
        file=file,
        after=document.data if changes else file.data,
        changes=tuple(changes),
        done=tuple(label for label, reason in reasons.items() if not reason),
        skipped={label: reason for label, reason in reasons.items() if reason},
    )


def _install(
    document: HostDocument, servers: list[HostServer], head_for: HeadFor, *, is_named: bool
) -> tuple[list[ServerChange], dict[str, str]]:
    """Put words before servers; return the changes, and why the others are left, by label.

    The reason is empty for those that have these words already.
    """
    todo: list[tuple[HostServer, tuple[str, ...]]] = []
    left: dict[str, str] = {}
    for server in servers:
        head = tuple(head_for(server))
        reason = _reason_to_leave(server, head, is_named=is_named)
        if reason is None:
            todo.append((server, head))
        else:
            left[server.label] = reason
    document.take_off([server for server, _ in todo if server.relay is not None])
    bare = {server.path: server for server in document.servers()}
    faults = _put_before(document, [(bare[server.path], head) for server, head in todo])
    changes: list[ServerChange] = []
    for server, head in todo:
        if server.path not in faults:
            changes.append(_change(server, (*head, *bare[server.path].words)))
        elif server.relay is None:
            left[server.label] = faults[server.path]
        else:
            raise UnreadableFileError(faults[server.path])  # its old words are gone
    return changes, left


def _reason_to_leave(server: HostServer, head: tuple[str, ...], *, is_named: bool) -> str | None:
    """Return why a server is left as it is: empty if it has these words; None if it is not left."""
    relay = server.relay
    if server.fault or relay is None:
        return server.fault or None
    if relay.server is None or relay.head == head:
        return ""
    if not relay.server:
        return "has no command after --"
    return None if is_named or _is_installed(relay) else THEIRS


def _is_installed(relay: RelayCommand | None) -> bool:
    """Return whether an installation put it before a command, and not a person."""
    return relay is not None and relay.server is not None and INHERIT in relay.options


def _put_before(
    document: HostDocument, heads: list[tuple[HostServer, tuple[str, ...]]]
) -> dict[tuple[str, ...], str]:
    """Put words before servers; return why not, for those that cannot be edited."""
    try:
        document.put_before(heads)
    except UnreadableFileError:
        pass
    else:
        return {}
    faults: dict[tuple[str, ...], str] = {}
    for server, head in heads:
        try:
            document.put_before([(server, head)])
        except UnreadableFileError as error:
            faults[server.path] = str(error)
    return faults


def _change(server: HostServer, after: tuple[str, ...]) -> ServerChange:
    return ServerChange(
        name=server.name,
        label=server.label,
        action="install" if server.relay is None else "update",
        before=server.words,
        after=after,
    )


def _is_relayed_by_hand(server: HostServer) -> bool:
    relay = server.relay
    return relay is not None and bool(relay.server) and not _is_installed(relay)


def plan_uninstall(
    file: HostFile,
    names: Sequence[str],
    backups: Sequence[bytes | None] = (),
    added: Collection[tuple[str, ...]] = (),
) -> FilePlan:
    """Return what takes Holdfast out again.

    A server that Holdfast has by its own name alone (``holdfast serve NAME``) is removed.

    Args:
        file: The file, as it was read.
        names: The servers; none: all that were installed.
        backups: The file as it was, newest first.
        added: The commands of servers that were added.
    """
    document = HostDocument(file)
    chosen = _chosen(document, names)
    reasons = {
        server.path: _reason_to_stay(server, added, is_named=bool(names)) for server in chosen
    }
    leaving = [server for server in chosen if reasons[server.path] is None]
    plan = FilePlan(
        file=file,
        after=file.data,
        changes=tuple(map(_leaving, leaving)),
        skipped={server.label: why for server in chosen if (why := reasons[server.path])},
    )
    if not leaving:
        return plan
    for backup in backups:
        restored = _restored(file._replace(data=backup), document, leaving)
        if restored is not None:
            return replace(plan, after=restored.data if restored.is_changed else backup)
    _take_out(document, leaving, _bare(file, leaving, backups))
    return replace(plan, after=document.data, note="" if backups else _untold(plan))


def _reason_to_stay(
    server: HostServer, added: Collection[tuple[str, ...]], *, is_named: bool
) -> str | None:
    """Return why a server stays as it is; empty if nothing is to be said; None if it does not."""
    if server.relay is None:
        return "does not go through Holdfast" if is_named else ""
    if is_named or _is_installed(server.relay) or server.words in added:
        return None
    return THEIRS


def _untold(plan: FilePlan) -> str:
    return UNTOLD if any(len(change.after) == 1 for change in plan.changes) else ""


def _take_out(
    document: HostDocument, leaving: list[HostServer], bare: set[tuple[str, ...]]
) -> None:
    """Restore the commands of servers; remove those that are Holdfast alone."""
    restored = [server for server in leaving if server.relay and server.relay.server]
    try:
        document.take_off(restored, bare)
    except UnreadableFileError:
        document.take_off(restored)
    for server in leaving:
        if server not in restored:
            document.drop(server)


def _bare(
    file: HostFile, leaving: list[HostServer], backups: Sequence[bytes | None]
) -> set[tuple[str, ...]]:
    """Return the servers that have no ``args`` in a backup; the text does not tell."""
    commands = {server.path: server.relay.server for server in leaving if server.relay}
    bare: set[tuple[str, ...]] = set()
    if all(len(command or ()) != 1 for command in commands.values()):
        return bare
    for backup in backups:
        try:
            document = HostDocument(file._replace(data=backup))
        except UnreadableFileError:
            continue
        bare |= {
            server.path
            for server in document.servers()
            if server.words == commands.get(server.path) and not document.has_args(server)
        }
    return bare


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
        gone = {server.path: server.words for server in leaving}
        document = _replayed(backup, [entry for entry in relayed if entry.path not in gone])
    except UnreadableFileError:
        return None
    # A copy from after the installation says nothing of how it was before.
    later = any(
        _is_installed(server.relay) or (server.relay and server.words == gone[server.path])
        for server in document.servers()
        if server.path in gone
    )
    return None if later else document


def _replayed(backup: HostFile, servers: list[HostServer]) -> HostDocument:
    """Return a backup with these servers installed as they are today."""
    document = HostDocument(backup)
    today = {server.path: server.words for server in servers}
    document.take_off(
        [
            before
            for before in document.servers()
            if _is_relayed_by_hand(before) and today.get(before.path, before.words) != before.words
        ]
    )
    there = {server.path: server for server in document.servers()}
    document.put_before(
        [
            (before, server.relay.head)
            for server in servers
            if (before := there.get(server.path)) is not None and server.relay is not None
            if before.relay is None and not before.fault
        ]
    )
    for server in servers:
        if server.path not in there:
            document.add(server.name, server.words)
    return document


def _chosen(document: HostDocument, names: Sequence[str]) -> list[HostServer]:
    """Return the servers of these names, or all."""
    return [server for server in document.servers() if not names or server.name in names]


def added_words(program: Sequence[str], options: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the words for a server that Holdfast has in its own configuration."""
    return (*program, SERVE, *options, name)

"""The file of a host: its servers, and edits of them that touch nothing else.

An edit is a few characters put in or taken out at places that the readers of `nodes` found. How
such a reader could be wrong is a long list (comments, quotes in quotes, five ways to write a key),
so no edit is believed: the object that it should give is built beside it, the new text is read by
the ordinary parser, and an edit is kept only if both are equal. What cannot be edited safely is
refused, and the file stays as it was.

The old command stays in the file, as it is written, behind ``--``:

    "command": "uvx",                        "command": "/…/bin/holdfast",
    "args": [                                "args": [
      "mcp-server-git" // the repository       "serve",
    ]                                          "--inherit-env",
                                               "--",
                                               "uvx",
                                               "mcp-server-git" // the repository
                                             ]

So the file needs no record beside it, survives a host that writes it anew in its own layout, and
works on another machine. Taking the words out again is the same edit backwards, to the byte. Two
things are not in the text: whether ``args`` was there when it is empty, and how an empty table
looked. For these the backup is asked (`backups`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from holdfast._core.text import HIDDEN, visible
from holdfast.config.files import JsonText, UnreadableFileError, parse
from holdfast.config.hosts import Host
from holdfast.config.relayed import RelayCommand, read_relay
from holdfast.hosts.nodes import DocumentMember, DocumentNode, Tree
from holdfast.hosts.syntax import JsonSyntax, line_end, line_start, newline_of, syntax_of

_BOM: Final = "\ufeff"
_URLS: Final = ("url", "httpUrl", "serverUrl", "uri")
_SECRET_TABLES: Final = ("env", "envs", "environment", "headers", "http_headers")
_MASK: Final = f'"{HIDDEN}"'
_PARTS_OF_HOST: Final = ("builtin", "platform", "frontend", "inline_python")
"""Goose's own extensions, which are no servers of others."""

Edit: TypeAlias = tuple[int, int, str]
"""Where a piece of the text begins and ends, and what takes its place."""


class HostFile(NamedTuple):
    """A file of a host, as it was read."""

    host: Host
    path: str
    data: bytes | None
    """None: there is no such file."""


class HostServer(Struct, frozen=True, kw_only=True):
    """A server in a host's file."""

    name: str
    path: tuple[str, ...]
    """The keys that lead to it."""
    program: tuple[str, ...] = ()
    """The keys that lead to its program, or to the list of all its words."""
    words: tuple[str, ...] = ()
    """The program and its arguments."""
    env: Mapping[str, Any] = {}
    fault: str = ""
    """Why it is left as it is; empty if it is started by a command."""

    @property
    def relay(self) -> RelayCommand | None:
        """The parts of its command, if that is ``holdfast serve``."""
        return read_relay(self.words)

    @property
    def label(self) -> str:
        """Its name, and the project that it is for."""
        folder = self.path[1] if self.path[0] == "projects" else ""
        return f"{self.name} (for {folder})" if folder else self.name


class _Place:
    """Where the command of a server stands in a text."""

    def __init__(self, tree: Tree, server: HostServer) -> None:
        parent = tree.find(server.program[:-1])
        program = tree.find(server.program)
        if parent is None or program is None:
            raise UnreadableFileError("cannot be edited safely; edit it by hand")
        self.parent: DocumentNode = parent
        self.program: DocumentNode = program
        """The program, or the list of all words."""
        self.member: DocumentMember = self.member_of(server.program[-1])
        args = tree.find((*server.program[:-1], "args"))
        self.args: DocumentNode | None = None if args is None or args.items is None else args

    def member_of(self, key: str) -> DocumentMember:
        """Return a member of the object that holds the command."""
        return (self.parent.members or {})[key]


class HostDocument:
    """The text of one file, edited in steps. Raises UnreadableFileError."""

    def __init__(self, source: HostFile) -> None:
        host, file, data = source
        self.host, self.file = host, file
        self._syntax = syntax_of(file)
        self.content: Mapping[str, Any] = {} if data is None else parse(file, data)
        text = (data or b"").decode("utf-8")
        self._bom = _BOM if text.startswith(_BOM) else ""
        self.text = text.removeprefix(_BOM)
        self.is_changed: bool = False
        """True after an edit."""
        is_json = isinstance(self._syntax, JsonSyntax)
        if is_json and not self.content and JsonText(self.text).top < 0:  # nothing, or null
            self.text = "{\n}\n"

    @property
    def data(self) -> bytes:
        """The bytes to write."""
        return (self._bom + self.text).encode()

    # Servers

    def servers(self) -> list[HostServer]:
        """Return the servers of the file, in its order."""
        return [
            server
            for pattern in self.host.tables
            for path, table in _tables(self.content, pattern)
            for name, raw in table.items()
            if (server := self._server(str(name), (*path, str(name)), raw)) is not None
        ]

    def _server(self, name: str, path: tuple[str, ...], raw: Any) -> HostServer | None:
        """Return one server; None for what is none."""
        if not isinstance(raw, Mapping):
            return HostServer(name=name, path=path, fault="is not an object")
        if path in self.host.tables or raw.get("type") in _PARTS_OF_HOST:
            return None
        place, program = self._place(path, raw)
        fields = _value_at(raw, place[len(path) :])
        command, args = fields.get(program), fields.get("args", [])
        fault = _fault(raw, command, args)
        if command is None and not fault:
            return None  # the settings of an extension
        words: list[Any] = []
        if not fault:
            words = command if isinstance(command, list) else [command, *args]
        env: Any = next((raw[key] for key in ("env", "envs", "environment") if key in raw), {})
        return HostServer(
            name=name,
            path=path,
            program=(*place, program),
            words=tuple(map(str, words)),
            env=env if isinstance(env, Mapping) else {},
            fault=fault,
        )

    def _place(self, path: tuple[str, ...], raw: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        """Return where the command of a server is: the keys of its object, and its field."""
        for key, program in (("config", self.host.program), ("command", "path")):
            # Goose may keep the settings one level down; Zed had an object for the command.
            inner = raw.get(key)
            if isinstance(inner, Mapping) and isinstance(inner.get(program), str):
                return (*path, key), program
        return path, self.host.program

    def without_values(self) -> str:
        """Return the text with the values of variables and headers masked, to be shown."""
        tree = self._syntax.tree(self.text)
        spans = [
            (member.node.start, member.node.end, _MASK)
            for server in self.servers()
            for key in _SECRET_TABLES
            for place in (server.path, server.program[:-1])
            if (table := tree.find((*place, key))) is not None
            for member in (table.members or {}).values()
        ]
        return _spliced(self.text, list(dict.fromkeys(spans)))

    # Edits

    def put_before(self, heads: Sequence[tuple[HostServer, Sequence[str]]]) -> None:
        """Put words before the commands of servers, all or none.

        At once: the file may have megabytes, and each edit has it read again.
        """
        tree, expected = self._syntax.tree(self.text), dict(self.content)
        edits = [self._put_before(tree, expected, server, head) for server, head in heads]
        self._commit(list(chain.from_iterable(edits)), expected)

    def _put_before(
        self, tree: Tree, expected: dict[str, Any], server: HostServer, head: Sequence[str]
    ) -> list[Edit]:
        place, syntax = _Place(tree, server), self._syntax
        tokens = [syntax.token(word) for word in head]
        fields = _object_at(expected, server.program[:-1])
        node = place.program
        if node.items is not None:
            fields[server.program[-1]] = [*head, *fields[server.program[-1]]]
            return [_insert_items(self.text, node, tokens)]
        raw, old = self.text[node.start : node.end], server.words[0]
        tokens.append(raw if syntax.can_move(raw) else syntax.token(old))
        edits = [(node.start, node.end, tokens.pop(0))]
        args = place.args
        if args is None:
            is_flow = place.parent.style == "flow"
            insertion = syntax.list_after(self.text, place.member, is_flow, tokens)
            edits.append((insertion.at, insertion.at, insertion.text))
        else:
            edits.append(_insert_items(self.text, args, tokens))
        fields["args"] = [*head[1:], old, *fields.get("args", [])]
        fields[server.program[-1]] = head[0]
        return edits

    def has_args(self, server: HostServer) -> bool:
        """Return whether a server has a list of arguments, be it empty."""
        return "args" in _object_at(dict(self.content), server.program[:-1])

    def take_off(
        self, servers: Sequence[HostServer], bare: Collection[tuple[str, ...]] = ()
    ) -> None:
        """Take the words of ``holdfast serve`` off the commands of servers, all or none.

        Args:
            servers: The servers.
            bare: Paths of those whose ``args`` goes as well, if nothing is left in it.
        """
        tree, expected = self._syntax.tree(self.text), dict(self.content)
        edits = [
            self._take_off(tree, expected, server, is_bare=server.path in bare)
            for server in servers
        ]
        self._commit(list(chain.from_iterable(edits)), expected)

    def _take_off(
        self, tree: Tree, expected: dict[str, Any], server: HostServer, *, is_bare: bool
    ) -> list[Edit]:
        place = _Place(tree, server)
        relay, node, args = server.relay, place.program, place.args
        count = 0 if relay is None else len(relay.head)
        fields = _object_at(expected, server.program[:-1])
        if node.items is not None:
            fields[server.program[-1]] = fields[server.program[-1]][count:]
            return [_remove_items(self.text, node, count)]
        items = [] if args is None else args.items or []
        old = items[count - 1]
        fields[server.program[-1]] = fields["args"][count - 1]
        fields["args"] = fields["args"][count:]
        removal = _remove_items(self.text, args or node, count)
        # An empty list cannot be written in lines: the key goes with it.
        is_in_lines = args is not None and args.style == "block"
        if not fields["args"] and (is_bare or is_in_lines):
            del fields["args"]
            removal = _remove_member(self.text, place.parent, "args")
        return [(node.start, node.end, self.text[old.start : old.end]), removal]

    def add(self, name: str, words: Sequence[str]) -> None:
        """Add a server that is started by these words."""
        host = self.host
        command = {"command": list(words)} if host.is_list else _split(host.program, words)
        fields = {**host.template, **command}
        path = (*self._table_for_new(), name)
        expected = dict(self.content)
        _object_at(expected, path[:-1])[name] = (
            fields if host.name != "goose" else {**fields, "name": name}
        )
        text = self._syntax.add_server(self.text, path, fields)
        self._commit_text(text, expected)

    def _table_for_new(self) -> tuple[str, ...]:
        """Return the table for a new server: the last plain one that is there, or the first."""
        plain = [path for path in self.host.tables if "*" not in path]
        there = [path for path in plain if isinstance(_value_at(self.content, path), Mapping)]
        return there[-1] if there else plain[0]

    def drop(self, server: HostServer) -> None:
        """Remove a server."""
        text = self._syntax.drop_server(self.text, server.path)
        expected = dict(self.content)
        table = _object_at(expected, server.path[:-1])
        del table[server.name]
        without = {key: value for key, value in expected.items() if key != server.path[0]}
        # In TOML a table that has no header of its own goes with its last entry.
        self._commit_text(text, expected, *[without] if not table else [])

    def _commit(self, edits: list[Edit], expected: Mapping[str, Any]) -> None:
        """Replace pieces of the text."""
        if edits:
            self._commit_text(_spliced(self.text, edits), expected)

    def _commit_text(self, text: str, *expected: Mapping[str, Any]) -> None:
        try:
            content = parse(self.file, text.encode())
        except (UnreadableFileError, UnicodeEncodeError):
            content = None
        if content is None or content not in expected:
            raise UnreadableFileError("cannot be edited safely; edit it by hand")
        self.text, self.content, self.is_changed = text, content, True


def _spliced(text: str, edits: list[Edit]) -> str:
    """Return a text with pieces replaced that do not overlap."""
    pieces: list[str] = []
    at = 0
    for start, end, piece in sorted(edits):
        pieces += [text[at:start], piece]
        at = end
    return "".join([*pieces, text[at:]])


def _split(program: str, words: Sequence[str]) -> dict[str, Any]:
    return {program: words[0], "args": list(words[1:])}


def _fault(raw: Mapping[str, Any], command: Any, args: Any) -> str:
    """Return why a server is left as it is."""
    if command is None:
        return "is reached by a URL" if _has_url(raw) else ""
    words = command if isinstance(command, list) else [command]
    if not words or not isinstance(words[0], str) or not words[0].strip():
        return "has no command"
    return _words_fault(words, args) or _url_fault(raw, [*words, *args])


def _has_url(raw: Mapping[str, Any]) -> bool:
    return any(raw.get(key) for key in _URLS)


def _url_fault(raw: Mapping[str, Any], words: list[Any]) -> str:
    if not _has_url(raw) or raw.get("type") in ("stdio", "local") or read_relay(words) is not None:
        return ""
    return "has a command and a URL; its host takes one of them: remove the other"


def _words_fault(words: list[Any], args: Any) -> str:
    if not isinstance(args, list):
        return "has args that are not a list"
    if len(words) == 1 and _has_arguments(words[0]):
        return "has a space in its command; write its arguments in args"
    if any(isinstance(word, list | dict) or word is None for word in (*words, *args)):
        return "has an argument that is not a string"
    return ""


def _has_arguments(command: str) -> bool:
    """Return whether a command seems to have its arguments in it.

    Some hosts give it to a shell, others do not: the words in it cannot be known.
    """
    first, *rest = command.split(maxsplit=1)
    return bool(rest) and not any(mark in first for mark in "/\\")


# Places in the content


def _tables(
    content: Mapping[str, Any], pattern: tuple[str, ...], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the tables of servers that a pattern of keys leads to."""
    if not pattern:
        yield path, content
        return
    key, *rest = pattern
    for name in list(content) if key == "*" else [key]:
        inner = content.get(name)
        if isinstance(inner, Mapping):
            yield from _tables(inner, tuple(rest), (*path, name))
        elif inner is not None and not rest:
            raise _not_an_object(str(name))


def _value_at(content: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _object_at(content: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return an object in the content, made where it is missing.

    The objects on the way are copies from there on: those of the caller stay as they are.
    """
    for key in path:
        inner = content.get(key)
        if inner is not None and not isinstance(inner, dict):
            raise _not_an_object(key)
        inner = content[key] = dict(inner or {})
        content = inner
    return content


def _not_an_object(key: str) -> UnreadableFileError:
    return UnreadableFileError(f"must hold an object under {visible(key, 40)}")


# Items of lists


def _insert_items(text: str, node: DocumentNode, tokens: Sequence[str]) -> Edit:
    """Return the edit that puts tokens before the items of a list, in the list's own layout."""
    items = node.items or []
    if node.style == "block":
        indent = " " * (node.start - line_start(text, node.start))
        lines = "".join(f"- {token}{newline_of(text)}{indent}" for token in tokens)
        return node.start, node.start, lines
    if not items:
        return node.start + 1, node.start + 1, ", ".join(tokens)
    gap = text[node.start + 1 : items[0].start]
    gap = gap[len(gap.rstrip()) :]
    between = gap if "\n" in gap else " "
    piece = "".join(f"{token},{between}" for token in tokens)
    return items[0].start, items[0].start, piece


def _remove_items(text: str, node: DocumentNode, count: int) -> Edit:
    """Return the edit that takes the first items of a list out."""
    items = node.items or []
    if len(items) > count:
        start, end = items[0].start, items[count].start
        if node.style == "block":
            start, end = node.start, text.rindex("-", 0, end)
        return start, end, ""
    end = items[-1].end
    comma = text[end : node.end].lstrip()
    if comma.startswith(","):  # a host's layout; ours has none
        end = text.index(",", end) + 1
    return items[0].start, end, ""


def _remove_member(text: str, parent: DocumentNode, key: str) -> Edit:
    """Return the edit that takes a member out: its lines, or its part of the braces."""
    members = sorted((parent.members or {}).items(), key=lambda item: item[1].start)
    place = [name for name, _ in members].index(key)
    start, end = members[place][1].start, members[place][1].node.end
    if parent.style == "block":
        line = line_start(text, start)
        if not line:
            return 0, line_end(text, end) + len(newline_of(text)), ""
        return line - (2 if text.endswith("\r\n", 0, line) else 1), end, ""
    gap = end, end
    if place:
        gap = members[place - 1][1].node.end, start
        start = gap[0]
    elif len(members) > 1:
        gap = end, members[1][1].start
        end = gap[1]
    if text[slice(*gap)].strip(" \t\r\n,"):
        raise UnreadableFileError("has a comment there")
    return start, end, ""

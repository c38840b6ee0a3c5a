"""One installation: which servers of which files of a host, and the words before each."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.files import is_inside
from holdfast._core.text import did_you_mean, join_words, visible
from holdfast.config import load
from holdfast.config.relayed import INHERIT, MARK, SERVE, read_relay
from holdfast.errors import TrustError, ValidationError
from holdfast.hosts.document import HostFile, HostServer
from holdfast.hosts.plan import FilePlan, added_words, plan_install, plan_uninstall
from holdfast.hosts.program import Program, find_program, interpreter, needs_interpreter
from holdfast.hosts.writing import HostFiles, MakePlan

PATHS: Final = ("log", "trace_file", "lock")
"""Options of ``serve`` whose value is a path.

Absolute, because a host starts it anywhere; in a project's file from the project on, because it is
elsewhere for everybody who has it.
"""
_EXPANDING: Final = ("vscode", "cursor")
"""Hosts that know ``${workspaceFolder}``; others start the servers of a project in its folder."""


class Installer:
    """Plans for the files of a host.

    Args:
        files: The files.
        names: Servers; none: all that are started by a command.
        program: How the host starts Holdfast; by default this one, by its path.
        options: Options of ``serve``, by name.
    """

    def __init__(
        self,
        files: HostFiles,
        names: Sequence[str] = (),
        program: Sequence[str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._files, self._names, self._options = files, names, options or {}
        _require_served(self._options)
        self._program = self._choose_program(program)
        self._is_found = program is None and not files.is_project
        self._servers = {path: files.servers(path) for path in files.present()}

    @property
    def note(self) -> str:
        """What the user should know about the program."""
        return self._program.note

    @property
    def warning(self) -> str:
        """What the user should know before anything is written; empty for nothing."""
        paths = {str(self._options[key]): key for key in PATHS if self._options.get(key)}
        outside = [
            path for path, key in paths.items() if os.path.isabs(self._path_text(key, path, ""))
        ]
        if not (outside and self._files.is_project):
            return ""
        where = visible(", ".join(outside))
        return f"Outside of the project: {where}. Others who use it do not have that path."

    def _choose_program(self, program: Sequence[str] | None) -> Program:
        if program is None and self._files.is_project:
            note = "Everybody who uses this project needs 'holdfast' on the PATH of the host."
            return Program(("holdfast",), note)
        if program is None:
            return find_program()
        if read_relay((*program, SERVE)) is None:
            raise ValidationError(
                f"'{visible(' '.join(program), 80)}' is not known as Holdfast: "
                "it must be holdfast, or a Python, uv, uvx or pipx that runs it"
            )
        return Program(tuple(program))

    # Installing

    def installing(self) -> dict[str, MakePlan]:
        """Return how the plan of each file is made."""
        present = {server.name for servers in self._servers.values() for server in servers}
        new = [name for name in self._names if name not in present]
        self._require_configured(new, present)
        first = next(iter(self._servers), "") or self._new_file(new)
        makers = {path: self._maker(path, []) for path in self._servers if self._concerns(path)}
        if new:
            makers[first] = self._maker(first, new)
        return makers

    def _concerns(self, path: str) -> bool:
        return not self._names or bool(self._named_in(path))

    def _maker(self, path: str, new: list[str]) -> MakePlan:
        names = self._named_in(path)
        added = [
            (name, added_words(self._program.words, self._option_words(name), name)) for name in new
        ]
        only_new = bool(self._names) and not names

        def make(file: HostFile) -> FilePlan:
            return plan_install(file, names, self._head, added, only_new=only_new)

        return make

    def _named_in(self, path: str) -> list[str]:
        """Return the names that a file has."""
        there = {server.name for server in self._servers.get(path, [])}
        return [name for name in self._names if name in there]

    def _head(self, server: HostServer) -> tuple[str, ...]:
        """Return the words before a server's command."""
        words = self._program.words
        if self._is_found and needs_interpreter(server.env):
            words = interpreter()
        # In one word: a server may be called "--".
        options = (f"--name={server.name}", *self._option_words(server.name))
        return (*words, SERVE, INHERIT, *options, MARK)

    def _option_words(self, name: str) -> list[str]:
        """Return the options for ``serve``; ``{name}`` in a path is the server's name."""
        words: list[str] = []
        for key, value in sorted(self._options.items()):
            values = value if isinstance(value, tuple) else () if value is None else (value,)
            for item in values:
                text = f"{item:g}" if isinstance(item, float) else str(item)
                if key in PATHS:
                    text = self._path_text(key, text, name)
                option = f"--{key.replace('_', '-')}"
                # In one word if it could be taken for the "--" before the command.
                words += [f"{option}={text}"] if text.startswith("-") else [option, text]
        return words

    def _path_text(self, key: str, value: str, name: str) -> str:
        """Return a path as it is written, with the server's name in it."""
        path, root = _path(key, value, name), self._files.root
        if root is None:
            return path
        folder, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(root)
        if not is_inside(folder, root):
            return path
        inner = os.path.relpath(os.path.join(folder, os.path.basename(path)), root)
        prefix = "${workspaceFolder}/" if self._files.host.name in _EXPANDING else ""
        return prefix + inner.replace(os.sep, "/")

    def _require_configured(self, names: list[str], present: set[str]) -> None:
        """Refuse names that neither the host nor the configuration has, and unapproved ones."""
        configuration = load() if names else None
        for name in names:
            assert configuration is not None
            entry = configuration.servers.get(name)
            if entry is None:
                where = f"{self._files.host.product} or in your configuration"
                raise ValidationError(
                    unknown_server(name, where, [*present, *configuration.servers])
                )
            if name.startswith("-"):
                shown = visible(name, 80)
                raise ValidationError(f"'{shown}': 'serve' would take it for an option; rename it")
            trust = entry.trust()
            if not trust.ok:
                raise TrustError(f"{visible(name, 80)}: nobody approved it: {trust.problem}")

    def _new_file(self, new: list[str]) -> str:
        """Return the file to make for a host that is here and has none yet."""
        if not new:
            raise ValidationError(no_file(self._files))
        path = self._files.paths()[0]
        folder = os.path.dirname(path)
        if not (os.path.isdir(folder) or self._files.is_project):
            product = self._files.host.product
            raise ValidationError(f"{product} is not set up here: there is no {visible(folder)}")
        return path


def _require_served(options: Mapping[str, object]) -> None:
    """Refuse what ``serve`` would refuse: a host would only say that its server does not start."""
    seconds, revision = options.get("timeout"), options.get("protocol")
    if isinstance(seconds, float) and not 0 < seconds < math.inf:
        raise ValidationError(f"--timeout {seconds:g}: must be more than 0, and finite")
    if revision is not None and revision not in (*HANDSHAKE, *STATELESS):
        known = ", ".join((*STATELESS, *HANDSHAKE))
        raise ValidationError(f"--protocol {visible(str(revision), 80)}: there are {known}")


def _path(key: str, value: str, name: str) -> str:
    """Return the absolute path of an option; raise ValidationError for what cannot be used."""
    path = os.path.abspath(os.path.expanduser(value))
    path = path.replace("{name}", re.sub(r"[^\w.-]", "_", name))
    folder = os.path.dirname(path)
    option = f"--{key.replace('_', '-')}"
    if not os.path.isdir(folder):
        raise ValidationError(f"{option}: there is no folder {visible(folder)}")
    if os.path.isdir(path) or (key == "lock" and not os.path.exists(path)):
        raise ValidationError(f"{option}: there is no file {visible(path)}")
    return path


def uninstalling(files: HostFiles, names: Sequence[str]) -> dict[str, MakePlan]:
    """Return how the plan of each file is made that takes Holdfast out again."""
    there = {path: [server.name for server in files.servers(path)] for path in files.present()}
    if not there:
        raise ValidationError(no_file(files))
    everywhere = list(chain.from_iterable(there.values()))
    for name in names:
        if name not in everywhere:
            raise ValidationError(unknown_server(name, files.host.product, everywhere))

    def maker(path: str) -> MakePlan:
        backups = files.backups(path)
        copies = [copy.data for copy in backups.newest_first() or backups.of_other_files()]
        names_here = [name for name in names if name in there[path]]
        return lambda file: plan_uninstall(file, names_here, copies, backups.added())

    return {path: maker(path) for path in there if not names or {*names} & {*there[path]}}


def no_file(files: HostFiles) -> str:
    """Return the sentence for a host that has no file."""
    places = " or ".join(visible(path) for path in files.paths())
    return f"{files.host.product} has no file here: {places}"


def unknown_server(name: str, where: str, names: Sequence[str]) -> str:
    """Return the sentence for a server that is not there."""
    hint = did_you_mean(name, names)
    listed = join_words(sorted({visible(entry, 80) for entry in names}), 20)
    hint = hint or (f"there are: {listed}" if names else "there is none")
    return f"no server '{visible(name, 80)}' in {where}; {hint}"

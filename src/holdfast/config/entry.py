"""One server as a configuration describes it: text, before anything is expanded or started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from holdfast._core.text import visible
from holdfast.config.environment import ConfigEnvironment, ConfigFile
from holdfast.config.expansion import (
    ConfigInput,
    Expander,
    ExpansionError,
    InputPrompt,
    Variable,
    variables,
)
from holdfast.config.settings import TABLE, HttpMode, Setting, flatten, plain

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.config.resolution import ResolvedServer
    from holdfast.config.trust import TrustStatus

ConfigScope = Literal["explicit", "project", "user"]


class ConfigProblem(Struct, frozen=True, kw_only=True):
    """A fault of a configuration, by file, server and field.

    An ``error`` keeps its server (or file) from being used; a ``warning`` does not.
    """

    file: str
    message: str
    server: str | None = None
    field: str | None = None
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        server = "" if self.server is None else f"server {visible(self.server)!r}: "
        field = "" if self.field is None else f"{visible(self.field, 120)}: "
        return f"{visible(self.file)}: {server}{field}{self.message}"


class EntrySource(Struct, frozen=True, kw_only=True):
    """The file, and the section of it, that an entry came from."""

    file: str
    scope: ConfigScope
    dialect: str
    workspace: str
    """The folder that ``${workspaceFolder}`` means."""
    environment: ConfigEnvironment
    section: tuple[str, ...] = ()
    """Keys that lead to it, where it is not at the top of the file."""

    def __str__(self) -> str:
        return " › ".join((self.file, *self.section))

    @property
    def base(self) -> str:
        """The folder that relative paths start at."""
        return str(self.environment.home) if self.scope == "user" else self.workspace


class ServerEntry(Struct, frozen=True, kw_only=True):
    """One configured server; `connect` makes a client for it.

    Its strings are as they stand in the file; `resolve` expands them. It has a command
    (``command``, ``args``, ``env``, ``env_file``, ``cwd``) or a URL (``url``, ``headers``,
    ``transport``); ``settings`` has what stands below ``holdfast``, by name.
    """

    name: str
    source: EntrySource
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_file: str | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    transport: HttpMode = "auto"
    disabled: bool = False
    settings: dict[str, Any] = {}
    inputs: dict[str, ConfigInput] = {}
    """The inputs that its strings ask for, by id."""
    problems: tuple[ConfigProblem, ...] = ()
    hides: tuple[EntrySource, ...] = ()
    """Sources of entries with the same name that lost to this one."""

    def __repr__(self) -> str:
        # Not the definition: commands, environments and headers have secrets in them.
        return f"<ServerEntry {self.name} {self.kind} of {self.source}>"

    @property
    def kind(self) -> str:
        """``stdio``, ``http`` or ``sse``."""
        if self.url is None:
            return "stdio"
        return "sse" if self.transport == "sse" else "http"

    @property
    def errors(self) -> tuple[ConfigProblem, ...]:
        """The problems that keep it from being used."""
        return tuple(problem for problem in self.problems if problem.level == "error")

    def trust(self) -> TrustStatus:
        """Return whether it may be used, by the approvals on disk now."""
        from holdfast.config.trust import ApprovalStore

        return ApprovalStore(self.source.environment).status(self)

    def resolve(
        self, environ: Mapping[str, str] | None = None, *, prompt: InputPrompt | None = None
    ) -> ResolvedServer:
        """Expand the variables of the entry. Starts nothing.

        Args:
            environ: Variables to use instead of those that the configuration was loaded with.
            prompt: Called for inputs without a value.

        Raises:
            ValidationError: A variable has no value, or what it expands to is not allowed there.
        """
        from holdfast.config.resolution import resolve

        return resolve(self, environ, prompt=prompt)

    def connect(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        prompt: InputPrompt | None = None,
        **overrides: Any,
    ) -> Client:
        """Return a client for this server, not connected yet.

        Args:
            environ: As in `resolve`.
            prompt: As in `resolve`.
            overrides: Options of `holdfast.connect`; they win over the configuration.

        Raises:
            TrustError: The entry is of a project's file and not approved as it is.
            StateError: The entry is disabled.
            ValidationError: The entry has errors, or a variable has no value.
        """
        from holdfast.config.resolution import admit, client_for

        return client_for(admit(self, environ, prompt=prompt), overrides)


def source_of(file: ConfigFile, dialect: str, environment: ConfigEnvironment) -> EntrySource:
    """Return the source of the entries of a file."""
    return EntrySource(
        file=file.path,
        scope=file.scope,
        dialect=dialect,
        workspace=file.workspace,
        environment=environment,
        section=file.section,
    )


def expander_for(
    entry: ServerEntry,
    environ: Mapping[str, str] | None = None,
    prompt: InputPrompt | None = None,
) -> Expander:
    """Return what expands the variables of an entry."""
    around = entry.source.environment
    return Expander(
        around.environ if environ is None else environ,
        workspace=entry.source.workspace,
        home=str(around.home),
        inputs=entry.inputs,
        prompt=prompt,
    )


def said(entry: ServerEntry) -> Iterator[tuple[Setting, Any]]:
    """Yield what an entry says: every setting with a value, in the order of the table."""
    for row in TABLE.values():
        value = entry.settings.get(row.name) if row.own else getattr(entry, row.name)
        if value is not None and (row.own or value not in _NOTHING):
            yield row, value


_NOTHING: Final[tuple[object, ...]] = ((), {}, False, "auto")
"""Fields of an entry that say nothing."""


def texts(entry: ServerEntry) -> Iterator[tuple[Setting, str, str]]:
    """Yield every value of an entry as text, with its setting and its place."""
    for row, value in said(entry):
        for field, text in flatten(row.key or row.name, plain(value)):
            yield row, field, text


def used_variables(entry: ServerEntry, most: int = 1000) -> Iterator[tuple[str, Variable]]:
    """Yield the variables of an entry, by the place of each; those of broken strings are not."""
    left = most
    for row, field, text in texts(entry):
        if not row.variables:
            continue
        try:
            found = variables(text, max(left, 0))
        except ExpansionError:
            continue
        left -= len(found)
        yield from ((field, variable) for variable in found)


def absolute(path: str, base: str, home: str) -> str:
    """Return a path of a configuration as absolute: ``~`` is the home, others start at base."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))

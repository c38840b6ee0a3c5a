"""One server as a configuration describes it: text, before anything is expanded or started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from holdfast.config.environment import Surroundings
from holdfast.config.expansion import Input, Prompt
from holdfast.config.problems import Problem
from holdfast.config.settings import LockSetting, Settings
from holdfast.policies import Timeouts

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.config.resolution import Resolved
    from holdfast.config.trust import Standing

Scope = Literal["explicit", "project", "user"]
Manner = Literal["auto", "streamable", "sse"]


class Source(Struct, frozen=True, kw_only=True):
    """Where an entry came from."""

    file: str
    scope: Scope
    dialect: str
    workspace: str
    """The folder that ``${workspaceFolder}`` means."""
    around: Surroundings
    section: tuple[str, ...] = ()
    """The way to it inside the file, where it is not at the top."""

    def __str__(self) -> str:
        return " › ".join((self.file, *self.section))

    @property
    def base(self) -> str:
        """What relative paths are relative to."""
        return str(self.around.home) if self.scope == "user" else self.workspace


class ServerEntry(Struct, frozen=True, kw_only=True):
    """One server. Its strings are as they stand in the file; `resolve` expands them.

    A command or a URL: ``command``, ``args``, ``env``, ``env_file`` and ``cwd``, or ``url``,
    ``headers`` and ``transport``.
    """

    name: str
    source: Source
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_file: str | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    transport: Manner = "auto"
    settings: Settings = Settings()
    disabled: bool = False
    inputs: dict[str, Input] = {}
    problems: tuple[Problem, ...] = ()
    hides: tuple[Source, ...] = ()
    """Where entries of the same name are that lost to this one."""

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
    def timeouts(self) -> Timeouts | None:
        return self.settings.timeouts

    @property
    def protocol(self) -> str | None:
        return self.settings.protocol

    @property
    def allow(self) -> tuple[str, ...] | None:
        return self.settings.allow

    @property
    def deny(self) -> tuple[str, ...]:
        return self.settings.deny

    @property
    def lock(self) -> LockSetting | None:
        return self.settings.lock

    @property
    def log(self) -> str | None:
        return self.settings.log

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep it from being used."""
        return tuple(problem for problem in self.problems if problem.level == "error")

    def trust(self) -> Standing:
        """Whether it may be used, by the approvals as they are now."""
        from holdfast.config.trust import standing

        return standing(self)

    def resolve(
        self, environ: Mapping[str, str] | None = None, *, prompt: Prompt | None = None
    ) -> Resolved:
        """The entry with its variables expanded. Raises if one has no value; starts nothing."""
        from holdfast.config.resolution import resolve

        return resolve(self, environ, prompt=prompt)

    def connect(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        prompt: Prompt | None = None,
        **overrides: Any,
    ) -> Client:
        """A client for this server, as `holdfast.connect` makes it; overrides go there.

        Raises TrustError for an entry of a project's own file that nobody has approved.
        """
        from holdfast.config.resolution import admit, client_for

        return client_for(admit(self, environ, prompt=prompt), overrides)


def texts(entry: ServerEntry) -> Iterator[tuple[str, str]]:
    """Every string of an entry that variables may stand in, by the name of its field."""
    settings = entry.settings
    single = {
        "command": entry.command,
        "cwd": entry.cwd,
        "envFile": entry.env_file,
        "url": entry.url,
        "protocol": settings.protocol,
        "lock": None if settings.lock is None else settings.lock.path,
        "log": settings.log,
        "ca": settings.ca,
        "cert": settings.cert,
        "key": settings.key,
        "proxy": settings.proxy,
    }
    yield from ((field, text) for field, text in single.items() if text is not None)
    yield from _numbered("args", entry.args)
    yield from _named("env", entry.env)
    yield from _named("headers", entry.headers)
    yield from _numbered("allow", settings.allow or ())
    yield from _numbered("deny", settings.deny)
    inherited = settings.inherit_env
    yield from _numbered("inherit_env", () if isinstance(inherited, bool) else inherited)


def _numbered(field: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from ((f"{field}[{place}]", text) for place, text in enumerate(values))


def _named(field: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((f"{field}.{name}", text) for name, text in values.items())


def absolute(path: str, base: str, home: str) -> str:
    """A path of a configuration: ``~`` is the home, a relative one starts at ``base``."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))

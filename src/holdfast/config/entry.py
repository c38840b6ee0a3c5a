"""One server as a configuration describes it: text, before anything is expanded or started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from holdfast._core.text import has_unseen, visible
from holdfast.config.environment import EntrySource
from holdfast.config.expansion import (
    ConfigInput,
    ExpansionError,
    InputPrompt,
    Variable,
    variables,
)
from holdfast.config.settings import TABLE, HttpMode, Setting, flatten

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.config.resolution import ResolvedServer
    from holdfast.config.trust import TrustStatus

LONGEST_NAME: Final = 128
TYPES: Final = {"auto": "http", "streamable": "streamable-http", "sse": "sse"}
"""The ``type`` of an entry, by its HTTP transport."""
Level = Literal["error", "warning"]


class ConfigProblem(Struct, frozen=True, kw_only=True):
    """A fault of a configuration, by file, server and field.

    An ``error`` keeps its server (or file) from being used; a ``warning`` does not.
    """

    file: str
    message: str
    server: str | None = None
    field: str | None = None
    level: Level = "error"

    def __str__(self) -> str:
        server = "" if self.server is None else f"server {visible(self.server)!r}: "
        field = "" if self.field is None else f"{visible(self.field, 120)}: "
        return f"{visible(self.file)}: {server}{field}{self.message}"


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

    @property
    def warnings(self) -> tuple[ConfigProblem, ...]:
        """The problems that do not."""
        return tuple(problem for problem in self.problems if problem.level == "warning")

    def trust(self) -> TrustStatus:
        """Return whether it may be used, by the approvals on disk now."""
        from holdfast.config.trust import ApprovalStore

        return ApprovalStore(self.source.environment).status(self)

    def resolve(self, *, prompt: InputPrompt | None = None) -> ResolvedServer:
        """Expand the variables of the entry. Starts nothing.

        Args:
            prompt: Called for inputs without a value.

        Raises:
            ValidationError: A variable has no value, or what it expands to is not allowed there.
        """
        from holdfast.config.resolution import Resolution, read_env_file

        return Resolution(self, prompt).result(read_env_file(self))

    def connect(self, *, prompt: InputPrompt | None = None, **overrides: Any) -> Client:
        """Return a client for this server, not connected yet.

        Args:
            prompt: As in `resolve`.
            overrides: Options of `holdfast.connect`; they win over the configuration.

        Raises:
            TrustError: The entry is of a project's file and not approved as it is.
            StateError: The entry is disabled.
            ValidationError: The entry has errors, or a variable has no value.
        """
        from holdfast.config.resolution import admit, client_for

        return client_for(admit(self, prompt=prompt), overrides)


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
        for field, text in flatten(row.key or row.name, value):
            yield row, field, text


def definition(entry: ServerEntry) -> dict[str, Any]:
    """Return an entry as ``mcpServers`` writes it."""
    found: dict[str, Any] = {} if entry.url is None else {"type": TYPES[entry.transport]}
    for row, value in said(entry):
        if row.own:
            found.setdefault("holdfast", {})[row.name] = value
        elif row.name != "transport":
            found[row.key or row.name] = list(value) if row.name == "args" else value
    return found


def input_definition(asked: ConfigInput) -> dict[str, Any]:
    """Return an input as a file writes it."""
    fields = {**asdict(asked), "options": list(asked.options)}
    return {name: value for name, value in fields.items() if value}


def used_variables(entry: ServerEntry, most: int = 1000) -> Iterator[tuple[str, Variable]]:
    """Yield the variables of an entry, by the place of each; those of broken strings are not."""
    left = most
    for _, field, text in texts(entry):
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


# Checks

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 §5.6.2
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 §5.5, obs-text aside
_NOT_IN_URL: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Parsers disagree about what a backslash means, which decides the host."""
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/+-]*")


def name_fault(name: Any) -> str | None:
    """Return why this cannot be a server's name; None if it can."""
    if not isinstance(name, str):
        return "a server's name must be a string"
    if not name.strip() or len(name) > LONGEST_NAME:
        return f"the name '{visible(name, 40)}' must have 1 to {LONGEST_NAME} characters"
    if has_unseen(name) or name != name.strip():
        # It would be printed, compared by eye and pasted into a shell.
        return f"the name '{visible(name, 40)}' has characters in it that cannot be seen"
    return None


def is_safe_name(name: str) -> bool:
    """Return whether a name means itself in every shell, quoted or not.

    Completion offers no others: behind an open double quote, ``docs$(…)`` would be run.
    """
    return _SAFE_NAME.fullmatch(name) is not None


def value_faults(values: Mapping[str, Any], *, expanded: bool) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the values of settings, by their place.

    Before expansion only what no variable can mend; after it all of it: variables may bring in
    anything.
    """
    found: dict[str, str | None] = {}
    if "command" in values and not values["command"].strip():
        found["command"] = "must not be empty"
    for name in ("url", "proxy"):
        url = values.get(name)
        if url is not None and (expanded or not url.startswith("${")):
            found[name] = _url_fault(url, whole=expanded or "${" not in url)
    headers = values.get("headers", {})
    for name, value in headers.items():
        found[f"headers.{name}"] = _header_fault(name, value)
    if len({name.lower() for name in headers}) < len(headers):
        found["headers"] = "has a header twice (upper and lower case are the same)"
    names = {f"env.{name}": name for name in values.get("env", {})}
    inherited = values.get("inherit_env", ())
    if not isinstance(inherited, bool):
        names |= {f"inherit_env[{place}]": name for place, name in enumerate(inherited)}
    for place, name in names.items():
        odd = not name or "=" in name or "\0" in name or has_unseen(name) or " " in name
        if odd and (expanded or "${" not in name):
            found[place] = "is no name for a variable"
    return ((place, fault) for place, fault in found.items() if fault is not None)


def _header_fault(name: str, value: str) -> str | None:
    """Return why a header cannot be sent; a line break in it would begin another header."""
    if not _TOKEN.fullmatch(name):
        return "is no name for a header"
    if name.lower() in _FRAMING:
        return "is set by the client itself"
    return "must be one line without control characters" if _CONTROL.search(value) else None


def _url_fault(url: str, *, whole: bool) -> str | None:
    """Return why this is not the URL of a server; ``whole`` False: judge only its scheme."""
    from urllib.parse import urlsplit

    if not url.lower().startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if whole and (_NOT_IN_URL.search(url) or has_unseen(url)):
        return "has characters in it that a URL cannot have"
    try:
        parts = urlsplit(url) if whole else None
        if parts is not None and (not parts.hostname or parts.port == 0):
            return "has no host" if not parts.hostname else "has no valid port"
    except ValueError:
        return "is not a URL"
    return None

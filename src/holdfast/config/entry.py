"""One server as a configuration describes it: text, before anything is expanded or started.

Variables in its strings:

    ${VAR}  ${env:VAR}        the environment variable; it must be set
    ${VAR:-text}              the same, or the text if it is unset or empty
    ${input:id}               an input: HOLDFAST_INPUT_<ID>, or asked for, or its default
    ${workspaceFolder}        the project's folder (also ${CLAUDE_PROJECT_DIR}, if it is not set)
    ${workspaceFolderBasename}, ${userHome}, ${pathSeparator}, ${/}
    $${                       a plain ${

Nothing is expanded twice: the value of a variable is not expanded again. ``$VAR`` is plain text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from holdfast._core.text import visible
from holdfast.config.environment import EntrySource
from holdfast.config.settings import TABLE, HttpMode, Setting

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.config.resolution import ResolvedServer
    from holdfast.config.trust import TrustStatus

VariableKind = Literal["environment", "input", "place"]
InputPrompt = Callable[["ConfigInput"], "str | None"]
"""Asks a person for an input; ``input.password`` says that the answer must not be echoed."""
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


class ConfigInput(Struct, frozen=True, kw_only=True):
    """A value that a configuration asks its user for (VS Code's ``inputs``)."""

    id: str
    type: str = "promptString"
    description: str = ""
    default: str | None = None
    password: bool = False
    options: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that answers it."""
        return "HOLDFAST_INPUT_" + re.sub(r"[^A-Z0-9]", "_", self.id.upper())


class ServerEntry(Struct, frozen=True, kw_only=True):
    """One configured server; `connect` makes a client for it.

    Its strings are those of the file; `resolve` expands their variables. It has a command
    (``command``, ``args``, ``env``, ``env_file``, ``cwd``) or a URL (``url``, ``headers``,
    ``transport``); ``settings`` has the settings below ``holdfast``, by name.
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
    variables: tuple[tuple[str, Variable], ...] = ()
    """The variables in its strings, each with its place."""
    inputs: dict[str, ConfigInput] = {}
    """The inputs that its strings ask for, by id."""
    problems: tuple[ConfigProblem, ...] = ()
    hides: tuple[ServerEntry, ...] = ()
    """Entries with the same name that this one takes precedence over, in order."""

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
            TrustError: The entry is of a project's file, and not approved in its present form.
            StateError: The entry is disabled.
            ValidationError: The entry has errors, or a variable has no value.
        """
        from holdfast.config.resolution import admit, client_for

        return client_for(admit(self, prompt=prompt), overrides)


def given_settings(entry: ServerEntry) -> Iterator[tuple[Setting, Any]]:
    """Yield every setting that an entry gives a value, in the order of the table."""
    for row in TABLE.values():
        value = entry.settings.get(row.name) if row.own else getattr(entry, row.name, None)
        if value is not None and (row.own or value not in _NOTHING):
            yield row, value


_NOTHING: Final[tuple[object, ...]] = ((), {}, False, "auto")
"""Values of fields that are not given."""


def texts(entry: ServerEntry) -> Iterator[tuple[Setting, str, str]]:
    """Yield every value of an entry as text, with its setting and place (``env.TOKEN``)."""
    for row, whole in given_settings(entry):
        pending = [(row.key or row.name, whole)]
        while pending:
            field, value = pending.pop()
            if members := _members(field, value):
                pending += reversed(members)
            else:
                yield row, field, value if isinstance(value, str) else json.dumps(value)


def _members(field: str, value: Any) -> list[tuple[str, Any]]:
    """Return what stands in an object or an array, each with its place; nothing of a scalar."""
    if isinstance(value, dict):
        return [(f"{field}.{name}", item) for name, item in value.items()]
    if isinstance(value, list | tuple):
        return [(f"{field}[{index}]", item) for index, item in enumerate(value)]
    return []


def definition(entry: ServerEntry) -> dict[str, Any]:
    """Return an entry as ``mcpServers`` writes it."""
    fields: dict[str, Any] = {} if entry.url is None else {"type": TYPES[entry.transport]}
    for row, value in given_settings(entry):
        if row.own:
            fields.setdefault("holdfast", {})[row.name] = value
        elif row.name != "transport":
            fields[row.key or row.name] = list(value) if row.name == "args" else value
    return fields


def input_definition(config_input: ConfigInput) -> dict[str, Any]:
    """Return an input as a file writes it."""
    fields = {**asdict(config_input), "options": list(config_input.options)}
    return {name: value for name, value in fields.items() if value}


def absolute(path: str, base: str, home: str) -> str:
    """Return a path of a configuration as absolute: ``~`` is the home, others start at base."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))


# Variables


class Variable(Struct, frozen=True, kw_only=True):
    """One ``${…}`` in a text."""

    name: str
    kind: VariableKind
    default: str | None = None


class ExpansionError(Exception):
    """A text that cannot be expanded; names the variable, never a value."""


_PART: Final = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*+)(?P<close>\}?)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.A)
_PLACES: Final = frozenset(
    {"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}
)
_KNOWN: Final = "${VAR}, ${env:VAR}, ${VAR:-default}, ${input:id}, ${workspaceFolder}, ${userHome}"


def pieces(text: str) -> Iterator[str | Variable]:
    """Yield the plain parts and the variables of a text, in order."""
    end = 0
    for match in _PART.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        yield "${" if match["escape"] else _variable(match)
    if end < len(text):
        yield text[end:]


def _variable(match: re.Match[str]) -> Variable:
    _check_braces(match)
    name, marked, default = match["inside"].partition(":-")
    if name in _PLACES:
        return Variable(name=name, kind="place")
    prefix, colon, rest = name.partition(":")
    if colon and prefix == "input" and rest and not marked:
        return Variable(name=rest, kind="input")
    name = rest if colon and prefix == "env" else name
    if not _NAME.match(name):
        raise ExpansionError(f"'{visible(match[0], 80)}' is not a known variable ({_KNOWN})")
    return Variable(name=name, kind="environment", default=default if marked else None)


def _check_braces(match: re.Match[str]) -> None:
    if not match["close"]:
        raise ExpansionError("'${' is never closed; write '$${' for a plain '${'")
    if "${" in match["inside"]:
        raise ExpansionError(f"'{visible(match[0], 80)}': variables cannot be nested")


# Names

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/+-]*")


def is_safe_name(name: str) -> bool:
    """Return whether a name means itself in every shell, quoted or not.

    Completion offers no others: behind an open double quote, ``docs$(…)`` would be run.
    """
    return _SAFE_NAME.fullmatch(name) is not None

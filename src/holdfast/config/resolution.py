"""From an entry to a client: check it, check its approval, expand its variables, connect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.files import is_inside
from holdfast._core.text import visible
from holdfast.config import files
from holdfast.config.entry import (
    ConfigInput,
    ConfigProblem,
    ExpansionError,
    InputPrompt,
    ServerEntry,
    Variable,
    absolute,
    given_settings,
    pieces,
)
from holdfast.config.files import EnvFile, UnreadableFileError
from holdfast.config.settings import (
    TABLE,
    Receiver,
    map_path,
    parse_setting,
    value_faults,
)
from holdfast.errors import StateError, ValidationError
from holdfast.policies import ToolPolicy

if TYPE_CHECKING:
    from holdfast._core.boundary import Transport
    from holdfast.client import Client

MOST_CHARACTERS: Final = 1 << 20
_MOST_SHOWN: Final = 20
_STAND_INS: Final = {"HOME": "userHome", "CLAUDE_PROJECT_DIR": "workspaceFolder"}
"""Variables that have a value even where the environment has none."""


class ResolvedServer(Struct, frozen=True, kw_only=True):
    """An entry that is ready: its strings are final, its paths absolute."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    options: dict[str, Any] = {}
    """The options of `holdfast.connect` that the configuration sets."""
    transport_options: dict[str, Any] = {}
    """The options of `Stdio` or `Http` that it sets."""
    variables: dict[str, str] = {}
    """The variables and inputs in its strings, and their values: what is secret of them is hidden,
    wherever in a command or URL it stands."""

    def __repr__(self) -> str:
        return f"<ResolvedServer {self.name}>"


def admit(entry: ServerEntry, *, prompt: InputPrompt | None = None) -> ResolvedServer:
    """Return a resolved entry if it has no errors and is enabled and trusted.

    The same bytes are checked and used: nothing is read twice (CWE-367).
    """
    if any(problem.level == "error" for problem in entry.problems):
        # A warning may be the reason: a misspelt field leaves another one missing.
        raise _refusal(entry.problems)
    if entry.disabled:
        name = visible(entry.name)
        raise StateError(f"server {name!r} is disabled in {visible(entry.source.file)}")
    env_file = None if entry.env_file is None else read_env_file(entry)
    if entry.source.scope == "project":
        from holdfast.config.trust import require

        require(entry, env_file)
    return Resolution(entry, prompt).result(env_file)


def client_for(resolved: ResolvedServer, overrides: Mapping[str, Any]) -> Client:
    """Return a client for a resolved entry; overrides are options of `holdfast.connect`."""
    from holdfast._build import build_client
    from holdfast._options import Options

    transport_overrides = {
        name: value for name, value in overrides.items() if name in Options.__optional_keys__
    }
    rest = {name: value for name, value in overrides.items() if name not in transport_overrides}
    options = _merged_options(resolved.transport_options, transport_overrides)
    transport: Transport
    try:
        # By the kind of the entry: a URL never becomes a command line.
        if resolved.url is not None:
            from holdfast._core.transports.http import Http

            transport = Http(resolved.url, **options)
        else:
            from holdfast._core.transports.stdio import Stdio

            transport = Stdio(list(resolved.command), **options)
    except TypeError:
        kind = "a command" if resolved.url is None else "a URL"
        names = ", ".join(sorted(transport_overrides))
        raise ValidationError(
            f"server {visible(resolved.name)!r} is {kind}, which does not take all of: {names}"
        ) from None
    if resolved.variables:
        from holdfast._core.redact.known import KNOWN, secrets_of

        KNOWN.hold(transport, secrets_of("variables", resolved.variables))
    if transport.authorizer is not None:
        # The command in an error names the server as the configuration does.
        transport.authorizer.name = resolved.name
    return build_client(transport, transport, {}, **{**resolved.options, **rest})


def _merged_options(configured: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a transport: the overrides, and what is configured beside them."""
    options = {**configured, **overrides}
    for name in ("env", "headers"):
        # One variable more is no reason to lose those that the server is configured with.
        value, addition = configured.get(name), overrides.get(name)
        if isinstance(value, Mapping) and isinstance(addition, Mapping):
            options[name] = {**value, **addition}
    if "auth" in configured and options["auth"] == "oauth":
        login = configured["auth"]
        options["auth"] = login and replace(login, interactive=True)
    return options


def read_env_file(entry: ServerEntry) -> EnvFile | None:
    """Read the file of variables that an entry names; None if it names none."""
    if entry.env_file is None:
        return None
    resolution = Resolution(entry)
    path = resolution.path("envFile", entry.env_file)
    if not path:
        return EnvFile(path=entry.env_file, fault="cannot be found")
    return files.read_env(path, resolution.folder_of(path))


def project_contents(entry: ServerEntry) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files of the project whose content decides whom a server's client trusts.

    By the names of their settings; None for one that cannot be read. Files elsewhere are the
    user's own, and a renewed certificate of theirs needs no new approval.
    """
    resolution = Resolution(entry)
    for row, value in given_settings(entry):
        path = resolution.path(row.name, value) if row.path and row.kind == "url" else ""
        folder = resolution.folder_of(path)
        if folder is not None:
            try:
                yield row.name, files.read(path, files.PROJECT_BYTES, inside=folder)
            except UnreadableFileError:
                yield row.name, None


# Values of variables are the user's and may be anything: a URL, a line break, "../..", "${OTHER}".
# So nothing is expanded twice, what was checked before expansion is checked again after it, and the
# kind of an entry (command or URL) is that of its text. Faults name variables and never values.


class Resolution(Struct):
    """One walk over an entry. Every fault is recorded, so that all can be fixed at once."""

    entry: ServerEntry
    prompt: InputPrompt | None = None
    answers: dict[str, str] = {}
    """Inputs that were answered."""
    variables: dict[str, str] = {}
    """The variables and inputs that were expanded."""
    faults: dict[str, str] = {}
    """By field; the first of each counts."""

    def result(self, env_file: EnvFile | None) -> ResolvedServer:
        """Return the resolved entry, or raise one error for all faults."""
        entry, source, faults = self.entry, self.entry.source, self.faults
        values: dict[str, Any] = {}
        for row, value in given_settings(entry):
            name = row.key or row.name
            if row.path:
                values[row.name] = map_path(value, partial(self.path, name))
            else:
                values[row.name] = self.expanded(name, value)
        if env_file is not None:
            values["env"] = {**env_file.variables, **values.get("env", {})}
            if env_file.fault is not None:
                faults.setdefault("envFile", f"{visible(env_file.path)} {env_file.fault}")
        for field, fault in value_faults(values, expanded=True):
            faults.setdefault(field, fault)
        self._parse_own(values)
        if faults:
            raise _refusal(
                ConfigProblem(file=source.file, server=entry.name, field=field, message=fault)
                for field, fault in faults.items()
            )
        return self._build(values)

    def _parse_own(self, values: dict[str, Any]) -> None:
        """Parse the values of Holdfast's own settings, in place, except those at fault already."""
        for name in (name for name in values if TABLE[name].own and name not in self.faults):
            try:
                values[name] = parse_setting(TABLE[name], values[name])
            except ValueError as error:
                self.faults[name] = str(error)

    def _build(self, values: dict[str, Any]) -> ResolvedServer:
        """Return the values as options of their receivers: client, tools and transport."""
        entry, source = self.entry, self.entry.source
        kind = "command" if entry.url is None else "url"
        options = _by_receiver(values, kind)
        client, transport, parts = options["client"], options["transport"], options["entry"]
        if source.scope == "project" and kind == "command":
            # A project's commands are written as seen from its folder, wherever we are in it.
            transport.setdefault("cwd", source.workspace)
        _add_credentials(transport, parts)
        if options["tools"]:
            client["tools"] = ToolPolicy(**options["tools"])
        if "lock" in client:
            from holdfast.lock.guard import Lock

            client["lock"] = Lock(client["lock"].path, mode=client["lock"].mode)
        return ResolvedServer(
            name=entry.name,
            command=self._command(parts),
            url=parts.get("url"),
            env=transport.get("env", {}),
            headers=transport.get("headers", {}),
            options={"name": entry.name, **client},
            transport_options=transport,
            variables=self.variables,
        )

    def _command(self, parts: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the program, its ``~/`` replaced, and its arguments; empty for a URL."""
        if "command" not in parts:
            return ()
        program: str = parts["command"]
        if program.startswith("~/"):
            program = str(self.entry.source.environment.home) + program[1:]
        return (program, *parts.get("args", ()))

    def expanded(self, field: str, value: Any) -> Any:
        """Return a value with its strings expanded; one where that fails is empty."""
        if isinstance(value, dict):
            return {key: self.expanded(f"{field}.{key}", item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.expanded(f"{field}[{place}]", item) for place, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        try:
            text = self.expand(value) if "${" in value else value
        except ExpansionError as error:
            self.faults[field] = str(error)
            return ""
        if "\0" in text:
            self.faults[field] = "has a zero character in it after expansion"
        return text

    def path(self, field: str, text: str) -> str:
        """Expand a path and make it absolute; empty if that fails."""
        path: str = self.expanded(field, text)
        if field in self.faults:
            return ""
        source = self.entry.source
        path = absolute(path, source.base, str(source.environment.home))
        folder = self.folder_of(path)
        try:
            if folder is None or is_inside(os.path.realpath(path), os.path.realpath(folder)):
                return path
            self.faults[field] = "is a link that leads out of the project; not followed"
        except UnicodeEncodeError:
            self.faults[field] = "has a character in it that no path can have"
        return ""

    def folder_of(self, path: str) -> str | None:
        """Return the project's folder if the path says that it is in there.

        Links in a checkout must not lead elsewhere: an approval shows the path, not the link.
        """
        source = self.entry.source
        inside = source.scope == "project" and is_inside(path, source.workspace)
        return source.workspace if inside else None

    # Variables

    def expand(self, text: str) -> str:
        """Return the text with values in the place of its variables. Raises ExpansionError."""
        parts, length = [], 0
        for piece in pieces(text):
            parts.append(piece if isinstance(piece, str) else self.value(piece))
            length += len(parts[-1])
            if isinstance(piece, Variable) and piece.kind != "place":
                self.variables[piece.name] = parts[-1]
            if length > MOST_CHARACTERS:
                raise ExpansionError(f"expands to more than {MOST_CHARACTERS:,} characters")
        return "".join(parts)

    def value(self, variable: Variable) -> str:
        """Return the value of a variable. Raises ExpansionError."""
        name, default, source = variable.name, variable.default, self.entry.source
        places = {
            "workspaceFolder": source.workspace,
            "workspaceFolderBasename": os.path.basename(source.workspace),
            "userHome": str(source.environment.home),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if variable.kind == "place":
            return places[name]
        if variable.kind == "input":
            return self._input(name)
        value = source.environment.environ.get(name)
        if default is not None:
            return value or default
        if value is None and name in _STAND_INS:
            value = places[_STAND_INS[name]]
        if value is None:
            label = visible(name, 80)
            raise ExpansionError(
                f"the environment variable {label} is not set "
                f"(set it, or give a default: ${{{label}:-…}})"
            )
        return value

    def _input(self, name: str) -> str:
        described = self.entry.inputs.get(name)
        config_input = described or ConfigInput(id=name)
        label = visible(name, 80)
        environ = self.entry.source.environment.environ
        answer = environ.get(config_input.variable, self.answers.get(name))
        if answer is None and described is not None:
            answer = self._prompted(described)
        if answer is None:
            missing = "" if described else " (no input of this id is described in the file)"
            variable = visible(config_input.variable, 100)
            raise ExpansionError(f"the input {label!r} has no value{missing}: set {variable}")
        if config_input.options and answer not in config_input.options:
            choices = ", ".join(visible(option, 40) for option in config_input.options[:20])
            raise ExpansionError(f"the input {label!r} must be one of: {choices}")
        self.answers[name] = answer
        return answer

    def _prompted(self, config_input: ConfigInput) -> str | None:
        """Return what a person answers, or the default of the input."""
        # VS Code runs a command of an extension for this type; there is no such thing here.
        if config_input.type == "command":
            return None
        answer = None if self.prompt is None else self.prompt(config_input)
        return config_input.default if answer is None else answer


def _refusal(problems: Iterable[ConfigProblem]) -> ValidationError:
    """Return one error for all faults; ``data`` has them one by one."""
    listed = tuple(problems)
    return ValidationError("\n".join(map(str, listed[:_MOST_SHOWN])), data=listed)


def _by_receiver(values: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Return the values that count for this kind of server, as options of each receiver."""
    options: dict[str, dict[str, Any]] = {to: {} for to in get_args(Receiver)}
    for row in (TABLE[name] for name in values):
        if row.kind in ("any", kind):
            options[row.to][row.option or row.name] = values[row.name]
    return options


def _add_credentials(transport: dict[str, Any], parts: Mapping[str, Any]) -> None:
    if "oauth" in parts:
        transport["auth"] = _auth(parts["oauth"])
    if "key" in parts:
        transport["cert"] = (transport.get("cert"), parts["key"])


def _auth(login: Mapping[str, str]) -> Any:
    """Return the ``auth`` option: use a stored login, never start one."""
    if login.get("enabled") == "false":
        return None
    from holdfast._core.auth.options import OAuth

    options: dict[str, Any] = {name: value for name, value in login.items() if name != "enabled"}
    ends = {name: options.pop(name) for name in tuple(options) if name.endswith("_endpoint")}
    return OAuth(**options, endpoints=ends, interactive=False)

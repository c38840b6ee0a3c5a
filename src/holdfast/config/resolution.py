"""From an entry to a client: checked, trusted, expanded, and its transport built by kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

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
    pieces,
    said,
)
from holdfast.config.files import EnvFile, UnreadableFileError
from holdfast.config.settings import (
    TABLE,
    HttpMode,
    map_path,
    map_strings,
    parse_setting,
    value_faults,
)
from holdfast.errors import StateError, ValidationError
from holdfast.policies import ToolPolicy

if TYPE_CHECKING:
    from holdfast._core.transports.http import Http
    from holdfast._core.transports.stdio import Stdio
    from holdfast.client import Client

MOST_CHARACTERS: Final = 1 << 20
_MOST_SHOWN: Final = 20
_STAND_INS: Final = {"HOME": "userHome", "CLAUDE_PROJECT_DIR": "workspaceFolder"}
"""Variables that have a value even where the environment has none."""


class ResolvedServer(Struct, frozen=True, kw_only=True):
    """An entry that is ready: its strings are final, its paths absolute."""

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    transport: HttpMode = "auto"
    settings: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<ResolvedServer {self.name}>"

    def options(self) -> dict[str, Any]:
        """Return the options of `holdfast.connect` that the configuration sets."""
        found = self._said("client")
        tools = self._said("tools")
        if tools:
            found["tools"] = ToolPolicy(**tools)
        if "lock" in found:
            from holdfast.lock.guard import Lock

            found["lock"] = Lock(found["lock"].path, mode=found["lock"].mode)
        return {"name": self.name, **found}

    def transport_options(self) -> dict[str, Any]:
        """Return the options of `Stdio` or `Http` that the configuration sets."""
        found = self._said("transport")
        if self.url is not None and "oauth" in self.settings:
            found["auth"] = _auth(self.settings["oauth"])
        if self.url is not None and "key" in self.settings:
            found["cert"] = (found.get("cert"), self.settings["key"])
        return found

    def build_transport(self, overrides: Mapping[str, Any] | None = None) -> Stdio | Http:
        """Return the transport, by the kind of the entry: a URL never becomes a command line."""
        said = self.transport_options()
        options = {**said, **(overrides or {})}
        if self.url is not None:
            from holdfast._core.transports.http import Http

            if "auth" in said and options["auth"] == "oauth":
                configured = said["auth"]
                options["auth"] = configured and replace(configured, interactive=True)
            return Http(self.url, **options)
        from holdfast._core.transports.stdio import Stdio

        return Stdio(list(self.command), **options)

    def _said(self, to: str) -> dict[str, Any]:
        kinds = ("any", "command" if self.url is None else "url")
        rows = ((row, value) for row, value in said(self) if row.to == to and row.kind in kinds)
        return {row.option or row.name: value for row, value in rows}


def _auth(login: Mapping[str, str]) -> Any:
    """Return what ``auth`` is to be: a stored login is used, none is started."""
    if login.get("enabled") == "false":
        return None
    from holdfast._core.auth.options import OAuth

    options: dict[str, Any] = {name: one for name, one in login.items() if name != "enabled"}
    ends = {name: options.pop(name) for name in tuple(options) if name.endswith("_endpoint")}
    return OAuth(**options, endpoints=ends, interactive=False)


def admit(entry: ServerEntry, *, prompt: InputPrompt | None = None) -> ResolvedServer:
    """Return a resolved entry if it has no errors and is enabled and trusted.

    The same bytes are checked and used: nothing is read twice (CWE-367).
    """
    if entry.errors:
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


def client_for(
    resolved: ResolvedServer,
    overrides: Mapping[str, Any],
    wrap: Callable[[Any], Any] | None = None,
) -> Client:
    """Return a client for a resolved entry; overrides are options of `holdfast.connect`.

    ``wrap`` gets the transport, and returns the one to use.
    """
    from holdfast._connect import Options, connect

    own = {name: value for name, value in overrides.items() if name in Options.__optional_keys__}
    rest = {name: value for name, value in overrides.items() if name not in own}
    try:
        transport = resolved.build_transport(own)
    except TypeError:
        kind = "a command" if resolved.url is None else "a URL"
        names = ", ".join(sorted(own))
        raise ValidationError(
            f"server {visible(resolved.name)!r} is {kind}, which does not take all of: {names}"
        ) from None
    authorizer = getattr(transport, "authorizer", None)
    if authorizer is not None:
        # The command in an error names the server as the configuration does.
        authorizer.name = resolved.name
    target: Any = transport if wrap is None else wrap(transport)
    return connect(target, **{**resolved.options(), **rest})


def read_env_file(entry: ServerEntry) -> EnvFile | None:
    """Return the file of variables that an entry names, as it is now; None if it names none."""
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
    for row, value in said(entry):
        path = resolution.path(row.name, value) if row.path and row.kind == "url" else ""
        folder = resolution.folder_of(path)
        if folder is not None:
            try:
                yield row.name, files.read(path, files.PROJECT_BYTES, inside=folder)
            except UnreadableFileError:
                yield row.name, None


class Resolution:
    """One walk over an entry; every fault is noted, so that all can be mended at once."""

    def __init__(self, entry: ServerEntry, prompt: InputPrompt | None = None) -> None:
        source = entry.source
        self._entry = entry
        self._prompt = prompt
        self._environ = source.environment.environ
        self._home = str(source.environment.home)
        self._answers: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        """By field; the first of each counts."""
        self._places = {
            "workspaceFolder": source.workspace,
            "workspaceFolderBasename": os.path.basename(source.workspace),
            "userHome": self._home,
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def result(self, env_file: EnvFile | None) -> ResolvedServer:
        """Return the resolved entry, or raise one error for all faults."""
        entry, source = self._entry, self._entry.source
        values: dict[str, Any] = {}
        for row, value in said(entry):
            name = row.key or row.name
            if row.path:
                values[row.name] = map_path(value, partial(self.path, name))
            else:
                values[row.name] = map_strings(name, value, self.text)
        env = values.get("env", {})
        if env_file is not None:
            env = {**env_file.variables, **env}
            if env_file.fault is not None:
                fault = f"{visible(env_file.path)} {env_file.fault}"
                self._faults.setdefault("envFile", fault)
        for field, fault in value_faults({**values, "env": env}, expanded=True):
            self._faults.setdefault(field, fault)
        settings: dict[str, Any] = {}
        for name in (name for name in values if TABLE[name].own and name not in self._faults):
            try:
                settings[name] = parse_setting(TABLE[name], values[name])
            except ValueError as error:
                self._faults[name] = str(error)
        if self._faults:
            raise _refusal(
                ConfigProblem(file=source.file, server=entry.name, field=field, message=fault)
                for field, fault in self._faults.items()
            )
        command = (values["command"], *values.get("args", ())) if "command" in values else ()
        if command and command[0].startswith("~/"):
            command = (self._home + command[0][1:], *command[1:])
        # A project's commands are written as seen from its folder, wherever we are in it.
        is_project = source.scope == "project" and entry.url is None
        return ResolvedServer(
            name=entry.name,
            command=command,
            env=env,
            cwd=values.get("cwd") or (source.workspace if is_project else None),
            url=values.get("url"),
            headers=values.get("headers", {}),
            transport=entry.transport,
            settings=settings,
        )

    def text(self, field: str, text: str) -> str:
        """Expand a string; empty if that fails."""
        try:
            found = self.expand(text) if "${" in text else text
        except ExpansionError as error:
            self._faults[field] = str(error)
            return ""
        if "\0" in found:
            self._faults[field] = "has a zero character in it after expansion"
        return found

    def path(self, field: str, text: str) -> str:
        """Expand a path and make it absolute; empty if that fails."""
        path = self.text(field, text)
        if field in self._faults:
            return ""
        path = absolute(path, self._entry.source.base, self._home)
        folder = self.folder_of(path)
        try:
            if folder is None or is_inside(os.path.realpath(path), os.path.realpath(folder)):
                return path
            self._faults[field] = "is a link that leads out of the project; not followed"
        except UnicodeEncodeError:
            self._faults[field] = "has a character in it that no path can have"
        return ""

    def folder_of(self, path: str) -> str | None:
        """Return the project's folder if the path says that it is in there.

        Links in a checkout must not lead elsewhere: an approval shows the path, not the link.
        """
        source = self._entry.source
        inside = source.scope == "project" and is_inside(path, source.workspace)
        return source.workspace if inside else None

    # Variables

    def expand(self, text: str) -> str:
        """Return the text with values in the place of its variables. Raises ExpansionError."""
        found, length = [], 0
        for piece in pieces(text):
            found.append(piece if isinstance(piece, str) else self.value(piece))
            length += len(found[-1])
            if length > MOST_CHARACTERS:
                raise ExpansionError(f"expands to more than {MOST_CHARACTERS:,} characters")
        return "".join(found)

    def value(self, variable: Variable) -> str:
        """Return the value of a variable. Raises ExpansionError."""
        name, default = variable.name, variable.default
        if variable.kind == "place":
            return self._places[name]
        if variable.kind == "input":
            return self._input(name)
        value = self._environ.get(name)
        if default is not None:
            return value or default
        if value is None and name in _STAND_INS:
            value = self._places[_STAND_INS[name]]
        if value is None:
            shown = visible(name, 80)
            raise ExpansionError(
                f"the environment variable {shown} is not set "
                f"(set it, or give a default: ${{{shown}:-…}})"
            )
        return value

    def _input(self, name: str) -> str:
        asked = self._entry.inputs.get(name)
        wanted = asked or ConfigInput(id=name)
        shown = visible(name, 80)
        answer = self._environ.get(wanted.variable, self._answers.get(name))
        # For a command VS Code runs one of an extension; there is none here.
        if answer is None and asked is not None and asked.type != "command":
            answer = None if self._prompt is None else self._prompt(asked)
            answer = asked.default if answer is None else answer
        if answer is None:
            missing = "" if asked else " (no input of this id is described in the file)"
            variable = visible(wanted.variable, 100)
            raise ExpansionError(f"the input {shown!r} has no value{missing}: set {variable}")
        if wanted.options and answer not in wanted.options:
            choices = ", ".join(visible(option, 40) for option in wanted.options[:20])
            raise ExpansionError(f"the input {shown!r} must be one of: {choices}")
        self._answers[name] = answer
        return answer


def _refusal(problems: Iterable[ConfigProblem]) -> ValidationError:
    """Return one error for all faults; ``data`` has them one by one."""
    found = tuple(problems)
    return ValidationError("\n".join(map(str, found[:_MOST_SHOWN])), data=found)

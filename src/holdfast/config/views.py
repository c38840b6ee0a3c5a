"""What there is to say about a configuration: plain values for a face to render.

Nothing here starts a server, expands a variable into view, or asks anybody anything.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from holdfast.config import settings, trust
from holdfast.config.display import Display
from holdfast.config.entry import Scope, ServerEntry, texts
from holdfast.config.expansion import Expander, ExpansionError, Kind, variables
from holdfast.config.export import definition
from holdfast.config.loading import Configuration
from holdfast.config.problems import visible
from holdfast.config.resolution import read_env_file
from holdfast.config.trust import Verdict


class ServerRow(Struct, frozen=True, kw_only=True):
    """One server in a list."""

    name: str
    kind: str
    target: str
    scope: Scope
    file: str
    dialect: str
    trust: Verdict
    disabled: bool
    shadows: int
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class FileRow(Struct, frozen=True, kw_only=True):
    path: str
    scope: Scope
    dialect: str
    servers: tuple[str, ...]
    problems: tuple[str, ...]


class Overview(Struct, frozen=True, kw_only=True):
    """All servers, and the files that they come from, what wins first."""

    servers: tuple[ServerRow, ...]
    files: tuple[FileRow, ...]


class VariableRow(Struct, frozen=True, kw_only=True):
    """One variable: where it is used, and whether there is a value. Never the value."""

    name: str
    kind: Kind
    fields: tuple[str, ...]
    is_set: bool
    has_default: bool
    set_by: str | None
    """The environment variable that gives it a value."""


class Explanation(Struct, frozen=True, kw_only=True):
    """Everything about one server."""

    name: str
    kind: str
    file: str
    section: tuple[str, ...]
    scope: Scope
    dialect: str
    workspace: str
    disabled: bool
    definition: dict[str, Any]
    settings: dict[str, Any]
    variables: tuple[VariableRow, ...]
    trust: Verdict
    changes: tuple[str, ...]
    approve: str | None
    """The command that approves it, where that is needed."""
    shadows: tuple[str, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class Approval(Struct, frozen=True, kw_only=True):
    """What an approval is about.

    ``definition`` is the text of the file to the letter, secrets and all (control characters
    made visible): what is hidden cannot be approved.
    """

    name: str
    file: str
    verdict: Verdict
    changes: tuple[str, ...]
    definition: dict[str, Any]
    variables: tuple[str, ...]
    cautions: tuple[str, ...]
    """What deserves a second look."""
    fingerprint: str
    approved: bool = False


def show(config: Configuration) -> Overview:
    """Every server with its source, its kind, its standing and its problems."""
    display = Display()
    return Overview(
        servers=tuple(_row(entry, display) for entry in config.servers.values()),
        files=tuple(
            FileRow(
                path=visible(file.path),
                scope=file.scope,
                dialect=file.dialect,
                servers=file.servers,
                problems=tuple(map(str, file.problems)),
            )
            for file in config.files
        ),
    )


def _row(entry: ServerEntry, display: Display) -> ServerRow:
    return ServerRow(
        name=entry.name,
        kind=entry.kind,
        target=display.target(entry),
        scope=entry.source.scope,
        file=visible(entry.source.file),
        dialect=entry.source.dialect,
        trust=entry.trust().verdict,
        disabled=entry.disabled,
        shadows=len(entry.hides),
        problems=tuple(map(str, entry.errors)),
        warnings=_warnings(entry),
    )


def _warnings(entry: ServerEntry) -> tuple[str, ...]:
    return tuple(str(problem) for problem in entry.problems if problem.level == "warning")


def explain(config: Configuration, name: str) -> Explanation:
    """Where a server comes from, what it hides, what its variables are, how it stands."""
    entry = config[name]
    display = Display()
    standing = entry.trust()
    source = entry.source
    return Explanation(
        name=entry.name,
        kind=entry.kind,
        file=visible(source.file),
        section=tuple(map(visible, source.section)),
        scope=source.scope,
        dialect=source.dialect,
        workspace=visible(source.workspace),
        disabled=entry.disabled,
        definition=display.definition(entry),
        settings=display.value(settings.changed(entry.settings)),
        variables=variable_rows(entry),
        trust=standing.verdict,
        changes=standing.changes,
        approve=None if standing.ok else trust.approving(entry),
        shadows=tuple(visible(str(source)) for source in entry.hides),
        problems=tuple(map(str, entry.errors)),
        warnings=(*_warnings(entry), *([standing.problem] if standing.problem else [])),
    )


def variable_rows(entry: ServerEntry) -> tuple[VariableRow, ...]:
    """The variables of an entry, in the order in which they stand."""
    source = entry.source
    expander = Expander(
        source.around.environ,
        workspace=source.workspace,
        home=str(source.around.home),
        inputs=entry.inputs,
    )
    used: dict[tuple[str, Kind], list[Any]] = {}
    for field, text in texts(entry):
        try:
            for variable in variables(text):
                used.setdefault((variable.name, variable.kind), []).append((field, variable))
        except ExpansionError:
            continue  # told among the problems
    return tuple(
        VariableRow(
            name=visible(name),
            kind=kind,
            fields=tuple(visible(field) for field, _ in uses),
            is_set=all(expander.has(variable) for _, variable in uses),
            has_default=all(variable.default is not None for _, variable in uses),
            set_by=_set_by(entry, name, kind),
        )
        for (name, kind), uses in used.items()
    )


def _set_by(entry: ServerEntry, name: str, kind: Kind) -> str | None:
    if kind == "input":
        from holdfast.config.expansion import Input

        return entry.inputs.get(name, Input(id=name)).variable
    return name if kind == "environment" else None


# Approving


def preview(config: Configuration, name: str) -> Approval:
    """What `approve` would approve, for a person to read first."""
    return _approval(config[name])


def approve(config: Configuration, name: str, *, seen: Approval | None = None) -> Approval:
    """Approve a server of a project's file: as it is now, or only as it was ``seen``."""
    entry = config[name]
    found = seen or _approval(entry)
    trust.approve(entry, found.fingerprint)
    from msgspec.structs import replace

    return replace(found, approved=True)


def revoke(config: Configuration, name: str) -> bool:
    """Take the approval back; False if there was none."""
    return trust.revoke(config[name])


def _approval(entry: ServerEntry) -> Approval:
    standing = entry.trust()
    return Approval(
        name=entry.name,
        file=visible(entry.source.file),
        verdict=standing.verdict,
        changes=standing.changes,
        definition=_to_the_letter(definition(entry)),
        variables=tuple(dict.fromkeys(row.name for row in variable_rows(entry))),
        cautions=tuple(_cautions(entry)),
        fingerprint=trust.fingerprint(trust.parts(entry, read_env_file(entry))),
    )


def _to_the_letter(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [_to_the_letter(item) for item in value]
    if isinstance(value, dict):
        return {visible(str(name)): _to_the_letter(item) for name, item in value.items()}
    return value


_LOADS_CODE: Final = re.compile(
    r"LD_|DYLD_|PATH\Z|PYTHON|NODE_|BASH_ENV\Z|ENV\Z|PERL5|RUBY|JAVA_TOOL_OPTIONS\Z|JDK_JAVA|"
    r"GIT_|SHELL\Z|IFS\Z|npm_config_|UV_|PIP_",
    re.I,
)
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "eval", "xargs"})


def _cautions(entry: ServerEntry) -> list[str]:
    found = [f"{where} can change which code runs" for where in _code_variables(entry)]
    if (entry.command or "").rpartition("/")[2] in _SHELLS:
        found.append("the command is a shell: what it runs stands in the arguments")
    if entry.url is not None and entry.url.lower().startswith("http://"):
        found.append("the URL is not encrypted")
    if entry.settings.inherit_env is True:
        found.append("the server gets your whole environment, secrets too")
    if entry.settings.log is not None:
        found.append("calls are written to a file that the project names")
    sent = [row for row in variable_rows(entry) if row.kind != "place"]
    if sent:
        names = ", ".join(dict.fromkeys(row.name for row in sent))
        found.append(f"the server is given the values of: {names}")
    return found


def _code_variables(entry: ServerEntry) -> list[str]:
    names = [f"env.{visible(name)}" for name in entry.env if _LOADS_CODE.match(name)]
    file = read_env_file(entry)
    try:
        in_file = {} if file is None or file.data is None else file.variables()
    except ValueError:
        in_file = {}
    return [*names, *(f"{name} in the envFile" for name in in_file if _LOADS_CODE.match(name))]

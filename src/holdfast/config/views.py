"""Views of a configuration: plain values to render.

Nothing here starts a server, shows the value of a variable, or prompts. Secrets are redacted by
name and by form; only an approval shows them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from holdfast._core.redact.redactor import HIDDEN, default_redactor
from holdfast._core.text import truncate, visible
from holdfast.config import trust
from holdfast.config.entry import (
    ExpansionError,
    ServerEntry,
    Variable,
    VariableKind,
    definition,
)
from holdfast.config.environment import ConfigScope
from holdfast.config.loading import Configuration, LoadedFile
from holdfast.config.resolution import Resolution
from holdfast.config.trust import ApprovalStore, TrustStatus, TrustVerdict


class VariableRow(Struct, frozen=True, kw_only=True):
    """One variable: where it is used, and whether there is a value. Never the value."""

    name: str
    kind: VariableKind
    fields: tuple[str, ...]
    is_set: bool
    has_default: bool


class ServerExplanation(Struct, frozen=True, kw_only=True):
    """Everything about one server."""

    name: str
    kind: str
    target: str
    """The command and its arguments, or the URL, on one line."""
    file: str
    section: tuple[str, ...]
    scope: ConfigScope
    dialect: str
    workspace: str
    disabled: bool
    definition: dict[str, Any]
    settings: dict[str, Any]
    variables: tuple[VariableRow, ...]
    trust: TrustVerdict
    changes: tuple[str, ...]
    approve: str | None
    """The command that approves it, where that is needed."""
    shadows: tuple[str, ...]
    """The sources of entries with the same name that this one hides."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class ConfigOverview(Struct, frozen=True, kw_only=True):
    """All servers, and the files that they come from, in order of precedence."""

    servers: tuple[ServerExplanation, ...]
    files: tuple[LoadedFile, ...]


# Showing


def show(config: Configuration) -> ConfigOverview:
    """Return every server with its source, kind, trust and problems, and every file."""
    store = ApprovalStore(config.environment)
    servers = tuple(_explained(entry, store.status(entry)) for entry in config)
    return ConfigOverview(servers=servers, files=config.files)


def explain(config: Configuration, name: str) -> ServerExplanation:
    """Return where a server comes from, what it hides, its variables and its trust."""
    entry = config[name]
    return _explained(entry, entry.trust())


def _explained(entry: ServerEntry, status: TrustStatus) -> ServerExplanation:
    source, display = entry.source, EntryDisplay()
    fields = display.definition(entry)
    return ServerExplanation(
        name=entry.name,
        kind=entry.kind,
        target=truncate(display.target(entry), _LONGEST_TARGET),
        file=visible(source.file),
        section=tuple(map(visible, source.section)),
        scope=source.scope,
        dialect=source.dialect,
        workspace=visible(source.workspace),
        disabled=entry.disabled,
        settings=fields.pop("holdfast", {}),
        definition=fields,
        variables=_variables(entry),
        trust=status.verdict,
        changes=status.changes,
        approve=None if status.ok else trust.approving(entry.name),
        shadows=tuple(visible(str(lost.source)) for lost in entry.hides),
        problems=tuple(map(str, entry.errors)),
        warnings=(*map(str, entry.warnings), *filter(None, [status.problem])),
    )


def _variables(entry: ServerEntry) -> tuple[VariableRow, ...]:
    """Return the variables of an entry, in the order in which they stand."""
    resolution = Resolution(entry)

    def has_value(variable: Variable) -> bool:
        with suppress(ExpansionError):
            return resolution.value(variable) is not None
        return False

    used: dict[tuple[str, VariableKind], list[tuple[str, Variable]]] = {}
    for field, variable in entry.variables:
        used.setdefault((variable.name, variable.kind), []).append((field, variable))
    return tuple(
        VariableRow(
            name=visible(name, 120),
            kind=kind,
            fields=tuple(dict.fromkeys(visible(field, 120) for field, _ in uses)),
            is_set=all(has_value(variable) for _, variable in uses),
            has_default=all(variable.default is not None for _, variable in uses),
        )
        for (name, kind), uses in used.items()
    )


# Redacted text

_REFERENCE: Final = re.compile(
    r"(?:(?:bearer|basic|token)\s+)?\$\{(?:(?:env|input):)?[\w.-]+\}", re.I | re.A
)
_PAIR: Final = re.compile(r"(?P<head>-{0,2}(?P<name>[\w.-]+)(?:=|:\s*))(?P<value>.*)", re.S)
_QUERY: Final = re.compile(r"(?P<head>[?&](?P<name>[^=&#?]*+)=)(?P<value>[^&#]*+)")
_MOST_WORDS: Final = 50
_LONGEST_TARGET: Final = 2000
"""Characters of a command in a list of servers; ``config explain`` shows all."""
_PLAIN_WORD: Final = re.compile(r"[\w@%+=:,./${}\[\]-]+")
"""Readable without quotes; ``${`` needs quotes in a shell, but reads better without."""


class EntryDisplay:
    """Shows entries as the file has them, without their secrets."""

    def __init__(self) -> None:
        self._redactor = default_redactor()

    def target(self, entry: ServerEntry) -> str:
        """Return one line: the command and its arguments, or the URL."""
        if entry.url is not None:
            return self.url(entry.url)
        import shlex

        command = entry.command or ""
        words = [self.text(command), *self.arguments(entry.args[:_MOST_WORDS])]
        quoted = [word if _PLAIN_WORD.fullmatch(word) else shlex.quote(word) for word in words]
        return " ".join([*quoted, "…"] if len(entry.args) > _MOST_WORDS else quoted)

    def definition(self, entry: ServerEntry) -> dict[str, Any]:
        """Return the entry as a file would have it."""
        fields = self.table(definition(entry))
        if entry.args:
            fields["args"] = self.arguments(entry.args)
        if entry.url is not None:
            fields["url"] = self.url(entry.url)
        return fields

    def text(self, text: str) -> str:
        """Return a text without what looks like a secret."""
        return visible(self._redactor.text(text))

    def table(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return variables, headers or settings without their secrets."""
        return {visible(name): self._named(name, value) for name, value in values.items()}

    def arguments(self, values: Sequence[str]) -> list[str]:
        """Return arguments without their secrets: ``--token`` hides what follows."""
        shown_words, secret_follows = [], False
        for value in values:
            pair = _PAIR.fullmatch(value)
            if secret_follows:
                shown_words.append(self._masked(value))
            elif pair is not None and self._redactor.is_secret(pair["name"]):
                shown_words.append(visible(pair["head"]) + self._masked(pair["value"]))
            else:
                shown_words.append(self.text(value))
            secret_follows = value.startswith("-") and self._redactor.is_secret(value)
        return shown_words

    def url(self, url: str) -> str:
        """Return a URL without its password and the secrets of its query."""

        def hide(match: re.Match[str]) -> str:
            return f"{match['head']}{self._named(match['name'], match['value'])}"

        head, mark, query = url.partition("?")
        return visible(self._redactor.text(head) + _QUERY.sub(hide, mark + query))

    def _named(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.table(value)
        if isinstance(value, list | tuple):
            return [self._named(name, item) for item in value]
        if not isinstance(value, str):
            return value
        return self._masked(value) if self._redactor.is_secret(name) else self.text(value)

    def _masked(self, value: str) -> str:
        """Hide a secret; a reference to a variable is no secret and stays."""
        return visible(value) if _REFERENCE.fullmatch(value) else HIDDEN

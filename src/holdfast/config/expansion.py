"""Variables in a configuration's strings.

    ${VAR}  ${env:VAR}        the environment variable; it must be set
    ${VAR:-text}              the same, or the text if it is unset or empty
    ${input:id}               an input: HOLDFAST_INPUT_<ID>, or asked for, or its default
    ${workspaceFolder}        the project's folder (also ${CLAUDE_PROJECT_DIR}, if it is not set)
    ${workspaceFolderBasename}, ${userHome}, ${pathSeparator}, ${/}
    $${                       a plain ${

Nothing is expanded twice: a variable's value is taken as it is. ``$VAR`` is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, Literal

from msgspec import Struct

from holdfast._core.text import visible

VariableKind = Literal["environment", "input", "place"]
InputPrompt = Callable[["ConfigInput"], "str | None"]
"""Asks a person for an input; ``input.password`` says that the answer must not be echoed."""


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


def variables(text: str, most: int | None = None) -> list[Variable]:
    """Return the first variables of a text. Raises ExpansionError."""
    if "${" not in text:
        return []
    return list(islice((one for one in pieces(text) if isinstance(one, Variable)), most))


def _variable(match: re.Match[str]) -> Variable:
    inside = match["inside"]
    if not match["close"]:
        raise ExpansionError("'${' is never closed; write '$${' for a plain '${'")
    if "${" in inside:
        raise ExpansionError(f"'{visible(match[0], 80)}': variables cannot be nested")
    name, marked, default = inside.partition(":-")
    if name in _PLACES:
        return Variable(name=name, kind="place")
    prefix, colon, rest = name.partition(":")
    if colon and prefix == "input" and rest and not marked:
        return Variable(name=rest, kind="input")
    name = rest if colon and prefix == "env" else name
    if not _NAME.match(name):
        raise ExpansionError(f"'{visible(match[0], 80)}' is not a known variable ({_KNOWN})")
    return Variable(name=name, kind="environment", default=default if marked else None)

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

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from holdfast._core.text import visible

if TYPE_CHECKING:
    from holdfast.config.entry import ServerEntry

VariableKind = Literal["environment", "input", "place"]
InputPrompt = Callable[["ConfigInput"], "str | None"]
"""Asks a person for an input; ``input.password`` says that the answer must not be echoed."""
MOST_CHARACTERS: Final = 1 << 20
"""Characters of one expanded string."""


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

    def __str__(self) -> str:
        return f"${{input:{self.name}}}" if self.kind == "input" else f"${{{self.name}}}"


class ExpansionError(Exception):
    """A text that cannot be expanded; names the variable, never a value."""


_PART: Final = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*+)(?P<close>\}?)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.A)
_PLACES: Final = frozenset(
    {"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}
)
_STAND_INS: Final = {"HOME": "userHome", "CLAUDE_PROJECT_DIR": "workspaceFolder"}
"""Variables that have a value even where the environment has none."""
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


class Expander:
    """Expands the variables of one server. Each input is asked for once."""

    def __init__(
        self,
        entry: ServerEntry,
        environ: Mapping[str, str] | None = None,
        prompt: InputPrompt | None = None,
    ) -> None:
        around, workspace = entry.source.environment, entry.source.workspace
        self._environ = around.environ if environ is None else environ
        self._inputs = entry.inputs
        self._prompt = prompt
        self._answers: dict[str, str] = {}
        self._places = {
            "workspaceFolder": workspace,
            "workspaceFolderBasename": os.path.basename(workspace),
            "userHome": str(around.home),
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def expand(self, text: str) -> str:
        """Return the text with values in the place of its variables. Raises ExpansionError."""
        if "${" not in text:
            return text
        found, length = [], 0
        for piece in pieces(text):
            found.append(piece if isinstance(piece, str) else self._value(piece))
            length += len(found[-1])
            if length > MOST_CHARACTERS:
                raise ExpansionError(f"expands to more than {MOST_CHARACTERS:,} characters")
        return "".join(found)

    def has(self, variable: Variable) -> bool:
        """Return whether there is a value; asks for an input if it can."""
        try:
            self._value(variable)
        except ExpansionError:
            return False
        return True

    def _value(self, variable: Variable) -> str:
        name, default = variable.name, variable.default
        if variable.kind == "place":
            return self._places[name]
        if variable.kind == "input":
            return self._from_input(name)
        value = self._environ.get(name)
        if default is not None:
            return value or default
        if value is None and name in _STAND_INS:
            value = self._places[_STAND_INS[name]]
        if value is None:
            raise ExpansionError(
                f"the environment variable {visible(name, 80)} is not set "
                f"(set it, or give a default: ${{{visible(name, 80)}:-…}})"
            )
        return value

    def _from_input(self, name: str) -> str:
        asked = self._inputs.get(name)
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

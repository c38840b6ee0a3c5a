"""Variables in a configuration's strings.

    ${VAR}  ${env:VAR}        the environment variable; it must be set
    ${VAR:-text}              the same, or the text if it is unset or empty
    ${input:id}               an input: HOLDFAST_INPUT_<ID>, or asked for, or its default
    ${workspaceFolder}        the project's folder (also ${CLAUDE_PROJECT_DIR}, if it is not set)
    ${workspaceFolderBasename}, ${userHome}, ${pathSeparator}, ${/}
    $${                       a plain ${

Nothing is expanded twice: what a variable holds is not looked into. ``$VAR`` is plain text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from holdfast.config.problems import visible

Kind = Literal["environment", "input", "place"]
Prompt = Callable[["Input"], "str | None"]
"""Asks a person for an input. ``input.password`` says that the answer must not be seen."""


class Input(Struct, frozen=True, kw_only=True):
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
    """One ``${…}`` as it stands in a text."""

    name: str
    kind: Kind
    default: str | None = None

    def __str__(self) -> str:
        return f"${{input:{self.name}}}" if self.kind == "input" else f"${{{self.name}}}"


class ExpansionError(Exception):
    """Why a text cannot be expanded; names the variable, never a value."""


_PART: Final = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*+)(?P<close>\}?)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLACES: Final = frozenset(
    {"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}
)
_STAND_INS: Final = {"HOME": "userHome", "CLAUDE_PROJECT_DIR": "workspaceFolder"}
"""Variables that have a value even where the environment has none."""


def pieces(text: str) -> Iterator[str | Variable]:
    """The plain parts and the variables of a text, in order."""
    end = 0
    for match in _PART.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        yield "${" if match["escape"] else _variable(match)
    if end < len(text):
        yield text[end:]


def variables(text: str) -> list[Variable]:
    return [piece for piece in pieces(text) if isinstance(piece, Variable)]


def _variable(match: re.Match[str]) -> Variable:
    inside = match["inside"]
    if not match["close"]:
        raise ExpansionError("'${' is never closed; write '$${' for a plain '${'")
    if "${" in inside:
        raise ExpansionError(f"'{visible(match[0])}': variables cannot stand in one another")
    name, marked, default = inside.partition(":-")
    if name in _PLACES:
        return Variable(name=name, kind="place")
    prefix, colon, rest = name.partition(":")
    if colon and prefix == "input" and rest and not marked:
        return Variable(name=rest, kind="input")
    name = rest if colon and prefix == "env" else name
    if not _NAME.match(name):
        known = "${VAR}, ${env:VAR}, ${VAR:-default}, ${input:id}, ${workspaceFolder}, ${userHome}"
        raise ExpansionError(f"'{visible(match[0])}' is no variable that is known here ({known})")
    return Variable(name=name, kind="environment", default=default if marked else None)


class Expander:
    """The values for one server's variables. Each input is asked for once."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        workspace: str,
        home: str,
        inputs: Mapping[str, Input] | None = None,
        prompt: Prompt | None = None,
    ) -> None:
        self._environ = environ
        self._inputs = inputs or {}
        self._prompt = prompt
        self._answers: dict[str, str] = {}
        self._places = {
            "workspaceFolder": workspace,
            "workspaceFolderBasename": os.path.basename(workspace),
            "userHome": home,
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def expand(self, text: str) -> str:
        if "${" not in text:
            return text
        return "".join(p if isinstance(p, str) else self._value(p) for p in pieces(text))

    def has(self, variable: Variable) -> bool:
        """Whether there is a value; asks for an input if it can."""
        try:
            self._value(variable)
        except ExpansionError:
            return False
        return True

    def _value(self, variable: Variable) -> str:
        return _VALUES[variable.kind](self, variable)

    def _place(self, variable: Variable) -> str:
        return self._places[variable.name]

    def _from_environment(self, variable: Variable) -> str:
        name, default = variable.name, variable.default
        value = self._environ.get(name)
        if default is not None:
            return value or default
        if value is None and name in _STAND_INS:
            value = self._places[_STAND_INS[name]]
        if value is None:
            raise ExpansionError(
                f"the environment variable {name} is not set "
                f"(set it, or give a default: ${{{name}:-…}})"
            )
        return value

    def _from_input(self, variable: Variable) -> str:
        name = variable.name
        asked = self._inputs.get(name)
        wanted = asked or Input(id=name)
        answer = self._environ.get(wanted.variable, self._answers.get(name))
        if answer is None and asked is not None:
            answer = self._ask(asked)
        if answer is None:
            missing = "" if asked else " (no input of this id is described in the file)"
            raise ExpansionError(
                f"the input {visible(name)!r} has no value{missing}: set {wanted.variable}"
            )
        if wanted.options and answer not in wanted.options:
            choices = ", ".join(visible(option) for option in wanted.options)
            raise ExpansionError(f"the input {visible(name)!r} must be one of: {choices}")
        self._answers[name] = answer
        return answer

    def _ask(self, asked: Input) -> str | None:
        if asked.type == "command":
            # VS Code runs a command of an extension for these; there is nobody here to run it.
            return None
        answer = None if self._prompt is None else self._prompt(asked)
        return asked.default if answer is None else answer


_VALUES: Final[dict[str, Callable[[Expander, Variable], str]]] = {
    "environment": Expander._from_environment,
    "input": Expander._from_input,
    "place": Expander._place,
}

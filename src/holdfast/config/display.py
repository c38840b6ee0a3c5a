"""An entry to look at: as the file has it, before expansion, and without its secrets.

What variables hold is never in it, since nothing is expanded. What is written out in the file
is hidden where its name or its looks say that it is a secret.
"""

from __future__ import annotations

import re
from typing import Any, Final

from holdfast._core.redact import HIDDEN, Redactor
from holdfast.config.entry import ServerEntry
from holdfast.config.expansion import ExpansionError, Variable, pieces
from holdfast.config.problems import visible
from holdfast.policies import Redaction

_SCHEMES: Final = re.compile(r"(?:bearer|basic|token)\s+", re.I)
_PAIR: Final = re.compile(r"(?P<head>-{0,2}(?P<name>[\w.-]+)(?:=|:\s*))(?P<value>.*)", re.S)
_QUERY: Final = re.compile(r"(?P<head>[?&](?P<name>[^=&#?]*)=)(?P<value>[^&#]*)")


class Display:
    """How entries are shown; one redactor for all."""

    def __init__(self) -> None:
        self._redactor = Redactor(Redaction())

    def target(self, entry: ServerEntry) -> str:
        """One line: the command and its arguments, or the URL."""
        if entry.url is not None:
            return self.url(entry.url)
        import shlex

        words = [self.text(entry.command or ""), *self.arguments(entry.args)]
        return " ".join(word if _is_plain(word) else shlex.quote(word) for word in words)

    def definition(self, entry: ServerEntry) -> dict[str, Any]:
        """What the file says about how to reach the server."""
        found: dict[str, Any] = {}
        if entry.url is not None:
            found["url"] = self.url(entry.url)
            found["transport"] = entry.transport
            found["headers"] = self.table(entry.headers)
        else:
            found["command"] = None if entry.command is None else self.text(entry.command)
            found["args"] = self.arguments(entry.args)
            found["env"] = self.table(entry.env)
            found["envFile"] = None if entry.env_file is None else self.text(entry.env_file)
            found["cwd"] = None if entry.cwd is None else self.text(entry.cwd)
        return {name: value for name, value in found.items() if value}

    def text(self, text: str) -> str:
        return visible(self._redactor.text(text))

    def table(self, values: dict[str, str]) -> dict[str, str]:
        return {visible(name): self._named(name, value) for name, value in values.items()}

    def arguments(self, values: tuple[str, ...]) -> list[str]:
        found, secret_follows = [], False
        for value in values:
            found.append(self._masked(value) if secret_follows else self._argument(value))
            secret_follows = value.startswith("-") and self._redactor.is_secret(value)
        return found

    def url(self, url: str) -> str:
        def hide(match: re.Match[str]) -> str:
            return match["head"] + self._named(match["name"], match["value"])

        return visible(_QUERY.sub(hide, self._redactor.text(url)))

    def value(self, value: Any) -> Any:
        """A setting's value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {visible(str(name)): self.value(item) for name, item in value.items()}
        return value

    def _argument(self, value: str) -> str:
        match = _PAIR.fullmatch(value)
        if match is not None and self._redactor.is_secret(match["name"]):
            return visible(match["head"]) + self._masked(match["value"])
        return self.text(value)

    def _named(self, name: str, value: str) -> str:
        return self._masked(value) if self._redactor.is_secret(name) else self.text(value)

    def _masked(self, value: str) -> str:
        """Of a secret only its variables are shown, and the word that says what it is."""
        try:
            parts = list(pieces(value))
        except ExpansionError:
            return HIDDEN
        return "".join(map(_masked_part, parts))


def _masked_part(part: str | Variable) -> str:
    if isinstance(part, Variable):
        default = "" if part.default is None else f":-{HIDDEN if part.default else ''}"
        return visible(f"{str(part)[:-1]}{default}}}")
    scheme = _SCHEMES.match(part)
    head = "" if scheme is None else scheme[0]
    return visible(head) + (HIDDEN if part[len(head) :] else "")


def _is_plain(word: str) -> bool:
    """Readable without quotes; ``${`` would be quoted by a shell and is clearer as it is."""
    return bool(re.fullmatch(r"[\w@%+=:,./${}\[\]-]+", word))

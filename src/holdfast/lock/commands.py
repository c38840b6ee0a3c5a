"""The options of the command line that reach a server, to be pasted into a shell.

Values that look secret are replaced by shell variables: they must not get into files or logs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast._core.command_line import split_words
from holdfast._core.redact.redactor import default_redactor
from holdfast._core.text import HIDDEN, has_unseen, visible

DECLARED: Final = ("elicitation.form", "elicitation.url", "roots", "sampling")
"""The capabilities that a lock or a module is made with, and used with: all that a client may
have a handler for. Servers list other tools to clients that declare other ones."""


def capabilities(names: Iterable[str] = DECLARED) -> dict[str, Any]:
    """Return capabilities by name (``capability`` or ``capability.feature``) as they are sent."""
    declared: dict[str, Any] = {}
    for name in names:
        section, _, feature = name.partition(".")
        features = declared.setdefault(section, {})
        if feature:
            features[feature] = {}
    return declared


def server_arguments(
    target: str | Iterable[str] | None,
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: Iterable[str] | bool | None = None,
    cwd: object = None,
    headers: Mapping[str, str] | None = None,
    transport: str | None = None,
    protocol: str | None = None,
    config: str | None = None,
) -> str:
    """Return the options of ``holdfast`` for one server, quoted for a shell."""
    words: list[str] = []
    url = isinstance(target, str) and target.lower().startswith(("http://", "https://"))
    if url:
        words += ["--url", _without_secrets([str(target)])]
    for name, value in (headers or {}).items():
        words += ["--header", _valued(f"{name}: ", name, value)]
    for name, value in (env or {}).items():
        words += ["--env", _valued(f"{name}=", name, value)]
    if inherit_env:
        names = "*" if inherit_env is True else ",".join(inherit_env)
        words.append(quote(f"--inherit-env={names}"))
    plain = (("--cwd", cwd), ("--transport", transport), ("--protocol", protocol))
    for option, argument in (*plain, ("--config", config)):
        words += [] if not argument else [option, quote(str(argument))]
    if target is not None and not url:
        command = split_words(target) if isinstance(target, str) else map(str, target)
        words += ["--", _without_secrets(list(command))]
    return " ".join(words)


def quote(word: str) -> str:
    """Return a word quoted for a shell, on one line and with nothing in it that is not seen."""
    if not has_unseen(word):
        return shlex.quote(word)
    escaped = visible(word.replace("\\", "\\\\")).replace("'", "\\'")
    return f"$'{escaped}'"


def _without_secrets(words: list[str]) -> str:
    """Return words of a command, with a variable in the place of each secret."""
    hidden = default_redactor().value(words)
    return " ".join(
        quote(word)
        if word == redacted
        else '"$SECRET"'.join(quote(part) if part else "" for part in redacted.split(HIDDEN))
        for word, redacted in zip(words, hidden, strict=True)
    )


def _valued(before: str, name: str, value: str) -> str:
    if not default_redactor().is_secret(name):
        return _without_secrets([before + value])
    variable = "".join(char if char.isalnum() else "_" for char in name).upper()
    return f'{quote(before)}"${variable}"'

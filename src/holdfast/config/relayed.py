"""Recognise a command that is ``holdfast serve`` in front of a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

SERVE: Final = "serve"
MARK: Final = "--"
"""Ends our words; the server's command follows."""
INHERIT: Final = "--inherit-env"
"""The server gets the variables that the host gives, as it did before: ``install`` writes it."""
_MOST_BEFORE: Final = 8
"""Words before ``serve``: a launcher, its options, a version."""
_LAUNCHER: Final = re.compile(r"(?:.*[/\\])?(?:uvx?|pipx|py|python[\d.]*)(?:\.exe)?", re.S | re.I)
_HOLDFAST: Final = re.compile(r"(?:.*[/\\])?holdfast(?:\.exe)?(?:[@=].*)?", re.S | re.I)


class RelayCommand(NamedTuple):
    """The parts of ``PROGRAM serve OPTIONS -- SERVER``."""

    program: tuple[str, ...]
    """The words before ``serve``."""
    options: tuple[str, ...]
    """The words after it: options, or names of servers."""
    server: tuple[str, ...] | None
    """The command after ``--``; None without one."""

    @property
    def head(self) -> tuple[str, ...]:
        """All words before the server's command."""
        return (*self.program, SERVE, *self.options, MARK)


def read_relay(words: Sequence[str]) -> RelayCommand | None:
    """Return the parts of a command that is ``holdfast serve``, however it is started; or None."""
    for at, word in enumerate(words[1 : _MOST_BEFORE + 1], 1):
        if at > 1 and (words[at - 1] == MARK or not _LAUNCHER.fullmatch(words[0])):
            return None  # behind the command of another program it is that program's business
        if word == SERVE and _HOLDFAST.fullmatch(words[at - 1]):
            program, rest = tuple(words[:at]), tuple(words[at + 1 :])
            if MARK not in rest:
                return RelayCommand(program, rest, None)
            end = rest.index(MARK)
            return RelayCommand(program, rest[:end], rest[end + 1 :])
    return None

"""The words that start Holdfast from a host's file, for a host that has another PATH and folder."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from holdfast._version import __version__

_PASSING: Final = re.compile(r"[/\\](?:archive|environments|builds)-v\d+[/\\]")
"""Folders of uv's cache: what ``uvx`` runs from goes with the next cleaning."""


class Program(NamedTuple):
    """How a host starts Holdfast."""

    words: tuple[str, ...]
    note: str = ""
    """What the user should know about it."""


def find_program(
    argv0: str | None = None, executable: str | None = None, path: str | None = None
) -> Program:
    """Return how to start the Holdfast that is running now, by absolute paths.

    Hosts with a window have the PATH of the desktop, not the one of a shell. So the script is named
    by its path: the link in ``~/.local/bin`` that ``uv tool`` and ``pipx`` make and keep, if it
    leads here, or the one in the virtual environment. Under ``uvx`` there is no lasting script:
    then ``uvx`` itself is named, with this version.
    """
    script = os.path.abspath(sys.argv[0] if argv0 is None else argv0)
    executable = sys.executable if executable is None else executable
    is_script = os.path.splitext(os.path.basename(script))[0] == "holdfast"
    words = (script,) if is_script and os.path.isfile(script) else interpreter(executable)
    if _PASSING.search(words[0]):
        return _lasting(words, path)
    listed = shutil.which("holdfast", path=path)
    if listed and os.path.realpath(listed) == os.path.realpath(words[0]):
        words = (os.path.abspath(listed),)
    return Program(words, _environment_note(words[0]))


def _lasting(words: tuple[str, ...], path: str | None) -> Program:
    """Return how to start it from a cache, which is cleaned sometimes."""
    uvx = shutil.which("uvx", path=path)
    if uvx is None:
        note = "This copy lies in a cache that is cleaned; 'uv tool install holdfast' lasts."
        return Program(words, note)
    note = f"Hosts will run it by uvx, held at {__version__}."
    return Program((os.path.abspath(uvx), f"holdfast=={__version__}"), note)


def interpreter(executable: str = sys.executable) -> tuple[str, ...]:
    """Return the words for this Python.

    Without the current folder on its path (``-P``), which is a project's, and without the variables
    that an entry sets for its own Python (``-E``).
    """
    return (executable, "-E", "-P", "-m", "holdfast")


def _environment_note(script: str) -> str:
    folder = os.path.dirname(os.path.dirname(script))
    if os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        return f"Hosts will start it from {folder}: run 'uninstall' before you remove that."
    return ""


def needs_interpreter(env: Mapping[str, object]) -> bool:
    """Return whether an entry's variables would change the Python that runs Holdfast."""
    return any(name.startswith("PYTHON") for name in env)

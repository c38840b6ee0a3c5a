"""The line editor of the shell: completion and history, where there is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from holdfast._core.files import make_private_folder, open_for_append, xdg_folder
from holdfast._core.text import visible_lines

KEPT: Final = 1000
"""Lines of history."""

Suggest = Callable[[str], list[str]]


def ask(prompt: str) -> str:
    """One line. The prompt is for a person, so it never gets into a pipe."""
    if not sys.stdin.isatty():
        prompt = ""
    elif not sys.stdout.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
        prompt = ""
    return input(prompt)


@contextmanager
def editing(suggest: Suggest) -> Iterator[None]:
    """Tab asks ``suggest`` what the line may become; what is typed is kept for the next time."""
    if not sys.stdin.isatty() or find_spec("readline") is None:
        yield
        return
    import readline

    readline.set_completer(completer(suggest))
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    history = history_file()
    try:
        readline.read_history_file(history)
    except OSError:
        pass
    before = readline.get_current_history_length()
    try:
        yield
    finally:
        readline.set_completer(None)
        new = readline.get_current_history_length() - before
        readline.set_history_length(KEPT)
        try:
            _private(history)
            readline.append_history_file(max(new, 0), history)
        except OSError:
            pass


def completer(suggest: Suggest) -> Callable[[str, int], str | None]:
    """As readline wants it: the ``state``-th word, or None after the last."""
    import readline

    found: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            words = map(visible_lines, suggest(line))
            found[:] = [one if one.endswith("=") else f"{one} " for one in words]
        return found[state] if state < len(found) else None

    return complete


def history_file() -> Path:
    return xdg_folder("state") / "holdfast" / "history"


def _private(path: Path) -> None:
    """Arguments may be secrets: nobody else reads them, from the first line on."""
    make_private_folder(path.parent)
    os.close(open_for_append(path))
    path.chmod(0o600)

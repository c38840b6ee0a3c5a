"""The lines of ``holdfast shell`` by readline, where Python has it."""

from __future__ import annotations

import os
import readline
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast._core.files import make_private_folder, open_for_append
from holdfast._core.text import visible

assert sys.platform != "win32"

Suggest = Callable[[str], list[str]]


@contextmanager
def editing_by_readline(suggest: Suggest, history: Path, kept: int) -> Iterator[None]:
    """Complete with ``suggest`` at Tab, and keep a history of so many lines in a file."""
    readline.set_completer(completer(suggest))
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(history)
    before = readline.get_current_history_length()
    try:
        yield
    finally:
        readline.set_completer(None)
        new = readline.get_current_history_length() - before
        readline.set_history_length(kept)
        with suppress(OSError):
            # Arguments may be secrets: nobody else reads them, from the first line on.
            make_private_folder(history.parent)
            os.close(open_for_append(history))
            history.chmod(0o600)
            readline.append_history_file(max(new, 0), history)


def completer(suggest: Suggest) -> Callable[[str, int], str | None]:
    """Return a readline completer: the ``state``-th word, or None after the last."""
    matches: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            words = map(visible, suggest(line))
            matches[:] = [word if word.endswith("=") else f"{word} " for word in words]
        return matches[state] if state < len(matches) else None

    return complete

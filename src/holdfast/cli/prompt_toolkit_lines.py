"""The lines of ``holdfast shell`` by prompt_toolkit, where Python has no readline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from holdfast._core.files import make_private_folder, open_for_append
from holdfast._core.text import visible


class ToolCompleter(Completer):
    """Completes the last word of a line."""

    def __init__(self, suggest: Callable[[str], list[str]]) -> None:
        self._suggest = suggest

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        line = document.text_before_cursor
        last = line.rpartition(" ")[2]
        for word in map(visible, self._suggest(line)):
            ending = "" if word.endswith("=") else " "
            yield Completion(f"{word}{ending}", start_position=-len(last), display=word)


def line_reader(
    suggest: Callable[[str], list[str]],
    history: Path,
    kept: int,
    terminal: tuple[Input, Output] | None = None,
) -> Callable[[str], str]:
    """Return a function that reads a line, with completion at Tab and a history file.

    Args:
        suggest: Returns the completions of the last word of a line.
        history: The file of lines, of which the last ``kept`` stay.
        kept: Lines of history.
        terminal: Where to read and write, by default the terminal of the process.
    """
    input_, output = terminal or (None, None)
    session: PromptSession[str] = PromptSession(
        completer=ToolCompleter(suggest),
        complete_while_typing=False,
        history=_history(history, kept),
        input=input_,
        output=output,
    )
    return session.prompt


def _history(file: Path, kept: int) -> History:
    """Return a history in a private file: arguments may be secrets."""
    # Another file than readline's, whose lines have no dates.
    place = file.with_name("history.prompt")
    with suppress(OSError):
        make_private_folder(place.parent)
        os.close(open_for_append(place))
        lines = place.read_text(encoding="utf-8", errors="replace").split("\n")
        if len(lines) > 6 * kept:
            place.write_text("\n".join(lines[-3 * kept :]), encoding="utf-8")
        return FileHistory(str(place))
    return InMemoryHistory()

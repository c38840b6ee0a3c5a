"""Read from the person at the terminal: yes or no, a value, the next page.

Everything here is written to stderr and read from stdin.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from holdfast._core.text import one_line, visible
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.progress import cells, status

if TYPE_CHECKING:
    from holdfast.config import ConfigInput

# What others wrote (a server, a file of a project, a log) is escaped before it is shown, and stands
# on one line or behind an indent: nothing of theirs begins a line, where it could pass for a
# question or an error of ours.

LONGEST_QUESTION: Final = 500
"""Characters of a description that somebody else wrote, in a question."""
HIDDEN_DEFAULT: Final = " [Enter: the default]"
_LINES: Final = 24
"""Lines of a terminal that does not tell how many it has."""


def is_interactive() -> bool:
    """Return whether a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a wait for stdin."""
    # The handler of a running loop would cancel a task, and the read would go on all the same.
    handler = signal.getsignal(signal.SIGINT)
    is_replaced = callable(handler) and threading.current_thread() is threading.main_thread()
    if is_replaced:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if is_replaced:
            signal.signal(signal.SIGINT, handler)


def confirm(question: str, default: bool = False) -> bool:
    """Ask yes or no on stderr, until it is one of them."""
    choices = "Y/n" if default else "y/N"
    while True:
        reply = _ask(f"{question} [{choices}]: ").lower()
        if reply in ("", "y", "yes", "n", "no"):
            return reply in ("y", "yes") if reply else default


def _ask(question: str) -> str:
    """Return the line that a person types. Raises Abort at the end of the input."""
    with status.aside(), interruptible():
        print(question, end="", file=sys.stderr, flush=True)
        _wait_for_line()
        line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return line.strip()


def _wait_for_line() -> None:
    """Wait for input, or for Ctrl-C."""
    # A signal that arrives just before a read is noted by Python, and acted on when the read has
    # returned: with the next line. So the wait is for the terminal and for a pipe that the signal
    # itself writes to.
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return  # On Windows a console ends the read itself.
    signalled, written = os.pipe()
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        select.select([sys.stdin, signalled], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(signalled)
        os.close(written)


def ask_secret(question: str) -> str:
    """Ask for a value that is not echoed."""
    with status.aside(), interruptible():
        answer: str = click.prompt(visible(question), hide_input=True, err=True)
    return answer


def ask_input(config_input: ConfigInput) -> str | None:
    """Ask for a value that a configuration leaves to its user; None without a terminal.

    The file's author wrote all of the question. The default of a password is not shown.
    """
    if not sys.stdin.isatty():
        return None
    question = one_line(config_input.description or config_input.id, LONGEST_QUESTION)
    if config_input.options:
        choices = ", ".join(visible(option, 80) for option in config_input.options[:20])
        question += f" ({choices}{', …' if len(config_input.options) > 20 else ''})"
    if config_input.default is not None:
        shown_default = f" [{visible(config_input.default, LONGEST_QUESTION)}]"
        question += HIDDEN_DEFAULT if config_input.password else shown_default
    with status.aside(), interruptible():
        answer: str = click.prompt(
            question,
            hide_input=config_input.password,
            default=config_input.default,
            show_default=False,
            err=True,
        )
    return answer


# Pages
#
# What scrolls away is not read. A file with a thousand harmless arguments would push the command
# out of the window, and the yes would be to what is left of it. So a long text waits for Enter at
# each screen, and a long line is broken: it may fill several. Not by a pager of the user's: it may
# run a program of its own on what it shows (LESSOPEN), or clear the screen before the question.


def show_pages(
    lines: Sequence[str], color: Callable[[str], str] = str, ending: str = "nothing is done"
) -> bool:
    """Show lines on stderr, a screen at a time; return False if the person stops before the end.

    The lines are plain; ``color`` is applied after they are measured. ``ending`` says what
    stopping means.
    """
    columns, height = columns_of_terminal(2), _lines_of_terminal() - 1
    rows = [row for line in lines for row in _rows(line, columns)]
    if not is_interactive() or len(rows) <= height:
        _write(map(color, lines))
        return True
    at = 0
    while True:
        _write(map(color, rows[at : at + height]))
        at += height
        if at >= len(rows):
            return True
        if not _wants_more(f"-- {at} of {len(rows)} lines; Enter: more, q: stop, {ending} -- "):
            return False


def _lines_of_terminal() -> int:
    try:
        return max(os.get_terminal_size(2).lines, 5)
    except OSError:
        return _LINES


def _rows(line: str, columns: int) -> Iterator[str]:
    """Yield the rows that a line takes on the screen."""
    if cells(line) <= columns:
        yield line
        return
    row: list[str] = []
    used = 0
    for char in line:
        width = cells(char)
        if used + width > columns:
            yield "".join(row)
            row, used = [], 0
        row.append(char)
        used += width
    yield "".join(row)


def _write(rows: Iterator[str]) -> None:
    status.hide()
    print("\n".join(rows), file=sys.stderr, flush=True)


def _wants_more(question: str) -> bool:
    return _ask(question).lower() not in ("q", "quit", "n", "no")

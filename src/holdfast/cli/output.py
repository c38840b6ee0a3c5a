"""Output to stdout, stderr and files. stdout carries the result alone; stderr is for the person.

Control and invisible characters in texts about a server are escaped, in pipes too: their output is
often read by a model. Contents are piped unchanged. With ``--json`` stderr is empty, or one
line of JSON that says why the command failed.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

from holdfast import errors
from holdfast._core.files import read_bytes, reason, resolve_output, write_atomic
from holdfast._core.text import visible_json, visible_lines
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.progress import cells, status
from holdfast.errors import Hint, HoldfastError, ValidationError

if TYPE_CHECKING:
    from holdfast._core.tap import TraceEvent


# Who reads what
#
# stdout is for the next program: the result, and nothing else, however much there is to say about
# it. stderr is for the person: notes, questions, the status line, errors. With ``--json`` a program
# reads both: stdout is one JSON document, stderr empty or one line of JSON.
#
# Whatever others wrote passes through `visible_lines` or `visible_json` on its way out. A server's
# text could else clear the screen, retype a line above it, set the window's title or paste into the
# terminal's input (the sequences that answer questions). In a pipe, too: the reader is often a
# model, to which invisible characters say what no reviewer sees. The one exception is content that
# was asked for by name (``call``, ``read``, ``prompt``) and goes to a pipe or file: changing its
# bytes would break it.


class Exit(IntEnum):
    """Exit codes, for scripts, and what they mean, for people and agents."""

    OK = 0, "it worked"
    TOOL = 1, "the tool or the server returned an error"
    USAGE = 2, "wrong arguments, file or configuration; nothing was sent"
    CONNECT = 3, "the server cannot be started or reached, or went away"
    TIMEOUT = 4, "no answer in time"
    AUTH = 5, "the server requires a login, or an approval is missing"
    DRIFT = 6, "the tools differ from the lock file or the generated module"
    FAULT = 70, "an internal error of holdfast"
    INTERRUPTED = 130, "interrupted"
    BROKEN_PIPE = 141, "the output pipe was closed"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a code with its meaning."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


ENDINGS: Final = (
    (errors.DriftError, Exit.DRIFT),
    (errors.AuthError, Exit.AUTH),
    (errors.TrustError, Exit.AUTH),
    (errors.RequestTimeout, Exit.TIMEOUT),
    (errors.OutcomeUnknown, Exit.TIMEOUT),
    (errors.ValidationError, Exit.USAGE),
    (errors.ApprovalError, Exit.AUTH),
    (errors.ToolError, Exit.TOOL),
    (errors.HandshakeRefused, Exit.CONNECT),
    (errors.RpcError, Exit.TOOL),
)
"""The first match counts: subclasses stand before their bases."""


def exit_for(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    return next((code for kind, code in ENDINGS if isinstance(error, kind)), Exit.CONNECT)


class Output:
    """The output of one command, as text or JSON."""

    def __init__(self, form: str = "text") -> None:
        self.json: bool = form == "json"
        status.is_muted = self.json
        self.is_terminal: bool = sys.stdout.isatty()

    def text(self, text: str) -> None:
        """Write a result as text, with a line break at its end."""
        write(visible_lines(text))

    def about(self, text: str) -> None:
        """Write what a server says of itself and its offers, without secrets that it repeats."""
        self.text(without_secrets(text))

    def content(self, text: str) -> None:
        """Write the content of a result, resource or prompt: raw, unless to a terminal."""
        write(visible_lines(text) if self.is_terminal else text)

    def result(self, value: Any, text: str) -> None:
        """Write a result: as text, or its value as JSON."""
        if self.json:
            self.value(value)
        else:
            self.text(text)

    def done(self, value: Any, note: str) -> None:
        """Report what was done: as a note, or its value as JSON."""
        if self.json:
            self.value(value)
        else:
            self.note(note)

    def value(self, value: Any) -> None:
        """Write a result as JSON: indented on a terminal, one line elsewhere."""
        import msgspec

        self.json_text(msgspec.json.encode(value))

    def json_text(self, data: bytes, *, indent: bool = True) -> None:
        """Write encoded JSON, with unseen characters escaped, which is the same JSON."""
        if self.is_terminal and indent:
            import msgspec

            data = msgspec.json.format(data, indent=2)
        if not data.isascii() or b"\x7f" in data:
            data = visible_json(data.decode()).encode()
        if self.is_terminal and has_color(sys.stdout):
            data = highlight(data.decode()).encode()
        write(data + b"\n")

    def note(self, text: str) -> None:
        """Write a note to stderr, without secrets that a server repeats; none with JSON."""
        if not self.json:
            print_error(wrap(visible_lines(without_secrets(text))))

    def notes(self, texts: Iterable[str]) -> None:
        """Write several notes."""
        for text in texts:
            self.note(text)

    def fail(self, error: HoldfastError) -> Exit:
        """Report an error; return the exit code for it."""
        facts = {"code": error.code, "taskId": error.task_id}
        facts["outcomeUnknown"] = error.outcome_unknown or None
        present = {name: value for name, value in facts.items() if value is not None}
        message = explain(error) or type(error).__name__
        return self.complain(message, exit_for(error), error.kind, **present)

    def verdict(self, message: str, code: Exit, kind: str) -> Exit:
        """Return the code of a bad result that was shown; with JSON, write the error line too."""
        return self.complain(message, code, kind) if self.json else code

    def complain(self, message: str, code: Exit, kind: str, /, **facts: Any) -> Exit:
        """Write an error to stderr, a line of text or of JSON; return its exit code.

        A tool's failure is the server's own text, which may repeat a secret.
        """
        message = without_secrets(message)
        if self.json:
            import msgspec

            report = {"error": {"message": message, "exit": int(code), "kind": kind, **facts}}
            line = visible_json(msgspec.json.encode(report, enc_hook=str).decode())
        else:
            line = wrap(f"holdfast: {visible_lines(message)}")
            line = color("holdfast:", "1;31") + line.removeprefix("holdfast:")
        print_error(line)
        return code


def without_secrets(text: str) -> str:
    """Return a text of a server without the secrets that this process holds."""
    from holdfast._core.redact.known import KNOWN

    return KNOWN.hide(text)


def explain(error: HoldfastError, *, with_path: bool = False) -> str:
    """Return an error whose hints name options of the command line, or of the configuration.

    The PATH is shown by ``doctor`` alone.
    """

    def advise(hint: Hint) -> str:
        return "" if hint.option == "env.PATH" and not with_path else advice_for(hint)

    return error.explain(advise)


_AT_THE_TERMINAL: Final = {
    "auth": "",
    "auth.client_id": "--client-id {text}",
    "auth.issuer": '"oauth": {{"issuer": …}} in the configuration {text}',
    "auth.redirect_uri": "--port {text}",
    "client.get_skill": "the next command uses what it is now, if it was updated",
    "client.resume_task": "holdfast tasks wait {value} {text}",
    "dynamic": "--dynamic {text}",
    "env.PATH": "PATH {text}",
    "fill": "--fill K=V {text}",
    "ledger.forget": "holdfast once forget {value} {text}",
    "ledger.settle": "holdfast once settle {value} --ran|--not-run {text}",
    "once": "the same command gets its outcome later",
    "handlers.approval": "at a terminal you are asked",
    "handlers.elicitation": "at a terminal you are asked",
    "handlers.roots": "the command line has no answer to it",
    "handlers.sampling": "the command line has no answer to it",
    "headers": "--header {text}",
    "protocol": "--protocol {text}",
    "timeout": "--timeout {text}",
    "timeouts.handshake": "--timeout {text}",
}
"""The words for options that have some of their own here; the others are in the configuration."""
_IN_THE_CONFIGURATION: Final = {"tools.validate": "validate"}


def advice_for(hint: Hint) -> str:
    """Return a hint in the words of the command line."""
    import json
    import shlex

    if not hint.option:
        return hint.text
    if (words := _AT_THE_TERMINAL.get(hint.option)) is not None:
        return words.format(text=hint.text, value=shlex.quote(str(hint.value)))
    group, _, name = _IN_THE_CONFIGURATION.get(hint.option, hint.option).rpartition(".")
    setting = f'"{name}": {"…" if hint.value is None else json.dumps(hint.value)}'
    setting = f'"{group}": {{{setting}}}' if group else setting
    return f"{setting} in the configuration {hint.text}"


def show_stderr(line: str) -> None:
    """Show a line of a server's stderr, redacted and escaped."""
    from holdfast._core.redact.redactor import redact_text

    print_error(visible_lines(redact_text(line)))


def message_trace(form: str) -> Callable[[TraceEvent], None]:
    """Return the tap of ``--trace``: a head line for each message, and its body if it is full."""
    from holdfast.cli.message_lines import MessageLines

    columns = columns_of_terminal(2) if sys.stderr.isatty() else None
    messages = MessageLines(color, full=form == "full", columns=columns)

    def show(event: TraceEvent) -> None:
        for line in messages.lines(event):
            print_error(line)

    return show


def print_error(line: str) -> None:
    """Write a line to stderr, over the status line; one that cannot be written is lost."""
    with suppress(OSError):
        status.hide()
        print(line, file=sys.stderr, flush=True)


def wrap(text: str, further: int = 2) -> str:
    """Return text that wraps with hanging indents, if stderr is a terminal."""
    columns = columns_of_terminal(2)
    is_wide = sys.stderr.isatty() and cells(text) >= columns
    return hanging_indent(text, columns, further=further) if is_wide else text


def hanging_indent(text: str, columns: int, first: str = "", *, further: int = 2) -> str:
    """Return text whose lines wrap at words; what goes on hangs ``further`` columns further in.

    Or below a tab, which is two spaces. A command stays on one line, so that it can be copied.
    """
    lines = []
    for line in text.splitlines():
        head, tab, rest = line.partition("\t")
        indent = cells(head) + 2 if tab else len(line) - len(line.lstrip()) + further
        line = f"{head}  {rest}" if tab else line
        if not line.startswith("holdfast "):
            margin = first + " " * min(indent, columns // 2)
            line = wrap_words(line, columns, first, margin)
        lines.append(line)
    return "\n".join(lines)


_CHINESE: Final = "\u3000-\u30ff\u3400-\u9fff\uff00-\uff60"
_CLOSING: Final = "\u3001\u3002\u300d\u300f\u3011\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f"


def wrap_words(text: str, columns: int, first: str = "", rest: str = "") -> str:
    """Return text in lines of whole words, indented by ``first`` and ``rest``.

    A word that is longer than a line, such as a link, stays whole, so that it can be copied;
    so does a command of ours, from its first word to the end of the text. Choices (``a|b``) may be
    parted after a bar, Chinese and Japanese between characters.
    """
    before, colon, command = text.partition(": holdfast ")
    if colon and cells(first) + cells(text) > columns:
        return f"{wrap_words(before, columns - 1, first, rest)}:\n{rest}holdfast {command}"
    # A mark before a space (or one that is tied, \x01) is a word like others.
    part = rf"(?:[^\s|{_CHINESE}]|[|](?=[\s\x01|]|$))+[|]?|[|]"
    lines: list[str] = []
    line, used = first, cells(first)
    for space, word in re.findall(rf"(\s*)([{_CHINESE}][{_CLOSING}]*|{part})", text):
        is_empty = line == (rest if lines else first)
        if not is_empty and used + len(space) + cells(word) > columns:
            lines.append(line)
            line, used, space = rest, cells(rest), ""
        line += space + word
        used += len(space) + cells(word)
    return "\n".join([*lines, line])


def has_color(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def color(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return text for a stream, by default stderr, in colour if it has colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if has_color(stream or sys.stderr) else text


_JSON: Final = (
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)"
)
_STYLES: Final = {"key": "1;34", "text": "32", "number": "36", "word": "35"}


def highlight(text: str) -> str:
    """Return JSON text with its keys and values in colours."""
    return re.sub(
        _JSON, lambda match: f"\x1b[{_STYLES[match.lastgroup or '']}m{match[0]}\x1b[0m", text
    )


def write(data: bytes | str) -> None:
    """Write all bytes, or a line of text, to stdout, also where a child made it non-blocking."""
    if isinstance(data, str):
        ended = data if data.endswith("\n") else f"{data}\n"
        data = ended.encode("utf-8", "backslashreplace")
    status.hide()
    sys.stdout.flush()
    if sys.platform == "win32" and sys.stdout.isatty():
        # A descriptor of a console takes bytes of its code page; this one takes UTF-8.
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    descriptor = sys.stdout.fileno()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ValidationError(f"stdout: cannot be written: {error.strerror}") from None


def abandon() -> Exit:
    """Return the exit code for a closed pipe; let the interpreter flush stdout to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE


# Files


MOST_BYTES: Final = 64 * 1024 * 1024


def read_if_there(path: Path) -> str | None:
    """Return the text of a regular file; None if there is none."""
    try:
        return read_bytes(path, MOST_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValidationError(f"{path}: cannot be read: {reason(error)}") from None


def write_file(path: Path, text: str, *, is_own: bool = False) -> None:
    """Write a file atomically.

    For a file of the user's own, follow links and create the folder.
    """
    try:
        if is_own:
            path.parent.mkdir(parents=True, exist_ok=True)
        place = os.path.realpath(path) if is_own else resolve_output(path)
        write_atomic(place, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {reason(error)}") from None

"""Questions of a server to the person at the terminal: elicitation, approvals of calls, logins."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from holdfast._core.text import visible, visible_json, visible_lines
from holdfast.cli.arguments import coerce, describe
from holdfast.cli.output import color, print_error, without_secrets
from holdfast.cli.progress import status
from holdfast.cli.prompts import HIDDEN_DEFAULT, LONGEST_QUESTION, confirm
from holdfast.errors import LoginFailed, ValidationError
from holdfast.schema.types import admitted_types

if TYPE_CHECKING:
    import asyncio

    from holdfast import Handlers
    from holdfast._core.auth.options import LoginRequest
    from holdfast._core.calls.handlers import ApprovalRequest
    from holdfast.types.inputs import AnyElicitation

Ask = Callable[..., Awaitable[str]]
"""Asks a question, and returns what was typed; a second argument: without echo."""


async def offer_login(request: LoginRequest) -> str | None:
    """Say who asks for a login and where; start it if the person agrees, else LoginFailed."""
    from holdfast._core.auth.browser import browser_login, describe

    print_error(visible(describe(request)))  # one line, whatever scopes the server names
    if not confirm("Log in now?", default=True):
        raise LoginFailed("the login was declined")
    with status.aside():
        return await browser_login(request)


# What a server asks


# One terminal, many askers. Calls run at the same time, a server may ask whenever it likes, and in
# a shell the prompt itself reads the same keyboard. So there is one lock, whose holder owns the
# terminal until it has its answer, and a switch: while the shell waits for a line, questions are
# cancelled at once instead of taking the line that was meant for the shell.
#
# Lines are read on the loop, not in a thread: a thread that waits for the keyboard cannot be
# stopped, and would take the first line that is typed after its question was withdrawn.


class TerminalQuestions:
    """The questions of a server to the person at the terminal, one after the other."""

    def __init__(self) -> None:
        import asyncio

        self._turn = asyncio.Lock()  # calls may ask at the same time
        self._question: asyncio.Future[dict[str, Any]] | None = None
        self._is_open = True

    def handlers(self) -> Handlers:
        """Return handlers that ask the person."""
        from holdfast._core.calls.handlers import Handlers

        return Handlers(elicitation=self._elicitation, approval=self._approval)

    def open(self) -> None:
        """Ask what the server wants to know."""
        self._is_open = True

    def close(self) -> None:
        """Cancel the question that is asked, and all that come: a prompt reads the terminal."""
        self._is_open = False
        if self._question is not None:
            self._question.cancel()

    async def _elicitation(self, request: AnyElicitation) -> dict[str, Any]:
        import asyncio

        async with self._turn:
            try:
                if self._is_open:
                    with status.aside():
                        self._question = asyncio.ensure_future(answer(request, _ask))
                        return await self._question
            except asyncio.CancelledError:
                if self._is_open:
                    raise
        return {"action": "cancel"}

    async def _approval(self, request: ApprovalRequest) -> bool:
        arguments = json.dumps(request.arguments, ensure_ascii=False, indent=2)
        call = f"{visible(f'{request.server}.{request.tool}')} {visible_json(arguments)}"
        async with self._turn:
            with status.aside():
                return await _agrees(f"{call}\nCall it? [y/N] ", _ask, default=False)


async def _ask(text: str, is_secret: bool = False) -> str:
    """Read a line from the terminal, on the loop: a thread could not be cancelled."""
    import asyncio

    if sys.platform == "win32":
        return await _ask_in_thread(text, is_secret)
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    with _without_echo(descriptor) if is_secret else nullcontext():
        print(text, end="", file=sys.stderr, flush=True)
        loop.add_reader(descriptor, typed.set)
        try:
            await typed.wait()
            data = os.read(descriptor, 65536)
        finally:
            loop.remove_reader(descriptor)
    if not data:
        raise EOFError
    return data.decode("utf-8", "replace").rstrip("\n")


async def _ask_in_thread(text: str, is_secret: bool) -> str:
    """Read a line where no loop can wait for a terminal; a question that is cancelled stays open.

    The thread is a daemon: nobody waits for it at the end.
    """
    import asyncio
    from getpass import getpass
    from threading import Thread

    loop = asyncio.get_running_loop()
    reply: asyncio.Future[str] = loop.create_future()

    def settle(line: str) -> None:
        if not reply.done():
            reply.set_result(line)

    def read() -> None:
        if is_secret:
            line = getpass(text) + "\n"
        else:
            print(text, end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, line)

    Thread(target=read, name="holdfast-question", daemon=True).start()
    line = await reply
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        print(file=sys.stderr)  # the line break that was not echoed


async def answer(request: AnyElicitation, ask: Ask) -> dict[str, Any]:
    """Return the person's answer. No to the first question declines, Ctrl-D cancels."""
    from holdfast.types.inputs import UrlElicitation

    message = f"{color('The server asks:', '1')} {_indented(without_secrets(request.message))}"
    try:
        if isinstance(request, UrlElicitation):
            text = f"{message}\n  {visible(request.url)}\nOpen it yourself. Done? [y/N] "
            return {"action": "accept" if await _agrees(text, ask, default=False) else "decline"}
        if not await _agrees(f"{message}\nAnswer? [Y/n] ", ask, default=True):
            return {"action": "decline"}
        required = set(request.required)
        content = {
            name: await _field(name, schema, name in required, ask)
            for name, schema in request.fields.items()
        }
        answers = {name: value for name, value in content.items() if value is not None}
        return {"action": "accept", "content": answers}
    except EOFError:
        print(file=sys.stderr)
        return {"action": "cancel"}


# What a server writes is escaped, and never begins a line: below "Answer?" a message of two lines
# could end in "holdfast: your login has expired. Password:" and be taken for ours. Secrets that it
# repeats are hidden, except in a URL, which has to be opened as it is.


def _indented(text: str) -> str:
    return visible_lines(text).strip("\n").replace("\n", "\n  ")


async def _field(name: str, schema: dict[str, Any], required: bool, ask: Ask) -> Any:
    """Ask for one field until the answer fits or is left out."""
    default = schema.get("default")
    is_secret = _is_secret(name, schema)
    question = _question(name, schema, required, is_secret)
    while True:
        text = (await (ask(question, is_secret) if is_secret else ask(question))).strip()
        if not text and (default is not None or not required):
            return default
        try:
            if text:
                return _fitting(text, schema, name)
            complaint = "needed"
        except ValidationError as error:
            complaint = _indented(str(error))
        print(f"  {complaint}", file=sys.stderr)


def _question(name: str, schema: dict[str, Any], required: bool, is_secret: bool) -> str:
    """Return the text that asks for a field: its description, title, type and default."""
    default, description = schema.get("default"), schema.get("description")
    if default is not None:
        ending = HIDDEN_DEFAULT if is_secret else f" [{visible(str(default), LONGEST_QUESTION)}]"
    else:
        ending = "" if required else " (may be empty)"
    words = f"  {_indented(str(description))}\n" if description else ""
    title = visible(str(schema.get("title") or name), LONGEST_QUESTION)
    return without_secrets(f"{words}  {title} ({visible(describe(schema))}){ending}: ")


def _is_secret(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a field is a password: not echoed, its default not shown."""
    from holdfast._core.redact.redactor import default_redactor

    is_marked = schema.get("format") == "password" or schema.get("writeOnly") is True
    return is_marked or default_redactor().is_secret(name)


def _fitting(text: str, schema: dict[str, Any], name: str) -> Any:
    """Convert the answer by the schema and check it, unless the schema cannot be used."""
    from holdfast.schema.faults import Unusable
    from holdfast.schema.validate import Checker

    if "array" in admitted_types(schema) and not text.startswith("["):
        value: Any = [coerce(part.strip(), schema.get("items"), name) for part in text.split(",")]
    else:
        value = coerce(text, schema, name)
    try:
        faults = Checker(schema).faults(value)
    except (Unusable, RecursionError):
        return value
    if faults:
        raise ValidationError("; ".join(str(fault) for fault in faults))
    return value


async def _agrees(question: str, ask: Ask, default: bool) -> bool:
    """Ask yes or no, until it is one: other words may be the answer to the next question."""
    reply = (await ask(question)).strip().lower()
    while reply not in ("", "y", "yes", "n", "no"):
        reply = (await ask("  y or n: ")).strip().lower()
    return reply in ("y", "yes") if reply else default

"""Questions to a person at the terminal: approvals, logins, and elicitation by a server.

Without a terminal, nothing is asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.text import visible, visible_json, visible_lines
from holdfast.cli.arguments import coerce, describe
from holdfast.cli.output import has_colour, highlight, paint, tell
from holdfast.cli.progress import status
from holdfast.errors import LoginFailed, TrustError, ValidationError
from holdfast.schema.signature import types

if TYPE_CHECKING:
    import asyncio

    from holdfast import ApprovalRequest, Handlers, LoginRequest
    from holdfast.config import Approval, ConfigInput, Configuration
    from holdfast.types.inputs import AnyElicitation

Ask = Callable[[str], Awaitable[str]]


def is_interactive() -> bool:
    """Return whether a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, default: bool = False) -> bool:
    """Ask on stderr."""
    with status.aside():
        return click.confirm(question, default=default, err=True)


def _present(approval: Approval) -> None:
    """Show what is about to be approved, unchanged but for escapes."""
    text = visible_json(json.dumps(approval.definition, indent=2, ensure_ascii=False))
    text = highlight(text) if has_colour(sys.stderr) else text
    tell(f"{visible_lines(f'{approval.name}, from {approval.file}:')}\n{text}")
    more = [f"changed: {one}" for one in approval.changes]
    for line in [*more, *(f"careful: {one}" for one in approval.cautions)]:
        tell(visible_lines(line))


def agreed(approvals: Sequence[Approval]) -> bool:
    """Show each approval, and ask once for all. Raises TrustError if nobody can be asked."""
    for approval in approvals:
        _present(approval)
    names = [approval.name for approval in approvals]
    if not sys.stdin.isatty():
        from holdfast.config.trust import approving

        command = approving(*names).replace("trust", "trust --yes", 1)
        raise TrustError(f"{', '.join(names)}: nobody to ask; after reading it: {command}")
    return confirm("Approve it?" if len(names) == 1 else f"Approve these {len(names)}?")


def approve_in_place(config: Configuration, name: str) -> None:
    """Offer to approve a server that a verb is about to use. Raises TrustError at a no."""
    entry = config.servers[name]
    if entry.errors or entry.disabled or entry.trust().ok:
        return
    from holdfast.config import approve, preview

    seen = preview(config, name)
    _present(seen)
    if not confirm("Approve it and go on?"):
        raise TrustError(f"{name}: not approved")
    approve(config, name, seen=seen)


async def offer_login(request: LoginRequest) -> str | None:
    """Say who asks for a login and where; start it if the person agrees, else LoginFailed."""
    from holdfast._core.auth.browser import browser_login, describe

    tell(visible_lines(describe(request)))
    if not confirm("Log in now?", default=True):
        raise LoginFailed("the login was declined")
    with status.aside():
        return await browser_login(request)


def ask_input(wanted: ConfigInput) -> str | None:
    """Ask for a value that a configuration leaves to its user; None without a terminal."""
    if not sys.stdin.isatty():
        return None
    text = visible_lines(wanted.description or wanted.id)
    answer: str = click.prompt(text, hide_input=wanted.password, default=wanted.default, err=True)
    return answer


# What a server asks


class Questions:
    """The questions of a server to the person at the terminal, one after the other."""

    def __init__(self) -> None:
        import asyncio

        self._turn = asyncio.Lock()  # calls may ask at the same time
        self._asked: asyncio.Future[dict[str, Any]] | None = None
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
        if self._asked is not None:
            self._asked.cancel()

    async def _elicitation(self, request: AnyElicitation) -> dict[str, Any]:
        import asyncio

        async with self._turn:
            try:
                if self._is_open:
                    with status.aside():
                        self._asked = asyncio.ensure_future(answer(request, _ask))
                        return await self._asked
            except asyncio.CancelledError:
                if self._is_open:
                    raise
        return {"action": "cancel"}

    async def _approval(self, request: ApprovalRequest) -> bool:
        given = json.dumps(request.arguments, ensure_ascii=False, indent=2)
        shown = f"{visible(f'{request.server}.{request.tool}')} {visible_lines(given)}"
        async with self._turn:
            with status.aside():
                return await _agreed(f"{shown}\nCall it? [y/N] ", _ask, default=False)


async def _ask(text: str) -> str:
    """Read a line from the terminal, on the loop: a thread could not be cancelled."""
    import asyncio

    print(text, end="", file=sys.stderr, flush=True)
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(descriptor, typed.set)
    try:
        await typed.wait()
        data = os.read(descriptor, 65536)
    finally:
        loop.remove_reader(descriptor)
    if not data:
        raise EOFError
    return data.decode("utf-8", "replace").rstrip("\n")


async def answer(request: AnyElicitation, ask: Ask) -> dict[str, Any]:
    """Return the person's answer. No to the first question declines, Ctrl-D cancels."""
    from holdfast.types.inputs import UrlElicitation

    says = f"{paint('The server asks:', '1')} {visible_lines(request.message)}"
    try:
        if isinstance(request, UrlElicitation):
            text = f"{says}\n  {visible_lines(request.url)}\nOpen it yourself. Done? [y/N] "
            return {"action": "accept" if await _agreed(text, ask, default=False) else "decline"}
        if not await _agreed(f"{says}\nAnswer? [Y/n] ", ask, default=True):
            return {"action": "decline"}
        required = set(request.required)
        content = {
            name: await _field(name, schema, name in required, ask)
            for name, schema in request.fields.items()
        }
        given = {name: value for name, value in content.items() if value is not None}
        return {"action": "accept", "content": given}
    except EOFError:
        print(file=sys.stderr)
        return {"action": "cancel"}


async def _field(name: str, schema: dict[str, Any], required: bool, ask: Ask) -> Any:
    """Ask for one field until the answer fits or is left out."""
    default = schema.get("default")
    shown = f" [{default}]" if default is not None else "" if required else " (may be empty)"
    words = f"  {schema['description']}\n" if schema.get("description") else ""
    question = f"{words}  {schema.get('title') or name} ({describe(schema)}){shown}: "
    while True:
        text = (await ask(visible_lines(question))).strip()
        if not text and (default is not None or not required):
            return default
        try:
            if text:
                return _fitting(text, schema, name)
            told = "needed"
        except ValidationError as error:
            told = visible_lines(str(error))
        print(f"  {told}", file=sys.stderr)


def _fitting(text: str, schema: dict[str, Any], name: str) -> Any:
    """Convert the answer by the schema and check it, unless the schema cannot be used."""
    from holdfast.schema.explain import Unusable
    from holdfast.schema.validate import Checker

    if "array" in types(schema) and not text.startswith("["):
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


async def _agreed(question: str, ask: Ask, default: bool) -> bool:
    """Ask yes or no, until it is one: other words may be the answer to the next question."""
    said = (await ask(question)).strip().lower()
    while said not in ("", "y", "yes", "n", "no"):
        said = (await ask("  y or n: ")).strip().lower()
    return said in ("y", "yes") if said else default

"""A server's questions, asked at the terminal. Where nobody sits there, none are taken."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast._core.calls.handlers import ApprovalRequest, Handlers
from holdfast._core.text import visible, visible_lines
from holdfast.cli.arguments import coerce, describe
from holdfast.cli.consent import is_interactive
from holdfast.cli.output import paint
from holdfast.cli.progress import status
from holdfast.errors import ValidationError
from holdfast.schema.signature import types
from holdfast.types.inputs import AnyElicitation, FormElicitation, UrlElicitation

Ask = Callable[[str], Awaitable[str]]


def handlers() -> Handlers:
    """Elicitation, if there is a person to ask."""
    if not is_interactive():
        return Handlers()
    turn = asyncio.Lock()  # one question at a time, whoever asks

    async def elicitation(request: AnyElicitation) -> dict[str, Any]:
        async with turn:
            with status.aside():
                return await answer(request, _ask)

    async def approval(request: ApprovalRequest) -> bool:
        given = json.dumps(request.arguments, ensure_ascii=False, indent=2)
        shown = f"{visible(f'{request.server}.{request.tool}')} {visible_lines(given)}"
        async with turn:
            with status.aside():
                return await _agreed(f"{shown}\nCall it? [y/N] ", _ask, default=False)

    return Handlers(elicitation=elicitation, approval=approval)


async def _ask(text: str) -> str:
    print(text, end="", file=sys.stderr, flush=True)
    return await _line(sys.stdin.fileno())


async def _line(descriptor: int) -> str:
    """One line from a terminal. On the loop, not in a thread: that could not be cancelled."""
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
    """The person's answer. No to the first question declines, Ctrl-D puts it away."""
    try:
        if isinstance(request, UrlElicitation):
            return await _visit(request, ask)
        return await _fill(request, ask)
    except EOFError:
        _tell("")
        return {"action": "cancel"}


async def _visit(request: UrlElicitation, ask: Ask) -> dict[str, Any]:
    text = (
        f"{_says(request.message)}\n  {visible_lines(request.url)}\nOpen it yourself. Done? [y/N] "
    )
    return {"action": "accept" if await _agreed(text, ask, default=False) else "decline"}


async def _fill(request: FormElicitation, ask: Ask) -> dict[str, Any]:
    if not await _agreed(f"{_says(request.message)}\nAnswer? [Y/n] ", ask, default=True):
        return {"action": "decline"}
    content, required = {}, set(request.required)
    for name, schema in request.fields.items():
        value = await _field(name, schema, name in required, ask)
        if value is not None:
            content[name] = value
    return {"action": "accept", "content": content}


async def _field(name: str, schema: dict[str, Any], required: bool, ask: Ask) -> Any:
    """One field, asked until it fits or is left out."""
    default = schema.get("default")
    question = _question(name, schema, required)
    while True:
        text = (await ask(question)).strip()
        if not text and default is not None:
            return default
        if not text and not required:
            return None
        if not text:
            _tell("  needed")
            continue
        try:
            return _fitting(text, schema, name)
        except ValidationError as error:
            _tell(f"  {error}")


def _question(name: str, schema: dict[str, Any], required: bool) -> str:
    label = str(schema.get("title") or name)
    hint = "|".join(_titled(schema)) or describe(schema)
    default = schema.get("default")
    shown = f" [{default}]" if default is not None else "" if required else " (may be empty)"
    words = schema.get("description")
    return visible_lines(f"  {words}\n" if words else "") + visible_lines(
        f"  {label} ({hint}){shown}: "
    )


def _fitting(text: str, schema: dict[str, Any], name: str) -> Any:
    """Convert what was typed by the schema. Raises ValidationError."""
    if "array" in types(schema) and not text.startswith("["):
        value: Any = [coerce(part.strip(), schema.get("items"), name) for part in text.split(",")]
    else:
        value = coerce(text, schema, name)
    allowed = _values(schema)
    if allowed and not all(
        one in allowed for one in (value if isinstance(value, list) else [value])
    ):
        raise ValidationError(f"one of: {', '.join(map(str, allowed))}")
    _check(value, schema)
    return value


def _check(value: Any, schema: dict[str, Any]) -> None:
    """The rest that a schema may say: lengths, bounds, patterns. One that says nonsense is left."""
    from holdfast.schema.explain import Unusable
    from holdfast.schema.validate import Checker

    try:
        faults = Checker(schema).faults(value)
    except (Unusable, RecursionError):
        return
    if faults:
        raise ValidationError("; ".join(str(fault) for fault in faults))


def _values(schema: dict[str, Any]) -> list[Any]:
    """The values that a choice admits, of the field or of its items."""
    inner = _choice(schema)
    if isinstance(inner.get("enum"), list):
        return list(inner["enum"])
    return [one["const"] for one in _options(inner)]


def _titled(schema: dict[str, Any]) -> list[str]:
    inner = _choice(schema)
    titled = [
        f"{one['const']} ({one['title']})" if "title" in one else str(one["const"])
        for one in _options(inner)
    ]
    return titled or [str(value) for value in _values(schema)]


def _choice(schema: dict[str, Any]) -> dict[str, Any]:
    items = schema.get("items")
    return items if isinstance(items, dict) else schema


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    options = schema.get("oneOf", schema.get("anyOf"))
    found = options if isinstance(options, list) else []
    return [one for one in found if isinstance(one, dict) and "const" in one]


def _says(message: str) -> str:
    return f"{paint('The server asks:', '1')} {visible_lines(message)}"


def _tell(text: str) -> None:
    print(visible_lines(text), file=sys.stderr)


async def _agreed(question: str, ask: Ask, default: bool) -> bool:
    """Yes or no. Anything else is asked again: it may be the answer itself, come too early."""
    said = (await ask(question)).strip().lower()
    while said not in ("", "y", "yes", "n", "no"):
        said = (await ask("  y or n: ")).strip().lower()
    return said in ("y", "yes") if said else default

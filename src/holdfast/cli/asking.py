"""A server's questions, asked at the terminal. Where nobody sits there, none are taken."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from holdfast.calls.handlers import Handlers
from holdfast.cli.arguments import coerce, describe
from holdfast.cli.output import harmless, paint
from holdfast.errors import ValidationError
from holdfast.types.elicitation import AnyElicitation, FormElicitation, UrlElicitation

Ask = Callable[[str], str]


def handlers() -> Handlers:
    """Elicitation, if there is a person to ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return Handlers()
    return Handlers(elicitation=_asked)


async def _asked(request: AnyElicitation) -> dict[str, Any]:
    return await asyncio.to_thread(answer, request, _prompt)


def _prompt(text: str) -> str:
    print(text, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def answer(request: AnyElicitation, ask: Ask) -> dict[str, Any]:
    """The person's answer. Ctrl-D, or no to the first question, declines."""
    try:
        if isinstance(request, UrlElicitation):
            return _visit(request, ask)
        return _fill(request, ask)
    except EOFError:
        return {"action": "cancel"}


def _visit(request: UrlElicitation, ask: Ask) -> dict[str, Any]:
    text = f"{_says(request.message)}\n  {harmless(request.url)}\nOpen it yourself. Done? [y/N] "
    return {"action": "accept" if _yes(ask(text)) else "decline"}


def _fill(request: FormElicitation, ask: Ask) -> dict[str, Any]:
    properties = request.requested_schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    if not _yes(ask(f"{_says(request.message)}\nAnswer? [Y/n] "), default=True):
        return {"action": "decline"}
    content = {}
    for name, schema in fields.items():
        value = _field(name, schema, name in request.required, ask)
        if value is not None:
            content[name] = value
    return {"action": "accept", "content": content}


def _field(name: str, schema: Any, required: bool, ask: Ask) -> Any:
    """One field, asked until it fits or is left out."""
    schema = schema if isinstance(schema, dict) else {}
    label = harmless(str(schema.get("title") or name))
    hint = _choices(schema) or describe(schema)
    default = schema.get("default")
    shown = f" [{default}]" if default is not None else "" if required else " (may be empty)"
    words = schema.get("description")
    ask_for = f"  {harmless(str(words))}\n" if words else ""
    while True:
        text = ask(f"{ask_for}  {label} ({harmless(hint)}){shown}: ").strip()
        if not text and default is not None:
            return default
        if not text and not required:
            return None
        try:
            value = coerce(text, schema, label)
        except ValidationError as error:
            print(f"  {error}", file=sys.stderr)
            continue
        allowed = _values(schema)
        if text and (not allowed or _among(value, allowed)):
            return value
        print(
            f"  one of: {', '.join(map(str, allowed))}" if allowed else "  needed", file=sys.stderr
        )


def _values(schema: dict[str, Any]) -> list[Any]:
    """The values that a choice admits, of the field or of its items."""
    inner = schema.get("items") if isinstance(schema.get("items"), dict) else schema
    assert isinstance(inner, dict)
    if isinstance(inner.get("enum"), list):
        return list(inner["enum"])
    options = inner.get("oneOf", inner.get("anyOf"))
    found = options if isinstance(options, list) else []
    return [one["const"] for one in found if isinstance(one, dict) and "const" in one]


def _among(value: Any, allowed: list[Any]) -> bool:
    return all(one in allowed for one in value) if isinstance(value, list) else value in allowed


def _choices(schema: dict[str, Any]) -> str:
    return "|".join(map(str, _values(schema)))


def _says(message: str) -> str:
    return f"{paint('The server asks:', '1')} {harmless(message)}"


def _yes(text: str, default: bool = False) -> bool:
    return default if not text.strip() else text.strip().lower() in ("y", "yes")

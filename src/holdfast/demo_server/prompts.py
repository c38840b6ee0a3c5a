"""The prompts, and completion for their arguments and for the names of notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .resources import TEMPLATES
from .wire import INVALID_PARAMS, Json, RpcError

_STYLES = {
    "formal": "Write a formal greeting to {name}.",
    "friendly": "Write a friendly greeting to {name}.",
    "pirate": "Greet {name} the way a pirate would.",
    "poem": "Greet {name} in four rhyming lines.",
}

PROMPTS: list[Json] = [
    {
        "name": "greeting",
        "description": "Asks a model to greet somebody",
        "arguments": [
            {"name": "name", "description": "Whom to greet", "required": True},
            {"name": "style", "description": f"One of {', '.join(_STYLES)}", "required": False},
        ],
    },
    {"name": "tour", "description": "Asks a model to try out the tools of this server"},
]


def get(params: Json) -> Json:
    """One prompt, filled in."""
    name = params.get("name")
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments must be an object")
    if name == "greeting":
        return _message("A greeting", _greeting(arguments))
    if name == "tour":
        return _message("A tour", "Try each tool of the demo server once and tell what it did.")
    raise RpcError(INVALID_PARAMS, f"unknown prompt: {name!r}")


def complete(params: Json, note_names: Callable[[], list[str]]) -> Json:
    """The values that begin with what was typed so far."""
    argument = params.get("argument")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(INVALID_PARAMS, "argument must be an object with a name and a value")
    known = _known_values(params.get("ref"), argument.get("name"), note_names)
    values = sorted(value for value in known if value.startswith(argument["value"]))
    shown = values[:100]  # the protocol's limit
    return {
        "completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}
    }


def _known_values(ref: Any, name: Any, note_names: Callable[[], list[str]]) -> list[str]:
    match ref, name:
        case {"type": "ref/prompt", "name": "greeting"}, "style":
            return list(_STYLES)
        case {"type": "ref/prompt", "name": "greeting"}, "name":
            return []
        case {"type": "ref/resource", "uri": uri}, "name" if uri == TEMPLATES[0]["uriTemplate"]:
            return note_names()
    raise RpcError(INVALID_PARAMS, f"nothing to complete: ref {ref!r}, argument {name!r}")


def _greeting(arguments: Json) -> str:
    name, style = arguments.get("name"), arguments.get("style", "friendly")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "argument 'name' is missing or not a string")
    if not isinstance(style, str) or style not in _STYLES:
        raise RpcError(INVALID_PARAMS, f"argument 'style' must be one of {', '.join(_STYLES)}")
    return _STYLES[style].format(name=name)


def _message(description: str, text: str) -> Json:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": description, "messages": [message]}

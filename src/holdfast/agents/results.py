"""Results of tools as messages to language models, in the format of each provider.

Text goes to all of them. Pictures go where the provider takes them from a tool; what cannot
go is named in its place, so that the model knows it is there, and reported as a `Loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct

from holdfast.agents.outcome import Media, OutcomeParts, ToolOutcome, says_the_same
from holdfast.agents.schemas import Loss, below
from holdfast.types.tools import ToolResult

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
PDF: Final = "application/pdf"
_NOTHING: Final = "(no output)"


class ModelAnswer(Struct, frozen=True):
    """A message that answers a model's call, and what the tool gave that is not in it.

    ``outcome`` is for the developer: the result whole, or the error with its hint.
    """

    message: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    outcome: ToolOutcome = ToolOutcome()


def answer(
    shape: str,
    outcome: ToolOutcome | ToolResult | BaseException,
    *,
    call_id: str,
    name: str,
    media: bool = True,
) -> ModelAnswer:
    """Return the message for the call ``call_id`` of the tool ``name``.

    ``media=False`` is for models that take text alone from tools.
    """
    if isinstance(outcome, BaseException):
        outcome = ToolOutcome(error=outcome)
    elif isinstance(outcome, ToolResult):
        outcome = ToolOutcome(outcome)
    takes, build = _SHAPES[shape]
    parts = outcome.parts(takes if media else frozenset())
    return ModelAnswer(build(parts, call_id, name), tuple(parts.report), outcome)


# Putting together


def _openai(parts: OutcomeParts, call_id: str, name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": _text(parts)}


def _text(parts: OutcomeParts) -> str:
    """One text, which says itself if it is an error: there is no other place for that."""
    text = parts.text or _NOTHING
    return f"Error: {text}" if parts.is_error else text


def _responses(parts: OutcomeParts, call_id: str, name: str) -> dict[str, Any]:
    output: Any = _text(parts)
    if any(isinstance(one, Media) for one in parts.items):
        output = [_responses_item(one) for one in parts.items]
        if parts.is_error:
            output.insert(0, {"type": "input_text", "text": "Error:"})
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _responses_item(item: str | Media) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "input_text", "text": item}
    url = f"data:{item.mime_type};base64,{item.data}"
    if item.mime_type == PDF:
        filename = item.name.rpartition("/")[2] or "document.pdf"
        return {"type": "input_file", "filename": filename, "file_data": url}
    return {"type": "input_image", "image_url": url}


def _anthropic(parts: OutcomeParts, call_id: str, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if parts.is_error:
        # An error may hold nothing but text.
        return {**message, "content": _error_text(parts), "is_error": True}
    content = [_anthropic_block(one) for one in parts.items]
    return {**message, "content": content} if content else message


def _error_text(parts: OutcomeParts) -> str:
    for index, item in enumerate(parts.items):
        if isinstance(item, Media):
            where = below("", "content", index)
            parts.report.add(where, item.mime_type, "an error can hold text only")
    return parts.text or "The tool failed and gave no reason."


def _anthropic_block(item: str | Media) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    kind = "document" if item.mime_type == PDF else "image"
    source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
    return {"type": kind, "source": source}


def _gemini(parts: OutcomeParts, call_id: str, name: str) -> dict[str, Any]:
    response: dict[str, Any]
    if parts.is_error:
        response = {"error": parts.text or "The tool failed and gave no reason."}
    elif parts.structured is UNSET:
        response = {"output": parts.text}
    else:
        response = {"output": parts.structured}
        if parts.text and not says_the_same(parts.texts, parts.structured):
            response["text"] = parts.text
    found: dict[str, Any] = {"name": name, "response": response}
    if call_id:
        found["id"] = call_id
    media = [one for one in parts.items if isinstance(one, Media)]
    if media:
        found["parts"] = [
            {"inlineData": {"mimeType": one.mime_type, "data": one.data}} for one in media
        ]
    return {"functionResponse": found}


_GEMINI_MEDIA: Final = (PICTURES - {"image/gif"}) | {PDF}

_Build: TypeAlias = Callable[[OutcomeParts, str, str], dict[str, Any]]
_SHAPES: Final[dict[str, tuple[frozenset[str], _Build]]] = {
    "openai": (frozenset(), _openai),
    "openai-responses": (PICTURES | {PDF}, _responses),
    "anthropic": (PICTURES | {PDF}, _anthropic),
    "gemini": (_GEMINI_MEDIA, _gemini),
    "gemini-json": (_GEMINI_MEDIA, _gemini),
}

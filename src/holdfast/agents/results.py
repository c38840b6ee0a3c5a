"""What a tool gave, as a language model is told of it: one message for each provider.

Text goes to all of them. Pictures go where the provider takes them from a tool; what cannot
go is named in its place, so that the model knows it is there, and reported as a `Loss`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast.agents.schemas import Loss, Losses, below
from holdfast.types.content import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    UnknownContent,
)
from holdfast.types.tools import ToolResult

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
PDF: Final = "application/pdf"
_NOTHING: Final = "(no output)"


class ModelAnswer(Struct, frozen=True):
    """A message that answers a model's call, and what the tool gave that is not in it."""

    message: dict[str, Any]
    losses: tuple[Loss, ...] = ()


class Media(Struct, frozen=True):
    """A picture or a document: its type, its bytes as base64, and a name for it."""

    mime_type: str
    data: str
    name: str


class _Parts(Struct):
    """A result taken apart: texts and media in their order."""

    items: list[str | Media]
    is_error: bool
    structured: Any
    report: Losses

    @property
    def text(self) -> str:
        return "\n".join(one for one in self.items if isinstance(one, str))


def answer(
    shape: str, outcome: ToolResult | BaseException, *, call_id: str, name: str, media: bool = True
) -> ModelAnswer:
    """The message for the call ``call_id`` of the tool ``name``. An exception is told as an error.

    ``media=False`` is for models that take text alone from tools.
    """
    takes, build = _SHAPES[shape]
    parts = _take_apart(outcome, takes if media else frozenset())
    return ModelAnswer(build(parts, call_id, name), tuple(parts.report))


# Taking apart


def _take_apart(outcome: ToolResult | BaseException, takes: frozenset[str]) -> _Parts:
    if isinstance(outcome, BaseException):
        text = str(outcome) or type(outcome).__name__
        return _Parts([text], True, msgspec.UNSET, Losses())
    report = Losses()
    items: list[str | Media] = []
    for index, content in enumerate(outcome.content):
        found = _content(content, takes, below("", "content", index), report)
        if found != "":  # an empty text is refused by some
            items.append(found)
    structured = outcome.structured_content
    if not items and structured is not msgspec.UNSET:
        items.append(_json(structured))
    return _Parts(items, outcome.is_error, structured, report)


def _content(content: Any, takes: frozenset[str], where: str, report: Losses) -> str | Media:
    if isinstance(content, TextContent | TextResourceContents):
        return content.text
    if isinstance(content, EmbeddedResource):
        return _content(content.resource, takes, where, report)
    if isinstance(content, ResourceLink):
        kind = f", {content.mime_type}" if content.mime_type else ""
        return f"[resource {content.name!r}{kind}: {content.uri}]"
    if isinstance(content, ImageContent | AudioContent | BlobResourceContents):
        return _media(content, takes, where, report)
    named = content.get("type") if isinstance(content, UnknownContent) else type(content).__name__
    kind = str(named or "")
    report.add(where, kind or "content", "is of a kind that cannot be told")
    return f"[content of an unknown kind {kind!r}]"


def _media(
    content: ImageContent | AudioContent | BlobResourceContents,
    takes: frozenset[str],
    where: str,
    report: Losses,
) -> str | Media:
    kind = content.mime_type or "application/octet-stream"
    try:
        data = content.bytes
    except ValueError as error:
        report.add(where, kind, str(error))
        return f"[{kind}, which could not be read]"
    if kind in takes:
        # Encoded anew: one line break in it, and some providers refuse the whole request.
        return Media(kind, b64encode(data).decode(), getattr(content, "uri", ""))
    report.add(where, kind, "cannot be given to the model; its size and type are told")
    return f"[{kind}, {len(data)} bytes, not shown]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# Putting together


def _openai(parts: _Parts, call_id: str, name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": _text(parts)}


def _text(parts: _Parts) -> str:
    """One text, which says itself if it is an error: there is no other place for that."""
    text = parts.text or _NOTHING
    return f"Error: {text}" if parts.is_error else text


def _responses(parts: _Parts, call_id: str, name: str) -> dict[str, Any]:
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


def _anthropic(parts: _Parts, call_id: str, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if parts.is_error:
        # An error may hold nothing but text.
        return {**message, "content": _error_text(parts), "is_error": True}
    content = [_anthropic_block(one) for one in parts.items]
    return {**message, "content": content} if content else message


def _error_text(parts: _Parts) -> str:
    for index, item in enumerate(parts.items):
        if isinstance(item, Media):
            where = below("", "content", index)
            parts.report.add(where, item.mime_type, "an error is told in text alone")
    return parts.text or "The tool failed and gave no reason."


def _anthropic_block(item: str | Media) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    kind = "document" if item.mime_type == PDF else "image"
    source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
    return {"type": kind, "source": source}


def _gemini(parts: _Parts, call_id: str, name: str) -> dict[str, Any]:
    response: dict[str, Any]
    if parts.is_error:
        response = {"error": parts.text or "The tool failed and gave no reason."}
    elif parts.structured is msgspec.UNSET:
        response = {"output": parts.text}
    else:
        response = {"output": parts.structured}
        if parts.text and not _says_the_same(parts.text, parts.structured):
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


def _says_the_same(text: str, value: Any) -> bool:
    """Servers repeat a structured result as text, for those who read only that."""
    try:
        return bool(msgspec.json.decode(text) == value)
    except (msgspec.DecodeError, RecursionError):
        return False


_GEMINI_MEDIA: Final = (PICTURES - {"image/gif"}) | {PDF}

_SHAPES: Final[dict[str, tuple[frozenset[str], Callable[[_Parts, str, str], dict[str, Any]]]]] = {
    "openai": (frozenset(), _openai),
    "openai-responses": (PICTURES | {PDF}, _responses),
    "anthropic": (PICTURES | {PDF}, _anthropic),
    "gemini": (_GEMINI_MEDIA, _gemini),
    "gemini-json": (_GEMINI_MEDIA, _gemini),
}

"""Results of tools as messages to language models, in the format of each provider.

Text goes to all of them. Pictures go where the provider takes them from a tool; what cannot
go is named in its place, so that the model knows it is there, and reported as a `Loss`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from holdfast.agents.outcome import Media, OutcomeParts, ToolOutcome
from holdfast.agents.schemas import Loss, below
from holdfast.errors import ValidationError
from holdfast.policies import ToolPolicy
from holdfast.types.content import EmbeddedResource, TextContent, TextResourceContents
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.client import Client

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

_Build: TypeAlias = Callable[[OutcomeParts, str, str], dict[str, Any]]
_SHAPES: Final[dict[str, tuple[frozenset[str], _Build]]] = {
    "openai": (frozenset(), _openai),
    "openai-responses": (PICTURES | {PDF}, _responses),
    "anthropic": (PICTURES | {PDF}, _anthropic),
    "gemini": (_GEMINI_MEDIA, _gemini),
    "gemini-json": (_GEMINI_MEDIA, _gemini),
}


# Budgets


MOST: Final = 32
"""Results whose rest can be read; the oldest are forgotten first."""
PAGE: Final = 10_000
"""Characters of the rest that one call reads, unless told otherwise."""

READ_MORE: Final = Tool.make(
    "read_more",
    description=(
        "Read more of a result that was too long to be shown whole. Gives the characters from "
        "offset on."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle, as the result named it"},
            "offset": {"type": "integer", "minimum": 0},
            "length": {"type": "integer", "minimum": 1, "description": f"{PAGE} if left out"},
        },
        "required": ["handle", "offset"],
    },
)


class ResultBudget:
    """Cuts results to the budgets of a client's tools, and keeps the whole texts by handle."""

    def __init__(self, name: str, policy: ToolPolicy) -> None:
        self.wanted: bool = policy.budget is not None
        self._name = name
        self._policy = policy
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._count = 0

    def __contains__(self, handle: object) -> bool:
        return handle in self._texts

    def fit(self, name: str, result: ToolResult) -> ToolResult:
        """Return the result of a tool, cut to the tool's budget if it is longer."""
        budget = self._policy.budget_of(name)
        if budget is None or len(text := whole_text(result)) <= budget:
            return result
        self._count += 1
        handle = f"{self._name}-{self._count}"
        self._texts[handle] = text
        if len(self._texts) > MOST:
            self._texts.popitem(last=False)
        return shorten(result, budget, lambda at: f"read_more(handle={handle!r}, offset={at})")

    async def read(self, name: str, arguments: Mapping[str, Any], **options: Any) -> ToolResult:
        """Answer a call of `READ_MORE`."""
        handle, offset = arguments.get("handle"), arguments.get("offset")
        length = arguments.get("length", PAGE)
        if not isinstance(offset, int) or not isinstance(length, int):
            raise ValidationError("read_more: offset and length must be whole numbers")
        text = self._texts.get(str(handle))
        if text is None:
            raise ValidationError(f"read_more: there is no result {handle!r}, or no longer")
        part = text[offset : offset + max(length, 1)]
        end = offset + len(part)
        if end < len(text):
            part += f"\n[{len(text) - end} characters follow; go on at offset {end}]"
        return ToolResult(content=[TextContent(text=part)])


def budget_of(client: Client) -> ResultBudget:
    """Return the budget of a client: one, so that handles outlive a list of tools."""
    kept = client.__dict__
    if "_budget" not in kept:
        kept["_budget"] = ResultBudget(client.name, client._policy.tools)
    found: ResultBudget = kept["_budget"]
    return found


def whole_text(result: ToolResult) -> str:
    """Return all text of a result; the structured result if there is no text."""
    texts = [text for text in map(_text_of, result.content) if text is not None]
    if not texts and result.structured_content is not UNSET:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(texts)


def shorten(result: ToolResult, budget: int, more: Any) -> ToolResult:
    """Return a result whose text has a head, a note and a tail; `full` is the whole one.

    Args:
        result: A result whose text is longer than the budget.
        budget: The characters of head and tail together.
        more: Called with the length of the head; returns how to read what follows it.
    """
    text = whole_text(result)
    head = _clean_end(text[: budget - budget // 4])
    tail = _clean_start(text[len(text) - budget // 4 :]) if budget // 4 else ""
    left = len(text) - len(head) - len(tail)
    note = f"[{left} of {len(text)} characters left out here; the rest: {more(len(head))}]"
    media = [one for one in result.content if _text_of(one) is None]
    content = TextContent(text=f"{head}\n{note}\n{tail}".rstrip("\n"))
    found = ToolResult(content=[content, *media], is_error=result.is_error)
    found.__dict__["_full"] = result
    return found


def _text_of(content: Any) -> str | None:
    if isinstance(content, EmbeddedResource):
        content = content.resource
    return content.text if isinstance(content, TextContent | TextResourceContents) else None


_MARKS: Final = (("\n", 2), (" ", 5))
"""A line may cost half of the text to end cleanly, a word a fifth."""


def _clean_end(text: str) -> str:
    """Return a text without its last, broken line or word."""
    for mark, part in _MARKS:
        at = text.rfind(mark)
        if at >= len(text) - len(text) // part:
            return text[:at]
    return text


def _clean_start(text: str) -> str:
    """Return a text without its first, broken line or word."""
    for mark, part in _MARKS:
        at = text.find(mark)
        if 0 <= at < len(text) // part:
            return text[at + 1 :]
    return text

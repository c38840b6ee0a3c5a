"""Results that are too long for a model: cut at a clean place, with a way to the rest."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from holdfast.errors import ValidationError
from holdfast.policies import ToolPolicy
from holdfast.types.content import EmbeddedResource, TextContent, TextResourceContents
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.client import Client

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

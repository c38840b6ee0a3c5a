"""Results that are too long for a model: cut to a budget, the rest kept to be read by handle."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, structs

from holdfast._accounts import own_client
from holdfast._core.calls.invocation import Invocation, says_the_same, text_of
from holdfast._core.text import truncate
from holdfast.errors import ValidationError
from holdfast.policies import ToolPolicy
from holdfast.types.content import TextContent
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.client import Client

MOST: Final = 32
"""Results whose rest can be read; the oldest are forgotten first."""
MOST_CHARACTERS: Final = 1 << 26
"""Characters of all of them together."""
PAGE: Final = 10_000
"""Characters that one call may read, where the budget is smaller."""

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
            "length": {"type": "integer", "minimum": 1, "description": "How many at most"},
        },
        "required": ["handle", "offset"],
        "additionalProperties": False,
    },
)


class ResultBudget:
    """Cuts outcomes to the budgets of a client's tools, and keeps the whole texts by handle."""

    def __init__(self, name: str, policy: ToolPolicy) -> None:
        self.wanted: bool = policy.budget is not None
        self._name = name
        self._policy = policy
        self.texts: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """Each text with the budget that it was cut to."""
        self._count = 0

    def fit(self, name: str, outcome: Invocation) -> Invocation:
        """Return the outcome of a call, cut to the tool's budget if it is longer."""
        budget = self._policy.budget_of(name)
        if budget is None:
            return outcome
        text = outcome.text if outcome.result is None else whole_text(outcome.result)
        if len(text) <= budget:
            return outcome
        handle = self._keep(text, budget)
        shortened = cut(text, budget, lambda at: f"read_more(handle={handle!r}, offset={at})")
        if outcome.result is None:
            return structs.replace(outcome, message=shortened)
        result = shorten(outcome.result, shortened)
        return structs.replace(outcome, result=result, content=result.content)

    def _keep(self, text: str, budget: int) -> str:
        self._count += 1
        handle = f"{self._name}-{self._count}"
        self.texts[handle] = (text, budget)
        total = sum(len(text) for text, _ in self.texts.values())
        while len(self.texts) > MOST or (total > MOST_CHARACTERS and len(self.texts) > 1):
            total -= len(self.texts.popitem(last=False)[1][0])
        return handle


async def read_more(
    clients: Iterable[Client], arguments: Mapping[str, Any], **options: Any
) -> ToolResult:
    """Answer a call of `READ_MORE`: the budget that cut a result has the whole of it."""
    handle, budgets = arguments["handle"], map(budget_of, clients)
    text, budget = next((cut.texts[handle] for cut in budgets if handle in cut.texts), (None, 0))
    if text is None:
        quoted = truncate(repr(handle), 100)
        raise ValidationError(f"read_more: there is no result {quoted}, or no longer")
    # Some models write every number as a fraction.
    offset, length = int(arguments["offset"]), int(arguments.get("length", budget))
    part = text[offset : offset + min(length, max(budget, PAGE))]
    end = offset + len(part)
    if end < len(text):
        part += f"\n[{len(text) - end} characters follow; go on at offset {end}]"
    return ToolResult(content=[TextContent(text=part)])


def budget_of(client: Client) -> ResultBudget:
    """Return the budget of a client: one, so that handles outlive a list of tools.

    Of a client for many users, that of the caller: others must not read the results.
    """
    owner = own_client(client)
    if owner._budget is None:
        owner._budget = ResultBudget(client.name, client._policy.tools)
    return owner._budget


def whole_text(result: ToolResult) -> str:
    """Return all that a model could read of a result: its texts, and then its structured result.

    A structured result that the texts repeat counts once.
    """
    texts = [*filter(None, map(text_of, result.content))]
    value = result.structured_content
    if value is not UNSET and not says_the_same(texts, value):
        texts.append(json.dumps(value, ensure_ascii=False))
    return "\n".join(texts)


def shorten(result: ToolResult, text: str) -> ToolResult:
    """Return a result with one text, and its media; `full` is the whole one."""
    media = [item for item in result.content if text_of(item) is None]
    content = [TextContent(text=text), *media]
    shortened = structs.replace(result, content=content, structured_content=UNSET)
    shortened._notes = structs.replace(result._notes, full=result.full)
    return shortened


def cut(text: str, budget: int, advice: Callable[[int], str]) -> str:
    """Return head and tail of a text, and a note between them.

    Args:
        text: A text that is longer than the budget.
        budget: The characters of head and tail together.
        advice: Called with the length of the head; returns how to read what follows it.
    """
    head = _clean(text[: budget - budget // 4])
    tail = _clean(text[len(text) - budget // 4 :][::-1])[::-1] if budget // 4 else ""
    omitted = len(text) - len(head) - len(tail)
    note = f"[{omitted} of {len(text)} characters left out here; the rest: {advice(len(head))}]"
    return f"{head}\n{note}\n{tail}".rstrip("\n")


_MARKS: Final = (("\n", 2), (" ", 5))
"""A line may cost half of the text to end cleanly, a word a fifth."""


def _clean(text: str) -> str:
    """Return a text without its last, broken line or word."""
    for mark, part in _MARKS:
        at = text.rfind(mark)
        if at >= len(text) - len(text) // part:
            return text[:at]
    return text

"""Search tools by keywords, in memory.

Names, titles, descriptions and parameters are split into words (``readTextFile``,
``read_text_file`` and ``read.text-file`` are the same three), and ranked by BM25: rare words
count more, words in the name more than words in the text. Words that begin alike (``file``,
``files``) match too, and misspelt words the nearest ones. The result is deterministic.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from holdfast._core.calls.invocation import Invocation
from holdfast._core.text import close_matches, truncate
from holdfast.agents.budget import READ_MORE, budget_of, read_more
from holdfast.agents.listing import ModelTool, ServerTool, for_models, local_tool
from holdfast.agents.naming import hint
from holdfast.agents.providers import fenced, fenced_schema
from holdfast.agents.schemas import Losses, object_root
from holdfast.errors import ValidationError
from holdfast.schema.walk import properties
from holdfast.types.content import TextContent
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.servers.group import Servers

WEIGHTS: Final = {"name": 4.0, "server": 2.0, "title": 2.0, "parameters": 1.5, "description": 1.0}
SATURATION: Final = 1.2
LENGTH: Final = 0.6
"""The weight of a description's length."""
BEGINNING: Final = 0.6
SLIP: Final = 0.4
LONGEST: Final = 4000
"""Characters of a description that are looked at, and shown."""

_RUNS: Final = re.compile(r"[^\W_]+")
_SEAMS: Final = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[0-9])(?=[^0-9])|(?<=[^0-9])(?=[0-9])"
)
"""Inside ``readFile``, ``HTTPServer`` and ``utf8``; not inside ``URLs``."""
_SMALL: Final = """
a an and are as at be by do for from how i in into is it me my of on or please that the this to
use want what which with you your
"""
_EMPTY: Final = frozenset(_SMALL.split())


class Hit(Struct, frozen=True):
    """A tool that matches, and its score, which compares within one search."""

    tool: ServerTool
    score: float


def words(text: str) -> list[str]:
    """Return the words of a name or a text, in lower case."""
    return [word.casefold() for run in _RUNS.findall(text) for word in _SEAMS.split(run)]


class ToolIndex:
    """An index of tools."""

    def __init__(self, tools: Iterable[ServerTool]) -> None:
        self.tools: list[ServerTool] = list(tools)
        self._tools = sorted(self.tools, key=lambda tool: tool.name)
        counts = [_counts(tool) for tool in self._tools]
        lengths = [sum(count.values()) for count in counts]
        mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
        self._words: dict[str, dict[int, float]] = {}
        """For each word, its frequency in each tool that has it."""
        for place, length in enumerate(lengths):
            damping = SATURATION * (1 - LENGTH + LENGTH * (length / mean))
            for word, count in counts[place].items():
                frequency = count * (SATURATION + 1) / (count + damping)
                self._words.setdefault(word, {})[place] = frequency

    def __repr__(self) -> str:
        return f"<ToolIndex {len(self._tools)} tools, {len(self._words)} words>"

    def __len__(self) -> int:
        return len(self._tools)

    def search(self, query: str, limit: int = 5) -> list[Hit]:
        """Return the tools that match best, best first."""
        query_words = {*words(query[:LONGEST])}
        scores: dict[int, float] = {}
        for word in sorted(query_words - _EMPTY or query_words):
            best: dict[int, float] = {}
            for term, weight in self._readings(word):
                places = self._words[term]
                rarity = math.log(1 + (len(self._tools) - len(places) + 0.5) / (len(places) + 0.5))
                for place, frequency in places.items():
                    best[place] = max(best.get(place, 0.0), weight * rarity * frequency)
            for place, score in best.items():
                scores[place] = scores.get(place, 0.0) + score
        # Names break ties, so that equals always come in the same order.
        ranked = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
        return [Hit(self._tools[place], round(score, 6)) for place, score in ranked[:limit]]

    def _readings(self, word: str) -> list[tuple[str, float]]:
        """Return the known words that it may mean: itself, those that begin alike, or near ones."""
        exact = [(word, 1.0)] if word in self._words else []
        begun = [
            (term, BEGINNING)
            for term in self._words
            if term != word
            and min(len(term), len(word)) >= 3
            and (term.startswith(word) or word.startswith(term))
        ]
        near = [] if exact or begun or len(word) < 4 else close_matches(word, self._words, 3, 0.75)
        return [*exact, *begun, *((term, SLIP) for term in near)]


def _counts(server_tool: ServerTool) -> dict[str, float]:
    """Return the weight of each word of a tool, by where it stands."""
    tool = server_tool.tool
    texts = {
        "name": tool.name,
        "server": server_tool.server,
        "title": tool.title or "",
        "parameters": " ".join(properties(tool.input_schema)),
        "description": (tool.description or "")[:LONGEST],
    }
    counts: dict[str, float] = {}
    for field, text in texts.items():
        for word, count in Counter(words(text)).items():
            # A word said often in one place says little more than said once.
            counts[word] = counts.get(word, 0.0) + WEIGHTS[field] * (1 + math.log(count))
    return counts


# Meta tools


SEARCH: Final = Tool.make(
    "search_tools",
    description=(
        "Find tools by keywords. Gives the names, descriptions and parameters of those that "
        "fit best; call them with call_tool."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words"},
            "limit": {
                "type": "integer",
                "description": "How many to give at most (5 if left out)",
                "minimum": 1,
                "maximum": 20,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
CALL: Final = Tool.make(
    "call_tool",
    description="Call a tool that search_tools found.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name, as search_tools gave it"},
            "arguments": {"type": "object", "description": "What to give the tool"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)


def finder_tools(servers: Servers, *, fence: bool = False) -> list[ModelTool]:
    """Return ``search_tools`` and ``call_tool``; ``fence`` marks the descriptions they return."""
    return [
        local_tool(SEARCH, partial(_search, servers, fence)),
        local_tool(CALL, partial(_call, servers)),
    ]


async def _search(
    servers: Servers, fence: bool, arguments: Mapping[str, Any], **options: Any
) -> ToolResult:
    hits = await servers.search(arguments["query"], limit=int(arguments.get("limit", 5)))
    answer: dict[str, Any] = {"tools": [described(hit.tool, fence=fence) for hit in hits]}
    if hits.failures:
        answer["unavailable"] = [failure.server for failure in hits.failures]
    return ToolResult(content=[TextContent(text=json.dumps(answer, ensure_ascii=False))])


def described(tool: ServerTool, *, fence: bool) -> dict[str, Any]:
    """Return what a model needs to call a tool; ``fence`` marks what the server says."""
    text, schema = (
        truncate(tool.description, LONGEST),
        object_root(tool.tool.input_schema, Losses()),
    )
    if fence:
        text, schema = fenced(text, tool.server), fenced_schema(schema, tool.server)
    return {"name": tool.name, "description": text, "parameters": schema}


async def _call(servers: Servers, arguments: Mapping[str, Any], **options: Any) -> Invocation:
    name, inner_arguments = arguments["name"], arguments.get("arguments")
    if name == READ_MORE.name:
        members = servers._members.values()
        clients = [member.client for member in members if member.client is not None]
        return await local_tool(READ_MORE, partial(read_more, clients)).call(inner_arguments)
    server, tool = servers.model_names.resolve(name)
    client = servers[server]
    if tool not in client.tools:
        await client.list_tools()
    definition = client.tools.get(tool)
    if definition is None or not for_models(definition):
        names = (tool_name for tool_name, listed in client.tools.items() if for_models(listed))
        raise ValidationError(f"no tool of {server} is called {tool!r}{hint(tool, names)}")
    budget = partial(budget_of, client)
    model_tool = ModelTool(server, definition, name, client.call_tool, budget, client)
    return await model_tool.call(inner_arguments, **options)

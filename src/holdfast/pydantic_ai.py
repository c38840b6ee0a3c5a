"""A toolset for Pydantic AI.

    async with holdfast.connect("python server.py") as client:
        agent = Agent(model, toolsets=[holdfast.pydantic_ai.toolset(client)])
        await agent.run("…")

Needs ``pydantic-ai-slim``. Cancelling a run cancels its calls on their servers.
"""

from __future__ import annotations

from base64 import b64decode
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from holdfast._core.calls.invocation import Invocation
from holdfast.agents.listing import ToolSource

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

    from holdfast.agents.listing import ModelTool
    from holdfast.client import Client
    from holdfast.servers.group import Servers


def toolset(
    source: Client | Servers,
    *,
    id: str | None = None,  # noqa: A002  (Pydantic AI's word)
    max_retries: int | None = None,
) -> AbstractToolset[Any]:
    """Return the tools of a client, or of many servers, as a toolset for an agent.

    Structured results are returned as they are, pictures and sounds as ``BinaryContent``; the
    ``metadata`` of a tool's return has the ``structured_content``. Arguments that do not fit
    become a ``ModelRetry``. Every other failure becomes a ``ToolFailed``, which the model reads
    and which uses up no retries; it has ``kind``, ``outcome_unknown`` and ``retry_in``, and the
    error as its ``__cause__``.

    Args:
        source: The client or the servers. They stay yours to close.
        id: The toolset's id, for durable execution. Default: the server's name.
        max_retries: How often a model may correct its arguments. Default: the agent's own.
    """
    tools = ToolSource(source)
    made: AbstractToolset[Any] = _toolset_class()(tools, id or tools.name, max_retries)
    return made


@cache
def _toolset_class() -> Any:
    from pydantic import TypeAdapter
    from pydantic_ai import ModelRetry, ToolFailed, ToolReturn
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    anything = TypeAdapter(dict[str, Any]).validator

    class HoldfastToolFailed(ToolFailed):  # type: ignore[misc, unused-ignore]
        """A call that failed."""

        def __init__(self, outcome: Invocation) -> None:
            super().__init__(outcome.text)
            self.kind = outcome.kind
            self.outcome_unknown = outcome.outcome_unknown
            self.retry_in = outcome.retry_in

    def _definition(tool: ModelTool) -> Any:
        hints = tool.annotations
        annotations = None if hints is None else hints.raw
        return ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.input_schema,
            metadata={"meta": tool.tool.meta, "annotations": annotations},
        )

    class HoldfastToolset(AbstractToolset[Any]):  # type: ignore[misc, unused-ignore]
        """The tools of a client, or of many servers."""

        def __init__(self, source: ToolSource, name: str, max_retries: int | None) -> None:
            self._source = source
            self._name = name
            self._max_retries = max_retries

        @property
        def id(self) -> str:
            """The id of the toolset."""
            return self._name

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            """Return the tools that the agent may use now."""
            definitions = await self._source.convert(_definition)
            return {
                definition.name: await self.get_tool_for_tool_def(definition, ctx)
                for definition in definitions
            }

        async def get_tool_for_tool_def(self, tool_def: Any, ctx: Any) -> Any:
            """Return the tool of a definition."""
            return ToolsetTool(
                toolset=self,
                tool_def=tool_def,
                max_retries=ctx.max_retries if self._max_retries is None else self._max_retries,
                args_validator=anything,
            )

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            """Call a tool; raise the framework's own errors."""
            outcome = await self._source.call(name, tool_args)
            if outcome.kind == "validation":
                raise ModelRetry(outcome.text) from outcome.exception
            if not outcome.success:
                raise HoldfastToolFailed(outcome) from outcome.exception
            return ToolReturn(_value(outcome), metadata=outcome.facts())

    return HoldfastToolset


def _value(outcome: Invocation) -> Any:
    parts = outcome.parts()
    if not parts.media:
        return parts.text if parts.structured is UNSET else parts.structured
    from pydantic_ai import BinaryContent

    values = [
        item
        if isinstance(item, str)
        else BinaryContent(b64decode(item.data), media_type=item.mime_type)
        for item in parts.items
    ]
    return values[0] if len(values) == 1 else values

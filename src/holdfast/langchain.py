"""Tools for LangChain and LangGraph.

    async with holdfast.connect("python server.py") as client:
        agent = create_agent(model, tools=await holdfast.langchain.tools(client))
        await agent.ainvoke({"messages": "…"})

Without a loop, `sync_tools` takes a client of `holdfast.sync`. Needs ``langchain-core``.
Cancelling a run cancels its calls on their servers.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast._core.calls.invocation import Invocation
from holdfast.agents.listing import ToolSource, convert_each

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

    from holdfast.agents.listing import ModelTool, SyncModelTool
    from holdfast.client import Client
    from holdfast.servers.group import Servers
    from holdfast.sync.client import Client as SyncClient
    from holdfast.sync.servers import Servers as SyncServers

log: logging.Logger = logging.getLogger("holdfast")


async def tools(source: Client | Servers) -> list[StructuredTool]:
    """Return the tools of a client, or of many servers, as LangChain's.

    Pictures, sounds and files become content blocks. The ``artifact`` of a `ToolMessage` has the
    ``structured_content``; of one whose ``status`` is ``"error"``, it has ``kind``,
    ``outcome_unknown``, ``retry_in`` and ``details``, which are not shown to the model.

    Args:
        source: The client or the servers. They stay yours to close.

    Raises:
        HoldfastError: The server's tools cannot be listed.
    """
    return await ToolSource(source).convert(lambda tool: _tool(tool, "coroutine"))


def sync_tools(source: SyncClient | SyncServers) -> list[StructuredTool]:
    """Return the tools of a client, or of servers, of `holdfast.sync`, as LangChain's.

    They are for ``agent.invoke(…)``; ``ainvoke`` runs them in threads. They answer as `tools` does.

    Args:
        source: The client or the servers. They stay yours to close.

    Raises:
        HoldfastError: The server's tools cannot be listed.
    """
    listed = source.model_tools()
    for failure in listed.failures:
        log.warning("%s", failure)
    return convert_each(
        listed, lambda tool: _tool(tool, "func"), lambda _, text: log.warning("%s", text)
    )


def _tool(tool: ModelTool | SyncModelTool, runs: str) -> StructuredTool:
    # LangGraph evaluates the annotations of what runs: those of ``tool.call`` are not all loaded.
    def call(arguments: dict[str, Any]) -> Any:
        return tool.call(arguments)

    hints = tool.annotations
    made: StructuredTool = _tool_class()(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=tool.input_schema,
        **{runs: call},
        response_format="content_and_artifact",
        metadata=None if hints is None else hints.raw,
    )
    return made


@cache
def _tool_class() -> Any:
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import StructuredTool

    class HoldfastTool(StructuredTool):  # type: ignore[misc, unused-ignore]
        """A tool of an MCP server."""

        async def arun(self, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
            answer = await super().arun(*args, tool_call_id=tool_call_id, **options)
            return named(answer, tool_call_id)

        def run(self, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
            return named(super().run(*args, tool_call_id=tool_call_id, **options), tool_call_id)

        # LangChain looks for its own parameters in these, such as ``config`` and ``run_manager``,
        # and would take a server's parameters of those names for them.

        async def _arun(self, /, **arguments: Any) -> Any:
            return self._answer(await self.coroutine(arguments))

        def _run(self, /, **arguments: Any) -> Any:
            return self._answer(self.func(arguments))

        def _answer(self, outcome: Invocation) -> tuple[Any, Any]:
            text, facts = outcome.text, outcome.facts()
            if outcome.success:
                return _content(outcome), facts
            # The id of the call is known to the tool alone, which writes it in.
            options = {"artifact": facts, "tool_call_id": "", "name": self.name}
            return ToolMessage(text, status="error", **options), None

    def named(answer: Any, tool_call_id: str | None) -> Any:
        if isinstance(answer, ToolMessage) and answer.status == "error":
            if tool_call_id is None:
                return answer.content
            answer.tool_call_id = tool_call_id
        return answer

    return HoldfastTool


def _content(outcome: Invocation) -> Any:
    parts = outcome.parts()
    if not parts.media:
        return parts.text
    return parts.blocks(
        lambda item: {"type": item.kind, "base64": item.data, "mime_type": item.mime_type}
    )

"""A server for the OpenAI Agents SDK.

    async with holdfast.connect("python server.py") as client:
        agent = Agent("assistant", mcp_servers=[holdfast.openai_agents.server(client)])
        await Runner.run(agent, "…")

Needs ``openai-agents``. Cancelling a run cancels its calls on their servers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agents.listing import ToolSource, wire_definition
from holdfast.agents.providers import PICTURES
from holdfast.client import Client
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from agents.mcp import MCPServer

    from holdfast._core.calls.invocation import Invocation
    from holdfast.servers.group import Servers


def server(source: Client | Servers, **options: Any) -> MCPServer:
    """Return a client, or many servers, as one server for an agent's ``mcp_servers``.

    A call that failed is a result for the model, with ``isError``; its ``_meta["holdfast"]`` has
    ``kind``, ``outcome_unknown``, ``retry_in`` and ``details``, which are not shown to the model,
    and so has the ``custom_data`` of the output item.

    Args:
        source: The client or the servers. They stay yours to close.
        options: Those of ``agents.mcp.MCPServer``, such as ``require_approval``.
    """
    made: MCPServer = _server_class()(source, **options)
    return made


@cache
def _server_class() -> Any:
    from agents.mcp import MCPServer
    from mcp import types

    class HoldfastServer(MCPServer):  # type: ignore[misc, unused-ignore]
        """A client, or many servers, as one server."""

        def __init__(self, source: Client | Servers, **options: Any) -> None:
            super().__init__(**{"custom_data_extractor": _custom_data, **options})
            self._client = source if isinstance(source, Client) else None
            self._tools = ToolSource(source)

        @property
        def name(self) -> str:
            """The name of the server."""
            return self._tools.name

        async def connect(self) -> None:
            """Do nothing: servers start at their first use."""

        async def cleanup(self) -> None:
            """Do nothing: the client's owner closes it."""

        async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
            """Return the tools that the agent may use now."""
            return await self._tools.convert(
                lambda tool: types.Tool.model_validate(wire_definition(tool))
            )

        async def call_tool(
            self,
            tool_name: str,
            arguments: dict[str, Any] | None,
            meta: dict[str, Any] | None = None,
        ) -> Any:
            """Call a tool; an error is a result that the model can read."""
            outcome = await self._tools.call(tool_name, arguments, meta=meta)
            return types.CallToolResult.model_validate(_result(outcome))

        async def list_prompts(self) -> Any:
            """Return the prompts of the server."""
            prompts = await self._client.list_prompts() if self._client else []
            plain = [msgspec.to_builtins(prompt) for prompt in prompts]
            return types.ListPromptsResult.model_validate({"prompts": plain})

        async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
            """Return a prompt with its arguments filled in."""
            if self._client is None:
                raise ValidationError(f"prompt {name!r}: give one client, not many servers")
            prompt = await self._client.get_prompt(name, arguments)
            return types.GetPromptResult.model_validate(prompt.raw)

    return HoldfastServer


def _result(outcome: Invocation) -> dict[str, Any]:
    parts = outcome.parts(PICTURES)
    content = parts.blocks(
        lambda item: {"type": "image", "data": item.data, "mimeType": item.mime_type}
    )
    result: dict[str, Any] = {"content": content, "isError": parts.is_error}
    if parts.is_error:
        result["_meta"] = {"holdfast": outcome.facts()}
    elif isinstance(parts.structured, dict):
        result["structuredContent"] = parts.structured
    return result


def _custom_data(context: Any) -> dict[str, Any] | None:
    """Return what the developer should know of a failed call."""
    meta = context.result_meta
    return {"holdfast": dict(meta["holdfast"])} if meta and "holdfast" in meta else None

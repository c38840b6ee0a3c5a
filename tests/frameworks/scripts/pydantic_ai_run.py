"""Pydantic AI, with a function as its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import WrapperToolset

import holdfast
from tests.frameworks.scripts.story import (
    NAMED,
    Once,
    cancelled,
    connect,
    main,
    measure,
    server,
    snippet,
    tell,
)


def model(script: Any) -> FunctionModel:
    def answer(messages: Any, info: Any) -> ModelResponse:
        part = messages[-1].parts[-1]
        said = part.model_response_str() if hasattr(part, "tool_call_id") else None
        call = script.next(said)
        return ModelResponse(parts=[TextPart("done") if call is None else ToolCallPart(*call)])

    return FunctionModel(answer)


async def run(toolset: Any, script: Any) -> Any:
    return await Agent(model(script), toolsets=[toolset]).run("record all steps")


class Watching(WrapperToolset[Any]):  # type: ignore[misc, unused-ignore]
    """Sees the failures that tools raise."""

    failures: ClassVar[list[Any]] = []

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except ToolFailed as failure:
            self.failures.append([failure.kind, failure.outcome_unknown, failure.retry_in])
            raise


async def parts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with connect(folder / "ours") as client:
        ours = holdfast.pydantic_ai.toolset(client)
        found["holdfast"] = await tell(lambda script: run(ours, script), folder / "ours")
        found["holdfast"]["seconds"] = await measure(
            lambda: ours.call_tool("recorded", {}, None, None)
        )
        for name in ("picture", "recorded", "refuse", "record"):
            ended = await run(Watching(ours), Once(name))
            (part,) = ended.all_messages()[2].parts[-1:]
            found[name] = {
                "kind": part.part_kind,
                "outcome": getattr(part, "outcome", None),
                "content": str(part.content),
                "type": type(part.content).__name__,
                "metadata": getattr(part, "metadata", None),
            }
        ended = await run(ours, Once("named", **NAMED))
        found["named"] = ended.all_messages()[2].parts[-1].content
        found["failures"] = Watching.failures
        # Every tool but the one that waits for ever.
        calm = ours.filtered(lambda ctx, definition: definition.name != "wait")
        tested = await Agent(TestModel(), toolsets=[calm]).run("go")
        found["tested"] = tested.output
        found["id"] = ours.id
        found["cancelled"] = await cancelled(lambda: run(ours, Once("wait")), folder / "ours")
    async with holdfast.Servers({"a": server(folder / "a"), "b": ["no-such-program"]}) as servers:
        many = holdfast.pydantic_ai.toolset(servers)
        ended = await run(many, Once("a__recorded"))
        found["many"] = str(ended.all_messages()[2].parts[-1].content)

    async with holdfast.connect([*server(folder / "odd"), "--odd"]) as client:
        odd = holdfast.pydantic_ai.toolset(client)
        seen: list[str] = []

        def note(ctx: Any, definition: Any) -> bool:
            seen.append(definition.name)
            return bool(definition.name != "wait")

        await Agent(TestModel(call_tools=[]), toolsets=[odd.filtered(note)]).run("go")
        found["odd"] = list(dict.fromkeys(seen))

    names = {"Agent": Agent, "model": model(Once("recorded"))}
    shown = await snippet("pydantic-ai.md", folder, names)
    found["snippet"] = shown.all_messages()[2].parts[-1].model_response_str()

    command, *words = server(folder / "native")
    native = MCPToolset(StdioTransport(command, words))
    async with native:
        found["native"] = await tell(lambda script: run(native, script), folder / "native")
    native = MCPToolset(StdioTransport(command, words))
    async with native:
        found["native"]["seconds"] = await measure(lambda: native.client.call_tool("recorded", {}))
    return found


if __name__ == "__main__":
    main(parts)

"""The OpenAI Agents SDK, with a stub for its model."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

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

set_tracing_disabled(True)


class Stub(Model):  # type: ignore[misc, unused-ignore]
    """A model that does what the script says."""

    def __init__(self, script: Any) -> None:
        self.script = script
        self.items: list[Any] = []

    async def get_response(self, **asked: Any) -> Any:
        given = asked["input"]
        last = given[-1] if isinstance(given, list) else {}
        output = last.get("output") if last.get("type") == "function_call_output" else None
        call = self.script.next(None if output is None else _text(output))
        item: Any = ResponseOutputMessage(
            id="1",
            type="message",
            role="assistant",
            status="completed",
            content=[ResponseOutputText(type="output_text", text="done", annotations=[])],
        )
        if call is not None:
            item = ResponseFunctionToolCall(
                type="function_call",
                call_id=f"c{len(given)}",
                name=call[0],
                arguments=json.dumps(call[1]),
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    async def stream_response(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError
        yield


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(one.get("text", "") for one in output)


async def run(given: Any, script: Any) -> Any:
    agent = Agent("recorder", model=Stub(script), mcp_servers=[given])
    return await Runner.run(agent, "record all steps", max_turns=30)


async def parts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with connect(folder / "ours") as client:
        ours = holdfast.openai_agents.server(client)
        found["holdfast"] = await tell(lambda script: run(ours, script), folder / "ours")
        found["holdfast"]["seconds"] = await measure(lambda: ours.call_tool("recorded", {}))
        for name in ("picture", "recorded", "refuse", "record"):
            ended = await run(ours, Once(name))
            item = ended.new_items[1]
            found[name] = {"output": item.output, "custom": getattr(item, "custom_data", None)}
            result = await ours.call_tool(name, {})
            found[name]["result"] = result.model_dump(mode="json", by_alias=True)
        ended = await run(ours, Once("named", **NAMED))
        found["named"] = ended.new_items[1].output["text"]
        tools = await ours.list_tools()
        found["annotations"] = tools[1].annotations.model_dump(mode="json", by_alias=True)
        found["cancelled"] = await cancelled(lambda: run(ours, Once("wait")), folder / "ours")
    async with holdfast.Servers({"a": server(folder / "a"), "b": ["no-such-program"]}) as servers:
        many = holdfast.openai_agents.server(servers)
        found["many"] = [tool.name for tool in await many.list_tools()]

    async with holdfast.connect([*server(folder / "odd"), "--odd"]) as client:
        odd = holdfast.openai_agents.server(client)
        found["odd"] = [tool.name for tool in await odd.list_tools()]
        await run(odd, Once("recorded"))

    names = {"Agent": partial(Agent, model=Stub(Once("recorded"))), "Runner": Runner}
    shown = await snippet("openai-agents.md", folder, names)
    found["snippet"] = shown.new_items[1].output["text"]

    command, *words = server(folder / "native")
    async with MCPServerStdio({"command": command, "args": words}) as native:
        found["native"] = await tell(lambda script: run(native, script), folder / "native")
    async with MCPServerStdio({"command": command, "args": words}) as native:
        found["native"]["seconds"] = await measure(lambda: native.call_tool("recorded", {}))
    return found


if __name__ == "__main__":
    main(parts)
